/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executable graphs (CUgraphExec): a private copy of a graph, and the steps by which it is executed
 * (node_set.h).
 *
 * Changes of nodes are sent to the daemon with the next launch. While a thread sends or launches an
 * executable graph, it is in use: it cannot be changed, and its destruction is deferred until the
 * use ends.
 *
 * Ownership: an executable graph owns its copy and its steps. Returned pointers are valid until
 * gpc_graphs_end().
 * Threads: any. Sending to the daemon and launching happen without gpc_graphs_lock.
 * Errors: CUDA_ERROR_INVALID_VALUE for an invalid token, or the errors of gpc_graphs_begin();
 * *exec_p and *copy_p are then undefined.
 */
#ifndef GPC_GRAPH_EXEC_H
#define GPC_GRAPH_EXEC_H

#include "client/graph/graph.h"

struct gpc_exec;

/* Call gpc_graphs_begin() and look up the executable graph. gpc_graphs_end() must follow, also
 * after an error. gpc_exec_begin_change() returns CUDA_ERROR_ILLEGAL_STATE if the executable graph
 * is in use. */
CUresult gpc_exec_begin(CUgraphExec token, struct gpc_exec **exec_p) GP_LOCKS(gpc_graphs_lock);
CUresult gpc_exec_begin_change(CUgraphExec token, struct gpc_exec **exec_p)
	GP_LOCKS(gpc_graphs_lock);
/* Calls gpc_exec_begin_change(), and looks up the executable graph's copy of a node of the original
 * graph. Returns CUDA_ERROR_INVALID_VALUE if there is none. gpc_graphs_end() must follow. */
CUresult gpc_exec_begin_node(CUgraphExec token, CUgraphNode node, struct gpc_exec **exec_p,
			     struct gpc_node **copy_p) GP_LOCKS(gpc_graphs_lock);

/* Return the private copy of the graph, which stays owned by the executable graph, and the flags of
 * cuGraphInstantiateWithFlags(). */
struct gpc_graph *gpc_exec_graph(struct gpc_exec *exec) GP_LOCKED(gpc_graphs_lock);
cuuint64_t gpc_exec_flags(const struct gpc_exec *exec) GP_LOCKED(gpc_graphs_lock);
/* Marks the private copy as changed, so that the next launch sends it to the daemon. */
void gpc_exec_changed(struct gpc_exec *exec) GP_LOCKED(gpc_graphs_lock);

#endif /* GPC_GRAPH_EXEC_H */
