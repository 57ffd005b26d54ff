/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts: contexts that have some of the multiprocessors of another one, or of the session.
 * The hooks of gpResource, gpResourceSplit and gpGreenMake.
 */
#include "gpd_calls.h"
#include "server/worker/context/context.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/partition.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/stream.h"

#include <stdlib.h>

/* Maximum per session: each takes device memory that is not charged. */
#define GREENS_MAX 64

/* Green contexts are parts of the session's multiprocessors; source 0 is the session. */
static CUresult
resource_get(struct gpd_session *session, int device, uint32_t source, CUdevResource *resource)
{
	struct gpd_context *context = source ? gpd_context_get(session, source) : NULL;
	struct gpd_partition *partition;
	CUresult result;

	if (!gpd_device_get(device) || !gpd_account_may_use(&session->account, device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (source && (!context || context->device != device))
		return CUDA_ERROR_INVALID_CONTEXT;
	result = gpd_device_enter(device);
	if (result != CUDA_SUCCESS)
		return result;
	partition = gpd_green_partition(session, context ? context->green : NULL, device);
	result = gpd_partition_resource(partition, device, &session->closing, resource);
	gpd_partition_unref(partition);
	return result;
}

CUresult
gpd_gpResource(struct gpd_session *session, const struct gp_args_gpResource *args,
	       struct gp_reply_gpResource *reply)
{
	CUdevResource resource;
	CUresult result = resource_get(session, args->device, args->source, &resource);

	if (result != CUDA_SUCCESS)
		return result;
	reply->count = resource.sm.smCount;
	reply->least = resource.sm.minSmPartitionSize;
	reply->alignment = resource.sm.smCoscheduledAlignment;
	return CUDA_SUCCESS;
}

CUresult
gpd_gpResourceSplit(struct gpd_session *session, const struct gp_args_gpResourceSplit *args,
		    struct gp_reply_gpResourceSplit *reply)
{
	unsigned int groups = args->groups ? args->groups : GPD_SPLIT_MAX;
	CUdevResource whole, rest = { 0 }, list[GPD_SPLIT_MAX];
	CUresult result = resource_get(session, args->device, args->source, &whole);

	if (result == CUDA_SUCCESS && groups > GPD_SPLIT_MAX)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuDevSmResourceSplitByCount(list, &groups, &whole, &rest,
								args->flags, args->wanted);
	if (result != CUDA_SUCCESS)
		return result;
	reply->made = groups;
	reply->count = groups ? list[0].sm.smCount : 0;
	reply->least = groups ? list[0].sm.minSmPartitionSize : 0;
	reply->alignment = groups ? list[0].sm.smCoscheduledAlignment : 0;
	if (rest.type != CU_DEV_RESOURCE_TYPE_SM)
		return CUDA_SUCCESS;
	reply->rest_count = rest.sm.smCount;
	reply->rest_least = rest.sm.minSmPartitionSize;
	reply->rest_alignment = rest.sm.smCoscheduledAlignment;
	return CUDA_SUCCESS;
}

static unsigned int
green_count(const struct gpd_session *session)
{
	const struct gpd_context *context;
	unsigned int count = 0;
	uint32_t at = 0;

	while ((context = gpd_handle_next(&session->handles, GPD_KIND_CONTEXT, &at)))
		count += context->green != NULL;
	return count;
}

/* NULL: out of memory. */
static struct gpd_green *
green_create(struct gpd_green *source, const struct gp_args_gpGreenMake *args)
{
	struct gpd_green *green = calloc(1, sizeof(*green));

	if (!green)
		return NULL;
	green->refs = 1;
	green->source = source;
	if (source)
		source->refs++;
	green->split = (struct gpd_split){
		.flags = args->flags,
		.least = args->wanted,
		.groups = args->groups,
		.picks = { args->picks, args->more_picks },
		.rest = args->rest != 0,
	};
	return green;
}

CUresult
gpd_gpGreenMake(struct gpd_session *session, const struct gp_args_gpGreenMake *args)
{
	struct gpd_context *source = args->source ? gpd_context_get(session, args->source) : NULL;
	struct gpd_context *parent = gpd_context_get(session, args->parent), *context;
	CUresult result;

	if (!parent || parent->parent || (args->source && !source) ||
	    (source && source->device != parent->device))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (args->groups > GPD_SPLIT_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (!gpd_driver_has(cuGreenCtxGetDevResource))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (green_count(session) >= GREENS_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context = gpd_session_create_object(session, GPD_KIND_CONTEXT, args->context,
					    sizeof(*context), &result);
	if (!context)
		return result;
	context->device = parent->device;
	context->flags = parent->flags;
	context->parent = parent;
	context->green = green_create(source ? source->green : NULL, args);
	/* The driver's green context is created with its first stream, the default stream. */
	result = context->green ? gpd_stream_create(session, context, args->legacy, 0, 0, true)
				: CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS)
		gpd_context_free(session, context);
	return result;
}
