/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of the application and their nodes (CUgraph, CUgraphNode; docs/graphs.md).
 *
 * Ownership: a graph owns its nodes; a child node owns its copy of the child graph. Objects that
 * are looked up stay valid until gpc_graphs_end(); memory of a stale token is never read
 * (client/base/handle.h).
 * Threads: one lock guards all graphs. Every CUDA function about graphs starts with
 * gpc_graphs_begin() and ends with gpc_graphs_end().
 * Errors: an invalid or stale token is CUDA_ERROR_INVALID_VALUE.
 */
#ifndef GPC_GRAPH_H
#define GPC_GRAPH_H

#include "base/lock.h"
#include "client/base/handle.h"
#include "client/graph/node_params.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* An edge from or to another node of the graph. */
struct gpc_edge {
	struct gpc_node *node;
	CUgraphEdgeData data;
};

struct gpc_edges {
	struct gpc_edge *list;
	size_t count, room;
};

/* A graph. */
struct gpc_graph {
	struct gpc_handle handle;
	struct gpc_node *nodes; /* utlist, in the order of addition */
	size_t count;
	struct gpc_node *owner_node; /* child or conditional node that owns the graph, or NULL */
	struct gpc_graph_root *root; /* root of its handles (graph_root.h); or NULL */
	bool hidden;                 /* copy of an executable graph, unknown to the application */
	bool capturing;
	bool has_memory;    /* contains memory allocation or free nodes */
	bool has_updatable; /* contains device-updatable nodes */
	bool single; /* either: nodes cannot be removed, and at most one executable graph exists */
	bool instantiated;                 /* that executable graph exists */
	struct gpc_user_object_ref *users; /* references to user objects (user_object.h) */
};

/* A node of a graph. */
struct gpc_node {
	struct gpc_handle handle;
	struct gpc_graph *graph;
	struct gpc_node *prev, *next;
	struct gpc_edges in, out;
	void *origin; /* token of the node that this one was cloned from */
	struct gpc_node_params params;
	struct gpc_node *copy; /* last clone of the node */
	size_t mark;           /* scratch value of graph traversals */
	bool disabled;         /* in the copy of an executable graph */
};

/* Acquires the lock. Returns CUDA_SUCCESS, or the error that every call returns at present.
 * gpc_graphs_end() must follow in both cases. */
CUresult gpc_graphs_begin(void) GP_LOCKS(gpc_graphs_lock);
/* Releases the lock and runs destructors of user objects that have ended. Returns `result`. */
CUresult gpc_graphs_end(CUresult result) GP_UNLOCKS(gpc_graphs_lock);
/* gpc_graphs_begin() followed by a lookup. */
CUresult gpc_graphs_begin_graph(CUgraph token, struct gpc_graph **graph_p)
	GP_LOCKS(gpc_graphs_lock);
CUresult gpc_graphs_begin_node(CUgraphNode token, struct gpc_node **node_p)
	GP_LOCKS(gpc_graphs_lock);

/* Look up a graph or node of the application. Return CUDA_ERROR_INVALID_VALUE if there is none. */
CUresult gpc_graph_lookup(CUgraph token, struct gpc_graph **graph_p) GP_LOCKED(gpc_graphs_lock);
CUresult gpc_node_lookup(CUgraphNode token, struct gpc_node **node_p) GP_LOCKED(gpc_graphs_lock);

/* Creates an empty graph. Returns NULL if memory is exhausted. */
struct gpc_graph *gpc_graph_create(void) GP_LOCKED(gpc_graphs_lock);
/* Returns whether the application may clone the graph or use it as a child: CUDA does not allow
 * that for graphs with memory nodes, conditional nodes or device-updatable nodes. */
bool gpc_graph_may_be_copied(const struct gpc_graph *graph) GP_LOCKED(gpc_graphs_lock);
/* Destroys the graph with its nodes and everything that they own. */
void gpc_graph_destroy(struct gpc_graph *graph) GP_LOCKED(gpc_graphs_lock);
/* Clones a graph with its nodes and inner graphs. Sets the `copy` of each node to its clone. */
CUresult gpc_graph_clone(struct gpc_graph *graph, struct gpc_graph **clone_p)
	GP_LOCKED(gpc_graphs_lock);
/* Returns the node of the clone that was cloned from `origin`, not searching inner graphs; or
 * NULL. */
struct gpc_node *gpc_graph_find_clone(const struct gpc_graph *clone, const struct gpc_node *origin)
	GP_LOCKED(gpc_graphs_lock);

/* Adds a node with these parameters and takes ownership of them; on failure they are freed. Returns
 * CUDA_ERROR_INVALID_VALUE if a dependency is not in the graph or is repeated. */
CUresult gpc_graph_add(struct gpc_graph *graph, const CUgraphNode *dependencies,
		       const CUgraphEdgeData *data, size_t count, struct gpc_node_params *params,
		       struct gpc_node **node_p) GP_LOCKED(gpc_graphs_lock);
void gpc_node_destroy(struct gpc_node *node) GP_LOCKED(gpc_graphs_lock);

/* Adds an edge between nodes of one graph. Returns CUDA_ERROR_INVALID_VALUE if it exists already or
 * data is invalid; data may be NULL for a default edge. */
CUresult gpc_edge_add(struct gpc_node *from, struct gpc_node *to, const CUgraphEdgeData *data)
	GP_LOCKED(gpc_graphs_lock);
/* Returns CUDA_ERROR_INVALID_VALUE if there is no such edge. */
CUresult gpc_edge_remove(struct gpc_node *from, struct gpc_node *to, const CUgraphEdgeData *data)
	GP_LOCKED(gpc_graphs_lock);

/*
 * Returns the graph's nodes in topological order as a malloc'ed array, which the caller frees; each
 * node's mark is set to its index. Returns CUDA_ERROR_INVALID_VALUE if there is a cycle.
 */
CUresult gpc_graph_sort(const struct gpc_graph *graph, struct gpc_node ***nodes_p)
	GP_LOCKED(gpc_graphs_lock);

/* Element of a flattened graph, from which a plan is made (graph_plan.c): a node of the graph or of
 * a child graph, or the end of a child graph. */
struct gpc_flat_node {
	const struct gpc_node *node; /* NULL: does nothing */
	size_t *dependencies;        /* indexes in the list, all lower than its own */
	size_t count, room;
	size_t stage;    /* even: in the daemon's subgraphs; odd: executed by the client */
	uint32_t number; /* index in its subgraph */
	bool is_client;
	bool followed; /* another element depends on it */
	bool written;
};

/* A flattened graph; zeroed, it is empty. */
struct gpc_flat_nodes {
	struct gpc_flat_node *list;
	size_t count, room;
};

/* Flattens a graph. Returns CUDA_ERROR_INVALID_VALUE if it has a cycle. The result must be freed
 * even on failure. */
CUresult gpc_flat_nodes_create(struct gpc_flat_nodes *flat_nodes, const struct gpc_graph *graph)
	GP_LOCKED(gpc_graphs_lock);
void gpc_flat_nodes_free(struct gpc_flat_nodes *flat_nodes);

/* Replaces dependencies on elements that do nothing by the dependencies of those. Returns false if
 * memory is exhausted. */
bool gpc_flat_nodes_skip_idle(struct gpc_flat_nodes *flat_nodes);

#endif /* GPC_GRAPH_H */
