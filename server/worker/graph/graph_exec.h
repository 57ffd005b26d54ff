/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executable graphs (CUgraphExec) of a session, built by graph_build.h from the plans that the
 * client sends (protocol/graph_plan.h): kernels, memsets and copies within device memory. The plan
 * is stored with the graph, because the driver's graph is rebuilt when the session's
 * multiprocessors or a kernel's image have changed since it was built.
 *
 * Graph roots (graph_root.h) are driver graphs that own conditional handles and device-updatable
 * nodes.
 *
 * The hooks of the messages (gpd_gpGraphMake() and so on) are declared in gpd_calls.h.
 *
 * Ownership: graphs belong to the session, through its handle table.
 * Threads: executor only; the responder also decrements rooted_leaving.
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
	/* Number of executables, built in graph roots, that the client has dropped and that may
	 * still run. Changed by graph_build.c; gpd_graph_root_occupy() waits for 0. */
	_Atomic unsigned int rooted_leaving;
	/* a launchable graph (graph_build.h) has had a kernel that prints; is never reset */
	bool launched_print;
};

/* Destroys the graphs and graph roots of a context that is being destroyed. Does not wait:
 * executables that may still run are destroyed after their launches. May change the current
 * device. */
void gpd_graph_destroy_context(struct gpd_session *session, const struct gpd_context *context);
/* Destroys all graphs and graph roots of the session, which must have no work left, at the
 * session's end. */
void gpd_graph_destroy_all(struct gpd_session *session);

#endif /* GPD_GRAPH_EXEC_H */
