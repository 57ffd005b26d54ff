/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: nodes of graphs, added, asked and changed. */
#include "client/graph/graph.h"
#include "gpc_calls.h"

#include <string.h>

/* Where a node goes. */
struct place {
	CUgraphNode *node_p;
	CUgraph graph;
	const CUgraphNode *dependencies;
	const CUgraphEdgeData *data;
	size_t count;
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

static CUresult
add_any(const struct place *place, const CUgraphNodeParams *nodeParams)
{
	struct gpc_node_params params;
	CUresult result = gpc_graphs_begin();

	if (result == CUDA_SUCCESS)
		result = gpc_node_params_any(nodeParams, &params);
	return add(place, result, &params);
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
gpc_cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
		   size_t numDependencies, CUgraphNodeParams *nodeParams)
{
	const struct place place = PLACE;

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
	if (result == CUDA_SUCCESS)
		result = gpc_node_params_any(nodeParams, &params);
	return set(node, result, &params);
}

CUresult
gpc_cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
			size_t numDependencies)
{
	const CUgraphNodeParams any = { .type = CU_GRAPH_NODE_TYPE_EMPTY };
	const struct place place = PLACE;

	return add_any(&place, &any);
}

CUresult
gpc_cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph,
			     const CUgraphNode *dependencies, size_t numDependencies,
			     CUgraph childGraph)
{
	const CUgraphNodeParams any = { .type = CU_GRAPH_NODE_TYPE_GRAPH,
					.graph.graph = childGraph };
	const struct place place = PLACE;

	return add_any(&place, &any);
}

CUresult
gpc_cuGraphChildGraphNodeGetGraph(CUgraphNode hNode, CUgraph *phGraph)
{
	struct gpc_node *node;
	CUresult result = begin_typed(hNode, CU_GRAPH_NODE_TYPE_GRAPH, phGraph, &node);

	if (result == CUDA_SUCCESS)
		*phGraph = node->params.child->handle.token;
	return gpc_graphs_end(result);
}

CUresult
gpc_cuGraphAddEventRecordNode(CUgraphNode *phGraphNode, CUgraph hGraph,
			      const CUgraphNode *dependencies, size_t numDependencies,
			      CUevent event)
{
	const CUgraphNodeParams any = { .type = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
					.eventRecord.event = event };
	const struct place place = PLACE;

	return add_any(&place, &any);
}

CUresult
gpc_cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph,
			    const CUgraphNode *dependencies, size_t numDependencies, CUevent event)
{
	const CUgraphNodeParams any = { .type = CU_GRAPH_NODE_TYPE_WAIT_EVENT,
					.eventWait.event = event };
	const struct place place = PLACE;

	return add_any(&place, &any);
}

static CUresult
get_event(CUgraphNode hNode, CUgraphNodeType type, CUevent *event_p)
{
	struct gpc_node *node;
	CUresult result = begin_typed(hNode, type, event_p, &node);

	if (result == CUDA_SUCCESS)
		*event_p = node->params.event;
	return gpc_graphs_end(result);
}

static CUresult
set_event(CUgraphNode hNode, CUgraphNodeType type, CUevent event)
{
	struct gpc_node_params params;
	struct gpc_node *node;
	CUresult result = begin_typed(hNode, type, event, &node);

	if (result == CUDA_SUCCESS)
		result = gpc_node_params_event(type, event, &params);
	return set(node, result, &params);
}

CUresult
gpc_cuGraphEventRecordNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
	return get_event(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event_out);
}

CUresult
gpc_cuGraphEventRecordNodeSetEvent(CUgraphNode hNode, CUevent event)
{
	return set_event(hNode, CU_GRAPH_NODE_TYPE_EVENT_RECORD, event);
}

CUresult
gpc_cuGraphEventWaitNodeGetEvent(CUgraphNode hNode, CUevent *event_out)
{
	return get_event(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event_out);
}

CUresult
gpc_cuGraphEventWaitNodeSetEvent(CUgraphNode hNode, CUevent event)
{
	return set_event(hNode, CU_GRAPH_NODE_TYPE_WAIT_EVENT, event);
}

CUresult
gpc_cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
		       size_t numDependencies, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	const struct place place = PLACE;
	struct gpc_node_params params;
	CUresult result = gpc_graphs_begin();

	if (result == CUDA_SUCCESS)
		result = gpc_node_params_host(nodeParams, &params);
	return add(&place, result, &params);
}

CUresult
gpc_cuGraphHostNodeGetParams(CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams)
{
	struct gpc_node *node;
	CUresult result = begin_typed(hNode, CU_GRAPH_NODE_TYPE_HOST, nodeParams, &node);

	if (result == CUDA_SUCCESS)
		*nodeParams = node->params.host;
	return gpc_graphs_end(result);
}

CUresult
gpc_cuGraphHostNodeSetParams(CUgraphNode hNode, const CUDA_HOST_NODE_PARAMS *nodeParams)
{
	struct gpc_node_params params;
	struct gpc_node *node;
	CUresult result = begin_typed(hNode, CU_GRAPH_NODE_TYPE_HOST, nodeParams, &node);

	if (result == CUDA_SUCCESS)
		result = gpc_node_params_host(nodeParams, &params);
	return set(node, result, &params);
}

CUresult
gpc_cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
			 size_t numDependencies, const CUDA_MEMCPY3D *copyParams, CUcontext ctx)
{
	const struct place place = PLACE;
	struct gpc_node_params params;
	CUresult result = gpc_graphs_begin();

	if (result == CUDA_SUCCESS)
		result = gpc_node_params_copy(copyParams, ctx, &params);
	return add(&place, result, &params);
}

CUresult
gpc_cuGraphMemcpyNodeGetParams(CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams)
{
	struct gpc_node *node;
	CUresult result = begin_typed(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, nodeParams, &node);

	if (result == CUDA_SUCCESS)
		*nodeParams = node->params.copy;
	return gpc_graphs_end(result);
}

/* A node stays in its context. */
CUresult
gpc_cuGraphMemcpyNodeSetParams(CUgraphNode hNode, const CUDA_MEMCPY3D *nodeParams)
{
	struct gpc_node_params params;
	struct gpc_node *node;
	CUresult result = begin_typed(hNode, CU_GRAPH_NODE_TYPE_MEMCPY, nodeParams, &node);

	if (result == CUDA_SUCCESS)
		result = gpc_node_params_copy(nodeParams, node->params.context->handle.token,
					      &params);
	return set(node, result, &params);
}

CUresult
gpc_cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
			 size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS *memsetParams,
			 CUcontext ctx)
{
	const struct place place = PLACE;
	struct gpc_node_params params;
	CUresult result = gpc_graphs_begin();

	if (result == CUDA_SUCCESS)
		result = gpc_node_params_fill(memsetParams, ctx, &params);
	return add(&place, result, &params);
}

CUresult
gpc_cuGraphMemsetNodeGetParams(CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
	struct gpc_node *node;
	CUresult result = begin_typed(hNode, CU_GRAPH_NODE_TYPE_MEMSET, nodeParams, &node);

	if (result == CUDA_SUCCESS)
		*nodeParams = node->params.fill;
	return gpc_graphs_end(result);
}

CUresult
gpc_cuGraphMemsetNodeSetParams(CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *nodeParams)
{
	struct gpc_node_params params;
	struct gpc_node *node;
	CUresult result = begin_typed(hNode, CU_GRAPH_NODE_TYPE_MEMSET, nodeParams, &node);

	if (result == CUDA_SUCCESS)
		result = gpc_node_params_fill(nodeParams, node->params.context->handle.token,
					      &params);
	return set(node, result, &params);
}

CUresult
gpc_cuGraphAddKernelNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph,
			    const CUgraphNode *dependencies, size_t numDependencies,
			    const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	const struct place place = PLACE;
	struct gpc_node_params params;
	CUresult result = gpc_graphs_begin();

	if (result == CUDA_SUCCESS)
		result = gpc_node_params_kernel(nodeParams, &params);
	return add(&place, result, &params);
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
gpc_cuGraphKernelNodeSetParams_v2(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams)
{
	struct gpc_node_params params;
	struct gpc_node *node;
	CUresult result = begin_typed(hNode, CU_GRAPH_NODE_TYPE_KERNEL, nodeParams, &node);

	if (result == CUDA_SUCCESS)
		result = gpc_node_params_kernel(nodeParams, &params);
	return set(node, result, &params);
}

/* Before CUDA 12 a kernel was a function, and its context that of the function. */
_Static_assert(offsetof(CUDA_KERNEL_NODE_PARAMS, kern) == sizeof(CUDA_KERNEL_NODE_PARAMS_v1),
	       "the later struct begins with the earlier one");

CUresult
gpc_cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
			 size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	CUDA_KERNEL_NODE_PARAMS now = { 0 };

	if (nodeParams)
		memcpy(&now, nodeParams, sizeof(*nodeParams));
	return gpc_cuGraphAddKernelNode_v2(phGraphNode, hGraph, dependencies, numDependencies,
					   &now);
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

CUresult
gpc_cuGraphKernelNodeSetParams(CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS_v1 *nodeParams)
{
	CUDA_KERNEL_NODE_PARAMS now = { 0 };

	if (nodeParams)
		memcpy(&now, nodeParams, sizeof(*nodeParams));
	return gpc_cuGraphKernelNodeSetParams_v2(hNode, &now);
}

CUresult
gpc_cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
				  const CUkernelNodeAttrValue *value)
{
	struct gpc_node *node;
	CUresult result = begin_typed(hNode, CU_GRAPH_NODE_TYPE_KERNEL, value, &node);

	if (result == CUDA_SUCCESS)
		result = gpc_kernel_params_set(&node->params.kernel, attr, value);
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
	for (unsigned int i = 0; result == CUDA_SUCCESS && i < from->params.kernel.attribute_count;
	     i++) {
		const CUlaunchAttribute attribute = from->params.kernel.attributes[i];

		result = gpc_kernel_params_set(&to->params.kernel, attribute.id, &attribute.value);
	}
	return gpc_graphs_end(result);
}
