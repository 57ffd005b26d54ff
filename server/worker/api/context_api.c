/* SPDX-License-Identifier: Apache-2.0 */
/* Calls about contexts, whose creation and destruction involve objects of many kinds. */
#include "gpd_calls.h"
#include "server/worker/context/context.h"
#include "server/worker/context/object.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/graph/graph_exec.h"
#include "server/worker/memory/memory.h"
#include "server/worker/module/image.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/event.h"
#include "server/worker/stream/stream.h"

#include <stdlib.h>

/* Clears the parent of its green contexts, which a client should have destroyed before. */
static void
green_clear_parent(struct gpd_session *session, const struct gpd_context *parent)
{
	struct gpd_context *context;
	uint32_t at = 0;

	while ((context = gpd_handle_next(&session->handles, GPD_KIND_CONTEXT, &at))) {
		if (context->parent == parent)
			context->parent = NULL;
	}
}

/* Destroys streams, events and other objects of the context, and frees it. */
static void
context_destroy(struct gpd_session *session, struct gpd_context *context)
{
	struct gpd_event *event;
	struct gpd_stream *next;

	for (uint32_t at = 0; (event = gpd_handle_next(&session->handles, GPD_KIND_EVENT, &at));) {
		if (event->context == context)
			gpd_event_destroy(session, event);
	}
	gpd_objects_destroy_context(session, context);
	gpd_graph_destroy_context(session, context);
	gpd_image_invalidate_context(session, context);
	/* Dropping a stream may free others that were dropped before, so the walk starts again. */
	for (struct gpd_stream *s = session->streams->list; s; s = next) {
		next = s->next;
		if (s->context != context)
			continue;
		s->context = NULL;
		if (!s->dropped) {
			gpd_stream_drop(session, s);
			next = session->streams->list;
		}
	}
	green_clear_parent(session, context);
	gpd_context_free(session, context);
}

CUresult
gpd_gpContextMake(struct gpd_session *session, const struct gp_args_gpContextMake *args)
{
	struct gpd_device *device = gpd_device_get(args->device);
	struct gpd_context *context;
	CUresult result;

	if (!device || !gpd_account_may_use(&session->account, args->device))
		return CUDA_ERROR_INVALID_DEVICE;
	context = gpd_session_create_object(session, GPD_KIND_CONTEXT, args->context,
					    sizeof(*context), &result);
	if (!context)
		return result;
	context->device = args->device;
	context->flags = args->flags;
	result = gpd_stream_create(session, context, args->legacy, 0, 0, true);
	if (result != CUDA_SUCCESS)
		context_destroy(session, context);
	return result;
}

CUresult
gpd_gpContextCreate(struct gpd_session *session, const struct gp_args_gpContextCreate *args)
{
	const struct gp_args_gpContextMake make = {
		.context = args->context,
		.device = args->device,
		.flags = args->flags,
		.legacy = args->legacy,
	};
	CUresult result = gpd_gpContextMake(session, &make);

	if (result == CUDA_SUCCESS && args->heap_size)
		result = gpd_memory_map(session, args->heap, args->heap_size, args->device);
	else
		return result;
	if (result != CUDA_SUCCESS)
		context_destroy(session, gpd_context_get(session, args->context));
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

/* The driver allocates the stacks of all threads that fit on the device at once, so a client may
 * use only a part of the memory that all sessions share. */
static bool
stack_fits(const struct gpd_device *device, uint64_t value)
{
	uint64_t threads =
		(uint64_t)device->multiprocessors * (uint64_t)device->threads_per_multiprocessor;

	return threads == 0 || value <= device->memory / 8 / threads;
}

/* Whether the value would leave too little for other sessions or the driver. */
static bool
is_too_much(const struct gpd_device *device, CUlimit limit, uint64_t value)
{
	if (limit == CU_LIMIT_STACK_SIZE)
		return !stack_fits(device, value);
	/* These are made large at the start; the driver does not change them once they are in
	 * use. */
	if (limit == CU_LIMIT_PRINTF_FIFO_SIZE || limit == CU_LIMIT_MALLOC_HEAP_SIZE)
		return value > device->memory / 8;
	return value > 1 << 16;
}

/* Raises a limit that all sessions share; it is never lowered. */
static CUresult
raise_limit(struct gpd_session *session, int ordinal, CUlimit limit, uint64_t value)
{
	struct gpd_device *device = gpd_device_get(ordinal);
	CUresult result = CUDA_SUCCESS;

	if (atomic_load(&device->limits[limit]) >= value)
		return CUDA_SUCCESS;
	if (!gpd_session_quiesce_begin(session, ordinal))
		result = CUDA_ERROR_DEINITIALIZED;
	pthread_mutex_lock(&device->limit_lock);
	if (result == CUDA_SUCCESS && value > device->limits[limit]) {
		result = gpd_driver.cuCtxSetLimit(limit, value);
		if (result == CUDA_SUCCESS)
			device->limits[limit] = value;
	}
	pthread_mutex_unlock(&device->limit_lock);
	gpd_session_quiesce_end(session, ordinal);
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
	case CU_LIMIT_PRINTF_FIFO_SIZE:
	case CU_LIMIT_MALLOC_HEAP_SIZE:
	case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
	case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
		if (is_too_much(device, (CUlimit)args->limit, args->value))
			return CUDA_ERROR_OUT_OF_MEMORY;
		return raise_limit(session, context->device, (CUlimit)args->limit, args->value);
	case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
		/* A hint that is not applied, because it would affect other tenants. */
		return args->value <= 128 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	default:
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	}
}
