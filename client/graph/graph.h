/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of the application and their nodes (docs/graphs.md).
 *
 * A graph owns its nodes, a child node the copy of the graph that it was given.  One lock is over
 * all of them: every CUDA function about graphs begins with gpc_graphs_begin() and ends with
 * gpc_graphs_end().  What these look up stays until then; memory behind a stale token is never
 * read (client/base/handle.h).  A wrong or stale one is CUDA_ERROR_INVALID_VALUE.
 */
#ifndef GPC_GRAPH_H
#define GPC_GRAPH_H

#include "base/lock.h"
#include "client/base/handle.h"
#include "client/graph/node_params.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

struct gpc_node;

/* From or to another node of the graph. */
struct gpc_edge {
	struct gpc_node *node;
	CUgraphEdgeData data;
};

struct gpc_edges {
	struct gpc_edge *list;
	size_t count, room;
};

struct gpc_graph {
	struct gpc_handle handle;
	struct gpc_node *nodes; /* utlist, in the order in which they were added */
	size_t count;
	struct gpc_node
		*owner_node; /* the child node whose copy it is, or the condition whose body */
	struct gpc_graph_root *root; /* of handles that were made for it; or NULL */
	bool hidden;                 /* an executable's copy: the application has no name for it */
	bool capturing;
	bool has_memory;    /* nodes that allocate or free */
	bool has_updatable; /* nodes that kernels change */
	bool single;        /* either: it loses none, and is copied by one executable at a
			     * time */
	bool instantiated;  /* there is that one */
	struct gpc_user_object_ref *users; /* what lives at least as long (user_object.h) */
};

struct gpc_node {
	struct gpc_handle handle;
	struct gpc_graph *graph;
	struct gpc_node *prev, *next;
	struct gpc_edges in, out;
	void *origin; /* token of the node that it was cloned from */
	struct gpc_node_params params;
	struct gpc_node *copy; /* while its graph is cloned */
	size_t mark;           /* of who walks the graph */
	bool disabled;         /* of an executable's copy */
};

/* CUDA_SUCCESS, or what every call answers now.  gpc_graphs_end() follows in any case. */
CUresult gpc_graphs_begin(void) GP_LOCKS(gpc_graphs_lock);
/* Returns result. */
CUresult gpc_graphs_end(CUresult result) GP_UNLOCKS(gpc_graphs_lock);
/* gpc_graphs_begin() and a look-up. */
CUresult gpc_graphs_begin_graph(CUgraph token, struct gpc_graph **graph_p)
	GP_LOCKS(gpc_graphs_lock);
CUresult gpc_graphs_begin_node(CUgraphNode token, struct gpc_node **node_p)
	GP_LOCKS(gpc_graphs_lock);

CUresult gpc_graph_lookup(CUgraph token, struct gpc_graph **graph_p) GP_LOCKED(gpc_graphs_lock);
CUresult gpc_node_lookup(CUgraphNode token, struct gpc_node **node_p) GP_LOCKED(gpc_graphs_lock);

/* An empty graph; NULL: out of memory. */
struct gpc_graph *gpc_graph_create(void) GP_LOCKED(gpc_graphs_lock);
/* Whether the application may clone it, or have it as a child: CUDA says no where nodes allocate or
 * free memory, are conditions, or are changed by kernels. */
bool gpc_graph_may_be_copied(const struct gpc_graph *graph) GP_LOCKED(gpc_graphs_lock);
/* With its nodes, and what they own. */
void gpc_graph_destroy(struct gpc_graph *graph) GP_LOCKED(gpc_graphs_lock);
CUresult gpc_graph_clone(struct gpc_graph *graph, struct gpc_graph **clone_p)
	GP_LOCKED(gpc_graphs_lock);
/* The node of the clone that was cloned from the other one, at any depth of neither; or NULL. */
struct gpc_node *gpc_graph_find_clone(const struct gpc_graph *clone, const struct gpc_node *origin)
	GP_LOCKED(gpc_graphs_lock);

/* Gives the graph a node of these parameters, which it takes over, or frees where it fails.
 * CUDA_ERROR_INVALID_VALUE: dependencies that are not of the graph, or twice the same. */
CUresult gpc_graph_add(struct gpc_graph *graph, const CUgraphNode *dependencies,
		       const CUgraphEdgeData *data, size_t count, struct gpc_node_params *params,
		       struct gpc_node **node_p) GP_LOCKED(gpc_graphs_lock);
void gpc_node_destroy(struct gpc_node *node) GP_LOCKED(gpc_graphs_lock);

CUresult gpc_edge_add(struct gpc_node *from, struct gpc_node *to, const CUgraphEdgeData *data)
	GP_LOCKED(gpc_graphs_lock);
/* CUDA_ERROR_INVALID_VALUE: there is no such edge. */
CUresult gpc_edge_remove(struct gpc_node *from, struct gpc_node *to, const CUgraphEdgeData *data)
	GP_LOCKED(gpc_graphs_lock);

/*
 * The graph's nodes, each behind those that it depends on, as malloc'ed array; every node's mark
 * is its place there.  CUDA_ERROR_INVALID_VALUE: there is a cycle.
 */
CUresult gpc_graph_sort(const struct gpc_graph *graph, struct gpc_node ***nodes_p)
	GP_LOCKED(gpc_graphs_lock);

/* A node of the graph or of a child of it, or what ends a child, in the list of who makes a plan of
 * the graph (plan.c). */
struct gpc_flat_node {
	const struct gpc_node *node; /* NULL: it does nothing */
	size_t *dependencies;        /* places in the list, all before this one */
	size_t count, room;
	size_t stage;    /* even: of the daemon's sets; odd: of the client's nodes */
	uint32_t number; /* in its set */
	bool is_client;
	bool followed; /* something depends on it */
	bool written;
};

/* Zeroed it is empty. */
struct gpc_flat_nodes {
	struct gpc_flat_node *list;
	size_t count, room;
};

/* CUDA_ERROR_INVALID_VALUE: the graph has a cycle.  To be freed in any case. */
CUresult gpc_flat_nodes_create(struct gpc_flat_nodes *flat_nodes, const struct gpc_graph *graph)
	GP_LOCKED(gpc_graphs_lock);
void gpc_flat_nodes_free(struct gpc_flat_nodes *flat_nodes);

/* What depends on a node that does nothing depends on what that depends on.  false: no memory. */
bool gpc_flat_nodes_skip_idle(struct gpc_flat_nodes *flat_nodes);

#endif /* GPC_GRAPH_H */
