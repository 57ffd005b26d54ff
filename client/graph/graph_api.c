/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: graphs, their edges, and queries about them. */
#include "client/graph/graph.h"
#include "gpc_calls.h"

#include <string.h>
#include <utlist.h>

CUresult
gpc_cuGraphCreate(CUgraph *phGraph, unsigned int flags)
{
	struct gpc_graph *graph;
	CUresult result = gpc_graphs_begin();

	if (result == CUDA_SUCCESS && (!phGraph || flags != 0))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	graph = gpc_graph_create();
	if (!graph)
		return gpc_graphs_end(CUDA_ERROR_OUT_OF_MEMORY);
	*phGraph = graph->handle.token;
	return gpc_graphs_end(CUDA_SUCCESS);
}

CUresult
gpc_cuGraphDestroy(CUgraph hGraph)
{
	struct gpc_graph *graph;
	CUresult result = gpc_graphs_begin_graph(hGraph, &graph);

	/* A child graph is destroyed with its node, a graph being captured with its capture. */
	if (result == CUDA_SUCCESS && (graph->owner_node || graph->capturing))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		gpc_graph_destroy(graph);
	return gpc_graphs_end(result);
}

CUresult
gpc_cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph)
{
	struct gpc_graph *graph, *clone;
	CUresult result = gpc_graphs_begin_graph(originalGraph, &graph);

	if (result == CUDA_SUCCESS && !phGraphClone)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS && !gpc_graph_may_be_copied(graph))
		result = CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS)
		result = gpc_graph_clone(graph, &clone);
	if (result == CUDA_SUCCESS)
		*phGraphClone = clone->handle.token;
	return gpc_graphs_end(result);
}

CUresult
gpc_cuGraphNodeFindInClone(CUgraphNode *phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph)
{
	struct gpc_graph *clone;
	struct gpc_node *origin, *node = NULL;
	CUresult result = gpc_graphs_begin_graph(hClonedGraph, &clone);

	if (result == CUDA_SUCCESS)
		result = gpc_node_lookup(hOriginalNode, &origin);
	if (result == CUDA_SUCCESS)
		node = gpc_graph_find_clone(clone, origin);
	if (result == CUDA_SUCCESS && (!node || !phNode))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		*phNode = node->handle.token;
	return gpc_graphs_end(result);
}

CUresult
gpc_cuGraphDestroyNode(CUgraphNode hNode)
{
	struct gpc_node *node;
	CUresult result = gpc_graphs_begin_node(hNode, &node);

	if (result == CUDA_SUCCESS && node->graph->single)
		result = CUDA_ERROR_NOT_SUPPORTED;
	if (result == CUDA_SUCCESS)
		gpc_node_destroy(node);
	return gpc_graphs_end(result);
}

/*
 * A list query: with `nodes` NULL it returns the number of elements, otherwise as many elements as
 * fit. Unused entries are cleared.
 */
struct node_query {
	CUgraphNode *nodes, *others;
	CUgraphEdgeData *data;
	size_t capacity, count;
};

static void
node_query_add(struct node_query *node_query, const struct gpc_node *node,
	       const struct gpc_node *other, const CUgraphEdgeData *data)
{
	size_t at = node_query->count++;

	if (at >= node_query->capacity)
		return;
	if (node_query->nodes)
		node_query->nodes[at] = node->handle.token;
	if (node_query->others)
		node_query->others[at] = other->handle.token;
	if (node_query->data)
		node_query->data[at] = *data;
}

static void
node_query_finish(struct node_query *node_query, size_t *count_p)
{
	for (size_t i = node_query->count; i < node_query->capacity && node_query->nodes; i++) {
		node_query->nodes[i] = NULL;
		if (node_query->others)
			node_query->others[i] = NULL;
	}
	*count_p = node_query->nodes && node_query->count > node_query->capacity
			   ? node_query->capacity
			   : node_query->count;
}

/* Returns whether the count pointer is valid and, if the elements are requested, there is room for
 * any. */
static bool
node_query_is_valid(const struct node_query *node_query, const size_t *count_p)
{
	if (node_query->data && !node_query->nodes)
		return false;
	return count_p && (!node_query->nodes || *count_p > 0);
}

static CUresult
graph_get_nodes(CUgraph hGraph, CUgraphNode *nodes, size_t *count_p, bool roots)
{
	struct node_query node_query = { .nodes = nodes,
					 .capacity = nodes && count_p ? *count_p : 0 };
	struct gpc_graph *graph;
	struct gpc_node *node;
	CUresult result = gpc_graphs_begin_graph(hGraph, &graph);

	if (result == CUDA_SUCCESS && !node_query_is_valid(&node_query, count_p))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	DL_FOREACH(graph->nodes, node)
	{
		if (!roots || node->in.count == 0)
			node_query_add(&node_query, node, NULL, NULL);
	}
	node_query_finish(&node_query, count_p);
	return gpc_graphs_end(CUDA_SUCCESS);
}

CUresult
gpc_cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes)
{
	return graph_get_nodes(hGraph, nodes, numNodes, false);
}

CUresult
gpc_cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes)
{
	return graph_get_nodes(hGraph, rootNodes, numRootNodes, true);
}

static bool
edge_data_is_default(const CUgraphEdgeData *data)
{
	static const CUgraphEdgeData plain;

	return memcmp(data, &plain, sizeof(plain)) == 0;
}

CUresult
gpc_cuGraphGetEdges_v2(CUgraph hGraph, CUgraphNode *from, CUgraphNode *to,
		       CUgraphEdgeData *edgeData, size_t *numEdges)
{
	struct node_query node_query = { .nodes = from, .others = to, .data = edgeData };
	struct gpc_graph *graph;
	struct gpc_node *node;
	CUresult result = gpc_graphs_begin_graph(hGraph, &graph);

	if (result == CUDA_SUCCESS && (!node_query_is_valid(&node_query, numEdges) ||
				       !node_query.nodes != !node_query.others))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	node_query.capacity = node_query.nodes ? *numEdges : 0;
	DL_FOREACH(graph->nodes, node)
	{
		for (size_t i = 0; i < node->out.count; i++) {
			const struct gpc_edge *edge = &node->out.list[i];

			if (!edgeData && node_query.nodes && !edge_data_is_default(&edge->data))
				result = CUDA_ERROR_LOSSY_QUERY;
			node_query_add(&node_query, node, edge->node, &edge->data);
		}
	}
	node_query_finish(&node_query, numEdges);
	return gpc_graphs_end(result);
}

static CUresult
node_get_neighbors(CUgraphNode hNode, struct node_query *node_query, size_t *count_p, bool in)
{
	const struct gpc_edges *edges;
	struct gpc_node *node;
	CUresult result = gpc_graphs_begin_node(hNode, &node);

	if (result == CUDA_SUCCESS && !node_query_is_valid(node_query, count_p))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	node_query->capacity = node_query->nodes ? *count_p : 0;
	edges = in ? &node->in : &node->out;
	for (size_t i = 0; i < edges->count; i++) {
		if (node_query->nodes && !node_query->data &&
		    !edge_data_is_default(&edges->list[i].data))
			result = CUDA_ERROR_LOSSY_QUERY;
		node_query_add(node_query, edges->list[i].node, NULL, &edges->list[i].data);
	}
	node_query_finish(node_query, count_p);
	return gpc_graphs_end(result);
}

CUresult
gpc_cuGraphNodeGetDependencies_v2(CUgraphNode hNode, CUgraphNode *dependencies,
				  CUgraphEdgeData *edgeData, size_t *numDependencies)
{
	struct node_query node_query = { .nodes = dependencies, .data = edgeData };

	return node_get_neighbors(hNode, &node_query, numDependencies, true);
}

CUresult
gpc_cuGraphNodeGetDependentNodes_v2(CUgraphNode hNode, CUgraphNode *dependentNodes,
				    CUgraphEdgeData *edgeData, size_t *numDependentNodes)
{
	struct node_query node_query = { .nodes = dependentNodes, .data = edgeData };

	return node_get_neighbors(hNode, &node_query, numDependentNodes, false);
}

typedef CUresult edge_change_fn(struct gpc_node *from, struct gpc_node *to,
				const CUgraphEdgeData *data);

static CUresult
edge_change(const struct gpc_graph *graph, CUgraphNode from_token, CUgraphNode to_token,
	    const CUgraphEdgeData *data, edge_change_fn *function) GP_LOCKED(gpc_graphs_lock)
{
	struct gpc_node *from, *to;
	CUresult result = gpc_node_lookup(from_token, &from);

	if (result == CUDA_SUCCESS)
		result = gpc_node_lookup(to_token, &to);
	if (result == CUDA_SUCCESS && (from->graph != graph || to->graph != graph))
		result = CUDA_ERROR_INVALID_VALUE;
	return result == CUDA_SUCCESS ? function(from, to, data) : result;
}

/* If a list fails, the changes before the failure remain. */
static CUresult
graph_change_edges(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
		   const CUgraphEdgeData *data, size_t count, edge_change_fn *function)
{
	struct gpc_graph *graph;
	CUresult result = gpc_graphs_begin_graph(hGraph, &graph);

	if (result == CUDA_SUCCESS && count > 0 && (!from || !to))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS && graph->single && function == gpc_edge_remove)
		result = CUDA_ERROR_NOT_SUPPORTED;
	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
		result = edge_change(graph, from[i], to[i], data ? &data[i] : NULL, function);
	return gpc_graphs_end(result);
}

CUresult
gpc_cuGraphAddDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
			      const CUgraphEdgeData *edgeData, size_t numDependencies)
{
	return graph_change_edges(hGraph, from, to, edgeData, numDependencies, gpc_edge_add);
}

CUresult
gpc_cuGraphRemoveDependencies_v2(CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to,
				 const CUgraphEdgeData *edgeData, size_t numDependencies)
{
	return graph_change_edges(hGraph, from, to, edgeData, numDependencies, gpc_edge_remove);
}
