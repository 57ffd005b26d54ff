/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executable graphs: a copy of a graph, and what it is run as (sets.h).  A change of a node is sent
 * with the next launch.  One that a thread sends or launches is in use until that returns: it
 * cannot be changed meanwhile, and ends behind it.  Neither is done under gpc_graphs_lock.
 */
#ifndef GPC_EXEC_H
#define GPC_EXEC_H

#include "client/graph/graph.h"

struct gpc_exec;

/* gpc_graphs_begin() and a look-up.  To change one: CUDA_ERROR_ILLEGAL_STATE: it is in use. */
CUresult gpc_exec_begin(CUgraphExec token, struct gpc_exec **exec_p) GP_LOCKS(gpc_graphs_lock);
CUresult gpc_exec_begin_change(CUgraphExec token, struct gpc_exec **exec_p)
	GP_LOCKS(gpc_graphs_lock);
/* The same, and the copy of a node that the application names by the graph's own. */
CUresult gpc_exec_begin_node(CUgraphExec token, CUgraphNode node, struct gpc_exec **exec_p,
			     struct gpc_node **copy_p) GP_LOCKS(gpc_graphs_lock);

struct gpc_graph *gpc_exec_graph(struct gpc_exec *exec) GP_LOCKED(gpc_graphs_lock);
cuuint64_t gpc_exec_flags(const struct gpc_exec *exec) GP_LOCKED(gpc_graphs_lock);
/* Something of the copy has changed. */
void gpc_exec_changed(struct gpc_exec *exec) GP_LOCKED(gpc_graphs_lock);

#endif /* GPC_EXEC_H */
