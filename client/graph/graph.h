/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of the application and their nodes (CUgraph, CUgraphNode; docs/graphs.md).
 *
 * Ownership: a graph owns its nodes; a child or conditional node owns its inner graphs. Objects
 * that are looked up stay valid until gpc_graphs_end(); memory of a stale token is never read
 * (client/base/handle.h).
 * Threads: gpc_graphs_lock guards all graphs and nodes. Every CUDA function about graphs starts
 * with gpc_graphs_begin() and ends with gpc_graphs_end().
 * Errors: functions that return a CUresult return CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE for an
 * invalid or stale token, CUDA_ERROR_OUT_OF_MEMORY, or the errors stated with the function.
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

/* A list of edges: `count` elements, with a capacity of `room`. */
struct gpc_edges {
	struct gpc_edge *list;
	size_t count, room;
};

/* A graph, zeroed when created. */
struct gpc_graph {
	struct gpc_handle handle;
	struct gpc_node *nodes; /* utlist, in the order of addition */
	size_t count;
	struct gpc_node *owner_node; /* child or conditional node that owns the graph; NULL: an
					outermost graph */
	struct gpc_graph_root *root; /* the daemon's graph in which its conditional handles exist
					(graph_root.h), a reference; NULL: none yet */
	bool hidden; /* private copy of an executable graph, not visible to the application */
	bool capturing;
	bool has_memory;    /* contains nodes that allocate or free memory */
	bool has_updatable; /* contains device-updatable nodes, kernel nodes that device code can
			       change */
	bool single; /* contains memory or device-updatable nodes, so nodes cannot be removed and at
			most one executable graph exists */
	bool instantiated; /* an executable graph exists; used if `single` is set */
	struct gpc_user_object_ref
		*users; /* references to user objects (user_object.h), owned by the graph */
};

/* A node of a graph; destroyed with the graph at the latest. */
struct gpc_node {
	struct gpc_handle handle;
	struct gpc_graph *graph;
	struct gpc_node *prev, *next;
	struct gpc_edges in, out;
	void *origin; /* token of the node that this one was cloned from; NULL: not a clone */
	struct gpc_node_params params;
	struct gpc_node *copy; /* last clone of the node, which may be destroyed: check its graph
				  and origin before use */
	size_t mark;           /* scratch value of graph traversals; meaningless between them */
	bool disabled; /* disabled by the application; only in the copy of an executable graph */
};

/* Acquires gpc_graphs_lock. Returns CUDA_SUCCESS, or the error that every call returns at present,
 * for example CUDA_ERROR_NOT_INITIALIZED; the lock is then not held. gpc_graphs_end() must follow
 * in both cases. */
CUresult gpc_graphs_begin(void) GP_LOCKS(gpc_graphs_lock);
/* Releases the lock, if gpc_graphs_begin() acquired it, and runs the queued destructors of user
 * objects without the lock. Returns `result`. */
CUresult gpc_graphs_end(CUresult result) GP_UNLOCKS(gpc_graphs_lock);
/* Calls gpc_graphs_begin() and gpc_graph_lookup(). gpc_graphs_end() must follow, also after an
 * error. */
CUresult gpc_graphs_begin_graph(CUgraph token, struct gpc_graph **graph_p)
	GP_LOCKS(gpc_graphs_lock);
/* Calls gpc_graphs_begin() and gpc_node_lookup(). gpc_graphs_end() must follow, also after an
 * error. */
CUresult gpc_graphs_begin_node(CUgraphNode token, struct gpc_node **node_p)
	GP_LOCKS(gpc_graphs_lock);

/* Looks up a graph that is visible to the application. Returns CUDA_SUCCESS with *graph_p borrowed,
 * or CUDA_ERROR_INVALID_VALUE with *graph_p NULL if there is none. */
CUresult gpc_graph_lookup(CUgraph token, struct gpc_graph **graph_p) GP_LOCKED(gpc_graphs_lock);
/* Looks up a node of such a graph. Returns CUDA_SUCCESS with *node_p borrowed, or
 * CUDA_ERROR_INVALID_VALUE with *node_p NULL if there is none. */
CUresult gpc_node_lookup(CUgraphNode token, struct gpc_node **node_p) GP_LOCKED(gpc_graphs_lock);

/* Creates an empty graph, which gpc_graph_destroy() destroys. Returns NULL if out of memory or
 * handles. */
struct gpc_graph *gpc_graph_create(void) GP_LOCKED(gpc_graphs_lock);
/* Returns whether the application may clone the graph or use it as a child: CUDA does not allow
 * that for graphs with memory nodes, conditional nodes or device-updatable nodes. */
bool gpc_graph_may_be_copied(const struct gpc_graph *graph) GP_LOCKED(gpc_graphs_lock);
/* Destroys the graph with its nodes and everything that they own. Destructors of user objects are
 * queued for gpc_graphs_end(). */
void gpc_graph_destroy(struct gpc_graph *graph) GP_LOCKED(gpc_graphs_lock);
/* Clones a graph with its nodes and inner graphs, and sets the `copy` of each node to its clone. On
 * success the caller owns *clone_p; on failure *clone_p is unchanged and nothing is left
 * allocated. */
CUresult gpc_graph_clone(struct gpc_graph *graph, struct gpc_graph **clone_p)
	GP_LOCKED(gpc_graphs_lock);
/* Returns the node of `clone` that was cloned from `origin`, not searching inner graphs. Returns
 * NULL if there is none. */
struct gpc_node *gpc_graph_find_clone(const struct gpc_graph *clone, const struct gpc_node *origin)
	GP_LOCKED(gpc_graphs_lock);

/* Adds a node with these parameters and `count` dependencies. data: edge data of each dependency,
 * or NULL for default edges. Takes ownership of the data that *params points to; on failure it is
 * freed, and *node_p is unchanged. On success *node_p is the node, which the graph owns. Returns
 * CUDA_ERROR_INVALID_VALUE if a dependency is not in the graph or is repeated, and
 * CUDA_ERROR_NOT_SUPPORTED if a conditional body must not contain such a node. */
CUresult gpc_graph_add(struct gpc_graph *graph, const CUgraphNode *dependencies,
		       const CUgraphEdgeData *data, size_t count, struct gpc_node_params *params,
		       struct gpc_node **node_p) GP_LOCKED(gpc_graphs_lock);
/* Removes the node and its edges from the graph, and frees its parameters. */
void gpc_node_destroy(struct gpc_node *node) GP_LOCKED(gpc_graphs_lock);

/* Adds an edge between nodes of one graph. data: NULL for a default edge. Returns
 * CUDA_ERROR_INVALID_VALUE if the edge exists already, the nodes are equal or of different graphs,
 * or data is invalid. */
CUresult gpc_edge_add(struct gpc_node *from, struct gpc_node *to, const CUgraphEdgeData *data)
	GP_LOCKED(gpc_graphs_lock);
/* Removes the edge with this data (NULL: a default edge). Returns CUDA_ERROR_INVALID_VALUE if there
 * is no such edge. */
CUresult gpc_edge_remove(struct gpc_node *from, struct gpc_node *to, const CUgraphEdgeData *data)
	GP_LOCKED(gpc_graphs_lock);

/*
 * Returns the graph's nodes in topological order as an array of graph->count elements, which the
 * caller frees; each node's mark is set to its index. Returns CUDA_ERROR_INVALID_VALUE if there is
 * a cycle. On failure *nodes_p is unchanged.
 */
CUresult gpc_graph_sort(const struct gpc_graph *graph, struct gpc_node ***nodes_p)
	GP_LOCKED(gpc_graphs_lock);

/* Element of a flattened graph, from which an execution plan is made (graph_plan.c): a node of the
 * graph or of a child graph, or the end of a child graph. */
struct gpc_flat_node {
	const struct gpc_node *node; /* NULL: an element that does nothing */
	size_t *dependencies; /* indexes of other elements in the list, all lower than its own;
				 owned by the element */
	size_t count, room;
	size_t stage;    /* position in the plan: elements of an even stage are in subgraphs of the
			    daemon, those of an odd stage are executed by the client */
	uint32_t number; /* index in its subgraph */
	bool is_client;
	bool followed; /* another element depends on this one */
	bool written;
};

/* A flattened graph; zeroed, it is empty. gpc_flat_nodes_free() frees its memory. */
struct gpc_flat_nodes {
	struct gpc_flat_node *list;
	size_t count, room;
};

/* Flattens a graph into *flat_nodes, which must be empty. Returns CUDA_ERROR_INVALID_VALUE if the
 * graph has a cycle. The caller calls gpc_flat_nodes_free(), also after a failure. The nodes must
 * not change while the result is used. */
CUresult gpc_flat_nodes_create(struct gpc_flat_nodes *flat_nodes, const struct gpc_graph *graph)
	GP_LOCKED(gpc_graphs_lock);
/* Frees the elements. *flat_nodes must not be used afterwards. */
void gpc_flat_nodes_free(struct gpc_flat_nodes *flat_nodes);

/* Replaces each dependency on an element that does nothing by the dependencies of that element.
 * Returns false if out of memory; the result is then incomplete and must only be freed. */
bool gpc_flat_nodes_skip_idle(struct gpc_flat_nodes *flat_nodes);

#endif /* GPC_GRAPH_H */
