/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Execution steps of an executable graph: client steps, which this process executes as stream
 * calls, and subgraphs that the daemon has created from a plan (graph_plan.h).
 *
 * Ownership: part of the executable graph, which owns the steps until gpc_exec_steps_drop().
 * Threads: one thread at a time uses the steps; the `sending` and `uses` state of the executable
 * graph ensures that. Called without gpc_graphs_lock, because the functions communicate with the
 * daemon.
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

/* The steps in the order of execution; zeroed, there are none. */
struct gpc_exec_steps {
	struct gpc_context
		*context; /* context of the subgraphs; NULL: no subgraphs, or several contexts */
	struct gpc_exec_step *steps;
	size_t count;
	bool updatable;  /* contains device-updatable nodes, which device code can change */
	bool launchable; /* kernels may launch the graph, with the handle in `exec` */
	uint64_t exec;   /* handle of the daemon's driver for device code; 0: not launchable */
};

/* Returns whether the daemon's subgraphs still exist; a reset of their context destroys them. May
 * be called by any thread while no thread is sending. */
bool gpc_exec_steps_are_valid(const struct gpc_exec_steps *exec_steps);

/* Creates or updates the daemon's subgraphs according to the plan, and replaces the steps. Waits
 * for replies of the daemon only where it may reject a subgraph. The plan stays the caller's. After
 * a failure some subgraphs may be missing; the next call sends all of them again. */
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
