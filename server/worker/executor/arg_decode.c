/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/executor/arg_decode.h"

#include "server/worker/context/context.h"
#include "server/worker/context/object.h"
#include "server/worker/device/device.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/event.h"
#include "server/worker/stream/stream.h"

CUresult
gpd_arg_decode_device(struct gpd_session *session, int32_t ordinal, CUdevice *device_p)
{
	const struct gpd_device *device = gpd_device_get(ordinal);

	if (!device || !gpd_account_may_use(&session->account, ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*device_p = device->device;
	return gpd_device_enter(ordinal);
}

CUresult
gpd_arg_decode_context(struct gpd_session *session, uint32_t id, CUcontext *context_p)
{
	const struct gpd_context *context = gpd_context_get(session, id);

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	*context_p = gpd_device_get(context->device)->primary;
	return CUDA_SUCCESS;
}

CUresult
gpd_arg_decode_stream(struct gpd_session *session, uint32_t id, bool works, CUstream *stream_p)
{
	struct gpd_stream *stream = gpd_stream_get(session, id);
	CUresult result = stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;

	if (works)
		result = gpd_stream_begin(session, id, &stream);
	if (result == CUDA_SUCCESS)
		*stream_p = stream->driver;
	return result;
}

CUresult
gpd_arg_decode_event(struct gpd_session *session, uint32_t id, CUevent *event_p)
{
	const struct gpd_event *event = gpd_event_get(session, id);
	struct gpd_event_ref *ref;

	/* An interprocess event may be re-recorded at any time, and no generated call may use
	 * one. */
	if (!event || event->flags & CU_EVENT_INTERPROCESS)
		return CUDA_ERROR_INVALID_HANDLE;
	ref = gpd_event_get_ref(event);
	*event_p = ref->driver;
	gpd_event_unref(ref);
	return CUDA_SUCCESS;
}

CUresult
gpd_arg_decode_object(struct gpd_session *session, enum gpd_kind kind, uint32_t id, void **driver_p)
{
	const struct gpd_object *object = gpd_object_get(session, kind, id);

	if (!object)
		return CUDA_ERROR_INVALID_HANDLE;
	*driver_p = object->driver;
	return CUDA_SUCCESS;
}

int32_t
gpd_device_to_wire(CUdevice device)
{
	for (int32_t i = 0; i < gpd_devices.count; i++) {
		if (gpd_devices.all[i].device == device)
			return i;
	}
	return -1;
}

CUresult
gpd_arg_decode_malformed(struct gpd_session *session)
{
	gpd_session_violation(session, "call 0x%04x has inconsistent lengths",
			      session->current.call);
	return CUDA_ERROR_INVALID_VALUE;
}
