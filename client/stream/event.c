/* SPDX-License-Identifier: Apache-2.0 */
#include "client/stream/event.h"

#include "client/memory/pool.h"
#include "client/stream/stream.h"
#include "client/stream/watch.h"
#include "client/wire/session.h"
#include "gpc_calls.h"

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

static CUresult
enter_event(CUevent hEvent, struct gpc_event **event_p)
{
	CUresult result = gpc_enter_initialized();

	return result == CUDA_SUCCESS ? gpc_event_lookup(hEvent, event_p) : result;
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

CUresult
gpc_cuEventCreate(CUevent *phEvent, unsigned int Flags)
{
	struct gp_args_cuEventCreate args = { .Flags = Flags };
	struct gpc_context *context;
	struct gpc_event *event;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	/* cuEventCreate: an event between processes cannot keep time. */
	if (!phEvent || (Flags & ~(unsigned int)KNOWN_FLAGS) ||
	    ((Flags & CU_EVENT_INTERPROCESS) && !(Flags & CU_EVENT_DISABLE_TIMING)))
		return CUDA_ERROR_INVALID_VALUE;
	if (Flags & CU_EVENT_INTERPROCESS)
		return CUDA_ERROR_NOT_SUPPORTED;
	event = gpc_handle_new(GPC_KIND_EVENT, sizeof(*event));
	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->context = context;
	event->flags = Flags;
	args.phEvent = event->handle.id;
	result = gpc_post_cuEventCreate(context, &args);
	if (result == CUDA_SUCCESS)
		*phEvent = event->handle.token;
	else
		gpc_handle_remove(&event->handle);
	return result;
}

CUresult
gpc_cuEventDestroy_v2(CUevent hEvent)
{
	struct gp_args_cuEventDestroy_v2 args;
	struct gpc_event *event;
	CUresult result = enter_event(hEvent, &event);

	if (result != CUDA_SUCCESS)
		return result;
	args.hEvent = event->handle.id;
	gpc_watch_drop(&event->watch);
	result = gpc_post_cuEventDestroy_v2(event->context, &args);
	/* Only now, or another thread could announce a new event of that place before. */
	gpc_handle_remove(&event->handle);
	return result;
}

CUresult
gpc_cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
	struct gp_args_cuEventRecordWithFlags args = { .flags = flags };
	struct gpc_context *context;
	struct gpc_event *event;
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
	result = gpc_post_cuEventRecordWithFlags(context, &args);
	/* Behind it: who sees the number and asks, asks about this time. */
	atomic_fetch_add(&event->recorded, 1);
	return result;
}

CUresult
gpc_cuEventRecord(CUevent hEvent, CUstream hStream)
{
	return gpc_cuEventRecordWithFlags(hEvent, hStream, CU_EVENT_RECORD_DEFAULT);
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
	if (result == CUDA_SUCCESS)
		result = gpc_event_lookup(hEvent, &event);
	if (result != CUDA_SUCCESS)
		return result;
	/* Two daemons know nothing of each other: the event is waited for here. */
	if (event->context->scope.session != context->scope.session)
		return gpc_cuEventSynchronize(hEvent);
	args.hEvent = event->handle.id;
	return gpc_post_cuStreamWaitEvent(context, &args);
}

/* Whether it is known to be complete, as it was when it was recorded so often. */
static bool
is_done(struct gpc_event *event, uint64_t recorded)
{
	return atomic_load(&event->done) == recorded;
}

static CUresult
ask(struct gpc_event *event, uint64_t recorded)
{
	const struct gp_args_cuEventQuery args = { .hEvent = event->handle.id };
	CUresult result;

	switch (gpc_watch_look(&event->watch, recorded)) {
	case GPC_WATCHED_PENDING:
		return CUDA_ERROR_NOT_READY;
	case GPC_WATCHED_DONE:
		return gpc_session_result(event->context->scope.session);
	default:
		break;
	}
	result = gpc_wait_cuEventQuery(event->context, &args);
	if (result == CUDA_ERROR_NOT_READY)
		gpc_watch_event(&event->watch, recorded, event->context, event->handle.id);
	return result;
}

/* cuEventQuery, cuEventSynchronize: an event never recorded counts as complete. */
CUresult
gpc_cuEventQuery(CUevent hEvent)
{
	struct gpc_event *event;
	uint64_t recorded;
	CUresult result = enter_event(hEvent, &event);

	if (result != CUDA_SUCCESS)
		return result;
	recorded = atomic_load(&event->recorded);
	if (is_done(event, recorded))
		return gpc_session_result(event->context->scope.session);
	result = ask(event, recorded);
	if (result == CUDA_SUCCESS)
		atomic_store(&event->done, recorded);
	return result;
}

CUresult
gpc_cuEventSynchronize(CUevent hEvent)
{
	struct gp_args_cuEventSynchronize args;
	struct gpc_event *event;
	uint64_t recorded;
	CUresult result = enter_event(hEvent, &event);

	if (result != CUDA_SUCCESS)
		return result;
	recorded = atomic_load(&event->recorded);
	args.hEvent = event->handle.id;
	if (is_done(event, recorded))
		return gpc_session_result(event->context->scope.session);
	result = gpc_wait_cuEventSynchronize(event->context, &args);
	if (result != CUDA_SUCCESS)
		return result;
	atomic_store(&event->done, recorded);
	gpc_pool_event_done(event->context);
	return CUDA_SUCCESS;
}

CUresult
gpc_cuEventElapsedTime_v2(float *pMilliseconds, CUevent hStart, CUevent hEnd)
{
	struct gp_args_cuEventElapsedTime_v2 args;
	struct gp_reply_cuEventElapsedTime_v2 reply;
	struct gpc_event *start, *end;
	CUresult result = enter_event(hStart, &start);

	if (result == CUDA_SUCCESS)
		result = gpc_event_lookup(hEnd, &end);
	if (result != CUDA_SUCCESS)
		return result;
	if (!pMilliseconds)
		return CUDA_ERROR_INVALID_VALUE;
	if (start->context->scope.session != end->context->scope.session)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!start->recorded || !end->recorded ||
	    ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
		return CUDA_ERROR_INVALID_HANDLE;
	args.hStart = start->handle.id;
	args.hEnd = end->handle.id;
	result = gpc_wait_cuEventElapsedTime_v2(end->context, &args, &reply);
	if (result == CUDA_SUCCESS)
		*pMilliseconds = reply.pMilliseconds;
	return result;
}
