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
#ifndef GPD_GRAPH_H
#define GPD_GRAPH_H

struct gpd_context;
struct gpd_session;

/* Destroys the graphs and graph roots of a context that is being destroyed. */
void gpd_graph_destroy_context(struct gpd_session *session, const struct gpd_context *context);
/* Destroys all graphs and graph roots when the session has no work left. */
void gpd_graph_destroy_all(struct gpd_session *session);

#endif /* GPD_GRAPH_H */
