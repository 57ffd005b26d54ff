/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nodes that run graphs of their own if, while, or as often as a handle says that kernels set, and
 * the handles.  A handle is the driver's own value, as device code has it: it belongs to a graph
 * that the daemon makes when the first one is asked for (docs/graphs.md).
 */
#ifndef GPC_CONDITION_H
#define GPC_CONDITION_H

#include "base/lock.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gp_graph_writer;
struct gpc_context;
struct gpc_graph;
struct gpc_graph_root;
struct gpc_node_params;

/* Over all of this room (graph.h). */
extern pthread_mutex_t gpc_graphs_lock;

struct gpc_condition {
	CUgraphConditionalHandle handle;
	CUgraphConditionalNodeType type;
	unsigned int size;
	struct gpc_graph **bodies;
	CUgraph *body_tokens; /* their tokens, for the application */
	struct gpc_graph_root
		*root;    /* whose handle it is: a reference, or NULL until it is known */
	bool owns_handle; /* the handle, until it is freed: copies do not */
};

struct gpc_graph_root *gpc_graph_root_ref(struct gpc_graph_root *root) GP_LOCKED(gpc_graphs_lock);
/* NULL is allowed. */
void gpc_graph_root_unref(struct gpc_graph_root *root) GP_LOCKED(gpc_graphs_lock);

/* What the daemon calls it. */
uint32_t gpc_graph_root_id(const struct gpc_graph_root *root);

/* The one of the graph that is around all others: made with the first thing that needs one.  It
 * stays the graph's.  CUDA_ERROR_INVALID_VALUE: that is of another context. */
CUresult gpc_graph_get_root(struct gpc_graph *graph, struct gpc_context *context,
			    struct gpc_graph_root **root_p) GP_LOCKED(gpc_graphs_lock);
/* Whether each of its handles is a node's: else the driver instantiates nothing. */
bool gpc_graph_root_all_bound(const struct gpc_graph_root *root) GP_LOCKED(gpc_graphs_lock);
/* Asks the daemon for a node that kernels change: plan is the one of it.  name_p: what they call
 * it. */
CUresult gpc_graph_root_create_node(const struct gpc_graph_root *root,
				    const struct gp_graph_writer *plan, uint64_t *name_p)
	GP_LOCKED(gpc_graphs_lock);

/* What the application gives, with empty bodies; frees nothing that is left where it fails. */
CUresult gpc_condition_parse(const CUDA_CONDITIONAL_NODE_PARAMS *given,
			     struct gpc_condition *condition) GP_LOCKED(gpc_graphs_lock);
/* Of a node that comes into the graph: its handle is one of the graph's, or of the one that the
 * graph is a body in, and no other node has it.  Else CUDA_ERROR_INVALID_VALUE. */
CUresult gpc_condition_bind(const struct gpc_graph *graph, struct gpc_condition *condition)
	GP_LOCKED(gpc_graphs_lock);
CUresult gpc_condition_dup(const struct gpc_condition *condition, struct gpc_condition *copy)
	GP_LOCKED(gpc_graphs_lock);
/* Another handle. */
void gpc_condition_rebind(struct gpc_condition *condition, const struct gpc_condition *now)
	GP_LOCKED(gpc_graphs_lock);
void gpc_condition_free(struct gpc_condition *condition) GP_LOCKED(gpc_graphs_lock);

/* Whether a graph may have such a node: in bodies there is only what the device runs alone. */
bool gpc_condition_allows(const struct gpc_graph *graph, CUgraphNodeType type)
	GP_LOCKED(gpc_graphs_lock);

#endif /* GPC_CONDITION_H */
