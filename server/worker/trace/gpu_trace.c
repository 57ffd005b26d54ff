/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/trace/gpu_trace.h"

#include "base/clock.h"
#include "gpd_calls.h"
#include "protocol/trace_event.h"
#include "server/common/ledger/ledger.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Maximum number of operations in flight per device, and of streams that are distinguished. */
#define ENTRIES 4096
#define TRACKS 4096
/* An event costs the executor one or two microseconds; EACH_NS is the minimum average interval, and
 * BURST the number that may come at once. */
#define EACH_NS 33000
#define BURST 4096
/* Interval and maximum duration of the comparison of the GPU's clock with the host's. The first
 * comparison may take longer, because nothing can be reported without it. */
#define CLOCK_NS 1000000000
#define CLOCK_TRIES 3
#define CLOCK_MAX_NS 1000000
#define CLOCK_FIRST_NS 50000000
#define NS_PER_MS 1e6

struct entry {
	struct entry *prev, *next; /* utlist; free entries use next only */
	struct gp_trace_event event;
	char name[GP_TRACE_NAME_MAX +
		  1]; /* of a launch, whose kernel may be gone when it is reported */
	CUevent done;
	uint32_t track;
};

/* Clock of a device, the reference for the times of its events. */
struct clock {
	CUstream stream; /* has no other work */
	CUevent base, next;
	uint64_t base_ns; /* host time of base; 0: not known yet */
	uint64_t set_ns, error_ns;
	struct entry *free; /* their events belong to the device */
	uint32_t entries;   /* number ever created; 0: the device is not used */
};

struct gpd_trace {
	struct entry *pending; /* in the order of the work */
	uint32_t last_track;
	uint64_t missed;
	uint64_t spare_ns, refilled_ns; /* time that events may cost */
	struct {
		uint64_t end_ns; /* end of the last reported operation */
		uint64_t busy;   /* poll_number of the last poll that found it busy */
	} tracks[TRACKS];
	uint64_t poll_number;
	uint64_t reported[GP_TRACE_NAME_SLOTS]; /* kernels whose names the client has */
	struct clock clocks[GPD_DEVICES_MAX];
};

uint64_t
gpd_trace_begin(const struct gpd_session *session)
{
	return session->trace ? gp_now_ns() : 0;
}

/* Whether another event is within the budget. */
static bool
budget_spend(struct gpd_trace *trace, uint64_t now)
{
	trace->spare_ns += now - trace->refilled_ns;
	trace->refilled_ns = now;
	if (trace->spare_ns > (uint64_t)BURST * EACH_NS)
		trace->spare_ns = (uint64_t)BURST * EACH_NS;
	if (trace->spare_ns < EACH_NS)
		return false;
	trace->spare_ns -= EACH_NS;
	return true;
}

/* NULL: out of memory, or over the session's limit. */
static struct entry *
entry_create(const struct gpd_account *account)
{
	struct entry *entry;

	if (!gpd_ledger_charge_host(account->ledger, account->entry, sizeof(*entry)))
		return NULL;
	entry = calloc(1, sizeof(*entry));
	if (entry && gpd_driver.cuEventCreate(&entry->done, CU_EVENT_DEFAULT) == CUDA_SUCCESS)
		return entry;
	gpd_ledger_uncharge_host(account->ledger, account->entry, sizeof(*entry));
	free(entry);
	return NULL;
}

/* Returns an entry with an event of the device, which must be current. NULL: there are too many. */
static struct entry *
entry_acquire(const struct gpd_session *session, int device)
{
	struct clock *clock = &session->trace->clocks[device];
	struct entry *entry = clock->free;

	if (entry) {
		clock->free = entry->next;
		return entry;
	}
	entry = clock->entries < ENTRIES ? entry_create(&session->account) : NULL;
	clock->entries += entry != NULL;
	return entry;
}

static void
entry_release(struct gpd_trace *trace, struct entry *entry)
{
	struct clock *clock = &trace->clocks[entry->event.device];

	entry->next = clock->free;
	clock->free = entry;
}

static uint32_t
track_get(struct gpd_trace *trace, struct gpd_stream *stream)
{
	if (!stream->trace.track) {
		trace->last_track = trace->last_track % TRACKS + 1;
		stream->trace.track = trace->last_track;
		trace->tracks[stream->trace.track - 1].end_ns = 0;
	}
	return stream->trace.track - 1;
}

static bool
work_measure(struct gpd_session *session, struct gpd_stream *stream,
	     const struct gpd_trace_operation *work)
{
	struct gpd_trace *trace = session->trace;
	struct entry *entry;

	if (!budget_spend(trace, work->begun_ns) ||
	    gpd_device_enter(stream->device) != CUDA_SUCCESS)
		return false;
	entry = entry_acquire(session, stream->device);
	if (!entry)
		return false;
	entry->event = (struct gp_trace_event){ .begin_ns = work->begun_ns,
						.kernel = work->kernel,
						.stream = work->stream,
						.device = (uint32_t)stream->device,
						.call = work->call,
						.joined = stream->trace.joined };
	if (gpd_driver.cuEventRecord(entry->done, stream->driver) != CUDA_SUCCESS) {
		entry_release(trace, entry);
		return false;
	}
	stream->depth.given++;
	entry->track = track_get(trace, stream);
	snprintf(entry->name, sizeof(entry->name), "%s",
		 work->kernel && session->progress.kernel ? session->progress.kernel : "");
	DL_APPEND(trace->pending, entry);
	return true;
}

void
gpd_trace_record(struct gpd_session *session, const struct gpd_trace_operation *work)
{
	struct gpd_stream *stream;

	if (!work->begun_ns || !(stream = gpd_stream_get(session, work->stream)))
		return;
	if (work_measure(session, stream, work)) {
		stream->trace.joined = 0;
		return;
	}
	stream->trace.joined++;
	session->trace->missed++;
}

/* Converts the time of the event to the host's clock. */
static bool
clock_get_time(const struct clock *clock, CUevent event, uint64_t *ns_p, CUresult *result_p)
{
	float ms = 0;

	*result_p = gpd_driver.cuEventElapsedTime_v2(&ms, clock->base, event);
	*ns_p = clock->base_ns + (uint64_t)(int64_t)((double)ms * NS_PER_MS);
	return *result_p == CUDA_SUCCESS;
}

/* Records clock->next, which the GPU reaches at once; returns its host time and half of the round
 * trip as the error. */
static bool
clock_poll(struct clock *clock, uint64_t *at_p, uint64_t *error_p)
{
	uint64_t limit = clock->base_ns ? CLOCK_MAX_NS : CLOCK_FIRST_NS;
	uint64_t before = gp_now_ns(), after;
	CUresult result = gpd_driver.cuEventRecord(clock->next, clock->stream);

	if (result != CUDA_SUCCESS)
		return false;
	do {
		result = gpd_driver.cuEventQuery(clock->next);
		after = gp_now_ns();
	} while (result == CUDA_ERROR_NOT_READY && after - before < limit);
	*error_p = (after - before) / 2;
	*at_p = before + *error_p;
	return result == CUDA_SUCCESS;
}

/* The drift since the last comparison counts as an error, too. */
static void
set_clock(struct clock *clock, uint64_t at, uint64_t error)
{
	CUevent event = clock->base;
	CUresult result;
	uint64_t told;

	if (clock->base_ns && clock_get_time(clock, clock->next, &told, &result))
		error += told > at ? told - at : at - told;
	clock->base = clock->next;
	clock->next = event;
	clock->base_ns = at;
	clock->set_ns = gp_now_ns();
	clock->error_ns = error;
}

static bool
open_clock(struct clock *clock)
{
	if (!clock->stream && gpd_driver.cuStreamCreateWithPriority(
				      &clock->stream, CU_STREAM_NON_BLOCKING, 0) != CUDA_SUCCESS)
		return false;
	if (!clock->base &&
	    gpd_driver.cuEventCreate(&clock->base, CU_EVENT_DEFAULT) != CUDA_SUCCESS)
		return false;
	return clock->next ||
	       gpd_driver.cuEventCreate(&clock->next, CU_EVENT_DEFAULT) == CUDA_SUCCESS;
}

/* Uses the most accurate of a few attempts. */
static void
compare_clock(struct clock *clock, int device)
{
	uint64_t at, error, limit = UINT64_MAX;

	if (!clock->entries || (clock->base_ns && gp_now_ns() - clock->set_ns < CLOCK_NS) ||
	    gpd_device_enter(device) != CUDA_SUCCESS || !open_clock(clock))
		return;
	for (int i = 0; i < CLOCK_TRIES; i++) {
		if (!clock_poll(clock, &at, &error) || error >= limit)
			continue;
		set_clock(clock, at, error);
		limit = error;
	}
}

/* Sets the interval of a finished operation. The intervals of a stream do not overlap, even if the
 * clocks differ. */
static void
entry_set_interval(struct gpd_trace *trace, struct entry *entry, uint64_t end)
{
	uint64_t *last = &trace->tracks[entry->track].end_ns;
	uint64_t now = gp_now_ns();

	if (end > now)
		end = now;
	if (entry->event.begin_ns < *last)
		entry->event.begin_ns = *last;
	if (end < entry->event.begin_ns)
		end = entry->event.begin_ns;
	entry->event.end_ns = *last = end;
}

/* Whether the operation is known to be over, and whether its time is known. */
static bool
entry_is_over(struct gpd_trace *trace, struct entry *entry, bool *known_p)
{
	const struct clock *clock = &trace->clocks[entry->event.device];
	CUresult result;
	uint64_t end;

	if (!clock->base_ns || trace->tracks[entry->track].busy == trace->poll_number)
		return false;
	*known_p = clock_get_time(clock, entry->done, &end, &result);
	if (*known_p)
		entry_set_interval(trace, entry, end);
	else if (result == CUDA_ERROR_NOT_READY)
		trace->tracks[entry->track].busy = trace->poll_number;
	return result != CUDA_ERROR_NOT_READY;
}

/* Adds the kernel's name if the client does not have it. */
static void
add_name(struct gpd_trace *trace, struct entry *entry)
{
	uint64_t *told = &trace->reported[gp_trace_get_name_slot(entry->event.kernel)];

	if (!*entry->name || *told == entry->event.kernel)
		return;
	*told = entry->event.kernel;
	entry->event.name = (struct gp_bytes){ entry->name, strlen(entry->name) };
}

/* Moves finished operations to the list, as far as they fit into one reply; returns their size in
 * it. */
static size_t
entries_collect(struct gpd_trace *trace, struct entry **over, unsigned int *count_p)
{
	struct entry *entry, *next;
	size_t size = 0;

	DL_FOREACH_SAFE(trace->pending, entry, next)
	{
		bool known = false;

		if (*count_p == GP_TRACE_EVENTS_MAX)
			break;
		if (!entry_is_over(trace, entry, &known))
			continue;
		DL_DELETE(trace->pending, entry);
		if (!known) {
			trace->missed++;
			entry_release(trace, entry);
			continue;
		}
		add_name(trace, entry);
		DL_APPEND(*over, entry);
		size += GP_TRACE_EVENT_SIZE(entry->event.name.size);
		++*count_p;
	}
	return size;
}

/* Operations are removed even if there is no memory to report them. */
static CUresult
reply_fill(struct gpd_trace *trace, struct gp_reply_gpTraceTake *reply)
{
	struct entry *over = NULL, *entry, *next;
	unsigned int count = 0;
	size_t size = entries_collect(trace, &over, &count);
	uint8_t *data = malloc(size + 1);
	struct gp_enc enc;

	if (!data) {
		trace->missed += count;
		memset(trace->reported, 0, sizeof(trace->reported));
	}
	gp_enc_init(&enc, data, data ? size : 0);
	DL_FOREACH_SAFE(over, entry, next)
	{
		gp_trace_event_encode(&enc, &entry->event);
		DL_DELETE(over, entry);
		entry_release(trace, entry);
	}
	reply->events = (struct gp_bytes){ data, data ? gp_enc_size(&enc) : 0 };
	reply->left = count == GP_TRACE_EVENTS_MAX;
	return data ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
gpd_gpTraceTake(struct gpd_session *session, const struct gp_args_gpTraceTake *args,
		struct gp_reply_gpTraceTake *reply)
{
	struct gpd_trace *trace = session->trace;
	CUresult result;

	(void)args;
	if (!trace)
		trace = session->trace = calloc(1, sizeof(*trace));
	if (!trace)
		return CUDA_ERROR_OUT_OF_MEMORY;
	trace->poll_number++;
	for (int i = 0; i < gpd_devices.count; i++) {
		compare_clock(&trace->clocks[i], i);
		if (trace->clocks[i].error_ns > reply->error)
			reply->error = trace->clocks[i].error_ns;
	}
	result = reply_fill(trace, reply);
	reply->missed = trace->missed;
	reply->now = gp_now_ns();
	return result;
}

static void
destroy_entries(const struct gpd_account *account, struct entry *entry)
{
	while (entry) {
		struct entry *next = entry->next;

		(void)gpd_driver.cuEventDestroy_v2(entry->done);
		gpd_ledger_uncharge_host(account->ledger, account->entry, sizeof(*entry));
		free(entry);
		entry = next;
	}
}

void
gpd_trace_destroy(struct gpd_session *session)
{
	struct gpd_trace *trace = session->trace;

	if (!trace)
		return;
	destroy_entries(&session->account, trace->pending);
	for (int i = 0; i < gpd_devices.count; i++) {
		struct clock *clock = &trace->clocks[i];

		destroy_entries(&session->account, clock->free);
		if (clock->base)
			(void)gpd_driver.cuEventDestroy_v2(clock->base);
		if (clock->next)
			(void)gpd_driver.cuEventDestroy_v2(clock->next);
		if (clock->stream)
			(void)gpd_driver.cuStreamDestroy_v2(clock->stream);
	}
	free(trace);
	session->trace = NULL;
}
