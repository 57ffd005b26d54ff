/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writer of the timeline file of GPUPOOL_TRACE (Chrome trace JSON, for ui.perfetto.dev; see
 * docs/tracing.md).
 *
 * A thread collects the recorded calls of all threads and the GPU timelines of the daemons, and
 * writes them to the file. Without GPUPOOL_TRACE all functions are no-ops.
 *
 * Ownership: the writer owns the file and its buffers; there is one per process.
 * Threads: gpc_tracer_start() and gpc_tracer_await_daemons() are called by the thread that opens
 * the sessions, the others at exit and after a fork, when no other of these functions runs.
 * Errors: the functions return nothing; failures are reported on standard error and end the trace.
 */
#ifndef GPC_TRACER_H
#define GPC_TRACER_H

/* Opens the file and starts the writer thread. Called before the first session is opened; further
 * calls have no effect. On failure recording is disabled, and the failure is logged. */
void gpc_tracer_start(void);

/* Waits until all daemons have started measuring, at most two seconds. Called after the sessions
 * are opened. */
void gpc_tracer_await_daemons(void);

/* Fetches the remaining GPU timelines and waits, at most two seconds, until the writer thread ends.
 * Called at exit, while the sessions are still open. */
void gpc_tracer_stop(void);
/* Writes the remaining calls and the end of the file, and closes it. Waits at most two seconds for
 * the writer thread; if it has not ended, the file is left incomplete. Called at exit, after
 * gpc_tracer_stop() and after the sessions are closed. */
void gpc_tracer_close(void);

/* Detaches from the parent's file in the child of a fork. The child may start a file of its own
 * with gpc_tracer_start(). */
void gpc_tracer_after_fork(void);

#endif /* GPC_TRACER_H */
