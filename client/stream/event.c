/* SPDX-License-Identifier: Apache-2.0 */
#include "client/stream/event.h"

#include "client/context/object.h"
#include "client/host/host_block.h"
#include "client/host/mirror.h"
#include "client/memory/pool.h"
#include "client/stream/elapsed.h"
#include "client/stream/stream.h"
#include "client/stream/sync.h"
#include "client/stream/watch.h"
#include "client/wire/host_queue.h"
#include "client/wire/session.h"
#include "gpc_calls.h"

#include <stdlib.h>
#include <string.h>

#define KNOWN_FLAGS (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

CUresult
gpc_event_lookup(CUevent hEvent, struct gpc_event **event_p)
{
	*event_p = gpc_handle_get(GPC_KIND_EVENT, hEvent);
	return *event_p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult
gpc_event_id(CUevent hEvent, uint32_t *id_p)
{
	struct gpc_event *event;
	CUresult result = gpc_event_lookup(hEvent, &event);

	if (result == CUDA_SUCCESS)
		*id_p = event->handle.id;
	return result;
}

/* A record of an event, as a thread sees it. */
struct record {
	uint64_t number; /* the event's recorded */
	uint32_t stream; /* 0: what it is of its stream's work is not known, and given is ... */
	uint64_t given;  /* ... the last work of any stream behind it */
};

/* Behind the call: who sees the number and asks, asks about this time.  No two events have one
 * number, so what is found out of one that another thread destroys says nothing of the next. */
static uint64_t
set_recorded(struct gpc_event *event, uint64_t place)
{
	static atomic_uint_fast64_t last;
	uint64_t recorded = atomic_fetch_add(&last, 1) + 1;

	atomic_store(&event->place, 0);
	atomic_store(&event->given, gpc_session_given(event->context->scope.session));
	atomic_store(&event->recorded, recorded);
	atomic_store(&event->place, place);
	return recorded;
}

/* Of a record that was posted to this stream when so many had given work to any; 0 where another
 * thread's came between. */
static uint64_t
place_of(const struct gpc_session *session, uint32_t stream, uint64_t before)
{
	uint64_t given = gpc_session_given_to(session, stream);

	return given == before + 1 ? (uint64_t)stream << 32 | (uint32_t)given : 0;
}

static struct record
read_record(const struct gpc_event *event)
{
	struct record record = { .number = atomic_load(&event->recorded),
				 .given = atomic_load(&event->given) };
	uint64_t place = atomic_load(&event->place);
	uint64_t last = gpc_session_given(event->context->scope.session);

	if (!place || atomic_load(&event->recorded) != record.number)
		return record;
	record.stream = (uint32_t)(place >> 32);
	record.given = last - (uint32_t)(last - place);
	return record;
}

static void
forget_if_of(void *object, void *context)
{
	struct gpc_event *event = object;

	if (event->context != context)
		return;
	gpc_watch_drop(&event->watch);
	gpc_handle_remove(&event->handle);
}

void
gpc_event_forget_context(struct gpc_context *context)
{
	gpc_handle_each(GPC_KIND_EVENT, forget_if_of, context);
}

static CUresult
event_announce(struct gpc_context *context, unsigned int flags, struct gpc_event **event_p)
{
	struct gp_args_cuEventCreate args = { .Flags = flags };
	struct gpc_event *event = gpc_handle_new(GPC_KIND_EVENT, sizeof(*event));
	CUresult result;

	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->context = context;
	event->flags = flags;
	args.phEvent = event->handle.id;
	result = gpc_post_cuEventCreate(context, &args);
	if (result == CUDA_SUCCESS)
		*event_p = event;
	else
		gpc_handle_remove(&event->handle);
	return result;
}

static CUresult
event_drop(struct gpc_event *event)
{
	const struct gp_args_cuEventDestroy_v2 args = { .hEvent = event->handle.id };
	CUresult result;

	gpc_watch_drop(&event->watch);
	result = gpc_post_cuEventDestroy_v2(event->context, &args);
	/* Only now, or another thread could announce a new event of that place before. */
	gpc_handle_remove(&event->handle);
	return result;
}

CUresult
gpc_cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	struct gpc_context *context;
	struct gpc_event *event;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	/* cuEventCreate: an event between processes cannot keep time. */
	if (!phEvent || (Flags & ~(unsigned int)KNOWN_FLAGS) ||
	    ((Flags & CU_EVENT_INTERPROCESS) && !(Flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	if ((Flags & CU_EVENT_INTERPROCESS) &&
	    !gpc_facts_know(gpc_session_facts(context->scope.session), GP_CALL_gpEventShare))
		return CUDA_ERROR_NOT_SUPPORTED;
	result = event_announce(context, Flags, &event);
	if (result == CUDA_SUCCESS)
		*phEvent = event->handle.token;
	return result;
}

CUresult
gpc_cuEventDestroy_v2(CUevent hEvent)
{
	struct gpc_event *event;
	CUresult result = gpc_enter_kind(GPC_KIND_EVENT, hEvent, &event);

	return result == CUDA_SUCCESS ? event_drop(event) : result;
}

static bool
is_interprocess(const struct gpc_event *event)
{
	return event->flags & CU_EVENT_INTERPROCESS;
}

static bool
is_exchanging(const struct gpc_event *event)
{
	return is_interprocess(event) && atomic_load(&gpc_host_memory_exchanged);
}

static void
fetch_changes(CUstream stream, CUresult result, void *session)
{
	(void)stream;
	if (result == CUDA_SUCCESS)
		(void)gpc_mirror_fetch(session);
}

static void
send_changes(CUstream stream, CUresult result, void *session)
{
	(void)stream;
	if (result == CUDA_SUCCESS)
		(void)gpc_mirror_send(session);
}

/* Each process replicates host memory that several have to its own session.  So what kernels wrote
 * is in the memory before the event is recorded, and what other processes wrote is replicated
 * before work that comes after a wait. */
static CUresult
exchange(const struct gpc_event *event, const struct gpc_context *context, uint32_t stream,
	 CUstreamCallback callback)
{
	const struct gpc_host_call call = {
		.callback = callback,
		.data = context->scope.session,
		.library = true,
	};

	return is_exchanging(event) ? gpc_host_queue_post(&context->scope, stream, &call)
				    : CUDA_SUCCESS;
}

/* Other processes may be told of it in ways that the daemon does not see: when the call returns,
 * the event is recorded for all. */
static CUresult
record_for_all(struct gpc_context *context, const struct gp_args_cuEventRecordWithFlags *record)
{
	const struct gp_args_gpEventRecord args = { .event = record->hEvent,
						    .stream = record->hStream,
						    .flags = record->flags };

	return gpc_wait_gpEventRecord(context, &args);
}

CUresult
gpc_cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
	struct gp_args_cuEventRecordWithFlags args = { .flags = flags };
	struct gpc_context *context;
	struct gpc_event *event;
	uint64_t before, recorded, place = 0;
	CUresult result = gpc_enter(&context);

	if (result == CUDA_SUCCESS)
		result = gpc_event_lookup(hEvent, &event);
	if (result == CUDA_SUCCESS)
		result = gpc_stream_id(&context, hStream, &args.hStream);
	if (result != CUDA_SUCCESS)
		return result;
	if (flags & ~(unsigned int)CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	/* cuEventRecord: event and stream must be of the same context. */
	if (event->context != context)
		return CUDA_ERROR_INVALID_HANDLE;
	args.hEvent = event->handle.id;
	result = exchange(event, context, args.hStream, fetch_changes);
	if (result != CUDA_SUCCESS)
		return result;
	before = gpc_session_given(context->scope.session);
	if (is_interprocess(event))
		result = record_for_all(context, &args);
	else
		result = gpc_post_cuEventRecordWithFlags(context, &args);
	if (result == CUDA_SUCCESS && !is_interprocess(event))
		place = place_of(context->scope.session, args.hStream, before);
	/* Another process may ask for it. */
	if (result == CUDA_SUCCESS && is_interprocess(event))
		gpc_session_note_seen(context->scope.session);
	recorded = set_recorded(event, place);
	gpc_elapsed_note(event, args.hStream);
	/* A program that asks for its events by turns need not wait for any of them. */
	if (place && atomic_load_explicit(&event->asked, memory_order_relaxed))
		gpc_watch_begin(&event->watch, recorded,
				&(struct gpc_watched){ context, event->handle.id, true });
	return result;
}

CUresult
gpc_cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
	struct gp_args_cuStreamWaitEvent args = { .Flags = Flags };
	struct gpc_context *context;
	struct gpc_event *event;
	CUresult result = gpc_enter(&context);

	if (result == CUDA_SUCCESS)
		result = gpc_stream_id(&context, hStream, &args.hStream);
	if (result == CUDA_SUCCESS && (Flags & ~(unsigned int)CU_EVENT_WAIT_EXTERNAL))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = gpc_event_lookup(hEvent, &event);
	if (result != CUDA_SUCCESS)
		return result;
	/* Two daemons know nothing of each other: the event is waited for here. */
	if (event->context->scope.session != context->scope.session)
		return gpc_cuEventSynchronize(hEvent);
	args.hEvent = event->handle.id;
	result = gpc_post_cuStreamWaitEvent(context, &args);
	if (result == CUDA_SUCCESS && is_interprocess(event))
		gpc_session_note_foreign_wait(context->scope.session);
	if (result == CUDA_SUCCESS)
		result = exchange(event, context, args.hStream, send_changes);
	return result;
}

CUresult
gpc_event_order(struct gpc_stream *before, struct gpc_stream *behind)
{
	struct gp_args_cuEventRecordWithFlags record = { .hStream = before->handle.id };
	struct gp_args_cuStreamWaitEvent wait = { .hStream = behind->handle.id };
	struct gpc_event *event;
	CUresult result;

	if (before->context->scope.session != behind->context->scope.session)
		return gpc_stream_fence(before);
	result = event_announce(before->context, CU_EVENT_DISABLE_TIMING, &event);
	if (result != CUDA_SUCCESS)
		return result;
	record.hEvent = wait.hEvent = event->handle.id;
	result = gpc_post_cuEventRecordWithFlags(before->context, &record);
	if (result == CUDA_SUCCESS)
		result = gpc_post_cuStreamWaitEvent(behind->context, &wait);
	(void)event_drop(event);
	return result;
}

/* A context that is named, made known to the daemon. */
static CUresult
enter_context(CUcontext hCtx, CUevent hEvent, struct gpc_context **context_p,
	      struct gpc_event **event_p)
{
	CUresult result = gpc_enter_initialized();

	if (result == CUDA_SUCCESS)
		result = hCtx ? gpc_context_lookup(hCtx, context_p) : CUDA_ERROR_INVALID_CONTEXT;
	if (result == CUDA_SUCCESS)
		result = gpc_event_lookup(hEvent, event_p);
	return result == CUDA_SUCCESS ? gpc_context_activate(*context_p) : result;
}

CUresult
gpc_cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
	struct gp_args_cuCtxRecordEvent args;
	struct gpc_context *context;
	struct gpc_event *event;
	CUresult result = enter_context(hCtx, hEvent, &context, &event);

	if (result != CUDA_SUCCESS)
		return result;
	if (!gpc_context_covers(event->context, context))
		return CUDA_ERROR_INVALID_HANDLE;
	args.hCtx = context->handle.id;
	args.hEvent = event->handle.id;
	if (is_exchanging(event))
		result = gpc_sync_context(context);
	if (result != CUDA_SUCCESS)
		return result;
	result = gpc_post_cuCtxRecordEvent(context, &args);
	if (result == CUDA_SUCCESS && is_interprocess(event))
		result = gpc_wait_cuEventSynchronize(context, &(struct gp_args_cuEventSynchronize){
								      .hEvent = event->handle.id });
	(void)set_recorded(event, 0);
	return result;
}

CUresult
gpc_cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)
{
	struct gp_args_cuCtxWaitEvent args;
	struct gpc_context *context;
	struct gpc_event *event;
	CUresult result = enter_context(hCtx, hEvent, &context, &event);

	if (result != CUDA_SUCCESS)
		return result;
	/* Two daemons know nothing of each other: the event is waited for here, as one of another
	 * process is with which host memory is exchanged. */
	if (event->context->scope.session != context->scope.session || is_exchanging(event))
		return gpc_cuEventSynchronize(hEvent);
	args.hCtx = context->handle.id;
	args.hEvent = event->handle.id;
	return gpc_post_cuCtxWaitEvent(context, &args);
}

/* Whether it is known to be complete: not of one that others record, too. */
static bool
is_done(struct gpc_event *event, const struct record *record)
{
	bool here = false;

	if (is_interprocess(event))
		return false;
	if (atomic_load(&event->done) == record->number)
		return true;
	if (!record->stream ||
	    !gpc_stream_is_done(event->context, record->stream, record->given, &here))
		return false;
	if (here)
		atomic_store(&event->here, record->number);
	atomic_store(&event->done, record->number);
	return true;
}

/* Whether the last record is known to be complete, and all that its work has changed is here. */
static bool
is_over(const struct gpc_event *event)
{
	uint64_t recorded = atomic_load(&event->recorded);

	return atomic_load(&event->done) == recorded && atomic_load(&event->here) >= recorded &&
	       !is_interprocess(event);
}

bool
gpc_event_is_done(struct gpc_event *event, uint64_t *recorded_p)
{
	struct record record = read_record(event);

	*recorded_p = record.number;
	return record.number && is_done(event, &record);
}

/* And so is what its stream was given before. */
static void
set_done(struct gpc_event *event, const struct record *record)
{
	struct gpc_stream *stream =
		record->stream ? gpc_handle_find(GPC_KIND_STREAM, record->stream) : NULL;

	atomic_store(&event->done, record->number);
	if (stream && stream->context == event->context)
		gpc_stream_set_done(stream, record->given);
}

static CUresult
query(const struct gpc_event *event)
{
	const struct gp_args_cuEventQuery args = { .hEvent = event->handle.id };

	return gpc_wait_cuEventQuery(event->context, &args);
}

/* What the work before a record has changed is fetched once. */
static CUresult
after_wait(struct gpc_event *event, const struct record *record, struct gpc_mirror_fetch *fetch,
	   CUresult result)
{
	if (!fetch && (atomic_load(&event->here) >= record->number ||
		       record->given <= atomic_load(&event->context->done)))
		return result;
	result = gpc_mirror_after_wait(event->context->scope.session, fetch, result);
	if (result == CUDA_SUCCESS)
		atomic_store(&event->here, record->number);
	return result;
}

static CUresult
event_wait(struct gpc_event *event, const struct record *record)
{
	const struct gp_args_cuEventSynchronize args = { .hEvent = event->handle.id };
	struct gpc_session *session = event->context->scope.session;
	struct gpc_mirror_fetch *fetch = NULL;
	CUresult result;

	if (is_done(event, record)) {
		result = gpc_session_result(session);
	} else {
		fetch = gpc_mirror_before_wait(session, GP_HOST_BEHIND_EVENT, args.hEvent,
					       GP_CALL_cuEventSynchronize);
		result = gpc_wait_cuEventSynchronize(event->context, &args);
		if (result == CUDA_SUCCESS) {
			set_done(event, record);
			gpc_pool_event_done(event->context);
		}
	}
	return after_wait(event, record, fetch, result);
}

static bool
is_implied(const struct gpc_event *event, const struct record *record)
{
	const struct gpc_stream *stream =
		record->stream ? gpc_handle_find(GPC_KIND_STREAM, record->stream) : NULL;

	return gpc_sync_is_all_implied(event->context, record->given) ||
	       (stream && stream->context == event->context &&
		gpc_sync_is_implied(stream, record->given));
}

CUresult
gpc_event_settle(struct gpc_event *event)
{
	const struct record record = read_record(event);

	return is_interprocess(event) || is_done(event, &record) || !is_implied(event, &record)
		       ? CUDA_SUCCESS
		       : event_wait(event, &record);
}

/* cuEventQuery, cuEventSynchronize: an event never recorded counts as complete. */
CUresult
gpc_cuEventQuery(CUevent hEvent)
{
	struct gpc_watched watched;
	struct gpc_event *event;
	struct record record;
	CUresult result = gpc_enter_kind(GPC_KIND_EVENT, hEvent, &event);

	if (result != CUDA_SUCCESS)
		return result;
	if (is_over(event))
		return gpc_session_result(event->context->scope.session);
	record = read_record(event);
	if (is_done(event, &record)) {
		result = gpc_session_result(event->context->scope.session);
	} else if (is_interprocess(event)) {
		result = query(event);
	} else if (is_implied(event, &record)) {
		return event_wait(event, &record);
	} else {
		atomic_store_explicit(&event->asked, true, memory_order_relaxed);
		watched = (struct gpc_watched){ event->context, event->handle.id, true };
		result = gpc_watch_ask(&event->watch, record.number, &watched);
		if (result == CUDA_SUCCESS)
			set_done(event, &record);
	}
	return after_wait(event, &record, NULL, result);
}

CUresult
gpc_cuEventSynchronize(CUevent hEvent)
{
	struct gpc_event *event;
	struct record record;
	CUresult result = gpc_enter_kind(GPC_KIND_EVENT, hEvent, &event);

	if (result != CUDA_SUCCESS)
		return result;
	if (is_over(event))
		return gpc_session_result(event->context->scope.session);
	record = read_record(event);
	return event_wait(event, &record);
}

CUresult
gpc_cuIpcGetEventHandle(CUipcEventHandle *pHandle, CUevent event)
{
	struct gp_args_gpEventShare args;
	struct gp_reply_gpEventShare reply;
	struct gpc_event *found;
	void *raw = NULL;
	CUresult result = gpc_enter_kind(GPC_KIND_EVENT, event, &found);

	if (result != CUDA_SUCCESS)
		return result;
	if (!pHandle)
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_interprocess(found))
		return CUDA_ERROR_INVALID_HANDLE;
	args.event = found->handle.id;
	result = gpc_wait_gpEventShare(found->context, &args, &reply, &raw);
	if (result == CUDA_SUCCESS && reply.handle.size != sizeof(*pHandle))
		result = CUDA_ERROR_UNKNOWN;
	if (result == CUDA_SUCCESS)
		memcpy(pHandle, reply.handle.data, sizeof(*pHandle));
	free(raw);
	return result;
}

CUresult
gpc_cuIpcOpenEventHandle(CUevent *phEvent, CUipcEventHandle handle)
{
	struct gp_args_gpEventOpen args = { .handle = { &handle, sizeof(handle) } };
	struct gpc_context *context;
	struct gpc_event *event;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!phEvent)
		return CUDA_ERROR_INVALID_VALUE;
	event = gpc_handle_new(GPC_KIND_EVENT, sizeof(*event));
	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->context = context;
	event->flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
	args.event = event->handle.id;
	result = gpc_wait_gpEventOpen(context, &args);
	if (result == CUDA_SUCCESS)
		*phEvent = event->handle.token;
	else
		gpc_handle_remove(&event->handle);
	return result;
}
