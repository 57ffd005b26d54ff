/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditional nodes (IF, WHILE, SWITCH) with their handles, and the roots to which handles belong.
 *
 * A conditional node owns graphs, its bodies. The value of its handle, which kernels set, decides
 * which of them run. A handle is the driver's own number, as device code uses it.
 *
 * A root is a graph of the daemon's driver, in which the handles and device-updatable nodes of one
 * outermost graph of the application exist. It is created when the first of them is requested
 * (docs/graphs.md).
 *
 * Ownership: roots are reference-counted; an outermost graph, each condition and each
 * device-updatable node own a reference to their root. A condition also owns its bodies.
 * Threads: functions with GP_LOCKED are called with gpc_graphs_lock held. It stays held while a
 * function waits for the daemon.
 * Errors: functions that return a CUresult return CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY, the
 * errors of calls to the daemon, or the errors stated with the function.
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

/* Guards all graph objects: graphs, nodes, executable graphs, captures and user objects. */
extern pthread_mutex_t gpc_graphs_lock;

/* Parameters of a conditional node. */
struct gpc_condition {
	CUgraphConditionalHandle handle;
	CUgraphConditionalNodeType type;
	unsigned int size;
	/* `size` graphs (number of bodies: 1 or 2 for IF, 1 for WHILE, at least 1 for SWITCH),
	 * owned by the condition, as the array is */
	struct gpc_graph **bodies;
	/* tokens of the bodies, an array for the application (phGraph_out) that is valid as long as
	 * the condition */
	CUgraph *body_tokens;
	/* root of the handle, a reference; NULL: the condition is not bound to its handle yet */
	struct gpc_graph_root *root;
	/* this condition has marked the handle as used, until it is freed; false for an unbound
	 * condition and for copies */
	bool owns_handle;
};

/* Adds a reference to the root and returns it. Accepts NULL. */
struct gpc_graph_root *gpc_graph_root_ref(struct gpc_graph_root *root) GP_LOCKED(gpc_graphs_lock);
/* Releases a reference. The last one frees the root, and posts the destruction of the daemon's
 * root. Does not wait. Accepts NULL. */
void gpc_graph_root_unref(struct gpc_graph_root *root) GP_LOCKED(gpc_graphs_lock);

/* Returns the root's ID in messages to the daemon (gpGraphRoot and others). */
uint32_t gpc_graph_root_id(const struct gpc_graph_root *root);

/* Finds the root of the outermost graph that contains this graph, and creates it in `context`,
 * which must be active, if there is none. Posts; does not wait. On success *root_p is borrowed from
 * that graph. Returns CUDA_ERROR_INVALID_VALUE if the root belongs to another context. After an
 * error *root_p must not be used. */
CUresult gpc_graph_get_root(struct gpc_graph *graph, struct gpc_context *context,
			    struct gpc_graph_root **root_p) GP_LOCKED(gpc_graphs_lock);
/* Returns whether each handle of the root is used by a conditional node. If not,
 * cuGraphInstantiate() must fail, because the driver rejects such a graph. */
bool gpc_graph_root_all_bound(const struct gpc_graph_root *root) GP_LOCKED(gpc_graphs_lock);
/* Makes a kernel node device-updatable: the daemon creates it in the root. Blocks until the daemon
 * replies. plan: encoding of this node alone, made by gpc_plan_write_kernel() (graph_plan.h), which
 * stays the caller's. Sets *name_p to the device handle of the node, which kernels use to change
 * it, or to 0 on failure. The node lasts as long as the root. */
CUresult gpc_graph_root_create_node(const struct gpc_graph_root *root,
				    const struct gp_graph_writer *plan, uint64_t *name_p)
	GP_LOCKED(gpc_graphs_lock);

/* Creates a condition with empty bodies from the application's parameters. The handle is not
 * checked and the condition is not bound; gpc_condition_bind() does both. On success the caller
 * calls gpc_condition_free(); on failure nothing needs to be freed. Returns
 * CUDA_ERROR_INVALID_VALUE for an invalid type or number of bodies. */
CUresult gpc_condition_parse(const CUDA_CONDITIONAL_NODE_PARAMS *given,
			     struct gpc_condition *condition) GP_LOCKED(gpc_graphs_lock);
/* Binds a condition to its handle, and marks the handle as used. Called when its node is added to
 * the graph. Has no effect on a bound condition, which is a copy. Returns CUDA_ERROR_INVALID_VALUE,
 * and the condition stays unbound, if the handle is used by another node or belongs neither to the
 * graph nor to a graph that contains it. */
CUresult gpc_condition_bind(const struct gpc_graph *graph, struct gpc_condition *condition)
	GP_LOCKED(gpc_graphs_lock);
/* Copies a condition with its bodies; the copy shares the handle and the root. On success the
 * caller calls gpc_condition_free() for the copy; on failure nothing needs to be freed, and *copy
 * must not be used. */
CUresult gpc_condition_dup(const struct gpc_condition *condition, struct gpc_condition *copy)
	GP_LOCKED(gpc_graphs_lock);
/* Replaces the handle and the root of a copied condition (owns_handle is false) by those of *now,
 * which is unchanged. The bodies are unchanged. Called when an executable graph is updated. */
void gpc_condition_rebind(struct gpc_condition *condition, const struct gpc_condition *now)
	GP_LOCKED(gpc_graphs_lock);
/* Destroys the bodies, marks the handle as unused if the condition owns it, and releases the root.
 * The struct itself is the caller's. */
void gpc_condition_free(struct gpc_condition *condition) GP_LOCKED(gpc_graphs_lock);

/* Returns whether a graph may contain a node of this type. A conditional body, and every graph
 * inside one, may contain only kernels, copies, memsets, empty nodes, child graphs and conditional
 * nodes. */
bool gpc_condition_allows(const struct gpc_graph *graph, CUgraphNodeType type)
	GP_LOCKED(gpc_graphs_lock);

#endif /* GPC_GRAPH_ROOT_H */
