/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Driver graphs that a session launches: kernels, memsets and copies within device memory, as sent
 * by the client (protocol/graph_plan.h). The client's plan is stored with the graph, because the
 * driver's graph is rebuilt when the session's multiprocessors or a kernel's image have changed
 * since it was built.
 *
 * Ownership: the session, through its handle table.
 * Threads: executor only.
 */
#ifndef GPD_GRAPH_EXEC_H
#define GPD_GRAPH_EXEC_H

#include <stdatomic.h>
#include <stdbool.h>

struct gpd_context;
struct gpd_session;

/*
 * The part of a session that its graphs have.
 * Threads: the executor; rooted_leaving is also written by the responder.
 */
struct gpd_graph_session {
	_Atomic unsigned int rooted_leaving; /* graphs of roots: dropped, and they may still run */
	bool launched_print;                 /* kernels may launch graphs whose kernels print */
};

/* -ENOMEM. */
int gpd_graph_session_create(struct gpd_session *session);
void gpd_graph_session_destroy(struct gpd_session *session);

/* Destroys the graphs and graph roots of a context that is being destroyed. */
void gpd_graph_destroy_context(struct gpd_session *session, const struct gpd_context *context);
/* Destroys all graphs and graph roots when the session has no work left. */
void gpd_graph_destroy_all(struct gpd_session *session);

#endif /* GPD_GRAPH_EXEC_H */
