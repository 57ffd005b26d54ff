/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of the application and their nodes (CUgraph, CUgraphNode; docs/graphs.md). A graph exists
 * only in the client; graph_plan.h makes from it what is sent to the daemon.
 *
 * Ownership: a graph owns its nodes; a child or conditional node owns its inner graphs. Objects
 * that are looked up stay valid until gpc_graphs_end(). A stale token is rejected without reading
 * the object's memory (client/base/handle.h).
 * Threads: gpc_graphs_lock guards all graphs and nodes. Every CUDA function about graphs starts
 * with gpc_graphs_begin() or a function that calls it, and ends with gpc_graphs_end().
 * Errors: functions that return a CUresult return CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE for an
 * invalid or stale token, CUDA_ERROR_OUT_OF_MEMORY (also if handles are exhausted), or the errors
 * stated with the function.
 */
#ifndef GPC_GRAPH_H
#define GPC_GRAPH_H

#include "base/lock.h"
#include "client/base/handle.h"
#include "client/graph/node_params.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* An edge from or to another node of the same graph. */
struct gpc_edge {
	struct gpc_node *node;
	CUgraphEdgeData data;
};

/* A list of edges: `count` elements, with space for `capacity` elements. */
struct gpc_edges {
	struct gpc_edge *list;
	size_t count, capacity;
};

/* A graph, zeroed when created. */
struct gpc_graph {
	struct gpc_handle handle;
	struct gpc_node *nodes; /* utlist, in the order of addition */
	/* number of nodes */
	size_t count;
	/* child or conditional node that owns this inner graph; NULL: an outermost graph */
	struct gpc_node *owner_node;
	/* root (graph_root.h) of its conditional handles and device-updatable nodes, a reference;
	 * set only in an outermost graph; NULL: none yet */
	struct gpc_graph_root *root;
	/* outermost graph of an executable graph's private copy, not visible to the application */
	bool hidden;
	/* a stream capture adds nodes to it (capture.h) */
	bool capturing;
	bool has_memory; /* contains nodes that allocate or free memory */
	/* contains device-updatable nodes (kernel nodes that device code can change) */
	bool has_updatable;
	/* contains, or has contained, memory nodes or device-updatable nodes; nodes can then not be
	 * removed, and at most one executable graph exists */
	bool single;
	/* an executable graph exists; set and used only if `single` is set */
	bool instantiated;
	struct gpc_user_object_ref
		*users; /* references to user objects (user_object.h), owned by the graph */
};

/* A node of a graph; destroyed with the graph at the latest. */
struct gpc_node {
	struct gpc_handle handle;
	struct gpc_graph *graph;
	struct gpc_node *prev, *next; /* utlist of graph->nodes */
	/* Edges from the nodes that this one depends on, and to the nodes that depend on it. */
	struct gpc_edges in, out;
	void *origin; /* token of the node that this one was cloned from; NULL: not a clone */
	struct gpc_node_params params;
	/* last clone of the node. It may have been destroyed: it is valid only if copy->graph is
	 * the expected graph and copy->origin is the token of this node */
	struct gpc_node *copy;
	/* scratch value of functions that traverse the graph; meaningless afterwards */
	size_t mark;
	/* disabled by cuGraphNodeSetEnabled(); set only in the private copy of an executable
	 * graph */
	bool disabled;
};

/* Acquires gpc_graphs_lock; may block while another thread, which has the lock, waits for the
 * daemon. Returns CUDA_SUCCESS. Otherwise the lock is not acquired, and the result is the error
 * that every call of this thread returns at present, for example CUDA_ERROR_NOT_INITIALIZED, or
 * CUDA_ERROR_NOT_PERMITTED in a host function. gpc_graphs_end() must follow in both cases; calls do
 * not nest. */
CUresult gpc_graphs_begin(void) GP_LOCKS(gpc_graphs_lock);
/* Ends gpc_graphs_begin(): releases the lock if that acquired it, and then runs the queued
 * destructors of user objects (user_object.h). Returns `result`. */
CUresult gpc_graphs_end(CUresult result) GP_UNLOCKS(gpc_graphs_lock);
/* Calls gpc_graphs_begin() and gpc_graph_lookup(), and returns the first error. gpc_graphs_end()
 * must follow, also after an error. */
CUresult gpc_graphs_begin_graph(CUgraph token, struct gpc_graph **graph_p)
	GP_LOCKS(gpc_graphs_lock);
/* Calls gpc_graphs_begin() and gpc_node_lookup(), and returns the first error. gpc_graphs_end()
 * must follow, also after an error. */
CUresult gpc_graphs_begin_node(CUgraphNode token, struct gpc_node **node_p)
	GP_LOCKS(gpc_graphs_lock);

/* Looks up a graph that is visible to the application. Returns CUDA_SUCCESS with *graph_p borrowed,
 * or CUDA_ERROR_INVALID_VALUE with *graph_p NULL if there is none. */
CUresult gpc_graph_lookup(CUgraph token, struct gpc_graph **graph_p) GP_LOCKED(gpc_graphs_lock);
/* Looks up a node of a graph that is visible to the application. Returns CUDA_SUCCESS with *node_p
 * borrowed, or CUDA_ERROR_INVALID_VALUE with *node_p NULL if there is none. */
CUresult gpc_node_lookup(CUgraphNode token, struct gpc_node **node_p) GP_LOCKED(gpc_graphs_lock);

/* Creates an empty graph, which gpc_graph_destroy() destroys. Returns NULL if out of memory or
 * handles. */
struct gpc_graph *gpc_graph_create(void) GP_LOCKED(gpc_graphs_lock);
/* Returns whether the application may clone the graph or use it as a child graph. CUDA does not
 * allow that for graphs with memory nodes, conditional nodes or device-updatable nodes. */
bool gpc_graph_may_be_copied(const struct gpc_graph *graph) GP_LOCKED(gpc_graphs_lock);
/* Destroys the graph with its nodes and everything that they own. The graph must not be capturing,
 * nor be owned by a node that is not being destroyed. Destructors of user objects are queued; they
 * run after the lock is released (user_object.h). */
void gpc_graph_destroy(struct gpc_graph *graph) GP_LOCKED(gpc_graphs_lock);
/* Clones a graph with its nodes and inner graphs, and sets the `copy` of each node to its clone. On
 * success *clone_p is the clone, which the caller destroys with gpc_graph_destroy(); on failure
 * *clone_p is unchanged and nothing is left allocated. */
CUresult gpc_graph_clone(struct gpc_graph *graph, struct gpc_graph **clone_p)
	GP_LOCKED(gpc_graphs_lock);
/* Returns the node of `clone` that was cloned from `origin`. Does not search inner graphs. Returns
 * NULL if there is none. */
struct gpc_node *gpc_graph_find_clone(const struct gpc_graph *clone, const struct gpc_node *origin)
	GP_LOCKED(gpc_graphs_lock);

/* Adds a node with these parameters and `count` dependencies. data: edge data of each dependency,
 * or NULL for default edges. Takes ownership of the data that *params points to, also on failure:
 * it is then freed. On success *node_p is the node, which the graph owns; on failure *node_p is
 * unchanged. Returns CUDA_ERROR_INVALID_VALUE if a dependency is not in the graph or is repeated,
 * if edge data is invalid, or if a conditional handle cannot be used (gpc_condition_bind(),
 * graph_root.h); CUDA_ERROR_NOT_SUPPORTED if the graph is, or is inside, a conditional body that
 * must not contain such a node; and CUDA_ERROR_OUT_OF_MEMORY also if an allocation node gets no
 * device memory. If handles are exhausted, reports that to the user
 * (client/base/unsupported_feature.h). */
CUresult gpc_graph_add(struct gpc_graph *graph, const CUgraphNode *dependencies,
		       const CUgraphEdgeData *data, size_t count, struct gpc_node_params *params,
		       struct gpc_node **node_p) GP_LOCKED(gpc_graphs_lock);
/* Removes the node and its edges from the graph, and frees it with its parameters. Memory that it
 * frees may be freed by another node again. */
void gpc_node_destroy(struct gpc_node *node) GP_LOCKED(gpc_graphs_lock);

/* Adds an edge between nodes of one graph. data is copied; NULL: a default edge. Returns
 * CUDA_ERROR_INVALID_VALUE if the nodes have an edge in this direction already, are equal or belong
 * to different graphs, or if data is invalid. Does not detect cycles (gpc_graph_sort() does). */
CUresult gpc_edge_add(struct gpc_node *from, struct gpc_node *to, const CUgraphEdgeData *data)
	GP_LOCKED(gpc_graphs_lock);
/* Removes the edge between the nodes. Returns CUDA_ERROR_INVALID_VALUE, without any effect, if
 * there is no edge or its data differs from *data (NULL: from a default edge's). */
CUresult gpc_edge_remove(struct gpc_node *from, struct gpc_node *to, const CUgraphEdgeData *data)
	GP_LOCKED(gpc_graphs_lock);

/* Stores in *nodes_p the graph's nodes in topological order: an array of graph->count elements,
 * which the caller frees with free(). The mark of each node is set to its index. Returns
 * CUDA_ERROR_INVALID_VALUE if there is a cycle. On failure *nodes_p is unchanged and the marks are
 * meaningless. Does not descend into inner graphs. */
CUresult gpc_graph_sort(const struct gpc_graph *graph, struct gpc_node ***nodes_p)
	GP_LOCKED(gpc_graphs_lock);

/* Element of a flattened graph (a graph with its child graphs in one list), from which a plan is
 * made (graph_plan.h): a node that does work, or an element that only orders others. The latter are
 * empty, disabled and memory nodes, and the begin and the end of each child graph. Conditional
 * bodies are not flattened. */
struct gpc_flat_node {
	/* NULL: an element that only orders others */
	const struct gpc_node *node;
	/* indexes of the elements that it depends on, all lower than its own; owned by the
	 * element */
	size_t *dependencies;
	/* number and capacity of `dependencies` */
	size_t count, capacity;
	/* stage in the plan (graph_plan.h), set by graph_plan.c */
	size_t stage;
	/* index in its subgraph, set by graph_plan.c */
	uint32_t number;
	/* executed by the client, not in a subgraph; set by graph_plan.c */
	bool is_client;
	bool followed; /* another element depends on this one */
	/* was added to its subgraph; set by graph_plan.c */
	bool written;
};

/* A flattened graph, in an order in which each element comes after its dependencies. A zeroed
 * struct is empty. */
struct gpc_flat_nodes {
	struct gpc_flat_node *list;
	size_t count, capacity;
};

/* Flattens a graph into *flat_nodes, which must be zeroed. The caller calls gpc_flat_nodes_free(),
 * also after a failure. Returns CUDA_ERROR_INVALID_VALUE if the graph or a child graph has a cycle.
 * The elements point to the nodes, which must not change while *flat_nodes is used. Overwrites the
 * marks of the nodes. */
CUresult gpc_flat_nodes_create(struct gpc_flat_nodes *flat_nodes, const struct gpc_graph *graph)
	GP_LOCKED(gpc_graphs_lock);
/* Frees the elements. *flat_nodes must not be used afterwards. */
void gpc_flat_nodes_free(struct gpc_flat_nodes *flat_nodes);

/* Replaces each dependency on an element that only orders others by the dependencies of that
 * element, so that those elements can be left out of the plan. Returns false if out of memory;
 * *flat_nodes is then incomplete and must only be freed. */
bool gpc_flat_nodes_skip_idle(struct gpc_flat_nodes *flat_nodes);

#endif /* GPC_GRAPH_H */
