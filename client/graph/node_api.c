/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: addition, queries and changes of graph nodes. */
#include "client/base/unsupported_feature.h"
#include "client/context/context.h"
#include "client/graph/graph.h"
#include "client/graph/graph_memory.h"
#include "client/graph/graph_plan.h"
#include "client/stream_ops/mem_op.h"
#include "gpc_calls.h"

#include <stdlib.h>
#include <string.h>

/* Graph and dependencies of a new node. */
struct node_target {
	CUgraphNode *node_p;
	CUgraph graph;
	const CUgraphNode *dependencies;
	const CUgraphEdgeData *data;
	size_t count;
	CUdeviceptr *address_p; /* receives the address of allocated memory; or NULL */
};

/* Ends gpc_graphs_begin(): adds the node unless an earlier step failed. */
static CUresult
node_add(const struct node_target *node_target, CUresult result, struct gpc_node_params *params)
	GP_UNLOCKS(gpc_graphs_lock)
{
	struct gpc_graph *graph;
	struct gpc_node *node;

	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	result = gpc_graph_lookup(node_target->graph, &graph);
	if (result == CUDA_SUCCESS && !node_target->node_p)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS) {
		gpc_node_params_free(params);
		return gpc_graphs_end(result);
	}
	result = gpc_graph_add(graph, node_target->dependencies, node_target->data,
			       node_target->count, params, &node);
	if (result == CUDA_SUCCESS)
		*node_target->node_p = node->handle.token;
	if (result == CUDA_SUCCESS && node_target->address_p)
		*node_target->address_p = gpc_graph_memory_address(params->memory);
	return gpc_graphs_end(result);
}

/* Looks up a kernel node for a change. */
static CUresult
graphs_begin_kernel_node(CUgraphNode token, struct gpc_node **node_p) GP_LOCKS(gpc_graphs_lock)
{
	CUresult result = gpc_graphs_begin_node(token, node_p);

	if (result == CUDA_SUCCESS && (*node_p)->params.type != CU_GRAPH_NODE_TYPE_KERNEL)
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}

/* The memory is allocated before the node is added, because the daemon may have to provide it. */
static CUresult
node_add_alloc(const struct node_target *node_target, CUDA_MEM_ALLOC_NODE_PARAMS *given)
{
	struct gpc_node_params params = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC };
	struct node_target with_address = *node_target;
	CUresult result = gpc_graph_memory_create(given, &params.memory);

	if (result != CUDA_SUCCESS)
		return result;
	with_address.address_p = &given->dptr;
	result = gpc_graphs_begin();
	if (result != CUDA_SUCCESS)
		gpc_graph_memory_unref(params.memory);
	return node_add(&with_address, result, &params);
}

static CUresult
node_add_free(const struct node_target *node_target, CUdeviceptr address)
{
	struct gpc_node_params params = { .type = CU_GRAPH_NODE_TYPE_MEM_FREE };
	CUresult result = gpc_graphs_begin();

	if (result == CUDA_SUCCESS)
		params.memory = gpc_graph_memory_find(address);
	if (!params.memory || gpc_graph_memory_is_freed(params.memory))
		return gpc_graphs_end(result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result);
	(void)gpc_graph_memory_ref(params.memory);
	gpc_graph_memory_set_freed(params.memory, true);
	return node_add(node_target, CUDA_SUCCESS, &params);
}

_Static_assert(sizeof(CUDA_MEM_ALLOC_NODE_PARAMS) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2),
	       "the same members");

CUresult
gpc_cuGraphAddNode_v2(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
		      const CUgraphEdgeData *dependencyData, size_t numDependencies,
		      CUgraphNodeParams *nodeParams)
{
	const struct node_target node_target = { .node_p = phGraphNode,
						 .graph = hGraph,
						 .dependencies = dependencies,
						 .data = dependencyData,
						 .count = numDependencies };
	struct gpc_node_params params;
	CUDA_MEM_ALLOC_NODE_PARAMS alloc;
	CUresult result;

	if (nodeParams && nodeParams->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
		memcpy(&alloc, &nodeParams->alloc, sizeof(alloc));
		result = node_add_alloc(&node_target, &alloc);
		if (result == CUDA_SUCCESS)
			nodeParams->alloc.dptr = alloc.dptr;
		return result;
	}
	if (nodeParams && nodeParams->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
		return node_add_free(&node_target, nodeParams->free.dptr);
	result = gpc_graphs_begin();
	if (result == CUDA_SUCCESS)
		result = gpc_node_params_parse(nodeParams, NULL, &params);
	result = node_add(&node_target, result, &params);
	/* Valid as long as the node exists. */
	if (result == CUDA_SUCCESS && nodeParams->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		nodeParams->conditional.phGraph_out = params.condition.body_tokens;
	return result;
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
		result = gpc_node_params_parse(nodeParams, node->params.context, &params);
	if (result == CUDA_SUCCESS)
		gpc_node_params_replace(&node->params, &params);
	return gpc_graphs_end(result);
}

CUresult
gpc_cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies,
			size_t numDependencies)
{
	CUgraphNodeParams any = { .type = CU_GRAPH_NODE_TYPE_EMPTY };

	return gpc_cuGraphAddNode_v2(phGraphNode, hGraph, dependencies, NULL, numDependencies,
				     &any);
}

CUresult
gpc_cuGraphAddMemAllocNode(CUgraphNode *phGraphNode, CUgraph hGraph,
			   const CUgraphNode *dependencies, size_t numDependencies,
			   CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams)
{
	const struct node_target node_target = { .node_p = phGraphNode,
						 .graph = hGraph,
						 .dependencies = dependencies,
						 .count = numDependencies };

	return node_add_alloc(&node_target, nodeParams);
}

/* Makes the node device-updatable: the daemon creates a node in a graph of its own, whose handle
 * kernels use, and creates each executable graph from that graph (docs/graphs.md). */
static CUresult
node_make_updatable(struct gpc_node *node) GP_LOCKED(gpc_graphs_lock)
{
	struct gpc_kernel_params *kernel = &node->params.kernel;
	struct gp_graph_writer writer = { 0 };
	struct gpc_graph_root *root;
	CUresult result;

	if (kernel->updatable)
		return CUDA_SUCCESS;
	if (node->graph->owner_node)
		return gpc_not_supported(GPC_UNSUPPORTED_NESTED_UPDATABLE);
	result = gpc_context_activate(node->params.context);
	if (result == CUDA_SUCCESS)
		result = gpc_graph_get_root(node->graph, node->params.context, &root);
	if (result == CUDA_SUCCESS)
		result = gpc_plan_write_kernel(&node->params, &writer);
	if (result == CUDA_SUCCESS)
		result = gpc_graph_root_create_node(root, &writer, &kernel->updatable);
	free(writer.memory);
	if (result != CUDA_SUCCESS)
		return result;
	kernel->root = gpc_graph_root_ref(root);
	node->graph->single = node->graph->has_updatable = true;
	return CUDA_SUCCESS;
}

static void
kernel_get_updatable(const struct gpc_kernel_params *kernel, CUkernelNodeAttrValue *value)
{
	value->deviceUpdatableKernelNode.deviceUpdatable = kernel->updatable != 0;
	value->deviceUpdatableKernelNode.devNode =
		(CUgraphDeviceNode)(uintptr_t)kernel->updatable; /* NOLINT: a number */
}

/* The attribute cannot be reset. The device handle is stored in the value although it is declared
 * const. */
static CUresult
node_set_updatable(struct gpc_node *node, const CUkernelNodeAttrValue *value)
	GP_LOCKED(gpc_graphs_lock)
{
	CUresult result = value->deviceUpdatableKernelNode.deviceUpdatable == 1
				  ? node_make_updatable(node)
				  : CUDA_ERROR_INVALID_VALUE;

	if (result == CUDA_SUCCESS)
		kernel_get_updatable(&node->params.kernel,
				     (CUkernelNodeAttrValue *)(uintptr_t)value);
	return result;
}

CUresult
gpc_cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
				  const CUkernelNodeAttrValue *value)
{
	struct gpc_node *node;
	CUresult result = graphs_begin_kernel_node(hNode, &node);

	if (result == CUDA_SUCCESS && !value)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = attr == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE
				 ? node_set_updatable(node, value)
				 : gpc_kernel_params_set_attribute(&node->params, attr, value);
	return gpc_graphs_end(result);
}

CUkernelNodeAttrValue
gpc_node_get_kernel_attribute(const struct gpc_node *node, CUkernelNodeAttrID attr)
{
	const struct gpc_kernel_params *kernel = &node->params.kernel;
	CUkernelNodeAttrValue value = { 0 };

	if (attr == CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE)
		kernel_get_updatable(kernel, &value);
	for (unsigned int i = 0; i < kernel->attribute_count; i++) {
		if (kernel->attributes[i].id == attr)
			value = kernel->attributes[i].value;
	}
	return value;
}

CUresult
gpc_cuGraphKernelNodeCopyAttributes(CUgraphNode dst, CUgraphNode src)
{
	struct gpc_node *to, *from;
	CUresult result = graphs_begin_kernel_node(dst, &to);

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

		result = gpc_kernel_params_set_attribute(&to->params, attribute.id,
							 &attribute.value);
	}
	return gpc_graphs_end(result);
}
