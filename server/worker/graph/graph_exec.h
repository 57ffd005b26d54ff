/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver graphs that a session launches: kernels, memsets and copies within device memory, as sent
 * by the client (protocol/graph_plan.h). The client's plan is stored with the graph, because the
 * driver's graph is rebuilt when the session's multiprocessors or a kernel's image have changed
 * since it was built.
 *
 * Graph roots (graph_root.h) are driver graphs that own conditional handles and device-updatable
 * nodes.
 *
 * Ownership: graphs belong to the session, through its handle table.
 * Threads: executor only.
 */
#ifndef GPD_GRAPH_EXEC_H
#define GPD_GRAPH_EXEC_H

#include <stdatomic.h>
#include <stdbool.h>

struct gpd_context;
struct gpd_session;

/*
 * The part of a session's state that its graphs use.
 * Threads: the executor; rooted_leaving is also decremented by the responder.
 */
struct gpd_graph_session {
	/* Number of graphs of roots that were dropped and may still run. */
	_Atomic unsigned int rooted_leaving;
	bool launched_print; /* kernels may launch graphs whose kernels print */
};

/* Destroys the graphs and graph roots of a context that is being destroyed; driver graphs that
 * still run are destroyed after their launches. */
void gpd_graph_destroy_context(struct gpd_session *session, const struct gpd_context *context);
/* Destroys all graphs and graph roots of the session, which must have no work left. */
void gpd_graph_destroy_all(struct gpd_session *session);

#endif /* GPD_GRAPH_EXEC_H */
