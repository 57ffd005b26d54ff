/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: nodes of graphs, added, asked and changed. */
#include "client/base/lacks.h"
#include "client/context/context.h"
#include "client/graph/graph.h"
#include "client/graph/graph_memory.h"
#include "client/graph/mem_ops.h"
#include "client/graph/plan.h"
#include "gpc_calls.h"

#include <stdlib.h>
#include <string.h>

/* Where a node goes. */
struct place {
	CUgraphNode *node_p;
	CUgraph graph;
	const CUgraphNode *dependencies;
	const CUgraphEdgeData *data;
	size_t count;
	CUdeviceptr *address_p; /* of what it allocates; or NULL */
};

#define PLACE                                                                                      \
	{                                                                                          \
		.node_p = phGraphNode, .graph = hGraph, .dependencies = dependencies,              \
		.count = numDependencies                                                           \
	}

/* Ends what gpc_graphs_begin() began: adds the node, unless what was done before has failed. */
static CUresult
add(const struct place *place, CUresult result, struct gpc_node_params *params)
	GP_UNLOCKS(gpc_graphs_lock)
{
	struct gpc_graph *graph;
	struct gpc_node *node;

	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	result = gpc_graph_lookup(place->graph, &graph);
	if (result == CUDA_SUCCESS && !place->node_p)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS) {
		gpc_node_params_free(params);
		return gpc_graphs_end(result);
	}
	result =
		gpc_graph_add(graph, place->dependencies, place->data, place->count, params, &node);
	if (result == CUDA_SUCCESS)
		*place->node_p = node->handle.token;
	if (result == CUDA_SUCCESS && place->address_p)
		*place->address_p = gpc_graph_memory_address(params->memory);
	return gpc_graphs_end(result);
}

/* A node of a type, to be asked or changed. */
static CUresult
begin_typed(CUgraphNode token, CUgraphNodeType type, const void *given, struct gpc_node **node_p)
	GP_LOCKS(gpc_graphs_lock)
{
	CUresult result = gpc_graphs_begin_node(token, node_p);

	if (result == CUDA_SUCCESS && (!given || (*node_p)->params.type != type))
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}

/* Ends a change. */
static CUresult
set(struct gpc_node *node, CUresult result, const struct gpc_node_params *params)
	GP_UNLOCKS(gpc_graphs_lock)
{
	if (result == CUDA_SUCCESS)
		gpc_node_params_replace(&node->params, params);
	return gpc_graphs_end(result);
}

/* Its memory, which the daemon may have to give, is there before the node. */
static CUresult
add_alloc(const struct place *place, CUDA_MEM_ALLOC_NODE_PARAMS *given)
{
	struct gpc_node_params params = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC };
	struct place with_address = *place;
	CUresult result = gpc_graph_memory_create(given, &params.memory);

	if (result != CUDA_SUCCESS)
		return result;
	with_address.address_p = &given->dptr;
	result = gpc_graphs_begin();
	if (result != CUDA_SUCCESS)
		gpc_graph_memory_drop(params.memory);
	return add(&with_address, result, &params);
}

static CUresult
add_free(const struct place *place, CUdeviceptr address)
{
	struct gpc_node_params params = { .type = CU_GRAPH_NODE_TYPE_MEM_FREE };
	CUresult result = gpc_graphs_begin();

	if (result == CUDA_SUCCESS)
		params.memory = gpc_graph_memory_find(address);
	if (!params.memory || gpc_graph_memory_is_freed(params.memory))
		return gpc_graphs_end(result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result);
	(void)gpc_graph_memory_hold(params.memory);
	gpc_graph_memory_set_freed(params.memory, true);
	return add(place, CUDA_SUCCESS, &params);
}

_Static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2),
	       "the same members");

static CUresult
add_any(const struct place *place, CUgraphNodeParams *nodeParams)
{
	struct gpc_node_params params;
	CUDA_MEM_ALLOC_NODE_PARAMS alloc;
	CUresult result;

	if (nodeParams && nodeParams->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
		memcpy(&alloc, &nodeParams->alloc, sizeof(alloc));
		result = add_alloc(place, &alloc);
		if (result == CUDA_SUCCESS)
			nodeParams->alloc.dptr = alloc.dptr;
		return result;
	}
	if (nodeParams && nodeParams->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
		return add_free(place, nodeParams->free.dptr);
	result = gpc_graphs_begin();
	if (result == CUDA_SUCCESS)
		result = gpc_node_params_any(nodeParams, NULL, &params);
	result = add(place, result, &params);
	/* As long as the node is there. */
	if (result == CUDA_SUCCESS && nodeParams->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		nodeParams->conditional.phGraph_out = params.condition.told;
	return result;
}

CUresult
gpc_cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
		      const CUgraphEdgeData *dependencyData, size_t numDependencies,
		      CUgraphNodeParams *nodeParams)
{
	struct place place = PLACE;

	place.data = dependencyData;
	return add_any(&place, nodeParams);
}

CUresult
gpc_cuGraphNodeSetParams(CUgraphNode hNode, CUgraphNodeParams *nodeParams)
{
	struct gpc_node_params params;
	struct gpc_node *node;
	CUresult result = gpc_graphs_begin_node(hNode, &node);

	if (result == CUDA_SUCCESS && (!nodeParams || nodeParams->type != node->params.type))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS && nodeParams->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		result = CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS)
		result = gpc_node_params_any(nodeParams, node->params.context, &params);
	return set(node, result, &params);
}

CUresult
gpc_cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
			size_t numDependencies)
{
	CUgraphNodeParams any = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
	const struct place place = PLACE;

	return add_any(&place, &any);
}

CUresult
gpc_cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph,
			     const CUgraphNode *dependencies, size_t numDependencies,
			     CUgraph childGraph)
{
	CUgraphNodeParams any = { .type = CU_GRAPH_NODE_TYPE_GRAPH, .graph.graph = childGraph };
	const struct place place = PLACE;

	return add_any(&place, &any);
}

CUresult
gpc_cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph,
			   const CUgraphNode *dependencies, size_t numDependencies,
			   CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
	const struct place place = PLACE;

	return add_alloc(&place, nodeParams);
}

CUresult
gpc_cuGraphMemAllocNodeGetParams(CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out)
{
	struct gpc_node *node;
	CUresult result = begin_typed(hNode, CU_GRAPH_NODE_TYPE_MEM_ALLOC, params_out, &node);

	if (result == CUDA_SUCCESS)
		gpc_graph_memory_tell(node->params.memory, params_out);
	return gpc_graphs_end(result);
}

CUresult
gpc_cuGraphAddMemFreeNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
			  size_t numDependencies, CUdeviceptr dptr)
{
	const struct place place = PLACE;

	return add_free(&place, dptr);
}

CUresult
gpc_cuGraphMemFreeNodeGetParams(CUgraphNode hNode, CUdeviceptr *dptr_out)
{
	struct gpc_node *node;
	CUresult result = begin_typed(hNode, CU_GRAPH_NODE_TYPE_MEM_FREE, dptr_out, &node);

	if (result == CUDA_SUCCESS)
		*dptr_out = gpc_graph_memory_address(node->params.memory);
	return gpc_graphs_end(result);
}

CUresult
gpc_cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph,
			      const CUgraphNode *dependencies, size_t numDependencies,
			      CUevent event)
{
	const struct place place = PLACE;
	CUgraphNodeParams any;

	return add_any(&place, gpc_any_event(&any, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event));
}

CUresult
gpc_cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event)
{
	CUgraphNodeParams any;

	return gpc_cuGraphNodeSetParams(
		hNode, gpc_any_event(&any, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event));
}

CUresult
gpc_cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph,
			    const CUgraphNode *dependencies, size_t numDependencies, CUevent event)
{
	const struct place place = PLACE;
	CUgraphNodeParams any;

	return add_any(&place, gpc_any_event(&any, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event));
}

CUresult
gpc_cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event)
{
	CUgraphNodeParams any;

	return gpc_cuGraphNodeSetParams(hNode,
					gpc_any_event(&any, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event));
}

CUresult
gpc_cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
		       size_t numDependencies, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	const struct place place = PLACE;
	CUgraphNodeParams any;

	return add_any(&place, gpc_any_host(&any, nodeParams));
}

CUresult
gpc_cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	CUgraphNodeParams any;

	return gpc_cuGraphNodeSetParams(hNode, gpc_any_host(&any, nodeParams));
}

CUresult
gpc_cuGraphAddBatchMemOpNode(CUgraphNode *phGraphNode, CUgraph hGraph,
			     const CUgraphNode *dependencies, size_t numDependencies,
			     const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	const struct place place = PLACE;
	CUgraphNodeParams any;

	return add_any(&place, gpc_any_mem_ops(&any, nodeParams));
}

CUresult
gpc_cuGraphBatchMemOpNodeSetParams(CUgraphNode hNode,
				   const CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams)
{
	CUgraphNodeParams any;

	return gpc_cuGraphNodeSetParams(hNode, gpc_any_mem_ops(&any, nodeParams));
}

CUresult
gpc_cuGraphBatchMemOpNodeGetParams(CUgraphNode hNode, CUDA_BATCH_MEM_OP_NODE_PARAMS *nodeParams_out)
{
	struct gpc_node *node;
	CUresult result =
		begin_typed(hNode, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, nodeParams_out, &node);

	if (result == CUDA_SUCCESS)
		*nodeParams_out = node->params.ops->given;
	return gpc_graphs_end(result);
}

CUresult
gpc_cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
			 size_t numDependencies, const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	const struct place place = PLACE;
	CUgraphNodeParams any;

	return add_any(&place, gpc_any_copy(&any, copyParams, ctx));
}

/* A node stays in its context. */
CUresult
gpc_cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
	CUgraphNodeParams any;

	return gpc_cuGraphNodeSetParams(hNode, gpc_any_copy(&any, nodeParams, NULL));
}

CUresult
gpc_cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
			 size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS *memsetParams,
			 CUcontext ctx)
{
	const struct place place = PLACE;
	CUgraphNodeParams any;

	return add_any(&place, gpc_any_fill(&any, memsetParams, ctx));
}

CUresult
gpc_cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
	CUgraphNodeParams any;

	return gpc_cuGraphNodeSetParams(hNode, gpc_any_fill(&any, nodeParams, NULL));
}

CUresult
gpc_cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
			 size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	const struct place place = PLACE;
	CUgraphNodeParams any;

	return add_any(&place, gpc_any_kernel_v1(&any, nodeParams));
}

CUresult
gpc_cuGraphKernelNodeSetParams(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	CUgraphNodeParams any;

	return gpc_cuGraphNodeSetParams(hNode, gpc_any_kernel_v1(&any, nodeParams));
}

CUresult
gpc_cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
			    const CUgraphNode *dependencies, size_t numDependencies,
			    const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	const struct place place = PLACE;
	CUgraphNodeParams any;

	return add_any(&place, gpc_any_kernel(&any, nodeParams));
}

CUresult
gpc_cuGraphKernelNodeSetParams_v2(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	CUgraphNodeParams any;

	return gpc_cuGraphNodeSetParams(hNode, gpc_any_kernel(&any, nodeParams));
}

CUresult
gpc_cuGraphKernelNodeGetParams_v2(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	struct gpc_node *node;
	CUresult result = begin_typed(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, &node);

	if (result == CUDA_SUCCESS)
		gpc_kernel_params_tell(&node->params, nodeParams);
	return gpc_graphs_end(result);
}

CUresult
gpc_cuGraphKernelNodeGetParams(CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	CUDA_KERNEL_NODE_PARAMS now;
	CUresult result = nodeParams ? gpc_cuGraphKernelNodeGetParams_v2(hNode, &now)
				     : CUDA_ERROR_INVALID_VALUE;

	if (result == CUDA_SUCCESS)
		memcpy(nodeParams, &now, sizeof(*nodeParams));
	return result;
}

/* From now on kernels may change it: the daemon has a node in a graph of its own, whose name they
 * have, and makes each executable there (docs/graphs.md). */
static CUresult
make_updatable(struct gpc_node *node) GP_LOCKED(gpc_graphs_lock)
{
	struct gpc_kernel_params *kernel = &node->params.kernel;
	struct gp_graph_writer writer = { 0 };
	struct gpc_graph_root *root;
	CUresult result;

	if (kernel->updatable)
		return CUDA_SUCCESS;
	if (node->graph->holder)
		return gpc_lacks(GPC_LACK_UPDATABLE_INSIDE);
	result = gpc_context_activate(node->params.context);
	if (result == CUDA_SUCCESS)
		result = gpc_graph_root_of(node->graph, node->params.context, &root);
	if (result == CUDA_SUCCESS)
		result = gpc_plan_write_kernel(&node->params, &writer);
	if (result == CUDA_SUCCESS)
		result = gpc_graph_root_node(root, &writer, &kernel->updatable);
	free(writer.memory);
	if (result != CUDA_SUCCESS)
		return result;
	kernel->root = gpc_graph_root_hold(root);
	node->graph->single = node->graph->has_updatable = true;
	return CUDA_SUCCESS;
}

static void
tell_updatable(const struct gpc_kernel_params *kernel, CUkernelNodeAttrValue *value)
{
	value->deviceUpdatableKernelNode.deviceUpdatable = kernel->updatable != 0;
	value->deviceUpdatableKernelNode.devNode =
		(CUgraphDeviceNode)(uintptr_t)kernel->updatable; /* NOLINT: a number */
}

/* What is set once stays.  The value gets the name, though it is declared as read only. */
static CUresult
set_updatable(struct gpc_node *node, const CUkernelNodeAttrValue *value) GP_LOCKED(gpc_graphs_lock)
{
	CUresult result = value->deviceUpdatableKernelNode.deviceUpdatable == 1
				  ? make_updatable(node)
				  : CUDA_ERROR_INVALID_VALUE;

	if (result == CUDA_SUCCESS)
		tell_updatable(&node->params.kernel, (CUkernelNodeAttrValue *)(uintptr_t)value);
	return result;
}

CUresult
gpc_cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
				  const CUkernelNodeAttrValue *value)
{
	struct gpc_node *node;
	CUresult result = begin_typed(hNode, CU_GRAPH_NODE_TYPE_KERNEL, value, &node);

	if (result == CUDA_SUCCESS)
		result = attr == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE
				 ? set_updatable(node, value)
				 : gpc_kernel_params_set(&node->params, attr, value);
	return gpc_graphs_end(result);
}

/* What was never set is zero. */
CUresult
gpc_cuGraphKernelNodeGetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
				  CUkernelNodeAttrValue *value_out)
{
	const struct gpc_kernel_params *kernel;
	struct gpc_node *node;
	CUresult result = begin_typed(hNode, CU_GRAPH_NODE_TYPE_KERNEL, value_out, &node);

	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	kernel = &node->params.kernel;
	memset(value_out, 0, sizeof(*value_out));
	if (attr == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
		tell_updatable(kernel, value_out);
	for (unsigned int i = 0; i < kernel->attribute_count; i++) {
		if (kernel->attributes[i].id == attr)
			*value_out = kernel->attributes[i].value;
	}
	return gpc_graphs_end(CUDA_SUCCESS);
}

CUresult
gpc_cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
	struct gpc_node *to, *from;
	CUresult result = begin_typed(dst, CU_GRAPH_NODE_TYPE_KERNEL, dst, &to);

	if (result == CUDA_SUCCESS)
		result = gpc_node_lookup(src, &from);
	if (result == CUDA_SUCCESS && from->params.type != CU_GRAPH_NODE_TYPE_KERNEL)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS &&
	    (from->params.kernel.updatable || to->params.kernel.updatable))
		result = CUDA_ERROR_NOT_SUPPORTED;
	for (unsigned int i = 0; result == CUDA_SUCCESS && i < from->params.kernel.attribute_count;
	     i++) {
		const CUlaunchAttribute attribute = from->params.kernel.attributes[i];

		result = gpc_kernel_params_set(&to->params, attribute.id, &attribute.value);
	}
	return gpc_graphs_end(result);
}
