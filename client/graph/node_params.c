/* SPDX-License-Identifier: Apache-2.0 */
#include "client/graph/node_params.h"

#include "client/code/image.h"
#include "client/code/launch.h"
#include "client/context/context.h"
#include "client/copy/copy_region.h"
#include "client/graph/graph.h"
#include "client/memory/address.h"
#include "client/stream/event.h"
#include "protocol/image_info.h"

#include <stdlib.h>
#include <string.h>

#define ATTRIBUTES_MAX 16

static CUresult
find_context(CUcontext token, struct gpc_context **context_p)
{
	return token ? gpc_context_lookup(token, context_p) : gpc_enter(context_p);
}

/* Where each parameter is in the packed ones, for who asks the node. */
static CUresult
point(struct gpc_kernel_params *kernel, const struct gp_kernel_info *info)
{
	if (info->param_count == 0)
		return CUDA_SUCCESS;
	kernel->values = calloc(info->param_count, sizeof(void *));
	if (!kernel->values)
		return CUDA_ERROR_OUT_OF_MEMORY;
	kernel->value_count = info->param_count;
	for (uint32_t i = 0; i < info->param_count; i++)
		kernel->values[i] = (char *)kernel->packed + info->params[i].offset;
	return CUDA_SUCCESS;
}

static void
kernel_free(struct gpc_kernel_params *kernel)
{
	free(kernel->packed);
	free(kernel->values);
	free(kernel->attributes);
}

static CUresult
kernel_take(const CUDA_KERNEL_NODE_PARAMS *given, struct gpc_node_params *params)
{
	struct gpc_kernel_params *kernel = &params->kernel;
	const CUlaunchConfig config = {
		.gridDimX = given->gridDimX,
		.gridDimY = given->gridDimY,
		.gridDimZ = given->gridDimZ,
		.blockDimX = given->blockDimX,
		.blockDimY = given->blockDimY,
		.blockDimZ = given->blockDimZ,
		.sharedMemBytes = given->sharedMemBytes,
	};
	struct gpc_function *function;
	CUresult result;

	kernel->func = given->func;
	kernel->kern = given->kern;
	kernel->function = given->func ? given->func : (CUfunction)given->kern;
	memcpy(kernel->grid, &given->gridDimX, sizeof(kernel->grid));
	memcpy(kernel->block, &given->blockDimX, sizeof(kernel->block));
	kernel->shared = given->sharedMemBytes;
	result = gpc_function_lookup(params->context, kernel->function, &function);
	if (result == CUDA_SUCCESS)
		result = gpc_function_in(function, params->context, &function);
	if (result == CUDA_SUCCESS && function->info->absent)
		result = CUDA_ERROR_INVALID_IMAGE;
	if (result == CUDA_SUCCESS)
		result = gpc_launch_check(params->context->device, function, &config);
	if (result == CUDA_SUCCESS)
		result = gpc_launch_params(function->info, given->kernelParams, given->extra,
					   &kernel->packed, &kernel->packed_size);
	return result == CUDA_SUCCESS ? point(kernel, function->info) : result;
}

CUresult
gpc_node_params_kernel(const CUDA_KERNEL_NODE_PARAMS *given, struct gpc_node_params *params)
{
	CUresult result;

	*params = (struct gpc_node_params){ .type = CU_GRAPH_NODE_TYPE_KERNEL };
	if (!given || (!given->func && !given->kern))
		return CUDA_ERROR_INVALID_VALUE;
	result = find_context(given->ctx, &params->context);
	if (result == CUDA_SUCCESS)
		result = kernel_take(given, params);
	if (result != CUDA_SUCCESS)
		kernel_free(&params->kernel);
	return result;
}

CUresult
gpc_node_params_copy(const CUDA_MEMCPY3D *given, CUcontext ctx, struct gpc_node_params *params)
{
	struct gpc_copy copy;
	CUresult result;

	*params = (struct gpc_node_params){ .type = CU_GRAPH_NODE_TYPE_MEMCPY };
	if (!given)
		return CUDA_ERROR_INVALID_VALUE;
	params->copy = *given;
	result = find_context(ctx, &params->context);
	return result == CUDA_SUCCESS ? gpc_copy_3d(&copy, given) : result;
}

CUresult
gpc_node_params_fill(const CUDA_MEMSET_NODE_PARAMS *given, CUcontext ctx,
		     struct gpc_node_params *params)
{
	struct gpc_address found;

	*params = (struct gpc_node_params){ .type = CU_GRAPH_NODE_TYPE_MEMSET };
	if (!given ||
	    (given->elementSize != 1 && given->elementSize != 2 && given->elementSize != 4) ||
	    given->width == 0 || given->height == 0 || given->dst % given->elementSize != 0 ||
	    (given->height > 1 && (given->pitch % given->elementSize != 0 ||
				   given->pitch / given->elementSize < given->width)))
		return CUDA_ERROR_INVALID_VALUE;
	params->fill = *given;
	gpc_address_lookup(given->dst, &found);
	if (found.kind != GPC_ADDRESS_DEVICE && found.kind != GPC_ADDRESS_HOST)
		return CUDA_ERROR_INVALID_VALUE;
	return find_context(ctx, &params->context);
}

CUresult
gpc_node_params_host(const CUDA_HOST_NODE_PARAMS *given, struct gpc_node_params *params)
{
	*params = (struct gpc_node_params){ .type = CU_GRAPH_NODE_TYPE_HOST };
	if (!given || !given->fn)
		return CUDA_ERROR_INVALID_VALUE;
	params->host = *given;
	return CUDA_SUCCESS;
}

CUresult
gpc_node_params_event(CUgraphNodeType type, CUevent event, struct gpc_node_params *params)
{
	struct gpc_event *found;

	*params = (struct gpc_node_params){ .type = type, .event = event };
	return gpc_event_lookup(event, &found) == CUDA_SUCCESS ? CUDA_SUCCESS
							       : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
child(CUgraph token, struct gpc_node_params *params)
{
	struct gpc_graph *graph;
	CUresult result = gpc_graph_lookup(token, &graph);

	*params = (struct gpc_node_params){ .type = CU_GRAPH_NODE_TYPE_GRAPH };
	return result == CUDA_SUCCESS ? gpc_graph_clone(graph, &params->child) : result;
}

_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS) == sizeof(CUDA_KERNEL_NODE_PARAMS_v3),
	       "the same members");

CUresult
gpc_node_params_any(const CUgraphNodeParams *given, struct gpc_node_params *params)
{
	CUDA_MEMSET_NODE_PARAMS fill;
	CUDA_HOST_NODE_PARAMS host;
	CUDA_KERNEL_NODE_PARAMS kernel;

	if (!given)
		return CUDA_ERROR_INVALID_VALUE;
	switch (given->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		memcpy(&kernel, &given->kernel, sizeof(kernel));
		return gpc_node_params_kernel(&kernel, params);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return gpc_node_params_copy(&given->memcpy.copyParams, given->memcpy.copyCtx,
					    params);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		memcpy(&fill, &given->memset, sizeof(fill));
		return gpc_node_params_fill(&fill, given->memset.ctx, params);
	case CU_GRAPH_NODE_TYPE_HOST:
		host = (CUDA_HOST_NODE_PARAMS){ given->host.fn, given->host.userData };
		return gpc_node_params_host(&host, params);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return child(given->graph.graph, params);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		*params = (struct gpc_node_params){ .type = CU_GRAPH_NODE_TYPE_EMPTY };
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return gpc_node_params_event(given->type, given->eventWait.event, params);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return gpc_node_params_event(given->type, given->eventRecord.event, params);
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

/* What a node can have, and what a launch of it can be given. */
static bool
is_attribute(CUlaunchAttributeID id)
{
	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		return true;
	default:
		return false;
	}
}

CUresult
gpc_kernel_params_set(struct gpc_kernel_params *kernel, CUlaunchAttributeID id,
		      const CUlaunchAttributeValue *value)
{
	CUlaunchAttribute *list = kernel->attributes;
	unsigned int i = 0;

	if (!is_attribute(id))
		return CUDA_ERROR_NOT_SUPPORTED;
	while (i < kernel->attribute_count && list[i].id != id)
		i++;
	if (i == kernel->attribute_count) {
		list = realloc(list, (i + 1) * sizeof(*list));
		if (!list)
			return CUDA_ERROR_OUT_OF_MEMORY;
		kernel->attributes = list;
		kernel->attribute_count++;
	}
	list[i] = (CUlaunchAttribute){ .id = id, .value = *value };
	return CUDA_SUCCESS;
}

static void *
copy_of(const void *memory, size_t size, bool *failed)
{
	void *copy = size > 0 ? malloc(size) : NULL;

	if (copy)
		memcpy(copy, memory, size);
	else if (size > 0)
		*failed = true;
	return copy;
}

static CUresult
kernel_dup(const struct gpc_kernel_params *from, struct gpc_kernel_params *to)
{
	bool failed = false;

	to->packed = copy_of(from->packed, from->packed_size, &failed);
	to->attributes = copy_of(from->attributes,
				 from->attribute_count * sizeof(*from->attributes), &failed);
	to->values = copy_of(from->values, from->value_count * sizeof(void *), &failed);
	if (failed) {
		kernel_free(to);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	for (unsigned int i = 0; i < from->value_count; i++)
		to->values[i] =
			(char *)to->packed + ((char *)from->values[i] - (char *)from->packed);
	return CUDA_SUCCESS;
}

CUresult
gpc_node_params_dup(const struct gpc_node_params *params, struct gpc_node_params *copy)
{
	*copy = *params;
	if (params->type == CU_GRAPH_NODE_TYPE_GRAPH)
		return gpc_graph_clone(params->child, &copy->child);
	if (params->type == CU_GRAPH_NODE_TYPE_KERNEL)
		return kernel_dup(&params->kernel, &copy->kernel);
	return CUDA_SUCCESS;
}

void
gpc_node_params_free(struct gpc_node_params *params)
{
	if (params->type == CU_GRAPH_NODE_TYPE_KERNEL)
		kernel_free(&params->kernel);
	if (params->type == CU_GRAPH_NODE_TYPE_GRAPH)
		gpc_graph_destroy(params->child);
}

void
gpc_node_params_replace(struct gpc_node_params *params, const struct gpc_node_params *now)
{
	struct gpc_node_params before = *params;

	*params = *now;
	/* Attributes are set for themselves. */
	if (now->type == CU_GRAPH_NODE_TYPE_KERNEL && !now->kernel.attributes) {
		params->kernel.attributes = before.kernel.attributes;
		params->kernel.attribute_count = before.kernel.attribute_count;
		before.kernel.attributes = NULL;
	}
	if (now->type == CU_GRAPH_NODE_TYPE_GRAPH)
		params->child->holder = before.child->holder;
	gpc_node_params_free(&before);
}

void
gpc_kernel_params_tell(const struct gpc_node_params *params, CUDA_KERNEL_NODE_PARAMS *told)
{
	const struct gpc_kernel_params *kernel = &params->kernel;

	*told = (CUDA_KERNEL_NODE_PARAMS){
		.func = kernel->func,
		.kern = kernel->kern,
		.gridDimX = kernel->grid[0],
		.gridDimY = kernel->grid[1],
		.gridDimZ = kernel->grid[2],
		.blockDimX = kernel->block[0],
		.blockDimY = kernel->block[1],
		.blockDimZ = kernel->block[2],
		.sharedMemBytes = kernel->shared,
		.kernelParams = kernel->values,
		.ctx = params->context->handle.token,
	};
}
