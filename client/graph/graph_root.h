/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditional nodes (IF, WHILE, SWITCH) and their handles, whose values kernels set.
 *
 * A conditional node owns graphs, its bodies, which it runs depending on a handle. A handle is the
 * driver's own value, as device code uses it. It belongs to a root: a graph of the daemon's driver
 * that is created when the application graph's first handle, or first device-updatable node, is
 * requested (docs/graphs.md).
 * Ownership: roots are reference-counted; a condition owns its bodies and a reference to its root.
 * Threads: all functions are called with gpc_graphs_lock held.
 */
#ifndef GPC_GRAPH_ROOT_H
#define GPC_GRAPH_ROOT_H

#include "base/lock.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gp_graph_writer;
struct gpc_context;
struct gpc_graph;
struct gpc_graph_root;

/* Guards all graph objects (graph.h). */
extern pthread_mutex_t gpc_graphs_lock;

/* Parameters of a conditional node. */
struct gpc_condition {
	CUgraphConditionalHandle handle;
	CUgraphConditionalNodeType type;
	unsigned int size;
	struct gpc_graph **bodies;
	CUgraph *body_tokens; /* tokens of the bodies, for the application */
	struct gpc_graph_root
		*root;    /* root of the handle: a reference, or NULL until it is known */
	bool owns_handle; /* holds the handle until it is freed; copies do not */
};

/* Adds a reference to the root and returns it. Accepts NULL. */
struct gpc_graph_root *gpc_graph_root_ref(struct gpc_graph_root *root) GP_LOCKED(gpc_graphs_lock);
/* Accepts NULL. */
void gpc_graph_root_unref(struct gpc_graph_root *root) GP_LOCKED(gpc_graphs_lock);

/* Returns the root's wire ID. */
uint32_t gpc_graph_root_id(const struct gpc_graph_root *root);

/* Returns the root of the outermost graph around this one, which owns it, and creates it if
 * necessary. Returns CUDA_ERROR_INVALID_VALUE if it belongs to another context. */
CUresult gpc_graph_get_root(struct gpc_graph *graph, struct gpc_context *context,
			    struct gpc_graph_root **root_p) GP_LOCKED(gpc_graphs_lock);
/* Returns whether each handle of the root is used by a node; otherwise the driver rejects the
 * instantiation. */
bool gpc_graph_root_all_bound(const struct gpc_graph_root *root) GP_LOCKED(gpc_graphs_lock);
/* Creates a device-updatable kernel node on the daemon from a plan of this node. *name_p is set to
 * its device handle. */
CUresult gpc_graph_root_create_node(const struct gpc_graph_root *root,
				    const struct gp_graph_writer *plan, uint64_t *name_p)
	GP_LOCKED(gpc_graphs_lock);

/* Parses the application's parameters and creates empty bodies. Nothing needs to be freed on
 * failure. */
CUresult gpc_condition_parse(const CUDA_CONDITIONAL_NODE_PARAMS *given,
			     struct gpc_condition *condition) GP_LOCKED(gpc_graphs_lock);
/* Binds a condition whose node is added to the graph to its handle. The handle must belong to the
 * graph, or to one that contains the graph as a body, and must be unused; otherwise returns
 * CUDA_ERROR_INVALID_VALUE. */
CUresult gpc_condition_bind(const struct gpc_graph *graph, struct gpc_condition *condition)
	GP_LOCKED(gpc_graphs_lock);
/* Copies a condition with its bodies; the copy shares the handle. */
CUresult gpc_condition_dup(const struct gpc_condition *condition, struct gpc_condition *copy)
	GP_LOCKED(gpc_graphs_lock);
/* Replaces the handle by that of *now. */
void gpc_condition_rebind(struct gpc_condition *condition, const struct gpc_condition *now)
	GP_LOCKED(gpc_graphs_lock);
void gpc_condition_free(struct gpc_condition *condition) GP_LOCKED(gpc_graphs_lock);

/* Returns whether a graph may contain such a node: bodies may contain only nodes that run on the
 * device alone. */
bool gpc_condition_allows(const struct gpc_graph *graph, CUgraphNodeType type)
	GP_LOCKED(gpc_graphs_lock);

#endif /* GPC_GRAPH_ROOT_H */
