/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/session/event.h"

#include "gpd_calls.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/schedule/schedule.h"
#include "server/worker/session/context.h"
#include "server/worker/session/session.h"
#include "server/worker/session/stream.h"
#include "server/worker/session/wait.h"

#include <stdlib.h>

#define FLAGS_KNOWN (CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS)

/* Its device is current. */
static CUresult
make_ref(int device, unsigned int flags, struct gpd_event_ref **ref_p)
{
	struct gpd_event_ref *ref = calloc(1, sizeof(*ref));
	CUresult result;

	if (!ref)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* Nobody blocks in the driver here, whatever the client would like. */
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
	return (struct gpd_event *)gpd_handle_get(&session->handles, GPD_KIND_EVENT, id);
}

void
gpd_event_destroy(struct gpd_session *session, struct gpd_event *event)
{
	gpd_handle_remove(&session->handles, &event->handle);
	gpd_event_unref(event->ref);
	free(event);
}

CUresult
gpd_cuEventCreate(struct gpd_session *session, const struct gp_args_cuEventCreate *args)
{
	struct gpd_context *context = gpd_context_get(session, session->context);
	struct gpd_event *event;
	CUresult result;

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (args->Flags & ~(unsigned int)FLAGS_KNOWN)
		return CUDA_ERROR_INVALID_VALUE;
	if (args->Flags & CU_EVENT_INTERPROCESS)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = gpd_device_enter(context->device);
	if (result != CUDA_SUCCESS)
		return result;
	event = calloc(1, sizeof(*event));
	if (!event)
		return CUDA_ERROR_OUT_OF_MEMORY;
	event->context = context;
	event->flags = args->Flags;
	result = make_ref(context->device, args->Flags, &event->ref);
	if (result == CUDA_SUCCESS) {
		result = gpd_session_name(session, GPD_KIND_EVENT, args->phEvent, &event->handle);
		if (result != CUDA_SUCCESS)
			gpd_event_unref(event->ref);
	}
	if (result != CUDA_SUCCESS)
		free(event);
	return result;
}

/* Who still waits for what the event captured before keeps that. */
static CUresult
renew(struct gpd_event *event)
{
	struct gpd_event_ref *fresh;
	CUresult result;

	if (atomic_load_explicit(&event->ref->count, memory_order_acquire) == 1)
		return CUDA_SUCCESS;
	result = make_ref(event->ref->device, event->flags, &fresh);
	if (result != CUDA_SUCCESS)
		return result;
	gpd_event_unref(event->ref);
	event->ref = fresh;
	return CUDA_SUCCESS;
}

CUresult
gpd_cuEventRecordWithFlags(struct gpd_session *session,
			   const struct gp_args_cuEventRecordWithFlags *args)
{
	struct gpd_event *event = gpd_event_get(session, args->hEvent);
	struct gpd_stream *stream;
	CUresult result;

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	result = gpd_stream_begin(session, args->hStream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (stream->device != event->ref->device)
		return CUDA_ERROR_INVALID_HANDLE;
	gpd_schedule_pause(session->account.schedule);
	result = renew(event);
	if (result != CUDA_SUCCESS)
		return result;
	if (args->flags == 0)
		return gpd_driver.cuEventRecord(event->ref->driver, stream->driver);
	return gpd_driver.cuEventRecordWithFlags(event->ref->driver, stream->driver, args->flags);
}

CUresult
gpd_cuEventQuery(struct gpd_session *session, const struct gp_args_cuEventQuery *args)
{
	struct gpd_event *event = gpd_event_get(session, args->hEvent);
	CUresult result;

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	result = gpd_driver.cuEventQuery(event->ref->driver);
	if (result != CUDA_SUCCESS || gpd_wait_none(session))
		return result;
	/* The GPU is done, but the data of its copies may still be on its way to the client. */
	result = gpd_wait_add_complete(session, gpd_wait_reply, gpd_wait_request(session));
	return result == CUDA_SUCCESS ? GPD_LATER : result;
}

CUresult
gpd_cuEventSynchronize(struct gpd_session *session, const struct gp_args_cuEventSynchronize *args)
{
	struct gpd_event *event = gpd_event_get(session, args->hEvent);
	CUresult result;

	if (!event)
		return CUDA_ERROR_INVALID_HANDLE;
	result = gpd_wait_add_event(session, event->ref, gpd_wait_reply, gpd_wait_request(session));
	return result == CUDA_SUCCESS ? GPD_LATER : result;
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
gpd_cuEventElapsedTime_v2(struct gpd_session *session,
			  const struct gp_args_cuEventElapsedTime_v2 *args,
			  struct gp_reply_cuEventElapsedTime_v2 *reply)
{
	struct gpd_event *start = gpd_event_get(session, args->hStart);
	struct gpd_event *end = gpd_event_get(session, args->hEnd);

	if (!start || !end)
		return CUDA_ERROR_INVALID_HANDLE;
	return gpd_driver.cuEventElapsedTime_v2(&reply->pMilliseconds, start->ref->driver,
						end->ref->driver);
}
