/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Execution steps of an executable graph, made from its plan (graph_plan.h): client steps, which
 * this process executes as stream calls, and subgraphs. A subgraph is a part of the graph from
 * which the daemon has instantiated a graph of its driver; it is not a child graph of CUDA.
 *
 * Ownership: struct gpc_exec_steps is a member of the executable graph; it owns the steps until
 * gpc_exec_steps_drop().
 * Threads: gpc_exec_steps_send() and gpc_exec_steps_drop() require that no other thread uses the
 * steps. Several threads may launch and upload at a time. The caller (graph_exec.c) ensures both:
 * it counts the threads that use an executable graph, and lets launches wait while a thread sends
 * it. Functions are called without gpc_graphs_lock, because they communicate with the daemon; only
 * gpc_exec_steps_are_valid() may be called with it.
 * Errors: CUDA_SUCCESS, CUDA_ERROR_CONTEXT_IS_DESTROYED if a context was reset,
 * CUDA_ERROR_OUT_OF_MEMORY, or the errors of the calls.
 */
#ifndef GPC_EXEC_STEPS_H
#define GPC_EXEC_STEPS_H

#include "client/graph/graph_plan.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_exec_step;

/* The steps, in the order of their stages. A zeroed struct is the empty list. */
struct gpc_exec_steps {
	/* context of all subgraphs; NULL: no subgraphs, or nodes of several contexts */
	struct gpc_context *context;
	struct gpc_exec_step *steps;
	size_t count;
	bool updatable;  /* contains device-updatable nodes, which device code can change */
	bool launchable; /* kernels may launch the graph, with the handle in `exec` */
	/* driver's handle of the executable graph in the daemon, which device code and the
	 * application use; 0: not launchable */
	uint64_t exec;
};

/* Returns whether everything that the steps need in the daemon still exists: subgraphs, and streams
 * in other contexts. A reset of their context destroys them; gpc_exec_steps_send() must then be
 * called before a launch. Called while no thread is sending. */
bool gpc_exec_steps_are_valid(const struct gpc_exec_steps *exec_steps);

/*
 * Creates the daemon's subgraphs according to the plan, or updates those that exist, and replaces
 * the steps. Waits for replies of the daemon only where the daemon may reject a new subgraph: with
 * a root, with launch shapes to be checked, or if kernels may launch it. Errors of a subgraph that
 * is sent without waiting are returned by a later call of the session.
 *
 * The caller still owns the plan, and frees it afterwards; checks that are not needed are removed
 * from plan->shapes. After an error some subgraphs may be missing or outdated: the caller must not
 * launch before another call has succeeded. Returns CUDA_ERROR_CONTEXT_IS_DESTROYED, without any
 * effect, if kernels may launch the graph and its context was reset or differs from that of the
 * plan, as device code may have stored its handle.
 */
CUresult gpc_exec_steps_send(struct gpc_exec_steps *exec_steps, struct gpc_plan *plan);
/* Implements cuGraphUpload(): posts an upload, in stream order, of a graph that kernels launch or
 * update. Has no effect for other graphs, which need no upload. */
CUresult gpc_exec_steps_upload(const struct gpc_exec_steps *exec_steps, struct gpc_stream *stream);
/* Destroys all steps and the streams of other contexts, in the client and in the daemon, without
 * waiting. *exec_steps becomes empty. */
void gpc_exec_steps_drop(struct gpc_exec_steps *exec_steps);
/*
 * Posts all steps to the stream. Subgraphs of other contexts run on streams of their own in those
 * contexts; events order them after the stream's earlier work and before its later work.
 *
 * Does not wait for the GPU, with two exceptions: it blocks until a stream is idle where work of
 * one daemon comes after work of another (gpc_event_order(), client/stream/event.h), and a client
 * step may block as its stream call does. After a failure the steps before the failed one have been
 * posted. The caller calls gpc_pending_copy_before_work() before and gpc_coherence_after_work()
 * after it, for the stream's session (client/host/).
 */
CUresult gpc_exec_steps_launch(const struct gpc_exec_steps *exec_steps, struct gpc_stream *stream);

#endif /* GPC_EXEC_STEPS_H */
