/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/schedule/schedule_meter.h"

#include "server/worker/device/driver.h"

#include <stdlib.h>

/* Differences of events are told as floats: the base must not be long ago. */
#define BASE_NS UINT64_C(2000000000)
/* What runs is in front, once for each stream. */
#define LOOKS_MAX 8

struct gpd_meter_entry {
	struct gpd_meter_entry *next;
	CUstream stream; /* to tell streams apart; it may be gone */
	CUevent begin, end;
	bool timed;
	bool plain; /* no event behind it: done when the stream, which is there, is idle */
	bool gone;  /* nobody can tell any more, or need */
	uint32_t launches;
	uint32_t before; /* of entries that this one covers */
	uint32_t times;
	uint64_t serial;
};

void
gpd_meter_init(struct gpd_meter *meter)
{
	*meter = (struct gpd_meter){ 0 };
	pthread_mutex_init(&meter->lock, NULL);
}

static void
destroy_event(CUevent event)
{
	if (event)
		(void)gpd_driver.cuEventDestroy_v2(event);
}

static void
destroy_list(struct gpd_meter_entry *entry)
{
	while (entry) {
		struct gpd_meter_entry *next = entry->next;

		destroy_event(entry->begin);
		destroy_event(entry->end);
		free(entry);
		entry = next;
	}
}

void
gpd_meter_fini(struct gpd_meter *meter)
{
	destroy_list(meter->first);
	destroy_list(meter->free);
	destroy_event(meter->base);
	pthread_mutex_destroy(&meter->lock);
}

static struct gpd_meter_entry *
take_entry(struct gpd_meter *meter)
{
	struct gpd_meter_entry *entry;

	pthread_mutex_lock(&meter->lock);
	entry = meter->free;
	if (entry)
		meter->free = entry->next;
	pthread_mutex_unlock(&meter->lock);
	return entry ? entry : calloc(1, sizeof(*entry));
}

static void
give_entry(struct gpd_meter *meter, struct gpd_meter_entry *entry)
{
	entry->next = meter->free;
	meter->free = entry;
	atomic_fetch_sub(&meter->entries, 1);
}

/* A stream of a partition has a context of its own, which its events must be of: NULL then. */
static bool
record(CUevent *event, CUstream stream)
{
	if (!*event && gpd_driver.cuEventCreate(event, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
		*event = NULL;
		return false;
	}
	return gpd_driver.cuEventRecord(*event, stream) == CUDA_SUCCESS;
}

void
gpd_meter_open(struct gpd_meter *meter, CUstream stream, bool timed)
{
	struct gpd_meter_entry *entry = gpd_meter_has_room(meter) ? take_entry(meter) : NULL;

	if (!entry)
		return;
	atomic_fetch_add(&meter->entries, 1);
	entry->stream = stream;
	entry->serial = ++meter->serial;
	entry->plain = entry->gone = false;
	entry->before = 0;
	entry->timed = timed && record(&entry->begin, stream);
	meter->open[meter->open_count++] = entry;
}

static void
append(struct gpd_meter *meter, struct gpd_meter_entry *entry)
{
	entry->next = NULL;
	if (meter->last)
		meter->last->next = entry;
	else
		meter->first = entry;
	meter->last = entry;
}

/*
 * The entry has an event, so what is in front of it on its stream is done when it is.  Those that
 * are done when the stream is idle would be in the way of that, as a busy stream is asked once.
 */
static void
cover(struct gpd_meter *meter, struct gpd_meter_entry *entry)
{
	for (struct gpd_meter_entry *e = meter->first; e; e = e->next) {
		if (!e->plain || e->gone || e->stream != entry->stream)
			continue;
		entry->before += e->launches;
		e->launches = 0;
		e->gone = true;
	}
}

/* The batch is part of the last entry, whose end is seen without an event, or gets one now. */
static bool
joins_last(struct gpd_meter *meter, uint32_t launches, uint32_t joins)
{
	struct gpd_meter_entry *entry = meter->open[0], *last = meter->last;

	if (meter->open_count != 1 || entry->timed || !last || !last->plain ||
	    last->stream != entry->stream)
		return false;
	if (last->launches + launches > joins) {
		if (!record(&last->end, last->stream))
			return false;
		last->plain = false;
		cover(meter, last);
	}
	last->launches += launches;
	give_entry(meter, entry);
	meter->open_count = 0;
	return true;
}

static void
close_all(struct gpd_meter *meter, uint32_t launches, uint32_t times, uint32_t joins)
{
	for (uint32_t i = 0; i < meter->open_count; i++) {
		struct gpd_meter_entry *entry = meter->open[i];

		entry->times = times;
		entry->launches = i + 1 == meter->open_count ? launches : 0;
		entry->plain = !entry->timed && launches <= joins;
		if (entry->plain || record(&entry->end, entry->stream)) {
			if (!entry->plain)
				cover(meter, entry);
			append(meter, entry);
			continue;
		}
		atomic_fetch_sub(&meter->launches, entry->launches);
		give_entry(meter, entry);
	}
	meter->open_count = 0;
}

void
gpd_meter_close(struct gpd_meter *meter, uint32_t launches, uint32_t times, uint32_t joins)
{
	if (!meter->open_count)
		return;
	/* Before anybody can find the entries done. */
	atomic_fetch_add(&meter->launches, launches);
	pthread_mutex_lock(&meter->lock);
	if (!joins_last(meter, launches, joins))
		close_all(meter, launches, times, joins);
	pthread_mutex_unlock(&meter->lock);
}

void
gpd_meter_mark(struct gpd_meter *meter)
{
	pthread_mutex_lock(&meter->lock);
	for (struct gpd_meter_entry *e = meter->first; e; e = e->next) {
		/* Without an event it is as good as done: the stream is asked no more. */
		if (e->plain && !record(&e->end, e->stream))
			e->gone = true;
		e->plain = false;
	}
	pthread_mutex_unlock(&meter->lock);
}

static bool
elapsed(CUevent from, CUevent to, int64_t *ns_p)
{
	float ms = 0;

	if (gpd_driver.cuEventElapsedTime_v2(&ms, from, to) != CUDA_SUCCESS)
		return false;
	*ns_p = (int64_t)((double)ms * 1e6);
	return true;
}

static void
swap(CUevent *a, CUevent *b)
{
	CUevent kept = *a;

	*a = *b;
	*b = kept;
}

/* What the entry adds to the time in which the session used the GPU. */
static uint64_t
measure(struct gpd_meter *meter, struct gpd_meter_entry *entry)
{
	int64_t length, since_base = 0;
	uint64_t begin, end, busy = 0;

	if (!elapsed(entry->begin, entry->end, &length) || length < 0)
		return 0;
	if (!meter->base) {
		swap(&meter->base, &entry->begin);
		meter->base_ns = meter->busy_until_ns;
		since_base = length;
	} else if (!elapsed(meter->base, entry->end, &since_base)) {
		return 0;
	}
	end = meter->base_ns + (uint64_t)(since_base > 0 ? since_base : 0);
	begin = end > (uint64_t)length ? end - (uint64_t)length : 0;
	if (begin < meter->busy_until_ns)
		begin = meter->busy_until_ns;
	if (end > begin) {
		busy = end - begin;
		meter->busy_until_ns = end;
	}
	if (since_base > (int64_t)BASE_NS) {
		swap(&meter->base, &entry->end);
		meter->base_ns = end;
	}
	return busy;
}

/* The mean of the last few, more of the latest. */
static void
learn(struct gpd_meter *meter, uint64_t busy, uint32_t launches)
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

static bool
has_ended(const struct gpd_meter_entry *entry)
{
	if (entry->gone)
		return true;
	return (entry->plain ? gpd_driver.cuStreamQuery(entry->stream)
			     : gpd_driver.cuEventQuery(entry->end)) != CUDA_ERROR_NOT_READY;
}

/* The streams of which is known how far they are; events are asked for seldom. */
struct survey {
	CUstream busy[GPD_METER_BATCH];
	uint32_t count;
	CUstream done; /* with all that is in the meter */
	bool any_done;
};

static bool
is_done(struct survey *survey, const struct gpd_meter_entry *entry)
{
	uint32_t i = 0;

	if (survey->any_done && survey->done == entry->stream)
		return true;
	while (i < survey->count && survey->busy[i] != entry->stream)
		i++;
	if (i < survey->count)
		return false;
	if (has_ended(entry))
		return true;
	if (survey->count < GPD_METER_BATCH)
		survey->busy[survey->count++] = entry->stream;
	return false;
}

static void
reap(struct gpd_meter *meter, struct gpd_meter_entry *entry, struct gpd_meter_harvest *harvest)
{
	uint64_t ns = entry->timed ? measure(meter, entry) : 0;

	if (entry->timed)
		learn(meter, ns, entry->launches);
	harvest->busy_ns += ns;
	harvest->all_ns += ns * entry->times;
	harvest->batches += entry->launches ? entry->times : 0;
	harvest->entries += !entry->gone;
	atomic_fetch_sub(&meter->launches, entry->launches + entry->before);
	give_entry(meter, entry);
}

struct gpd_meter_harvest
gpd_meter_take(struct gpd_meter *meter)
{
	struct gpd_meter_harvest harvest = { 0 };
	struct gpd_meter_entry *entry, *next;
	struct survey survey = { 0 };

	pthread_mutex_lock(&meter->lock);
	if (meter->last && has_ended(meter->last)) {
		survey.any_done = true;
		survey.done = meter->last->stream;
	}
	entry = meter->first;
	meter->first = meter->last = NULL;
	for (; entry; entry = next) {
		next = entry->next;
		if (is_done(&survey, entry))
			reap(meter, entry, &harvest);
		else
			append(meter, entry);
	}
	pthread_mutex_unlock(&meter->lock);
	return harvest;
}

uint64_t
gpd_meter_running(struct gpd_meter *meter)
{
	uint64_t serial = 0;
	unsigned int looks = 0;

	pthread_mutex_lock(&meter->lock);
	for (struct gpd_meter_entry *e = meter->first; e && !serial && looks < LOOKS_MAX;
	     e = e->next) {
		if (!e->timed || e->gone)
			continue;
		looks++;
		if (gpd_driver.cuEventQuery(e->begin) == CUDA_SUCCESS)
			serial = e->serial;
	}
	pthread_mutex_unlock(&meter->lock);
	return serial;
}
