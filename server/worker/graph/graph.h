/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of the driver's that a session launches: kernels, memsets and copies within device memory,
 * as the client has sent them (protocol/graph_plan.h).  A graph belongs to the session's handle
 * table.  What was sent is kept: a graph is built anew when the session's multiprocessors, or a
 * kernel's image, are not those that it was built for.  Executor only.
 */
#ifndef GPD_GRAPH_H
#define GPD_GRAPH_H

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

/* Ends those of a context that is destroyed. */
void gpd_graph_destroy_context(struct gpd_session *session, const struct gpd_context *context);
/* Ends all, when no work of the session is left. */
void gpd_graph_destroy_all(struct gpd_session *session);

#endif /* GPD_GRAPH_H */
