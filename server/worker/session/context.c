/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts, and events of a whole context: recorded after the work of all its streams, and waited
 * for by all of them. */
#include "server/worker/session/context.h"

#include "gpd_calls.h"
#include "server/worker/device/device.h"
#include "server/worker/session/event.h"
#include "server/worker/session/session.h"
#include "server/worker/session/stream.h"

#include <stdlib.h>

struct gpd_context *
gpd_context_get(const struct gpd_session *session, uint32_t id)
{
	return gpd_handle_get(&session->handles, GPD_KIND_CONTEXT, id);
}

int
gpd_context_device(const struct gpd_session *session, uint32_t id)
{
	const struct gpd_context *context = gpd_context_get(session, id);

	return context ? context->device : 0;
}

CUresult
gpd_context_enter(const struct gpd_session *session, uint32_t id)
{
	return gpd_device_enter(gpd_context_device(session, id));
}

void
gpd_green_unref(struct gpd_green *green)
{
	while (green && --green->refs == 0) {
		struct gpd_green *source = green->source;

		gpd_partition_unref(green->partition);
		free(green);
		green = source;
	}
}

struct gpd_partition *
gpd_green_partition(struct gpd_session *session, struct gpd_green *green, int device)
{
	struct gpd_partition *base, *fresh;

	if (!green)
		return gpd_partition_current(&session->shares, device);
	base = gpd_green_partition(session, green->source, device);
	if (gpd_partition_has_base(green->partition, base)) {
		gpd_partition_unref(base);
		return gpd_partition_acquire(green->partition);
	}
	/* Once created, the part must remain usable when the share changes, hence the lenient
	 * split. */
	fresh = gpd_partition_part(device, base, &green->split, green->partition != NULL);
	if (fresh) {
		gpd_partition_unref(green->partition);
		green->partition = fresh;
	}
	return gpd_partition_acquire(green->partition);
}

bool
gpd_context_has(const struct gpd_context *context, const struct gpd_stream *stream)
{
	return stream->context == context ||
	       (stream->context && stream->context->parent == context);
}

void
gpd_context_order_stream(struct gpd_stream *stream)
{
	for (struct gpd_context *context = stream->context; context; context = context->parent) {
		if (context->gate && !gpd_stream_is_idle(context->gate))
			(void)gpd_stream_order_after(stream, context->gate);
	}
}

void
gpd_context_free(struct gpd_session *session, struct gpd_context *context)
{
	gpd_green_unref(context->green);
	gpd_handle_remove(&session->handles, &context->handle);
	free(context);
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
			*own_p = session->streams;
	}
	return result == CUDA_SUCCESS ? gpd_stream_begin_on(session, *own_p) : result;
}

/* Orders the context's own stream after all others. */
static CUresult
streams_join(struct gpd_session *session, struct gpd_context *context)
{
	CUresult result = own_stream_begin(session, context, &context->joins);

	for (struct gpd_stream *s = session->streams; s && result == CUDA_SUCCESS; s = s->next) {
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
	for (struct gpd_stream *s = session->streams; s && result == CUDA_SUCCESS; s = s->next) {
		if (gpd_context_has(context, s))
			result = gpd_stream_wait_event(session, s, ref->driver);
	}
	gpd_event_unref(ref);
	return result;
}
