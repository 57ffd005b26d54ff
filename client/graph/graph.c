/* SPDX-License-Identifier: Apache-2.0 */
#include "client/graph/graph.h"

#include "client/base/list.h"
#include "client/base/unsupported_feature.h"
#include "client/context/context.h"
#include "client/graph/graph_memory.h"
#include "client/graph/user_object.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

pthread_mutex_t gpc_graphs_lock = PTHREAD_MUTEX_INITIALIZER;

/* Whether this thread's gpc_graphs_begin() found CUDA usable. The child of a fork and host
 * functions must not acquire the lock. */
static __thread bool lock_owned;

CUresult
gpc_graphs_begin(void) GP_LOCK_UNCHECKED
{
	CUresult result = gpc_enter_initialized();

	lock_owned = result == CUDA_SUCCESS;
	if (lock_owned)
		pthread_mutex_lock(&gpc_graphs_lock);
	return result;
}

CUresult
gpc_graphs_end(CUresult result) GP_LOCK_UNCHECKED
{
	struct gpc_user_destructor *ended;

	if (!lock_owned)
		return result;
	ended = gpc_user_destructors_pop_all();
	pthread_mutex_unlock(&gpc_graphs_lock);
	gpc_user_destructors_run(ended);
	return result;
}

CUresult
gpc_graph_lookup(CUgraph token, struct gpc_graph **graph_p)
{
	struct gpc_graph *graph = gpc_handle_from_token(GPC_KIND_GRAPH, token);

	*graph_p = graph && !graph->hidden ? graph : NULL;
	return *graph_p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult
gpc_node_lookup(CUgraphNode token, struct gpc_node **node_p)
{
	struct gpc_node *node = gpc_handle_from_token(GPC_KIND_GRAPH_NODE, token);

	*node_p = node && !node->graph->hidden ? node : NULL;
	return *node_p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult
gpc_graphs_begin_graph(CUgraph token, struct gpc_graph **graph_p)
{
	CUresult result = gpc_graphs_begin();

	return result == CUDA_SUCCESS ? gpc_graph_lookup(token, graph_p) : result;
}

CUresult
gpc_graphs_begin_node(CUgraphNode token, struct gpc_node **node_p)
{
	CUresult result = gpc_graphs_begin();

	return result == CUDA_SUCCESS ? gpc_node_lookup(token, node_p) : result;
}

struct gpc_graph *
gpc_graph_create(void)
{
	return gpc_handle_new(GPC_KIND_GRAPH, sizeof(struct gpc_graph));
}

static struct gpc_edge *
edge_find(const struct gpc_edges *edges, const struct gpc_node *node)
{
	for (size_t i = 0; i < edges->count; i++) {
		if (edges->list[i].node == node)
			return &edges->list[i];
	}
	return NULL;
}

static bool
edge_append(struct gpc_edges *edges, struct gpc_node *node, const CUgraphEdgeData *data)
{
	struct gpc_edge *list =
		gpc_list_grow(edges->list, edges->count, &edges->capacity, sizeof(*list));

	if (!list)
		return false;
	edges->list = list;
	edges->list[edges->count++] =
		(struct gpc_edge){ node, data ? *data : (CUgraphEdgeData){ 0 } };
	return true;
}

static void
edge_drop(struct gpc_edges *edges, const struct gpc_node *node)
{
	struct gpc_edge *edge = edge_find(edges, node);

	if (!edge)
		return;
	edges->count--;
	memmove(edge, edge + 1, (size_t)(edges->list + edges->count - edge) * sizeof(*edge));
}

/* Only edges between kernels have ports or a programmatic type. */
static bool
edge_data_is_valid(const struct gpc_node *from, const CUgraphEdgeData *data)
{
	static const CUgraphEdgeData plain;

	if (!data || memcmp(data, &plain, sizeof(plain)) == 0)
		return true;
	for (size_t i = 0; i < sizeof(data->reserved); i++) {
		if (data->reserved[i])
			return false;
	}
	return from->params.type == CU_GRAPH_NODE_TYPE_KERNEL && data->to_port == 0 &&
	       data->from_port <= CU_GRAPH_KERNEL_NODE_PORT_LAUNCH_ORDER &&
	       data->type <= CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
}

CUresult
gpc_edge_add(struct gpc_node *from, struct gpc_node *to, const CUgraphEdgeData *data)
{
	if (from == to || from->graph != to->graph || edge_find(&to->in, from) ||
	    !edge_data_is_valid(from, data))
		return CUDA_ERROR_INVALID_VALUE;
	if (!edge_append(&to->in, from, data))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (edge_append(&from->out, to, data))
		return CUDA_SUCCESS;
	edge_drop(&to->in, from);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult
gpc_edge_remove(struct gpc_node *from, struct gpc_node *to, const CUgraphEdgeData *data)
{
	static const CUgraphEdgeData plain;
	const struct gpc_edge *edge = edge_find(&to->in, from);

	if (!edge || memcmp(&edge->data, data ? data : &plain, sizeof(plain)) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	edge_drop(&to->in, from);
	edge_drop(&from->out, to);
	return CUDA_SUCCESS;
}

void
gpc_node_destroy(struct gpc_node *node)
{
	for (size_t i = 0; i < node->in.count; i++)
		edge_drop(&node->in.list[i].node->out, node);
	for (size_t i = 0; i < node->out.count; i++)
		edge_drop(&node->out.list[i].node->in, node);
	DL_DELETE(node->graph->nodes, node);
	node->graph->count--;
	free(node->in.list);
	free(node->out.list);
	if (node->params.type == CU_GRAPH_NODE_TYPE_MEM_FREE && !node->origin)
		gpc_graph_memory_set_freed(node->params.memory, false);
	gpc_node_params_free(&node->params);
	/* The last clone of this node is checked for its graph later (node_find_copy()). */
	node->graph = NULL;
	gpc_handle_remove(&node->handle);
}

void
gpc_graph_destroy(struct gpc_graph *graph)
{
	/* In reverse order, in which few nodes still have outgoing edges. */
	while (graph->nodes)
		gpc_node_destroy(graph->nodes->prev);
	gpc_user_object_refs_release(&graph->users);
	gpc_graph_root_unref(graph->root);
	gpc_handle_remove(&graph->handle);
}

static struct gpc_node *
node_create(struct gpc_graph *graph, const struct gpc_node_params *params)
{
	struct gpc_node *node = gpc_handle_new(GPC_KIND_GRAPH_NODE, sizeof(*node));
	struct gpc_graph *const *inner;
	size_t count;

	if (!node) {
		/* The object is small, so the failure means that handles are exhausted. */
		(void)gpc_not_supported(GPC_UNSUPPORTED_MORE_NODES);
		return NULL;
	}
	node->graph = graph;
	node->params = *params;
	inner = gpc_node_params_graphs(params, &count);
	for (size_t i = 0; i < count; i++)
		inner[i]->owner_node = node;
	if (gpc_node_params_is_memory(params))
		graph->single = graph->has_memory = true;
	if (params->type == CU_GRAPH_NODE_TYPE_KERNEL && params->kernel.updatable)
		graph->single = graph->has_updatable = true;
	DL_APPEND(graph->nodes, node);
	graph->count++;
	return node;
}

CUresult
gpc_graph_add(struct gpc_graph *graph, const CUgraphNode *dependencies, const CUgraphEdgeData *data,
	      size_t count, struct gpc_node_params *params, struct gpc_node **node_p)
{
	CUresult result = CUDA_SUCCESS;
	struct gpc_node *node = NULL, *from;

	if (count > 0 && !dependencies)
		result = CUDA_ERROR_INVALID_VALUE;
	else if (!gpc_condition_allows(graph, params->type))
		result = CUDA_ERROR_NOT_SUPPORTED;
	else if (params->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
		result = gpc_condition_bind(graph, &params->condition);
	if (result == CUDA_SUCCESS && !(node = node_create(graph, params)))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (!node) {
		gpc_node_params_free(params);
		return result;
	}
	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
		result = gpc_node_lookup(dependencies[i], &from);
		if (result == CUDA_SUCCESS)
			result = gpc_edge_add(from, node, data ? &data[i] : NULL);
	}
	if (result == CUDA_SUCCESS && params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC)
		result = gpc_graph_memory_place(node);
	if (result == CUDA_SUCCESS)
		*node_p = node;
	else
		gpc_node_destroy(node);
	return result;
}

static CUresult
graph_clone_nodes(struct gpc_graph *clone, const struct gpc_graph *graph) GP_LOCKED(gpc_graphs_lock)
{
	struct gpc_node *node;
	CUresult result;

	DL_FOREACH(graph->nodes, node)
	{
		struct gpc_node_params params;

		result = gpc_node_params_dup(&node->params, &params);
		if (result != CUDA_SUCCESS)
			return result;
		result = gpc_graph_add(clone, NULL, NULL, 0, &params, &node->copy);
		if (result != CUDA_SUCCESS)
			return result;
		node->copy->origin = node->handle.token;
		node->copy->disabled = node->disabled;
	}
	DL_FOREACH(graph->nodes, node)
	{
		for (size_t i = 0; i < node->in.count; i++) {
			const struct gpc_edge *edge = &node->in.list[i];

			result = gpc_edge_add(edge->node->copy, node->copy, &edge->data);
			if (result != CUDA_SUCCESS)
				return result;
		}
	}
	return CUDA_SUCCESS;
}

bool
gpc_graph_may_be_copied(const struct gpc_graph *graph)
{
	const struct gpc_node *node;

	DL_FOREACH(graph->nodes, node)
	{
		if (node->params.type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
			return false;
	}
	return !graph->single;
}

CUresult
gpc_graph_clone(struct gpc_graph *graph, struct gpc_graph **clone_p)
{
	struct gpc_graph *clone = gpc_graph_create();
	CUresult result = clone ? graph_clone_nodes(clone, graph) : CUDA_ERROR_OUT_OF_MEMORY;

	if (result == CUDA_SUCCESS)
		result = gpc_user_object_refs_clone(graph->users, &clone->users);
	if (result == CUDA_SUCCESS) {
		clone->root = gpc_graph_root_ref(graph->root);
		*clone_p = clone;
	} else if (clone) {
		gpc_graph_destroy(clone);
	}
	return result;
}

struct gpc_node *
gpc_graph_find_clone(const struct gpc_graph *clone, const struct gpc_node *origin)
{
	struct gpc_node *node;

	DL_SEARCH_SCALAR(clone->nodes, node, origin, origin->handle.token);
	return node;
}

CUresult
gpc_graph_sort(const struct gpc_graph *graph, struct gpc_node ***nodes_p)
{
	struct gpc_node **nodes = calloc(graph->count + 1, sizeof(struct gpc_node *)), *node;
	size_t ready = 0;

	if (!nodes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* Until a node is in the array, its mark counts the remaining incoming edges. */
	DL_FOREACH(graph->nodes, node)
	{
		node->mark = node->in.count;
		if (node->mark == 0)
			nodes[ready++] = node;
	}
	for (size_t i = 0; i < ready; i++) {
		for (size_t j = 0; j < nodes[i]->out.count; j++) {
			struct gpc_node *next = nodes[i]->out.list[j].node;

			if (--next->mark == 0)
				nodes[ready++] = next;
		}
	}
	if (ready < graph->count) {
		free(nodes);
		return CUDA_ERROR_INVALID_VALUE;
	}
	for (size_t i = 0; i < ready; i++)
		nodes[i]->mark = i;
	*nodes_p = nodes;
	return CUDA_SUCCESS;
}

static bool
flat_node_add_dependency(struct gpc_flat_nodes *flat_nodes, struct gpc_flat_node *flat_node,
			 size_t on)
{
	size_t *list = gpc_list_grow(flat_node->dependencies, flat_node->count,
				     &flat_node->capacity, sizeof(*list));

	if (!list)
		return false;
	flat_node->dependencies = list;
	flat_node->dependencies[flat_node->count++] = on;
	flat_nodes->list[on].followed = true;
	return true;
}

static struct gpc_flat_node *
flat_nodes_append(struct gpc_flat_nodes *flat_nodes, const struct gpc_node *node)
{
	struct gpc_flat_node *list = gpc_list_grow(flat_nodes->list, flat_nodes->count,
						   &flat_nodes->capacity, sizeof(*list));

	if (!list)
		return NULL;
	flat_nodes->list = list;
	flat_nodes->list[flat_nodes->count] = (struct gpc_flat_node){ .node = node };
	return &flat_nodes->list[flat_nodes->count++];
}

void
gpc_flat_nodes_free(struct gpc_flat_nodes *flat_nodes)
{
	for (size_t i = 0; i < flat_nodes->count; i++)
		free(flat_nodes->list[i].dependencies);
	free(flat_nodes->list);
}

static CUresult graph_flatten(struct gpc_flat_nodes *flat_nodes, const struct gpc_graph *graph,
			      size_t root) GP_LOCKED(gpc_graphs_lock);

/* Flattens a child graph: its roots depend on `entry`, which does nothing, and its end on its last
 * nodes. */
static CUresult
child_flatten(struct gpc_flat_nodes *flat_nodes, const struct gpc_graph *child, size_t entry)
	GP_LOCKED(gpc_graphs_lock)
{
	size_t first = flat_nodes->count;
	CUresult result = graph_flatten(flat_nodes, child, entry);
	struct gpc_flat_node *end;

	if (result != CUDA_SUCCESS)
		return result;
	end = flat_nodes_append(flat_nodes, NULL);
	if (!end ||
	    (first + 1 == flat_nodes->count && !flat_node_add_dependency(flat_nodes, end, entry)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = first; i + 1 < flat_nodes->count; i++) {
		if (!flat_nodes->list[i].followed && !flat_node_add_dependency(flat_nodes, end, i))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

/* root: dependency of nodes without dependencies; SIZE_MAX: none. */
static CUresult
node_flatten(struct gpc_flat_nodes *flat_nodes, const struct gpc_node *node, const size_t *ends,
	     size_t root) GP_LOCKED(gpc_graphs_lock)
{
	bool child = node->params.type == CU_GRAPH_NODE_TYPE_GRAPH;
	bool idle = child || node->disabled || node->params.type == CU_GRAPH_NODE_TYPE_EMPTY ||
		    gpc_node_params_is_memory(&node->params);
	struct gpc_flat_node *flat_node = flat_nodes_append(flat_nodes, idle ? NULL : node);

	if (!flat_node)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (size_t i = 0; i < node->in.count; i++) {
		if (!flat_node_add_dependency(flat_nodes, flat_node,
					      ends[node->in.list[i].node->mark]))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (node->in.count == 0 && root != SIZE_MAX &&
	    !flat_node_add_dependency(flat_nodes, flat_node, root))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return child && !node->disabled
		       ? child_flatten(flat_nodes, node->params.child, flat_nodes->count - 1)
		       : CUDA_SUCCESS;
}

static CUresult
graph_flatten(struct gpc_flat_nodes *flat_nodes, const struct gpc_graph *graph, size_t root)
	GP_LOCKED(gpc_graphs_lock)
{
	struct gpc_node **nodes;
	size_t *ends = calloc(graph->count + 1, sizeof(*ends)); /* indexes by the node's mark */
	CUresult result = ends ? gpc_graph_sort(graph, &nodes) : CUDA_ERROR_OUT_OF_MEMORY;

	if (result != CUDA_SUCCESS) {
		free(ends);
		return result;
	}
	for (size_t i = 0; i < graph->count && result == CUDA_SUCCESS; i++) {
		result = node_flatten(flat_nodes, nodes[i], ends, root);
		ends[i] = flat_nodes->count - 1;
	}
	free(nodes);
	free(ends);
	return result;
}

CUresult
gpc_flat_nodes_create(struct gpc_flat_nodes *flat_nodes, const struct gpc_graph *graph)
{
	return graph_flatten(flat_nodes, graph, SIZE_MAX);
}

bool
gpc_flat_nodes_skip_idle(struct gpc_flat_nodes *flat_nodes)
{
	for (size_t i = 0; i < flat_nodes->count; i++) {
		struct gpc_flat_node *flat_node = &flat_nodes->list[i], was = *flat_node;

		flat_node->dependencies = NULL;
		flat_node->count = flat_node->capacity = 0;
		for (size_t j = 0; j < was.count; j++) {
			const struct gpc_flat_node *on = &flat_nodes->list[was.dependencies[j]];
			bool done = !on->node || flat_node_add_dependency(flat_nodes, flat_node,
									  was.dependencies[j]);

			for (size_t k = 0; k < on->count && !on->node && done; k++)
				done = flat_node_add_dependency(flat_nodes, flat_node,
								on->dependencies[k]);
			if (!done) {
				free(was.dependencies);
				return false;
			}
		}
		free(was.dependencies);
	}
	return true;
}
