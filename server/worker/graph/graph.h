/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs of the driver's that a session launches: kernels, memsets and copies within device memory,
 * as the client has sent them (protocol/graph_plan.h).  A graph belongs to the session's handle
 * table.  What was sent is kept: a graph is built anew when the session's multiprocessors, or a
 * kernel's image, are not those that it was built for.  Executor only.
 */
#ifndef GPD_GRAPH_H
#define GPD_GRAPH_H

struct gpd_context;
struct gpd_session;

/* Ends those of a context that is destroyed. */
void gpd_graph_destroy_context(struct gpd_session *session, const struct gpd_context *context);
/* Ends all, when no work of the session is left. */
void gpd_graph_destroy_all(struct gpd_session *session);

#endif /* GPD_GRAPH_H */
