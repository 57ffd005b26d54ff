/* SPDX-License-Identifier: Apache-2.0 */
/* Calls about contexts: what is made and ends with one is of many kinds. */
#include "gpd_calls.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/image/graph.h"
#include "server/worker/image/image.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/context.h"
#include "server/worker/session/event.h"
#include "server/worker/session/object.h"
#include "server/worker/session/session.h"
#include "server/worker/session/stream.h"
#include "server/worker/session/wait.h"

#include <stdlib.h>

struct removal {
	struct gpd_session *session;
	struct gpd_context *context;
};

static void
remove_event(struct gpd_handle *handle, void *arg)
{
	struct removal *removal = arg;
	struct gpd_event *event = (struct gpd_event *)handle;

	if (event->context == removal->context)
		gpd_event_destroy(removal->session, event);
}

/* Ends streams, events and images of the context and frees it. */
static void
context_destroy(struct gpd_session *session, struct gpd_context *context)
{
	struct removal removal = { session, context };
	struct gpd_stream *next;

	gpd_handle_each(&session->handles, GPD_KIND_EVENT, remove_event, &removal);
	gpd_objects_forget_context(session, context);
	gpd_graph_forget_context(session, context);
	gpd_image_forget_context(session, context);
	/* Dropping one may free others that were dropped before: the walk begins again. */
	for (struct gpd_stream *s = session->streams; s; s = next) {
		next = s->next;
		if (s->context != context)
			continue;
		s->context = NULL;
		if (!s->dropped) {
			gpd_stream_drop(session, s);
			next = session->streams;
		}
	}
	gpd_handle_remove(&session->handles, &context->handle);
	free(context);
}

CUresult
gpd_gpContextCreate(struct gpd_session *session, const struct gp_args_gpContextCreate *args)
{
	struct gpd_device *device = gpd_device_get(args->device);
	struct gpd_context *context;
	CUresult result;

	if (!device || !gpd_account_may_use(&session->account, args->device))
		return CUDA_ERROR_INVALID_DEVICE;
	context = calloc(1, sizeof(*context));
	if (!context)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context->device = args->device;
	context->flags = args->flags;
	result = gpd_session_name(session, GPD_KIND_CONTEXT, args->context, &context->handle);
	if (result != CUDA_SUCCESS) {
		free(context);
		return result;
	}
	result = gpd_stream_create(session, context, args->legacy, 0, 0, true);
	if (result == CUDA_SUCCESS && args->heap_size)
		result = gpd_memory_map(session, args->heap, args->heap_size, args->device);
	if (result != CUDA_SUCCESS)
		context_destroy(session, context);
	return result;
}

CUresult
gpd_gpContextDestroy(struct gpd_session *session, const struct gp_args_gpContextDestroy *args)
{
	struct gpd_context *context = gpd_context_get(session, args->context);

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	context_destroy(session, context);
	return CUDA_SUCCESS;
}

CUresult
gpd_gpContextSynchronize(struct gpd_session *session,
			 const struct gp_args_gpContextSynchronize *args)
{
	struct gpd_context *context = gpd_context_get(session, args->context);
	CUresult result;

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (gpd_stream_all_idle(session, context))
		return CUDA_SUCCESS;
	result = gpd_wait_add_all(session, context, gpd_wait_reply, gpd_wait_request(session));
	return result == CUDA_SUCCESS ? GPD_LATER : result;
}

CUresult
gpd_gpFence(struct gpd_session *session, const struct gp_args_gpFence *args)
{
	CUresult result;

	if (gpd_stream_all_idle(session, NULL))
		return CUDA_SUCCESS;
	result = gpd_wait_add_all(session, NULL, gpd_wait_reply, gpd_wait_request(session));
	return result == CUDA_SUCCESS ? GPD_LATER : result;
}

/* The stacks of all threads that fit on the device are made at once: no client may ask for more
 * than a part of the memory that all share. */
static bool
stack_fits(const struct gpd_device *device, uint64_t value)
{
	uint64_t threads =
		(uint64_t)device->multiprocessors * (uint64_t)device->threads_per_multiprocessor;

	return threads == 0 || value <= device->memory / 8 / threads;
}

static bool
is_below(struct gpd_device *device, CUlimit limit, uint64_t value)
{
	bool below;

	pthread_mutex_lock(&device->limit_lock);
	below = device->limits[limit] < value;
	pthread_mutex_unlock(&device->limit_lock);
	return below;
}

/* Raises a limit that all sessions share; one that is high enough already stays. */
static CUresult
raise_limit(struct gpd_session *session, int ordinal, CUlimit limit, uint64_t value)
{
	struct gpd_device *device = gpd_device_get(ordinal);
	CUresult result = CUDA_SUCCESS;

	if (!is_below(device, limit, value))
		return CUDA_SUCCESS;
	if (!gpd_session_quiet_begin(session, ordinal))
		result = CUDA_ERROR_DEINITIALIZED;
	pthread_mutex_lock(&device->limit_lock);
	if (result == CUDA_SUCCESS && value > device->limits[limit]) {
		result = gpd_driver.cuCtxSetLimit(limit, value);
		if (result == CUDA_SUCCESS)
			device->limits[limit] = value;
	}
	pthread_mutex_unlock(&device->limit_lock);
	gpd_session_quiet_end(session, ordinal);
	return result;
}

CUresult
gpd_gpContextSetLimit(struct gpd_session *session, const struct gp_args_gpContextSetLimit *args)
{
	struct gpd_context *context = gpd_context_get(session, args->context);
	struct gpd_device *device;
	CUresult result;

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	device = gpd_device_get(context->device);
	result = gpd_device_enter(context->device);
	if (result != CUDA_SUCCESS)
		return result;
	switch (args->limit) {
	case CU_LIMIT_STACK_SIZE:
		if (!stack_fits(device, args->value))
			return CUDA_ERROR_OUT_OF_MEMORY;
		return raise_limit(session, context->device, CU_LIMIT_STACK_SIZE, args->value);
	case CU_LIMIT_PRINTF_FIFO_SIZE:
	case CU_LIMIT_MALLOC_HEAP_SIZE:
		/* Made large at the start; the driver refuses to change them once they are used. */
		if (args->value > device->memory / 8)
			return CUDA_ERROR_OUT_OF_MEMORY;
		return raise_limit(session, context->device, (CUlimit)args->limit, args->value);
	case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
		/* A hint, and between tenants nobody's. */
		return args->value <= 128 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
	case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
		if (args->value > 1 << 16)
			return CUDA_ERROR_OUT_OF_MEMORY;
		return raise_limit(session, context->device, (CUlimit)args->limit, args->value);
	default:
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	}
}
