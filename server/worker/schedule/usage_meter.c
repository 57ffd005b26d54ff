/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/schedule/usage_meter.h"

#include "base/clock.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/gpu_timestamp.h"

#include <errno.h>
#include <stdlib.h>

_Static_assert(2 * GPD_USAGE_METER_ENTRIES <= GPD_GPU_TIMESTAMP_WORDS, "words for all entries");

struct gpd_usage_meter_entry {
	struct gpd_usage_meter_entry *next;
	CUstream stream;     /* only compared; it may be destroyed */
	uint32_t begin, end; /* its words */
	bool timed;
	bool polled;       /* measured by polling, not by the GPU's clock */
	uint64_t begun_ns; /* time of the poll that found its start; 0: none yet */
	bool plain;        /* no marker: done when its stream, which exists, is idle */
	bool gone;         /* its end is unknown or does not matter any more */
	uint32_t launches;
	uint32_t before; /* launches of entries that this one covers */
	uint32_t times;
	uint64_t serial;
};

int
gpd_usage_meter_init(struct gpd_usage_meter *meter, int device)
{
	*meter = (struct gpd_usage_meter){ .device = device, .page = gpd_marker_page_acquire() };
	if (!meter->page)
		return -ENOMEM;
	pthread_mutex_init(&meter->lock, NULL);
	return 0;
}

static void
entries_free(struct gpd_usage_meter_entry *entry)
{
	while (entry) {
		struct gpd_usage_meter_entry *next = entry->next;

		free(entry);
		entry = next;
	}
}

void
gpd_usage_meter_fini(struct gpd_usage_meter *meter)
{
	entries_free(meter->first);
	entries_free(meter->free);
	gpd_marker_page_release(meter->page);
	pthread_mutex_destroy(&meter->lock);
}

static struct gpd_usage_meter_entry *
entry_create(struct gpd_usage_meter *meter)
{
	struct gpd_usage_meter_entry *entry = calloc(1, sizeof(*entry));

	if (!entry)
		return NULL;
	entry->begin = 2 * meter->made++;
	entry->end = entry->begin + 1;
	return entry;
}

static struct gpd_usage_meter_entry *
entry_acquire(struct gpd_usage_meter *meter)
{
	struct gpd_usage_meter_entry *entry;

	pthread_mutex_lock(&meter->lock);
	entry = meter->free;
	if (entry)
		meter->free = entry->next;
	pthread_mutex_unlock(&meter->lock);
	return entry ? entry : entry_create(meter);
}

static void
entry_release(struct gpd_usage_meter *meter, struct gpd_usage_meter_entry *entry)
{
	entry->next = meter->free;
	meter->free = entry;
	atomic_fetch_sub(&meter->entries, 1);
}

/* The first entry of a batch is opened before there are others. false: its time cannot be
 * measured. */
static bool
entry_begin(struct gpd_usage_meter *meter, struct gpd_usage_meter_entry *entry, bool alone)
{
	if (meter->open_count)
		meter->open[0]->polled = true;
	entry->polled =
		!alone || meter->open_count ||
		!gpd_gpu_timestamp_record(meter->device, entry->stream, meter->page, entry->begin);
	return !entry->polled ||
	       gpd_gpu_timestamp_write_marker(entry->stream, meter->page, entry->begin);
}

void
gpd_usage_meter_open(struct gpd_usage_meter *meter, CUstream stream, bool timed, bool alone)
{
	struct gpd_usage_meter_entry *entry =
		gpd_usage_meter_has_room(meter) ? entry_acquire(meter) : NULL;

	if (!entry)
		return;
	atomic_fetch_add(&meter->entries, 1);
	entry->stream = stream;
	entry->serial = ++meter->serial;
	entry->plain = entry->gone = false;
	entry->before = 0;
	entry->begun_ns = 0;
	gpd_gpu_timestamp_set(meter->page, entry->begin, 0);
	gpd_gpu_timestamp_set(meter->page, entry->end, 0);
	entry->timed = timed && entry_begin(meter, entry, alone);
	meter->open[meter->open_count++] = entry;
}

/* The stream must exist. */
static bool
is_idle(CUstream stream)
{
	return gpd_driver.cuStreamQuery(stream) != CUDA_ERROR_NOT_READY;
}

static void
entry_append(struct gpd_usage_meter *meter, struct gpd_usage_meter_entry *entry)
{
	entry->next = NULL;
	if (meter->last)
		meter->last->next = entry;
	else
		meter->first = entry;
	meter->last = entry;
}

/*
 * The entry has a marker, so earlier entries of its stream are done when it is. Those without a
 * marker would delay this, because a busy stream is queried only once.
 */
static void
entry_cover(struct gpd_usage_meter *meter, struct gpd_usage_meter_entry *entry)
{
	for (struct gpd_usage_meter_entry *e = meter->first; e; e = e->next) {
		if (!e->plain || e->gone || e->stream != entry->stream)
			continue;
		entry->before += e->launches;
		e->launches = 0;
		e->gone = true;
	}
}

/* Merges the batch into the last entry, which has no marker; that entry gets one if it becomes too
 * large. */
static bool
entry_join_last(struct gpd_usage_meter *meter, uint32_t launches, uint32_t joins)
{
	struct gpd_usage_meter_entry *entry = meter->open[0], *last = meter->last;

	if (meter->open_count != 1 || entry->timed || !last || !last->plain ||
	    last->stream != entry->stream)
		return false;
	if (last->launches + launches > joins) {
		if (!gpd_gpu_timestamp_write_marker(last->stream, meter->page, last->end))
			return false;
		last->plain = false;
		entry_cover(meter, last);
	}
	last->launches += launches;
	entry_release(meter, entry);
	meter->open_count = 0;
	return true;
}

static bool
entry_end(const struct gpd_usage_meter *meter, const struct gpd_usage_meter_entry *entry)
{
	if (entry->timed && !entry->polled)
		return gpd_gpu_timestamp_record(meter->device, entry->stream, meter->page,
						entry->end);
	return gpd_gpu_timestamp_write_marker(entry->stream, meter->page, entry->end);
}

static void
entries_close(struct gpd_usage_meter *meter, uint32_t launches, uint32_t times, uint32_t joins)
{
	for (uint32_t i = 0; i < meter->open_count; i++) {
		struct gpd_usage_meter_entry *entry = meter->open[i];

		entry->times = times;
		entry->launches = i + 1 == meter->open_count ? launches : 0;
		entry->plain = (!entry->timed && launches <= joins) || !entry_end(meter, entry);
		/* Not measured if the driver failed to enqueue the marker. */
		entry->timed = entry->timed && !entry->plain;
		if (entry->timed && entry->polled)
			atomic_fetch_add(&meter->polled, 1);
		if (!entry->plain)
			entry_cover(meter, entry);
		entry_append(meter, entry);
	}
	meter->open_count = 0;
}

void
gpd_usage_meter_close(struct gpd_usage_meter *meter, uint32_t launches, uint32_t times,
		      uint32_t joins)
{
	if (!meter->open_count)
		return;
	/* Before another thread can find the entries done. */
	atomic_fetch_add(&meter->launches, launches);
	pthread_mutex_lock(&meter->lock);
	if (!entry_join_last(meter, launches, joins))
		entries_close(meter, launches, times, joins);
	pthread_mutex_unlock(&meter->lock);
}

void
gpd_usage_meter_mark(struct gpd_usage_meter *meter)
{
	pthread_mutex_lock(&meter->lock);
	for (struct gpd_usage_meter_entry *e = meter->first; e; e = e->next) {
		if (!e->plain)
			continue;
		/* If no marker can be enqueued, it counts as done: the stream is not queried any
		 * more. */
		if (e->gone || is_idle(e->stream) ||
		    !gpd_gpu_timestamp_write_marker(e->stream, meter->page, e->end))
			gpd_gpu_timestamp_set(meter->page, e->end, 1);
		e->plain = false;
	}
	pthread_mutex_unlock(&meter->lock);
}

/* Returns the part of the interval after *until, and advances *until. */
static uint64_t
get_new_use_ns(uint64_t begin, uint64_t end, uint64_t *until)
{
	if (begin < *until)
		begin = *until;
	if (end <= begin)
		return 0;
	*until = end;
	return end - begin;
}

/* GPU time that a finished entry adds to the session's. */
static uint64_t
entry_measure(struct gpd_usage_meter *meter, const struct gpd_usage_meter_entry *entry,
	      uint64_t now)
{
	uint64_t begin = gpd_gpu_timestamp_read(meter->page, entry->begin);
	uint64_t end = gpd_gpu_timestamp_read(meter->page, entry->end);

	if (!begin || !end)
		return 0;
	if (entry->polled)
		return get_new_use_ns(entry->begun_ns ? entry->begun_ns : now, now,
				      &meter->polled_until_ns);
	return get_new_use_ns(begin, end, &meter->busy_until_ns);
}

/* A moving average that follows increases faster. */
static void
launch_time_learn(struct gpd_usage_meter *meter, uint64_t busy, uint32_t launches)
{
	uint64_t old = atomic_load(&meter->launch_ns);
	uint64_t one;

	meter->gathered_ns += busy;
	meter->gathered_launches += launches;
	if (!launches)
		return;
	one = meter->gathered_ns / meter->gathered_launches + 1;
	meter->gathered_ns = meter->gathered_launches = 0;
	if (old)
		one = (one > old ? one + old : one + 3 * old) / (one > old ? 2 : 4);
	atomic_store_explicit(&meter->launch_ns, one, memory_order_relaxed);
}

/* Streams queried during one collection: each is queried only once. */
struct survey {
	CUstream streams[GPD_USAGE_METER_BATCH];
	bool idle[GPD_USAGE_METER_BATCH];
	uint32_t count;
};

static bool
is_found_idle(struct survey *survey, CUstream stream)
{
	bool idle;

	for (uint32_t i = 0; i < survey->count; i++) {
		if (survey->streams[i] == stream)
			return survey->idle[i];
	}
	idle = is_idle(stream);
	if (survey->count < GPD_USAGE_METER_BATCH) {
		survey->streams[survey->count] = stream;
		survey->idle[survey->count++] = idle;
	}
	return idle;
}

static bool
is_done(const struct gpd_usage_meter *meter, const struct gpd_usage_meter_entry *entry,
	struct survey *survey)
{
	if (entry->gone || atomic_load(&gpd_devices.lost))
		return true;
	return entry->plain ? is_found_idle(survey, entry->stream)
			    : gpd_gpu_timestamp_read(meter->page, entry->end) != 0;
}

/* For an entry that is not done: notes the time when its start is first seen. */
static void
entry_poll(const struct gpd_usage_meter *meter, struct gpd_usage_meter_entry *entry, uint64_t now)
{
	if (entry->polled && !entry->begun_ns && gpd_gpu_timestamp_read(meter->page, entry->begin))
		entry->begun_ns = now;
}

static void
entry_reap(struct gpd_usage_meter *meter, struct gpd_usage_meter_entry *entry, uint64_t now,
	   struct gpd_usage_meter_harvest *harvest)
{
	uint64_t ns = entry->timed ? entry_measure(meter, entry, now) : 0;

	if (entry->timed)
		launch_time_learn(meter, ns, entry->launches);
	if (entry->timed && entry->polled)
		atomic_fetch_sub(&meter->polled, 1);
	harvest->busy_ns += ns;
	harvest->all_ns += ns * entry->times;
	harvest->batches += entry->launches ? entry->times : 0;
	harvest->entries += !entry->gone;
	atomic_fetch_sub(&meter->launches, entry->launches + entry->before);
	entry_release(meter, entry);
}

struct gpd_usage_meter_harvest
gpd_usage_meter_collect(struct gpd_usage_meter *meter)
{
	struct gpd_usage_meter_harvest harvest = { 0 };
	struct gpd_usage_meter_entry *entry, *next;
	struct survey survey = { 0 };
	uint64_t now;

	pthread_mutex_lock(&meter->lock);
	now = gp_now_ns();
	entry = meter->first;
	meter->first = meter->last = NULL;
	for (; entry; entry = next) {
		next = entry->next;
		if (is_done(meter, entry, &survey)) {
			entry_reap(meter, entry, now, &harvest);
		} else {
			entry_poll(meter, entry, now);
			entry_append(meter, entry);
		}
	}
	pthread_mutex_unlock(&meter->lock);
	return harvest;
}

uint64_t
gpd_usage_meter_get_running(struct gpd_usage_meter *meter)
{
	uint64_t serial = 0;

	pthread_mutex_lock(&meter->lock);
	for (struct gpd_usage_meter_entry *e = meter->first; e && !serial; e = e->next) {
		if (e->timed && gpd_gpu_timestamp_read(meter->page, e->begin))
			serial = e->serial;
	}
	pthread_mutex_unlock(&meter->lock);
	return serial;
}
