/* SPDX-License-Identifier: Apache-2.0 */
#include "client/graph/node_params.h"

#include "client/base/unsupported_feature.h"
#include "client/context/context.h"
#include "client/copy/copy_region.h"
#include "client/graph/graph.h"
#include "client/graph/graph_memory.h"
#include "client/memory/host_memory.h"
#include "client/module/image.h"
#include "client/module/launch.h"
#include "client/stream/event.h"
#include "client/stream/stream.h"
#include "client/stream_ops/mem_op.h"
#include "protocol/image_info.h"

#include <stdlib.h>
#include <string.h>

static CUresult
params_find_context(CUcontext token, struct gpc_node_params *params)
{
	if (token)
		return gpc_context_lookup(token, &params->context);
	return params->context ? CUDA_SUCCESS : gpc_enter(&params->context);
}

/* Records the location of each parameter for queries of the node. */
static CUresult
kernel_set_values(struct gpc_kernel_params *kernel, const struct gp_kernel_info *info)
{
	if (info->param_count == 0)
		return CUDA_SUCCESS;
	kernel->values = calloc(info->param_count, sizeof(void *));
	kernel->user_params = calloc(info->param_count, sizeof(void *));
	if (!kernel->values || !kernel->user_params)
		return CUDA_ERROR_OUT_OF_MEMORY;
	kernel->value_count = info->param_count;
	for (uint32_t i = 0; i < info->param_count; i++)
		kernel->values[i] = (char *)kernel->packed + info->params[i].offset;
	return CUDA_SUCCESS;
}

static void
kernel_free(struct gpc_kernel_params *kernel) GP_LOCKED(gpc_graphs_lock)
{
	gpc_graph_root_unref(kernel->root);
	free(kernel->packed);
	free(kernel->values);
	free(kernel->user_params);
	free(kernel->attributes);
}

static CUresult
kernel_parse(const CUDA_KERNEL_NODE_PARAMS *given, struct gpc_node_params *params)
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
	if (result == CUDA_SUCCESS && function->info->absent)
		result = CUDA_ERROR_INVALID_IMAGE;
	if (result == CUDA_SUCCESS)
		result = gpc_launch_check(params->context->device, function, &config);
	if (result == CUDA_SUCCESS)
		result = gpc_launch_params_pack(function->info, given->kernelParams, given->extra,
						&kernel->packed, &kernel->packed_size);
	if (result == CUDA_SUCCESS)
		result = gpc_host_memory_scan_parameters(params->context, kernel->packed,
							 kernel->packed_size, function->info);
	if (result == CUDA_SUCCESS &&
	    gpc_host_memory_must_translate(kernel->packed, kernel->packed_size, function->info))
		result = gpc_host_memory_translate(params->context, kernel->packed,
						   kernel->packed_size, function->info);
	return result == CUDA_SUCCESS ? kernel_set_values(kernel, function->info) : result;
}

static CUresult
params_parse_kernel(const CUDA_KERNEL_NODE_PARAMS *given, struct gpc_node_params *params)
	GP_LOCKED(gpc_graphs_lock)
{
	CUresult result = given->func || given->kern ? params_find_context(given->ctx, params)
						     : CUDA_ERROR_INVALID_HANDLE;

	if (result == CUDA_SUCCESS)
		result = kernel_parse(given, params);
	if (result != CUDA_SUCCESS)
		kernel_free(&params->kernel);
	return result;
}

static bool
memory_type_is_valid(CUmemorytype type)
{
	return type >= CU_MEMORYTYPE_HOST && type <= CU_MEMORYTYPE_UNIFIED;
}

static CUresult
params_parse_copy(const CUDA_MEMCPY3D *given, CUcontext ctx, struct gpc_node_params *params)
{
	struct gpc_copy copy;
	CUresult result;

	if (!memory_type_is_valid(given->srcMemoryType) ||
	    !memory_type_is_valid(given->dstMemoryType))
		return CUDA_ERROR_INVALID_VALUE;
	params->copy = *given;
	result = params_find_context(ctx, params);
	return result == CUDA_SUCCESS ? gpc_copy_3d(&copy, given) : result;
}

/* Accepts any address: cuDNN captures memsets without an address and sets the node's parameters
 * later. The daemon validates the address at launch. */
static CUresult
params_parse_memset(const CUDA_MEMSET_NODE_PARAMS *given, CUcontext ctx,
		    struct gpc_node_params *params)
{
	if ((given->elementSize != 1 && given->elementSize != 2 && given->elementSize != 4) ||
	    given->width == 0 || given->height == 0 || given->dst % given->elementSize != 0 ||
	    (given->height > 1 && (given->pitch % given->elementSize != 0 ||
				   given->pitch / given->elementSize < given->width)))
		return CUDA_ERROR_INVALID_VALUE;
	params->fill = *given;
	return params_find_context(ctx, params);
}

static CUresult
params_parse_event(CUevent event, struct gpc_node_params *params)
{
	struct gpc_event *found;

	params->event = event;
	return gpc_event_lookup(event, &found) == CUDA_SUCCESS ? CUDA_SUCCESS
							       : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
params_parse_mem_ops(const CUDA_BATCH_MEM_OP_NODE_PARAMS *given, struct gpc_node_params *params)
{
	CUresult result = given->ctx || params->context ? params_find_context(given->ctx, params)
							: CUDA_ERROR_INVALID_VALUE;

	return result == CUDA_SUCCESS ? gpc_mem_ops_create(given, &params->ops) : result;
}

static CUresult
params_parse_condition(const CUDA_CONDITIONAL_NODE_PARAMS *given, struct gpc_node_params *params)
	GP_LOCKED(gpc_graphs_lock)
{
	CUresult result = params_find_context(given->ctx, params);

	return result == CUDA_SUCCESS ? gpc_condition_parse(given, &params->condition) : result;
}

static CUresult
params_parse_child(CUgraph token, struct gpc_node_params *params) GP_LOCKED(gpc_graphs_lock)
{
	struct gpc_graph *graph;
	CUresult result = gpc_graph_lookup(token, &graph);

	if (result == CUDA_SUCCESS && !gpc_graph_may_be_copied(graph))
		result = CUDA_ERROR_NOT_SUPPORTED;
	return result == CUDA_SUCCESS ? gpc_graph_clone(graph, &params->child) : result;
}

CUresult
gpc_node_params_parse(const CUgraphNodeParams *given, struct gpc_context *usual,
		      struct gpc_node_params *params)
{
	CUDA_MEMSET_NODE_PARAMS fill;
	CUDA_BATCH_MEM_OP_NODE_PARAMS ops;
	CUDA_KERNEL_NODE_PARAMS kernel;

	if (!given)
		return CUDA_ERROR_INVALID_VALUE;
	*params = (struct gpc_node_params){ .type = given->type, .context = usual };
	switch (given->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		memcpy(&kernel, &given->kernel, sizeof(kernel));
		return params_parse_kernel(&kernel, params);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return params_parse_copy(&given->memcpy.copyParams, given->memcpy.copyCtx, params);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		memcpy(&fill, &given->memset, sizeof(fill));
		return params_parse_memset(&fill, given->memset.ctx, params);
	case CU_GRAPH_NODE_TYPE_HOST:
		params->host = (CUDA_HOST_NODE_PARAMS){ given->host.fn, given->host.userData };
		return given->host.fn ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return params_parse_child(given->graph.graph, params);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		return params_parse_event(given->eventWait.event, params);
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return params_parse_event(given->eventRecord.event, params);
	case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
		memcpy(&ops, &given->memOp, sizeof(ops));
		return params_parse_mem_ops(&ops, params);
	case CU_GRAPH_NODE_TYPE_CONDITIONAL:
		return params_parse_condition(&given->conditional, params);
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
	case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
		return gpc_not_supported(GPC_UNSUPPORTED_SEMAPHORE_NODE);
	/* These parameters cannot change. */
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Attributes that both a node and its launches support. */
static bool
attribute_is_allowed(CUlaunchAttributeID id)
{
	switch (id) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
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
gpc_kernel_params_set_attribute(struct gpc_node_params *params, CUlaunchAttributeID id,
				const CUlaunchAttributeValue *value)
{
	struct gpc_kernel_params *kernel = &params->kernel;
	CUlaunchAttribute *list = kernel->attributes;
	unsigned int i = 0;

	if (!attribute_is_allowed(id))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW &&
	    !gpc_access_window_is_valid(params->context->device, &value->accessPolicyWindow))
		return CUDA_ERROR_INVALID_VALUE;
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
memory_dup(const void *memory, size_t size, bool *failed)
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
	GP_LOCKED(gpc_graphs_lock)
{
	bool failed = false;

	(void)gpc_graph_root_ref(to->root);
	to->packed = memory_dup(from->packed, from->packed_size, &failed);
	to->attributes = memory_dup(from->attributes,
				    from->attribute_count * sizeof(*from->attributes), &failed);
	to->values = memory_dup(from->values, from->value_count * sizeof(void *), &failed);
	to->user_params = memory_dup(from->values, from->value_count * sizeof(void *), &failed);
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
	if (gpc_node_params_is_memory(params))
		(void)gpc_graph_memory_ref(copy->memory);
	if (params->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		(void)gpc_mem_ops_ref(copy->ops);
	if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		return gpc_condition_dup(&params->condition, &copy->condition);
	return params->type == CU_GRAPH_NODE_TYPE_KERNEL
		       ? kernel_dup(&params->kernel, &copy->kernel)
		       : CUDA_SUCCESS;
}

void
gpc_node_params_free(struct gpc_node_params *params)
{
	if (params->type == CU_GRAPH_NODE_TYPE_KERNEL)
		kernel_free(&params->kernel);
	if (params->type == CU_GRAPH_NODE_TYPE_GRAPH)
		gpc_graph_destroy(params->child);
	if (gpc_node_params_is_memory(params))
		gpc_graph_memory_unref(params->memory);
	if (params->type == CU_GRAPH_NODE_TYPE_BATCH_MEM_OP)
		gpc_mem_ops_unref(params->ops);
	if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		gpc_condition_free(&params->condition);
}

/* The application may still use the node's array and values, so parameters of the same sizes stay
 * at their addresses. */
static void
kernel_keep_addresses(struct gpc_kernel_params *kernel, struct gpc_kernel_params *before)
{
	const struct gpc_kernel_params now = *kernel;

	if (now.packed_size == 0 || now.packed_size != before->packed_size ||
	    now.value_count != before->value_count)
		return;
	for (unsigned int i = 0; i < now.value_count; i++) {
		if ((char *)now.values[i] - (char *)now.packed !=
		    (char *)before->values[i] - (char *)before->packed)
			return;
	}
	memcpy(before->packed, now.packed, now.packed_size);
	kernel->packed = before->packed;
	kernel->values = before->values;
	kernel->user_params = before->user_params;
	before->packed = now.packed;
	before->values = now.values;
	before->user_params = now.user_params;
}

void
gpc_node_params_replace(struct gpc_node_params *params, const struct gpc_node_params *now)
{
	struct gpc_node_params before = *params;

	*params = *now;
	/* Attributes are set separately. */
	if (now->type == CU_GRAPH_NODE_TYPE_KERNEL) {
		kernel_keep_addresses(&params->kernel, &before.kernel);
		params->kernel.updatable = before.kernel.updatable;
		params->kernel.root = before.kernel.root;
		before.kernel.root = NULL;
	}
	if (now->type == CU_GRAPH_NODE_TYPE_KERNEL && !now->kernel.attributes) {
		params->kernel.attributes = before.kernel.attributes;
		params->kernel.attribute_count = before.kernel.attribute_count;
		before.kernel.attributes = NULL;
	}
	if (now->type == CU_GRAPH_NODE_TYPE_GRAPH)
		params->child->owner_node = before.child->owner_node;
	gpc_node_params_free(&before);
}

CUDA_KERNEL_NODE_PARAMS
gpc_node_get_kernel_params(const struct gpc_node *node)
{
	const struct gpc_kernel_params *kernel = &node->params.kernel;

	if (kernel->value_count > 0)
		memcpy(kernel->user_params, kernel->values, kernel->value_count * sizeof(void *));
	return (CUDA_KERNEL_NODE_PARAMS){
		.func = kernel->func,
		.kern = kernel->kern,
		.gridDimX = kernel->grid[0],
		.gridDimY = kernel->grid[1],
		.gridDimZ = kernel->grid[2],
		.blockDimX = kernel->block[0],
		.blockDimY = kernel->block[1],
		.blockDimZ = kernel->block[2],
		.sharedMemBytes = kernel->shared,
		.kernelParams = kernel->user_params,
		.ctx = node->params.context->handle.token,
	};
}

CUDA_KERNEL_NODE_PARAMS_v1
gpc_node_get_kernel_params_v1(const struct gpc_node *node)
{
	const CUDA_KERNEL_NODE_PARAMS now = gpc_node_get_kernel_params(node);
	CUDA_KERNEL_NODE_PARAMS_v1 params;

	memcpy(&params, &now, sizeof(params));
	return params;
}

_Static_assert(sizeof(CUDA_KERNEL_NODE_PARAMS) == sizeof(CUDA_KERNEL_NODE_PARAMS_v3) &&
		       sizeof(CUDA_HOST_NODE_PARAMS) == sizeof(CUDA_HOST_NODE_PARAMS_v2) &&
		       sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS) ==
			       sizeof(CUDA_BATCH_MEM_OP_NODE_PARAMS_v2),
	       "the same members");
/* Before CUDA 12 a kernel was a function, and the context that of the function. */
_Static_assert(offsetof(CUDA_KERNEL_NODE_PARAMS, kern) == sizeof(CUDA_KERNEL_NODE_PARAMS_v1),
	       "the later struct begins with the earlier one");

/* The parameters of all types are members of a union, so they start at the same offset. */
static CUgraphNodeParams *
generic_params_init(CUgraphNodeParams *any, CUgraphNodeType type, const void *given, size_t size)
{
	*any = (CUgraphNodeParams){ .type = type };
	if (given)
		memcpy(any->reserved1, given, size);
	return given ? any : NULL;
}

CUgraphNodeParams *
gpc_generic_params_kernel(CUgraphNodeParams *any, const CUDA_KERNEL_NODE_PARAMS *given)
{
	return generic_params_init(any, CU_GRAPH_NODE_TYPE_KERNEL, given, sizeof(*given));
}

CUgraphNodeParams *
gpc_generic_params_kernel_v1(CUgraphNodeParams *any, const CUDA_KERNEL_NODE_PARAMS_v1 *given)
{
	return generic_params_init(any, CU_GRAPH_NODE_TYPE_KERNEL, given, sizeof(*given));
}

CUgraphNodeParams *
gpc_generic_params_copy(CUgraphNodeParams *any, const CUDA_MEMCPY3D *given, CUcontext ctx)
{
	*any = (CUgraphNodeParams){ .type = CU_GRAPH_NODE_TYPE_MEMCPY, .memcpy.copyCtx = ctx };
	if (given)
		any->memcpy.copyParams = *given;
	return given ? any : NULL;
}

CUgraphNodeParams *
gpc_generic_params_memset(CUgraphNodeParams *any, const CUDA_MEMSET_NODE_PARAMS *given,
			  CUcontext ctx)
{
	(void)generic_params_init(any, CU_GRAPH_NODE_TYPE_MEMSET, given, sizeof(*given));
	any->memset.ctx = ctx;
	return given ? any : NULL;
}

CUgraphNodeParams *
gpc_generic_params_host(CUgraphNodeParams *any, const CUDA_HOST_NODE_PARAMS *given)
{
	return generic_params_init(any, CU_GRAPH_NODE_TYPE_HOST, given, sizeof(*given));
}

CUgraphNodeParams *
gpc_generic_params_mem_ops(CUgraphNodeParams *any, const CUDA_BATCH_MEM_OP_NODE_PARAMS *given)
{
	return generic_params_init(any, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, given, sizeof(*given));
}

CUgraphNodeParams *
gpc_generic_params_event(CUgraphNodeParams *any, CUevent event, CUgraphNodeType type)
{
	return generic_params_init(any, type, &event, sizeof(event));
}

CUgraphNodeParams *
gpc_generic_params_child(CUgraphNodeParams *any, CUgraph child)
{
	return generic_params_init(any, CU_GRAPH_NODE_TYPE_GRAPH, &child, sizeof(child));
}

CUgraphNodeParams *
gpc_generic_params_free(CUgraphNodeParams *any, CUdeviceptr address)
{
	return generic_params_init(any, CU_GRAPH_NODE_TYPE_MEM_FREE, &address, sizeof(address));
}
