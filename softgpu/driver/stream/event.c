/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/driver/stream/event.h"

#include "base/clock.h"
#include "softgpu/driver/stream/stream.h"

#include <pthread.h>
#include <stdlib.h>

#define FLAGS_KNOWN (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING)

/* A cuEventRecord(); shared by the event and the queued operation. */
struct record {
	unsigned int refs;
	struct gs_mark mark;
	uint64_t time_ns; /* written before the mark is reached */
};

struct gs_event {
	struct gs_object object;
	unsigned int flags;
	pthread_mutex_t lock;
	struct record *record; /* NULL: never recorded */
};

struct record_op {
	struct gs_op op;
	struct record *record;
};

static void
record_put(struct record *record)
{
	if (!record || __atomic_sub_fetch(&record->refs, 1, __ATOMIC_ACQ_REL))
		return;
	gs_stream_put(record->mark.stream);
	free(record);
}

static struct record *
latest(struct gs_event *event)
{
	struct record *record;

	pthread_mutex_lock(&event->lock);
	record = event->record;
	if (record)
		__atomic_add_fetch(&record->refs, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&event->lock);
	return record;
}

static void
event_destroy(struct gs_object *object)
{
	struct gs_event *event = (struct gs_event *)object;

	record_put(event->record);
	pthread_mutex_destroy(&event->lock);
	free(event);
}

static struct gs_event *
get(CUevent handle)
{
	return gs_object_get(handle, GS_KIND_EVENT);
}

static void
put(struct gs_event *event)
{
	gs_object_put(&event->object);
}

void
gs_event_destroy_all(void)
{
	struct gs_event *event;

	while ((event = gs_object_retire_any(GS_KIND_EVENT)))
		put(event);
}

CUresult CUDAAPI
cuEventCreate(CUevent *handle, unsigned int flags)
{
	struct gs_event *event;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CU_EVENT_INTERPROCESS)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (flags & ~(unsigned int)FLAGS_KNOWN)
		return CUDA_ERROR_INVALID_VALUE;
	event = calloc(1, sizeof(*event));
	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	gs_object_init(&event->object, GS_KIND_EVENT, NULL, event_destroy);
	event->flags = flags;
	pthread_mutex_init(&event->lock, NULL);
	gs_object_publish(&event->object);
	*handle = (CUevent)event;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuEventDestroy_v2(CUevent handle)
{
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!gs_object_retire(handle, GS_KIND_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	put((struct gs_event *)handle);
	return CUDA_SUCCESS;
}

static void
record_run(struct gs_op *op, struct gs_stream *stream)
{
	((struct record_op *)op)->record->time_ns = gp_now_ns();
}

static void
record_release(struct gs_op *op)
{
	record_put(((struct record_op *)op)->record);
	free(op);
}

/* Holds the event's lock during the submission, so that of two concurrent records the later one
 * remains. */
static CUresult
record(struct gs_event *event, struct gs_stream *stream)
{
	struct record_op *op = calloc(1, sizeof(*op));
	struct record *fresh = calloc(1, sizeof(*fresh)), *old;
	CUresult r;

	if (!op || !fresh) {
		free(op);
		free(fresh);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	fresh->refs = 2;
	fresh->mark.stream = stream;
	gs_object_ref((struct gs_object *)stream);
	op->record = fresh;
	op->op.always = true;
	op->op.run = record_run;
	op->op.release = record_release;
	pthread_mutex_lock(&event->lock);
	r = gs_stream_submit(stream, &op->op, &fresh->mark.seq);
	old = fresh;
	if (!r) {
		old = event->record;
		event->record = fresh;
	}
	pthread_mutex_unlock(&event->lock);
	record_put(old);
	return r;
}

CUresult CUDAAPI
cuEventRecordWithFlags(CUevent handle, CUstream stream_handle, unsigned int flags)
{
	struct gs_event *event;
	struct gs_stream *stream;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (flags & ~(unsigned int)CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	event = get(handle);
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	stream = gs_stream_get(stream_handle);
	if (!stream) {
		put(event);
		return gs_stream_missing(stream_handle);
	}
	r = record(event, stream);
	gs_stream_put(stream);
	put(event);
	return r;
}

CUresult CUDAAPI
cuEventRecord(CUevent handle, CUstream stream)
{
	return cuEventRecordWithFlags(handle, stream, CU_EVENT_RECORD_DEFAULT);
}

static bool
reached(const struct record *record)
{
	return gs_stream_reached(record->mark.stream, record->mark.seq);
}

CUresult CUDAAPI
cuEventQuery(CUevent handle)
{
	struct gs_event *event;
	struct record *at;
	CUresult r = gs_enter();

	if (r)
		return r;
	event = get(handle);
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	at = latest(event);
	if (at && !reached(at))
		r = CUDA_ERROR_NOT_READY;
	record_put(at);
	put(event);
	return gs_failure() ? gs_failure() : r;
}

CUresult CUDAAPI
cuEventSynchronize(CUevent handle)
{
	struct gs_event *event;
	struct record *at;
	CUresult r = gs_enter();

	if (r)
		return r;
	event = get(handle);
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	at = latest(event);
	if (at)
		r = gs_stream_wait(at->mark.stream, at->mark.seq);
	record_put(at);
	put(event);
	gs_print_flush();
	return r;
}

static CUresult
elapsed(struct gs_event *start, struct gs_event *end, float *ms)
{
	struct record *from = latest(start), *to = latest(end);
	CUresult r = CUDA_SUCCESS;

	if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING || !from || !to)
		r = CUDA_ERROR_INVALID_HANDLE;
	else if (!reached(from) || !reached(to))
		r = CUDA_ERROR_NOT_READY;
	else
		*ms = (float)((double)(int64_t)(to->time_ns - from->time_ns) / 1e6);
	record_put(from);
	record_put(to);
	return r;
}

static CUresult
time_between(float *ms, CUevent start_handle, CUevent end_handle)
{
	struct gs_event *start, *end;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!ms)
		return CUDA_ERROR_INVALID_VALUE;
	start = get(start_handle);
	if (!start)
		return CUDA_ERROR_INVALID_HANDLE;
	end = get(end_handle);
	if (!end) {
		put(start);
		return CUDA_ERROR_INVALID_HANDLE;
	}
	r = elapsed(start, end, ms);
	put(start);
	put(end);
	return r;
}

CUresult CUDAAPI
cuEventElapsedTime_v2(float *ms, CUevent start_handle, CUevent end_handle)
{
	return time_between(ms, start_handle, end_handle);
}

/* The version before CUDA 12.8, for programs that also run on older drivers. */
#undef cuEventElapsedTime
CUresult CUDAAPI cuEventElapsedTime(float *ms, CUevent start_handle, CUevent end_handle)
	__attribute__((visibility("default")));

CUresult CUDAAPI
cuEventElapsedTime(float *ms, CUevent start_handle, CUevent end_handle)
{
	return time_between(ms, start_handle, end_handle);
}

static void
wait_run(struct gs_op *op, struct gs_stream *stream)
{
}

static void
wait_release(struct gs_op *op)
{
	free(op);
}

static CUresult
submit_wait(struct gs_stream *stream, const struct record *at)
{
	struct gs_op *op = calloc(1, sizeof(*op));
	struct gs_mark *mark = malloc(sizeof(*mark));

	if (!op || !mark) {
		free(op);
		free(mark);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*mark = at->mark;
	gs_object_ref((struct gs_object *)mark->stream);
	op->waits = mark;
	op->wait_count = 1;
	op->run = wait_run;
	op->release = wait_release;
	return gs_stream_submit(stream, op, NULL);
}

static CUresult
event_wait(struct gs_event *event, struct gs_stream *stream)
{
	struct record *at = latest(event);
	CUresult r = CUDA_SUCCESS;

	if (at && !reached(at))
		r = submit_wait(stream, at);
	record_put(at);
	return r;
}

CUresult CUDAAPI
cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned int flags)
{
	struct gs_stream *stream;
	struct gs_event *event;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (flags & ~(unsigned int)CU_EVENT_WAIT_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	event = get(handle);
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	stream = gs_stream_get(stream_handle);
	if (!stream) {
		put(event);
		return gs_stream_missing(stream_handle);
	}
	r = event_wait(event, stream);
	gs_stream_put(stream);
	put(event);
	return r;
}

CUresult
gs_event_record(CUevent handle, struct gs_stream *stream)
{
	struct gs_event *event = get(handle);
	CUresult r;

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	r = record(event, stream);
	put(event);
	return r;
}

CUresult
gs_event_wait(CUevent handle, struct gs_stream *stream)
{
	struct gs_event *event = get(handle);
	CUresult r;

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	r = event_wait(event, stream);
	put(event);
	return r;
}
