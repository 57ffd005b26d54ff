/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Execution steps of an executable graph: client steps, which this process executes as stream
 * calls, and subgraphs. A subgraph is a part of the graph that the daemon has instantiated from a
 * plan (graph_plan.h); it is not a child graph of CUDA.
 *
 * Ownership: struct gpc_exec_steps is a part of the executable graph; it owns the steps until
 * gpc_exec_steps_drop().
 * Threads: one thread at a time uses the steps. The caller (graph_exec.c) ensures this: it marks an
 * executable graph as in use while a thread sends or launches it. Called without gpc_graphs_lock,
 * because the functions communicate with the daemon.
 * Errors: CUDA_SUCCESS, CUDA_ERROR_CONTEXT_IS_DESTROYED if a context was reset,
 * CUDA_ERROR_OUT_OF_MEMORY, or the errors of the calls.
 */
#ifndef GPC_NODE_SET_H
#define GPC_NODE_SET_H

#include "client/graph/graph_plan.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_exec_step;

/* The steps, in the order of execution. A zeroed struct is the empty list. */
struct gpc_exec_steps {
	struct gpc_context
		*context; /* context of the subgraphs; NULL: no subgraphs, or several contexts */
	struct gpc_exec_step *steps;
	size_t count;
	bool updatable;  /* contains device-updatable nodes, which device code can change */
	bool launchable; /* kernels may launch the graph, with the handle in `exec` */
	uint64_t exec;   /* driver's handle of the graph in the daemon, for device code; 0: not
			    launchable */
};

/* Returns whether the daemon's subgraphs still exist; a reset of their context destroys them. May
 * be called by any thread while no thread is sending. */
bool gpc_exec_steps_are_valid(const struct gpc_exec_steps *exec_steps);

/* Creates or updates the daemon's subgraphs according to the plan, and replaces the steps. Waits
 * for replies of the daemon only where the daemon may reject a subgraph. The plan stays the
 * caller's. After an error some subgraphs may be missing or outdated; the caller must call again
 * before a launch. Errors of subgraphs that were sent without waiting are returned by a later call
 * of the session. */
CUresult gpc_exec_steps_send(struct gpc_exec_steps *exec_steps, struct gpc_plan *plan);
/* Posts an upload, in stream order, of a graph that kernels launch or update. Has no effect for
 * other graphs. */
CUresult gpc_exec_steps_upload(const struct gpc_exec_steps *exec_steps, struct gpc_stream *stream);
/* Destroys all steps, in the client and in the daemon, without waiting. *exec_steps becomes
 * empty. */
void gpc_exec_steps_drop(struct gpc_exec_steps *exec_steps);
/* Posts all steps to the stream, without waiting for the GPU. Subgraphs of other contexts run on
 * streams of their own in those contexts; events order them after the stream's earlier work and
 * before its later work. After a failure the steps before the failed one have been posted. */
CUresult gpc_exec_steps_launch(const struct gpc_exec_steps *exec_steps, struct gpc_stream *stream);

#endif /* GPC_NODE_SET_H */
