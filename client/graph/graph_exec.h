/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executable graphs (CUgraphExec): a private copy of a graph and its execution steps (node_set.h).
 *
 * Changes of nodes are sent to the daemon with the next launch. While a thread sends or launches an
 * executable graph, it is in use: it cannot be changed, and its destruction is deferred until the
 * use ends.
 * Threads: any. Sending and launching happen without gpc_graphs_lock.
 * Errors: CUDA_ERROR_INVALID_VALUE for an invalid token.
 */
#ifndef GPC_GRAPH_EXEC_H
#define GPC_GRAPH_EXEC_H

#include "client/graph/graph.h"

struct gpc_exec;

/* Call gpc_graphs_begin() and look up the executable graph. gpc_exec_begin_change() returns
 * CUDA_ERROR_ILLEGAL_STATE if it is in use. */
CUresult gpc_exec_begin(CUgraphExec token, struct gpc_exec **exec_p) GP_LOCKS(gpc_graphs_lock);
CUresult gpc_exec_begin_change(CUgraphExec token, struct gpc_exec **exec_p)
	GP_LOCKS(gpc_graphs_lock);
/* Like gpc_exec_begin_change(), and looks up the copy of a node of the original graph. */
CUresult gpc_exec_begin_node(CUgraphExec token, CUgraphNode node, struct gpc_exec **exec_p,
			     struct gpc_node **copy_p) GP_LOCKS(gpc_graphs_lock);

/* Return the private copy of the graph and the instantiation flags. */
struct gpc_graph *gpc_exec_graph(struct gpc_exec *exec) GP_LOCKED(gpc_graphs_lock);
cuuint64_t gpc_exec_flags(const struct gpc_exec *exec) GP_LOCKED(gpc_graphs_lock);
/* Marks the copy as changed. */
void gpc_exec_changed(struct gpc_exec *exec) GP_LOCKED(gpc_graphs_lock);

#endif /* GPC_GRAPH_EXEC_H */
