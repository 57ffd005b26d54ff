/* SPDX-License-Identifier: Apache-2.0 */
/* Calls about contexts, whose creation and destruction involve objects of many kinds. */
#include "gpd_calls.h"
#include "server/worker/context/context.h"
#include "server/worker/context/context_limit.h"
#include "server/worker/context/object.h"
#include "server/worker/device/device.h"
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

CUresult
gpd_gpContextSetLimit(struct gpd_session *session, const struct gp_args_gpContextSetLimit *args)
{
	struct gpd_context *context = gpd_context_get(session, args->context);

	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	switch (args->limit) {
	case CU_LIMIT_STACK_SIZE:
	case CU_LIMIT_PRINTF_FIFO_SIZE:
	case CU_LIMIT_MALLOC_HEAP_SIZE:
	case CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH:
	case CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT:
		return gpd_context_limit_request(session, context->device, (CUlimit)args->limit,
						 args->value);
	case CU_LIMIT_MAX_L2_FETCH_GRANULARITY:
		/* A hint that is not applied, because it would affect other tenants. */
		return args->value <= 128 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	default:
		return CUDA_ERROR_UNSUPPORTED_LIMIT;
	}
}
