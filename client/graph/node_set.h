/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Execution steps of an executable graph: client-side steps, and server-side subgraphs that the
 * daemon has created (graph_plan.h).
 *
 * Ownership: part of the executable graph.
 * Threads: used by one thread at a time, as the use of the executable graph is; called without
 * gpc_graphs_lock, because the functions communicate with the daemon.
 * Errors: CUDA_ERROR_CONTEXT_IS_DESTROYED if a context was reset, or the errors of the calls.
 */
#ifndef GPC_NODE_SET_H
#define GPC_NODE_SET_H

#include "client/graph/graph_plan.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_exec_step;

/* The steps; zeroed, there are none. */
struct gpc_exec_steps {
	struct gpc_context *context; /* context of the subgraphs; NULL: none, or several */
	struct gpc_exec_step *steps;
	size_t count;
	bool updatable;  /* contains device-updatable nodes */
	bool launchable; /* by kernels, with the handle ... */
	uint64_t exec;   /* ... exec of the daemon's driver */
};

/* Returns whether the daemon's subgraphs still exist; a reset of their context destroys them. May
 * be called by any thread while none is sending. */
bool gpc_exec_steps_are_valid(const struct gpc_exec_steps *exec_steps);

/* Creates or updates the daemon's subgraphs according to the plan. After a failure some may be
 * missing; the next call sends all of them again. */
CUresult gpc_exec_steps_send(struct gpc_exec_steps *exec_steps, struct gpc_plan *plan);
/* Uploads a graph that kernels launch or update, in stream order; no effect for other graphs. */
CUresult gpc_exec_steps_upload(const struct gpc_exec_steps *exec_steps, struct gpc_stream *stream);
/* Destroys all steps. */
void gpc_exec_steps_drop(struct gpc_exec_steps *exec_steps);
/* Posts all steps to the stream. Subgraphs of other contexts run on streams of their own in those
 * contexts; events order them after the stream's earlier work and before its later work. */
CUresult gpc_exec_steps_launch(const struct gpc_exec_steps *exec_steps, struct gpc_stream *stream);

#endif /* GPC_NODE_SET_H */
