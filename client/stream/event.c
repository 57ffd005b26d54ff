/* SPDX-License-Identifier: Apache-2.0 */
#include "client/stream/event.h"

#include "client/context/object.h"
#include "client/host/coherence.h"
#include "client/host/host_block.h"
#include "client/memory/pool.h"
#include "client/session/call.h"
#include "client/session/host_queue.h"
#include "client/session/session.h"
#include "client/stream/completion_watch.h"
#include "client/stream/event_elapsed.h"
#include "client/stream/stream.h"
#include "client/stream/sync.h"
#include "gpc_calls.h"

#include <stdlib.h>
#include <string.h>

#define KNOWN_FLAGS (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

CUresult
gpc_event_lookup(CUevent hEvent, struct gpc_event **event_p)
{
	*event_p = gpc_handle_from_token(GPC_KIND_EVENT, hEvent);
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

/* A consistent copy of an event's last record. */
struct event_record {
	uint64_t number; /* the event's `recorded` */
	uint32_t stream; /* wire ID of the stream; 0: unknown, and `issued` is ... */
	uint64_t issued; /* ... the session's last work number at the record */
};

/* Called after the call was posted, so that a thread that sees the number queries this record.
 * Record numbers are unique, so a result for an event that another thread destroys is never
 * mistaken for that of its successor. */
static uint64_t
event_set_recorded(struct gpc_event *event, uint64_t place)
{
	static atomic_uint_fast64_t last;
	uint64_t recorded = atomic_fetch_add(&last, 1) + 1;

	atomic_store(&event->place, 0);
	atomic_store(&event->issued, gpc_session_issued(event->context->scope.session));
	atomic_store(&event->recorded, recorded);
	atomic_store(&event->place, place);
	return recorded;
}

/* Returns the `place` of a record posted to this stream when the session's last work number was
 * `before`; 0 if another thread posted work in between. */
static uint64_t
event_record_get_place(const struct gpc_session *session, uint32_t stream, uint64_t before)
{
	uint64_t issued = gpc_session_issued_to(session, stream);

	return issued == before + 1 ? (uint64_t)stream << 32 | (uint32_t)issued : 0;
}

static struct event_record
event_read_record(const struct gpc_event *event)
{
	struct event_record event_record = { .number = atomic_load(&event->recorded),
					     .issued = atomic_load(&event->issued) };
	uint64_t place = atomic_load(&event->place);
	uint64_t last = gpc_session_issued(event->context->scope.session);

	if (!place || atomic_load(&event->recorded) != event_record.number)
		return event_record;
	event_record.stream = (uint32_t)(place >> 32);
	event_record.issued = last - (uint32_t)(last - place);
	return event_record;
}

static void
event_drop_if_of_context(void *object, void *context)
{
	struct gpc_event *event = object;

	if (event->context != context || !gpc_handle_claim(GPC_KIND_EVENT, event->handle.token))
		return;
	gpc_watch_drop(&event->watch);
	gpc_handle_remove(&event->handle);
}

void
gpc_event_drop_context(struct gpc_context *context)
{
	gpc_handle_each(GPC_KIND_EVENT, event_drop_if_of_context, context);
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
	/* Removed only now; otherwise another thread could announce a new event with the same ID
	 * first. */
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
	/* cuEventCreate: an interprocess event requires CU_EVENT_DISABLE_TIMING. */
	if (!phEvent || (Flags & ~(unsigned int)KNOWN_FLAGS) ||
	    ((Flags & CU_EVENT_INTERPROCESS) && !(Flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	if ((Flags & CU_EVENT_INTERPROCESS) &&
	    !gpc_facts_have_call(gpc_session_facts(context->scope.session), GP_CALL_gpEventShare))
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

	if (result != CUDA_SUCCESS)
		return result;
	return gpc_handle_claim(GPC_KIND_EVENT, hEvent) ? event_drop(event)
							: CUDA_ERROR_INVALID_HANDLE;
}

static bool
event_is_interprocess(const struct gpc_event *event)
{
	return event->flags & CU_EVENT_INTERPROCESS;
}

static bool
event_exchanges_memory(const struct gpc_event *event)
{
	return event_is_interprocess(event) && atomic_load(&gpc_host_memory_exchanged);
}

static void
changes_fetch(CUstream stream, CUresult result, void *session)
{
	(void)stream;
	if (result == CUDA_SUCCESS)
		(void)gpc_coherence_fetch(session);
}

static void
changes_send(CUstream stream, CUresult result, void *session)
{
	(void)stream;
	if (result == CUDA_SUCCESS)
		(void)gpc_coherence_send(session);
}

/* Each process replicates shared host memory to its own session. So the writes of kernels are
 * fetched before the event is recorded, and the writes of other processes are sent before work that
 * comes after a wait. */
static CUresult
changes_post_exchange(const struct gpc_event *event, const struct gpc_context *context,
		      uint32_t stream, CUstreamCallback callback)
{
	const struct gpc_host_call call = {
		.callback = callback,
		.data = context->scope.session,
		.library = true,
	};

	return event_exchanges_memory(event) ? gpc_host_queue_post(&context->scope, stream, &call)
					     : CUDA_SUCCESS;
}

/* Other processes may be notified through channels that the daemon does not see, so the event must
 * be recorded for all when the call returns. */
static CUresult
event_record_and_wait(struct gpc_context *context,
		      const struct gp_args_cuEventRecordWithFlags *event_record)
{
	const struct gp_args_gpEventRecord args = { .event = event_record->hEvent,
						    .stream = event_record->hStream,
						    .flags = event_record->flags };

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
	/* cuEventRecord: event and stream must belong to the same context. */
	if (event->context != context)
		return CUDA_ERROR_INVALID_HANDLE;
	args.hEvent = event->handle.id;
	result = changes_post_exchange(event, context, args.hStream, changes_fetch);
	if (result != CUDA_SUCCESS)
		return result;
	before = gpc_session_issued(context->scope.session);
	if (event_is_interprocess(event))
		result = event_record_and_wait(context, &args);
	else
		result = gpc_post_cuEventRecordWithFlags(context, &args);
	if (result == CUDA_SUCCESS && !event_is_interprocess(event))
		place = event_record_get_place(context->scope.session, args.hStream, before);
	/* Another process may query the event. */
	if (result == CUDA_SUCCESS && event_is_interprocess(event))
		gpc_session_note_visible(context->scope.session);
	recorded = event_set_recorded(event, place);
	gpc_elapsed_note(event, args.hStream);
	/* If the program polls its events in turn, the completion watch saves the round trip of the
	 * next query. */
	if (place && atomic_load_explicit(&event->queried, memory_order_relaxed))
		gpc_watch_start(&event->watch, recorded,
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
	/* Daemons cannot order work among each other, so the client waits for the event. */
	if (event->context->scope.session != context->scope.session)
		return gpc_cuEventSynchronize(hEvent);
	args.hEvent = event->handle.id;
	result = gpc_post_cuStreamWaitEvent(context, &args);
	if (result == CUDA_SUCCESS && event_is_interprocess(event))
		gpc_session_note_foreign_wait(context->scope.session);
	if (result == CUDA_SUCCESS)
		result = changes_post_exchange(event, context, args.hStream, changes_send);
	return result;
}

CUresult
gpc_event_order(struct gpc_stream *before, struct gpc_stream *after)
{
	struct gp_args_cuEventRecordWithFlags event_record = { .hStream = before->handle.id };
	struct gp_args_cuStreamWaitEvent wait = { .hStream = after->handle.id };
	struct gpc_event *event;
	CUresult result;

	if (before->context->scope.session != after->context->scope.session)
		return gpc_stream_fence(before);
	result = event_announce(before->context, CU_EVENT_DISABLE_TIMING, &event);
	if (result != CUDA_SUCCESS)
		return result;
	event_record.hEvent = wait.hEvent = event->handle.id;
	result = gpc_post_cuEventRecordWithFlags(before->context, &event_record);
	if (result == CUDA_SUCCESS)
		result = gpc_post_cuStreamWaitEvent(after->context, &wait);
	(void)event_drop(event);
	return result;
}

/* Looks up the explicit context and the event, and activates the context on the daemon. */
static CUresult
context_enter_event(CUcontext hCtx, CUevent hEvent, struct gpc_context **context_p,
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
	CUresult result = context_enter_event(hCtx, hEvent, &context, &event);

	if (result != CUDA_SUCCESS)
		return result;
	if (!gpc_context_covers(event->context, context))
		return CUDA_ERROR_INVALID_HANDLE;
	args.hCtx = context->handle.id;
	args.hEvent = event->handle.id;
	if (event_exchanges_memory(event))
		result = gpc_sync_context(context);
	if (result != CUDA_SUCCESS)
		return result;
	result = gpc_post_cuCtxRecordEvent(context, &args);
	if (result == CUDA_SUCCESS && event_is_interprocess(event))
		result = gpc_wait_cuEventSynchronize(context, &(struct gp_args_cuEventSynchronize){
								      .hEvent = event->handle.id });
	(void)event_set_recorded(event, 0);
	return result;
}

CUresult
gpc_cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)
{
	struct gp_args_cuCtxWaitEvent args;
	struct gpc_context *context;
	struct gpc_event *event;
	CUresult result = context_enter_event(hCtx, hEvent, &context, &event);

	if (result != CUDA_SUCCESS)
		return result;
	/* Daemons cannot order work among each other, so the client waits for the event; so it does
	 * for an interprocess event when host memory is exchanged. */
	if (event->context->scope.session != context->scope.session ||
	    event_exchanges_memory(event))
		return gpc_cuEventSynchronize(hEvent);
	args.hCtx = context->handle.id;
	args.hEvent = event->handle.id;
	return gpc_post_cuCtxWaitEvent(context, &args);
}

/* Returns whether the record is known to be complete; never for an event that other processes may
 * also record. */
static bool
event_record_is_done(struct gpc_event *event, const struct event_record *event_record)
{
	bool fetched = false;

	if (event_is_interprocess(event))
		return false;
	if (atomic_load(&event->done) == event_record->number)
		return true;
	if (!event_record->stream || !gpc_stream_is_done(event->context, event_record->stream,
							 event_record->issued, &fetched))
		return false;
	if (fetched)
		atomic_store(&event->fetched, event_record->number);
	atomic_store(&event->done, event_record->number);
	return true;
}

/* Returns whether the last record is known to be complete and all changes of its work have been
 * fetched. */
static bool
event_is_complete(const struct gpc_event *event)
{
	uint64_t recorded = atomic_load(&event->recorded);

	return atomic_load(&event->done) == recorded && atomic_load(&event->fetched) >= recorded &&
	       !event_is_interprocess(event);
}

bool
gpc_event_is_done(struct gpc_event *event, uint64_t *recorded_p)
{
	struct event_record event_record = event_read_record(event);

	*recorded_p = event_record.number;
	return event_record.number && event_record_is_done(event, &event_record);
}

/* Earlier work of the record's stream is done too. */
static void
event_record_set_done(struct gpc_event *event, const struct event_record *event_record)
{
	struct gpc_stream *stream =
		event_record->stream ? gpc_handle_from_id(GPC_KIND_STREAM, event_record->stream)
				     : NULL;

	atomic_store(&event->done, event_record->number);
	if (stream && stream->context == event->context)
		gpc_stream_set_done(stream, event_record->issued);
}

static CUresult
event_query(const struct gpc_event *event)
{
	const struct gp_args_cuEventQuery args = { .hEvent = event->handle.id };

	return gpc_wait_cuEventQuery(event->context, &args);
}

/* Fetches the changes of the work before a record once. */
static CUresult
event_after_wait(struct gpc_event *event, const struct event_record *event_record,
		 struct gpc_coherence_fetch *fetch, CUresult result)
{
	if (!fetch && (atomic_load(&event->fetched) >= event_record->number ||
		       event_record->issued <= atomic_load(&event->context->done)))
		return result;
	result = gpc_coherence_after_wait(event->context->scope.session, fetch, result);
	if (result == CUDA_SUCCESS)
		atomic_store(&event->fetched, event_record->number);
	return result;
}

static CUresult
event_wait(struct gpc_event *event, const struct event_record *event_record)
{
	const struct gp_args_cuEventSynchronize args = { .hEvent = event->handle.id };
	struct gpc_session *session = event->context->scope.session;
	struct gpc_coherence_fetch *fetch = NULL;
	CUresult result;

	if (event_record_is_done(event, event_record)) {
		result = gpc_session_result(session);
	} else {
		fetch = gpc_coherence_before_wait(session, GP_HOST_AFTER_EVENT, args.hEvent,
						  GP_CALL_cuEventSynchronize);
		result = gpc_wait_cuEventSynchronize(event->context, &args);
		if (result == CUDA_SUCCESS) {
			event_record_set_done(event, event_record);
			gpc_pool_event_done(event->context);
		}
	}
	return event_after_wait(event, event_record, fetch, result);
}

static bool
event_record_is_implied(const struct gpc_event *event, const struct event_record *event_record)
{
	const struct gpc_stream *stream =
		event_record->stream ? gpc_handle_from_id(GPC_KIND_STREAM, event_record->stream)
				     : NULL;

	return gpc_sync_is_all_implied(event->context, event_record->issued) ||
	       (stream && stream->context == event->context &&
		gpc_sync_is_implied(stream, event_record->issued));
}

CUresult
gpc_event_settle(struct gpc_event *event)
{
	const struct event_record event_record = event_read_record(event);

	return event_is_interprocess(event) || event_record_is_done(event, &event_record) ||
			       !event_record_is_implied(event, &event_record)
		       ? CUDA_SUCCESS
		       : event_wait(event, &event_record);
}

/* cuEventQuery, cuEventSynchronize: an event that was never recorded counts as complete. */
CUresult
gpc_cuEventQuery(CUevent hEvent)
{
	struct gpc_watched watched;
	struct gpc_event *event;
	struct event_record event_record;
	CUresult result = gpc_enter_kind(GPC_KIND_EVENT, hEvent, &event);

	if (result != CUDA_SUCCESS)
		return result;
	if (event_is_complete(event))
		return gpc_session_result(event->context->scope.session);
	event_record = event_read_record(event);
	if (event_record_is_done(event, &event_record)) {
		result = gpc_session_result(event->context->scope.session);
	} else if (event_is_interprocess(event)) {
		result = event_query(event);
	} else if (event_record_is_implied(event, &event_record)) {
		return event_wait(event, &event_record);
	} else {
		atomic_store_explicit(&event->queried, true, memory_order_relaxed);
		watched = (struct gpc_watched){ event->context, event->handle.id, true };
		result = gpc_watch_query(&event->watch, event_record.number, &watched);
		if (result == CUDA_SUCCESS)
			event_record_set_done(event, &event_record);
	}
	return event_after_wait(event, &event_record, NULL, result);
}

CUresult
gpc_cuEventSynchronize(CUevent hEvent)
{
	struct gpc_event *event;
	struct event_record event_record;
	CUresult result = gpc_enter_kind(GPC_KIND_EVENT, hEvent, &event);

	if (result != CUDA_SUCCESS)
		return result;
	if (event_is_complete(event))
		return gpc_session_result(event->context->scope.session);
	event_record = event_read_record(event);
	return event_wait(event, &event_record);
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
	if (!event_is_interprocess(found))
		return CUDA_ERROR_INVALID_HANDLE;
	args.event = found->handle.id;
	result = gpc_wait_gpEventShare(found->context, &args, &reply, &raw);
	return gpc_reply_copy_bytes(result, &reply.handle, pHandle, sizeof(*pHandle), raw);
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
