/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executable graphs (CUgraphExec): a private copy of a graph, and the steps by which it is executed
 * (exec_steps.h). This header is for graph_exec_update.c, which changes the copy; graph_exec.c
 * instantiates and launches.
 *
 * While a thread sends an executable graph to the daemon or launches it, the executable graph is in
 * use: it cannot be changed, and its destruction is deferred until the use ends. Other threads may
 * launch it meanwhile.
 *
 * Ownership: an executable graph owns its copy and its steps. Returned pointers are borrowed and
 * valid until gpc_graphs_end().
 * Threads: any thread; gpc_graphs_lock guards executable graphs.
 * Errors: CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE for an invalid handle, the errors of
 * gpc_graphs_begin() (graph.h), or the errors stated with the function. *exec_p and *copy_p are
 * undefined after an error.
 */
#ifndef GPC_GRAPH_EXEC_H
#define GPC_GRAPH_EXEC_H

#include "client/graph/graph.h"

struct gpc_exec;

/* Calls gpc_graphs_begin() and looks up the executable graph of a handle. gpc_graphs_end() must
 * follow, also after an error. */
CUresult gpc_exec_begin(CUgraphExec token, struct gpc_exec **exec_p) GP_LOCKS(gpc_graphs_lock);
/* Calls gpc_exec_begin(), for a change of the executable graph. Returns CUDA_ERROR_ILLEGAL_STATE if
 * it is in use. gpc_graphs_end() must follow, also after an error. */
CUresult gpc_exec_begin_change(CUgraphExec token, struct gpc_exec **exec_p)
	GP_LOCKS(gpc_graphs_lock);
/* Calls gpc_exec_begin_change(), and looks up the copy of node_token, a node of the original graph,
 * in the executable graph and its inner graphs. Returns CUDA_ERROR_INVALID_VALUE if node_token is
 * invalid or has no copy there. gpc_graphs_end() must follow, also after an error. */
CUresult gpc_exec_begin_node(CUgraphExec token, CUgraphNode node_token, struct gpc_exec **exec_p,
			     struct gpc_node **copy_p) GP_LOCKS(gpc_graphs_lock);

/* Returns the private copy of the graph, which the executable graph owns. */
struct gpc_graph *gpc_exec_graph(struct gpc_exec *exec) GP_LOCKED(gpc_graphs_lock);
/* Returns the flags with which the executable graph was instantiated
 * (CUDA_GRAPH_INSTANTIATE_FLAG_*). */
cuuint64_t gpc_exec_flags(const struct gpc_exec *exec) GP_LOCKED(gpc_graphs_lock);
/* Called after the private copy was changed: the next launch or upload sends it to the daemon. */
void gpc_exec_changed(struct gpc_exec *exec) GP_LOCKED(gpc_graphs_lock);

#endif /* GPC_GRAPH_EXEC_H */
