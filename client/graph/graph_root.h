/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditional nodes (IF, WHILE, SWITCH) and their handles, whose values kernels set.
 *
 * A conditional node owns graphs, its bodies, which it runs depending on a handle. A handle is the
 * driver's own value, as device code uses it. It belongs to a root: a graph of the daemon's driver
 * that is created when the application graph's first handle, or first device-updatable node, is
 * requested (docs/graphs.md).
 *
 * Ownership: roots are reference-counted; a graph and each condition own a reference to their root.
 * A condition also owns its bodies.
 * Threads: functions with GP_LOCKED are called with gpc_graphs_lock held.
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
	struct gpc_graph **bodies;
	CUgraph *body_tokens; /* tokens of the bodies, an array for the application */
	struct gpc_graph_root
		*root; /* root of the handle, a reference; NULL: the condition is not bound yet */
	bool owns_handle; /* marks the handle as used until the condition is freed; false for copies
			   */
};

/* Adds a reference to the root and returns it. Accepts NULL. */
struct gpc_graph_root *gpc_graph_root_ref(struct gpc_graph_root *root) GP_LOCKED(gpc_graphs_lock);
/* Releases a reference. The last one destroys the daemon's root. Accepts NULL. */
void gpc_graph_root_unref(struct gpc_graph_root *root) GP_LOCKED(gpc_graphs_lock);

/* Returns the root's ID in messages to the daemon. */
uint32_t gpc_graph_root_id(const struct gpc_graph_root *root);

/* Finds the root of the outermost graph that contains this graph, and creates it if necessary. On
 * success *root_p is borrowed from that graph. Returns CUDA_ERROR_INVALID_VALUE if the root belongs
 * to another context; *root_p must then not be used. */
CUresult gpc_graph_get_root(struct gpc_graph *graph, struct gpc_context *context,
			    struct gpc_graph_root **root_p) GP_LOCKED(gpc_graphs_lock);
/* Returns whether each handle of the root is used by a node. If not, the driver rejects the
 * instantiation. */
bool gpc_graph_root_all_bound(const struct gpc_graph_root *root) GP_LOCKED(gpc_graphs_lock);
/* Creates a device-updatable kernel node in the daemon, and waits for the reply. plan: encoding of
 * this node only (gpc_plan_write_kernel()). Sets *name_p to the node's device handle, or to 0 on
 * failure. */
CUresult gpc_graph_root_create_node(const struct gpc_graph_root *root,
				    const struct gp_graph_writer *plan, uint64_t *name_p)
	GP_LOCKED(gpc_graphs_lock);

/* Parses the application's parameters and creates empty bodies. The condition is not bound. On
 * success the caller calls gpc_condition_free(); on failure nothing needs to be freed. Returns
 * CUDA_ERROR_INVALID_VALUE for an invalid type or number of bodies. */
CUresult gpc_condition_parse(const CUDA_CONDITIONAL_NODE_PARAMS *given,
			     struct gpc_condition *condition) GP_LOCKED(gpc_graphs_lock);
/* Binds a condition, whose node is being added to the graph, to its handle. Has no effect on a
 * bound one. The handle must belong to the graph, or to one that contains the graph as a body, and
 * must be unused; otherwise returns CUDA_ERROR_INVALID_VALUE, and the condition stays unbound. */
CUresult gpc_condition_bind(const struct gpc_graph *graph, struct gpc_condition *condition)
	GP_LOCKED(gpc_graphs_lock);
/* Copies a condition with its bodies; the copy shares the handle. On success the caller frees the
 * copy; on failure nothing needs to be freed. */
CUresult gpc_condition_dup(const struct gpc_condition *condition, struct gpc_condition *copy)
	GP_LOCKED(gpc_graphs_lock);
/* Replaces handle and root by those of *now, which stays the caller's. The bodies are unchanged. */
void gpc_condition_rebind(struct gpc_condition *condition, const struct gpc_condition *now)
	GP_LOCKED(gpc_graphs_lock);
/* Destroys the bodies, marks the handle as unused if the condition owns it, and releases the root.
 */
void gpc_condition_free(struct gpc_condition *condition) GP_LOCKED(gpc_graphs_lock);

/* Returns whether a graph may contain a node of this type: a graph that is a body, or is inside
 * one, may contain only nodes that run on the device alone. */
bool gpc_condition_allows(const struct gpc_graph *graph, CUgraphNodeType type)
	GP_LOCKED(gpc_graphs_lock);

#endif /* GPC_GRAPH_ROOT_H */
