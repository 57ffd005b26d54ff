/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/stream/event.h"

#include "gpd_calls.h"
#include "server/worker/context/context.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/schedule/schedule.h"
#include "server/worker/session/ipc_export.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/responder.h"
#include "server/worker/stream/stream.h"

#include <stdlib.h>

#define FLAGS_KNOWN (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

/* The device must be current. */
static CUresult
make_ref(int device, unsigned int flags, struct gpd_event_ref **ref_p)
{
	struct gpd_event_ref *ref = calloc(1, sizeof(*ref));
	CUresult result;

	if (!ref)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* CU_EVENT_BLOCKING_SYNC is dropped: no thread blocks in the driver here. */
	result = gpd_driver.cuEventCreate(&ref->driver, flags & CU_EVENT_DISABLE_TIMING);
	if (result != CUDA_SUCCESS) {
		free(ref);
		return result;
	}
	ref->device = device;
	atomic_init(&ref->count, 1);
	*ref_p = ref;
	return CUDA_SUCCESS;
}

struct gpd_event_ref *
gpd_event_ref(struct gpd_event_ref *ref)
{
	atomic_fetch_add_explicit(&ref->count, 1, memory_order_relaxed);
	return ref;
}

void
gpd_event_unref(struct gpd_event_ref *ref)
{
	if (atomic_fetch_sub_explicit(&ref->count, 1, memory_order_acq_rel) > 1)
		return;
	(void)gpd_driver.cuEventDestroy_v2(ref->driver);
	free(ref);
}

struct gpd_event *
gpd_event_get(const struct gpd_session *session, uint32_t id)
{
	return gpd_handle_get(&session->handles, GPD_KIND_EVENT, id);
}

struct gpd_event_common {
	pthread_mutex_t lock;
	struct gpd_event_ref *ref;     /* protected by lock */
	unsigned int users;            /* events of all sessions that use it; protected by lock */
	unsigned int deferred_records; /* sum of theirs; protected by lock */
	int device;
	struct gpd_ipc_export
		ipc_export; /* made by the creating session; under gpd_ipc_exports_lock */
};

struct gpd_event_ref *
gpd_event_get_ref(const struct gpd_event *event)
{
	struct gpd_event_ref *ref;

	pthread_mutex_lock(&event->common->lock);
	ref = gpd_event_ref(event->common->ref);
	pthread_mutex_unlock(&event->common->lock);
	return ref;
}

static CUresult
make_common(int device, unsigned int flags, struct gpd_event_common **common_p)
{
	struct gpd_event_common *common = calloc(1, sizeof(*common));
	CUresult result;

	if (!common)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = make_ref(device, flags, &common->ref);
	if (result != CUDA_SUCCESS) {
		free(common);
		return result;
	}
	pthread_mutex_init(&common->lock, NULL);
	common->device = device;
	common->users = 1;
	common->ipc_export.kind = GP_IPC_EVENT;
	common->ipc_export.thing = common;
	*common_p = common;
	return CUDA_SUCCESS;
}

static void
common_unref(const struct gpd_event *event)
{
	struct gpd_event_common *common = event->common;
	bool last;

	/* Sessions that have opened the event keep it; it can no longer be opened. */
	if (event->flags & CU_EVENT_INTERPROCESS && !event->opened)
		gpd_ipc_export_withdraw(&common->ipc_export);
	pthread_mutex_lock(&common->lock);
	common->deferred_records -= event->deferred_records;
	last = --common->users == 0;
	pthread_mutex_unlock(&common->lock);
	if (!last)
		return;
	gpd_event_unref(common->ref);
	pthread_mutex_destroy(&common->lock);
	free(common);
}

/* Registers the event under an ID. On failure its common part is released. */
static CUresult
event_add(struct gpd_session *session, uint32_t id, const struct gpd_event *made)
{
	struct gpd_event *event = malloc(sizeof(*event));
	CUresult result = CUDA_ERROR_OUT_OF_MEMORY;

	if (event) {
		*event = *made;
		result = gpd_session_add_handle(session, GPD_KIND_EVENT, id, &event->handle);
	}
	if (result != CUDA_SUCCESS) {
		common_unref(made);
		free(event);
	}
	return result;
}

void
gpd_event_destroy(struct gpd_session *session, struct gpd_event *event)
{
	gpd_handle_remove(&session->handles, &event->handle);
	common_unref(event);
	free(event);
}

CUresult
gpd_cuEventCreate(struct gpd_session *session, const struct gp_args_cuEventCreate *args)
{
	struct gpd_event event = { .context = gpd_context_get(session, session->current.context),
				   .flags = args->Flags };
	CUresult result;

	if (!event.context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (args->Flags & ~(unsigned int)FLAGS_KNOWN)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpd_device_enter(event.context->device);
	if (result == CUDA_SUCCESS)
		result = make_common(event.context->device, args->Flags, &event.common);
	return result == CUDA_SUCCESS ? event_add(session, args->phEvent, &event) : result;
}

/* Replaces the driver's event if a wait still uses the former capture. */
static CUresult
ref_renew(struct gpd_event_ref **ref_p, unsigned int flags)
{
	struct gpd_event_ref *fresh;
	CUresult result;

	if (atomic_load_explicit(&(*ref_p)->count, memory_order_acquire) == 1)
		return CUDA_SUCCESS;
	result = make_ref((*ref_p)->device, flags, &fresh);
	if (result != CUDA_SUCCESS)
		return result;
	gpd_event_unref(*ref_p);
	*ref_p = fresh;
	return CUDA_SUCCESS;
}

static CUresult
ref_capture(struct gpd_event_ref **ref_p, unsigned int event_flags, const struct gpd_stream *stream,
	    unsigned int flags)
{
	CUresult result;

	if (stream->device != (*ref_p)->device)
		return CUDA_ERROR_INVALID_HANDLE;
	result = ref_renew(ref_p, event_flags);
	if (result != CUDA_SUCCESS)
		return result;
	if (flags == 0)
		return gpd_driver.cuEventRecord((*ref_p)->driver, stream->driver);
	return gpd_driver.cuEventRecordWithFlags((*ref_p)->driver, stream->driver, flags);
}

CUresult
gpd_event_capture(struct gpd_session *session, struct gpd_event *event,
		  const struct gpd_stream *stream, unsigned int flags)
{
	CUresult result;

	gpd_schedule_end_batches(session->account.schedule);
	pthread_mutex_lock(&event->common->lock);
	result = ref_capture(&event->common->ref, event->flags, stream, flags);
	pthread_mutex_unlock(&event->common->lock);
	return result;
}

/* The first deferred record of the session has been carried out. */
static void
deferred_record_done(struct gpd_event *event)
{
	pthread_mutex_lock(&event->common->lock);
	event->deferred_records--;
	event->common->deferred_records--;
	pthread_mutex_unlock(&event->common->lock);
}

static CUresult
event_record(struct gpd_session *session, uint32_t id, uint32_t stream_id, unsigned int flags)
{
	struct gpd_event *event = gpd_event_get(session, id);
	struct gpd_stream *stream;
	CUresult result;

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	result = gpd_stream_begin(session, stream_id, &stream);
	if (result == CUDA_SUCCESS)
		result = gpd_event_capture(session, event, stream, flags);
	if (event->deferred_records > 0)
		deferred_record_done(event);
	return result;
}

bool
gpd_event_defer_record(struct gpd_session *session, uint32_t id)
{
	struct gpd_event *event = gpd_event_get(session, id);

	if (!event)
		return false;
	pthread_mutex_lock(&event->common->lock);
	event->deferred_records++;
	event->common->deferred_records++;
	pthread_mutex_unlock(&event->common->lock);
	return true;
}

bool
gpd_event_has_deferred_record(struct gpd_session *session, uint32_t id)
{
	struct gpd_event *event = gpd_event_get(session, id);
	bool held;

	if (!event || !(event->flags & CU_EVENT_INTERPROCESS))
		return false;
	pthread_mutex_lock(&event->common->lock);
	held = event->common->deferred_records > event->deferred_records;
	pthread_mutex_unlock(&event->common->lock);
	return held;
}

CUresult
gpd_cuEventRecordWithFlags(struct gpd_session *session,
			   const struct gp_args_cuEventRecordWithFlags *args)
{
	return event_record(session, args->hEvent, args->hStream, args->flags);
}

CUresult
gpd_gpEventRecord(struct gpd_session *session, const struct gp_args_gpEventRecord *args)
{
	return event_record(session, args->event, args->stream, args->flags);
}

CUresult
gpd_cuEventQuery(struct gpd_session *session, const struct gp_args_cuEventQuery *args)
{
	struct gpd_event *event = gpd_event_get(session, args->hEvent);
	struct gpd_event_ref *ref;
	CUresult result;

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	ref = gpd_event_get_ref(event);
	result = gpd_driver.cuEventQuery(ref->driver);
	gpd_event_unref(ref);
	return result == CUDA_SUCCESS ? gpd_wait_reply_done(session) : result;
}

CUresult
gpd_cuEventSynchronize(struct gpd_session *session, const struct gp_args_cuEventSynchronize *args)
{
	struct gpd_event *event = gpd_event_get(session, args->hEvent);
	struct gpd_event_ref *ref;

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	ref = gpd_event_get_ref(event);
	gpd_wait_add_event(session, ref, gpd_wait_reply, gpd_wait_request(session));
	gpd_event_unref(ref);
	return GPD_LATER;
}

CUresult
gpd_cuEventDestroy_v2(struct gpd_session *session, const struct gp_args_cuEventDestroy_v2 *args)
{
	struct gpd_event *event = gpd_event_get(session, args->hEvent);

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	gpd_event_destroy(session, event);
	return CUDA_SUCCESS;
}

CUresult
gpd_gpEventShare(struct gpd_session *session, const struct gp_args_gpEventShare *args,
		 struct gp_reply_gpEventShare *reply)
{
	struct gpd_event *event = gpd_event_get(session, args->event);
	struct gp_ipc_handle *handle;

	session->streams->has_ipc_events = true;
	/* An event opened from another session cannot be exported again. */
	if (!event || !(event->flags & CU_EVENT_INTERPROCESS) || event->opened)
		return CUDA_ERROR_INVALID_HANDLE;
	handle = gpd_ipc_export_create(&session->account, &event->common->ipc_export);
	if (!handle)
		return CUDA_ERROR_OUT_OF_MEMORY;
	handle->device = (uint8_t)event->common->device;
	reply->handle = (struct gp_bytes){ handle, sizeof(*handle) };
	return CUDA_SUCCESS;
}

static CUresult
common_join(const struct gpd_session *session, const struct gpd_ipc_export *offer, int device,
	    struct gpd_event_common **common_p)
{
	struct gpd_event_common *common = offer->thing;

	if (offer->entry == session->account.entry)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (common->device != device)
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	pthread_mutex_lock(&common->lock);
	common->users++;
	pthread_mutex_unlock(&common->lock);
	*common_p = common;
	return CUDA_SUCCESS;
}

static CUresult
open_common(struct gpd_session *session, const struct gp_bytes *handle, int device,
	    struct gpd_event_common **common_p)
{
	const char *why = NULL;
	struct gpd_ipc_export *offer;
	CUresult result;

	pthread_mutex_lock(&gpd_ipc_exports_lock);
	result = gpd_ipc_export_find_locked(&session->account, handle, GP_IPC_EVENT, &offer, &why);
	if (result == CUDA_SUCCESS)
		result = common_join(session, offer, device, common_p);
	pthread_mutex_unlock(&gpd_ipc_exports_lock);
	if (why)
		gpd_session_refuse_handle(session, why);
	return result;
}

CUresult
gpd_gpEventOpen(struct gpd_session *session, const struct gp_args_gpEventOpen *args)
{
	struct gpd_event event = { .context = gpd_context_get(session, session->current.context),
				   .flags = CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS,
				   .opened = true };
	CUresult result;

	if (!event.context)
		return CUDA_ERROR_INVALID_CONTEXT;
	session->streams->has_ipc_events = true;
	result = open_common(session, &args->handle, event.context->device, &event.common);
	return result == CUDA_SUCCESS ? event_add(session, args->event, &event) : result;
}

/* Begins an operation on a stream of the context that the client does not know. */
static CUresult
own_stream_begin(struct gpd_session *session, struct gpd_context *context,
		 struct gpd_stream **own_p)
{
	CUresult result = CUDA_SUCCESS;

	if (!*own_p) {
		result = gpd_stream_create(session, context, 0, CU_STREAM_NON_BLOCKING, 0, false);
		if (result == CUDA_SUCCESS)
			*own_p = session->streams->list;
	}
	return result == CUDA_SUCCESS ? gpd_stream_begin_on(session, *own_p) : result;
}

/* Orders the context's own stream after all others. */
static CUresult
streams_join(struct gpd_session *session, struct gpd_context *context)
{
	CUresult result = own_stream_begin(session, context, &context->joins);

	for (struct gpd_stream *s = session->streams->list; s && result == CUDA_SUCCESS;
	     s = s->next) {
		if (s != context->joins && gpd_context_has(context, s) && !gpd_stream_is_idle(s))
			result = gpd_stream_order_after(context->joins, s);
	}
	return result;
}

CUresult
gpd_cuCtxRecordEvent(struct gpd_session *session, const struct gp_args_cuCtxRecordEvent *args)
{
	struct gpd_context *context = gpd_context_get(session, args->hCtx);
	struct gpd_event *event = gpd_event_get(session, args->hEvent);
	CUresult result;

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	result = streams_join(session, context);
	return result == CUDA_SUCCESS ? gpd_event_capture(session, event, context->joins, 0)
				      : result;
}

CUresult
gpd_cuCtxWaitEvent(struct gpd_session *session, const struct gp_args_cuCtxWaitEvent *args)
{
	struct gpd_context *context = gpd_context_get(session, args->hCtx);
	struct gpd_event *event = gpd_event_get(session, args->hEvent);
	struct gpd_event_ref *ref;
	CUresult result;

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	ref = gpd_event_get_ref(event);
	result = own_stream_begin(session, context, &context->gate);
	for (struct gpd_stream *s = session->streams->list; s && result == CUDA_SUCCESS;
	     s = s->next) {
		if (gpd_context_has(context, s))
			result = gpd_stream_wait_event(session, s, ref->driver);
	}
	gpd_event_unref(ref);
	return result;
}
