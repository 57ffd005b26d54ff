/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: updates of executable graphs, of one node or of all. */
#include "client/graph/graph_exec.h"
#include "gpc_calls.h"

#include <string.h>
#include <utlist.h>

/* Difference between two graphs. They match if their nodes, in the order of addition, have the same
 * types and the same edges. */
struct difference {
	CUgraphExecUpdateResult result;
	const struct gpc_node *node; /* in the new graph */
};

static void
nodes_number(const struct gpc_graph *graph)
{
	struct gpc_node *node;
	size_t count = 0;

	DL_FOREACH(graph->nodes, node)
	{
		node->mark = count++;
	}
}

static bool
node_has_edge_from(const struct gpc_node *node, size_t mark)
{
	for (size_t i = 0; i < node->in.count; i++) {
		if (node->in.list[i].node->mark == mark)
			return true;
	}
	return false;
}

static bool graphs_match(const struct gpc_graph *now, const struct gpc_graph *before,
			 struct difference *difference);

/* Compares the graphs inside two nodes of the same type. */
static bool
inner_graphs_match(const struct gpc_node_params *now, const struct gpc_node_params *before,
		   struct difference *difference)
{
	size_t count, count_before;
	struct gpc_graph *const *graphs = gpc_node_params_graphs(now, &count);
	struct gpc_graph *const *graphs_before = gpc_node_params_graphs(before, &count_before);

	difference->result = CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
	if (count != count_before || (now->type == CU_GRAPH_NODE_TYPE_CONDITIONAL &&
				      now->condition.type != before->condition.type))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!graphs_match(graphs[i], graphs_before[i], difference))
			return false;
	}
	return true;
}

static bool
nodes_match(const struct gpc_node *now, const struct gpc_node *before,
	    struct difference *difference)
{
	difference->node = now;
	difference->result = CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
	if (now->params.type != before->params.type)
		return false;
	difference->result = CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
	if (gpc_node_params_is_memory(&now->params) && now->params.memory != before->params.memory)
		return false;
	difference->result = CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
	if (now->params.context != before->params.context)
		return false;
	difference->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
	if (now->in.count != before->in.count)
		return false;
	for (size_t i = 0; i < now->in.count; i++) {
		if (!node_has_edge_from(before, now->in.list[i].node->mark))
			return false;
	}
	return inner_graphs_match(&now->params, &before->params, difference);
}

static bool
graphs_match(const struct gpc_graph *now, const struct gpc_graph *before,
	     struct difference *difference)
{
	const struct gpc_node *node, *other = before->nodes;

	*difference = (struct difference){ CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, NULL };
	if (now->count != before->count)
		return false;
	nodes_number(now);
	nodes_number(before);
	DL_FOREACH(now->nodes, node)
	{
		if (!nodes_match(node, other, difference))
			return false;
		other = other->next;
	}
	return true;
}

/* The graphs must match. */
static CUresult
nodes_copy_params(struct gpc_graph *copy, const struct gpc_graph *now) GP_LOCKED(gpc_graphs_lock)
{
	const struct gpc_node *from = now->nodes;
	struct gpc_node *node;
	CUresult result = CUDA_SUCCESS;

	DL_FOREACH(copy->nodes, node)
	{
		struct gpc_node_params params;
		size_t count;
		struct gpc_graph *const *graphs = gpc_node_params_graphs(&node->params, &count);

		if (node->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
			gpc_condition_rebind(&node->params.condition, &from->params.condition);
		for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
			result = nodes_copy_params(
				graphs[i], gpc_node_params_graphs(&from->params, &count)[i]);
		if (count == 0) {
			result = gpc_node_params_dup(&from->params, &params);
			if (result == CUDA_SUCCESS) {
				gpc_node_params_free(&node->params);
				node->params = params;
			}
		}
		if (result != CUDA_SUCCESS)
			return result;
		from = from->next;
	}
	return CUDA_SUCCESS;
}

CUresult
gpc_cuGraphExecUpdate_v2(CUgraphExec hGraphExec, CUgraph hGraph,
			 CUgraphExecUpdateResultInfo *resultInfo)
{
	CUgraphExecUpdateResultInfo unwanted;
	struct difference difference;
	struct gpc_graph *graph;
	struct gpc_exec *exec;
	CUresult result = gpc_exec_begin_change(hGraphExec, &exec);

	if (result == CUDA_SUCCESS)
		result = gpc_graph_lookup(hGraph, &graph);
	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	if (!resultInfo)
		resultInfo = &unwanted;
	*resultInfo = (CUgraphExecUpdateResultInfo){ .result = CU_GRAPH_EXEC_UPDATE_SUCCESS };
	if (graph->has_updatable || gpc_exec_graph(exec)->has_updatable) {
		resultInfo->result = CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
		return gpc_graphs_end(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	}
	if (!graphs_match(graph, gpc_exec_graph(exec), &difference)) {
		resultInfo->result = difference.result;
		resultInfo->errorNode = difference.node ? difference.node->handle.token : NULL;
		return gpc_graphs_end(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
	}
	gpc_exec_changed(exec);
	return gpc_graphs_end(nodes_copy_params(gpc_exec_graph(exec), graph));
}

CUresult
gpc_cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph, CUgraphNode *hErrorNode_out,
		      CUgraphExecUpdateResult *updateResult_out)
{
	CUgraphExecUpdateResultInfo info = { .result = CU_GRAPH_EXEC_UPDATE_ERROR };
	CUresult result = gpc_cuGraphExecUpdate_v2(hGraphExec, hGraph, &info);

	if (hErrorNode_out)
		*hErrorNode_out = info.errorNode;
	if (updateResult_out)
		*updateResult_out = info.result;
	return result;
}

CUresult
gpc_cuGraphExecChildGraphNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
				       CUgraph childGraph)
{
	struct difference difference;
	struct gpc_graph *graph;
	struct gpc_exec *exec;
	struct gpc_node *copy;
	CUresult result = gpc_exec_begin_node(hGraphExec, hNode, &exec, &copy);

	if (result == CUDA_SUCCESS)
		result = gpc_graph_lookup(childGraph, &graph);
	if (result == CUDA_SUCCESS && (copy->params.type != CU_GRAPH_NODE_TYPE_GRAPH ||
				       !graphs_match(graph, copy->params.child, &difference)))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	gpc_exec_changed(exec);
	return gpc_graphs_end(nodes_copy_params(copy->params.child, graph));
}

CUresult
gpc_cuGraphExecNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
			     CUgraphNodeParams *nodeParams)
{
	struct gpc_node_params params;
	struct gpc_exec *exec;
	struct gpc_node *copy;
	CUresult result;

	if (nodeParams && nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH)
		return gpc_cuGraphExecChildGraphNodeSetParams(hGraphExec, hNode,
							      nodeParams->graph.graph);
	result = gpc_exec_begin_node(hGraphExec, hNode, &exec, &copy);
	if (result == CUDA_SUCCESS && (!nodeParams || nodeParams->type != copy->params.type))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS && nodeParams->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		result = CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS)
		result = gpc_node_params_parse(nodeParams, copy->params.context, &params);
	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	gpc_node_params_replace(&copy->params, &params);
	gpc_exec_changed(exec);
	return gpc_graphs_end(CUDA_SUCCESS);
}

/* CUDA allows disabling only these types. */
static bool
node_can_be_disabled(const struct gpc_node *node)
{
	return node->params.type == CU_GRAPH_NODE_TYPE_KERNEL ||
	       node->params.type == CU_GRAPH_NODE_TYPE_MEMSET ||
	       node->params.type == CU_GRAPH_NODE_TYPE_MEMCPY;
}

CUresult
gpc_cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled)
{
	struct gpc_exec *exec;
	struct gpc_node *copy;
	CUresult result = gpc_exec_begin_node(hGraphExec, hNode, &exec, &copy);

	if (result == CUDA_SUCCESS && !node_can_be_disabled(copy))
		result = CUDA_ERROR_INVALID_VALUE;
	/* A device-updatable node stays in the daemon's graph. */
	if (result == CUDA_SUCCESS && copy->params.type == CU_GRAPH_NODE_TYPE_KERNEL &&
	    copy->params.kernel.updatable && !isEnabled)
		result = CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS && copy->disabled != !isEnabled) {
		copy->disabled = !isEnabled;
		gpc_exec_changed(exec);
	}
	return gpc_graphs_end(result);
}

CUresult
gpc_cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int *isEnabled)
{
	struct gpc_exec *exec;
	struct gpc_node *copy;
	CUresult result = gpc_exec_begin_node(hGraphExec, hNode, &exec, &copy);

	if (result == CUDA_SUCCESS && (!isEnabled || !node_can_be_disabled(copy)))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		*isEnabled = !copy->disabled;
	return gpc_graphs_end(result);
}
