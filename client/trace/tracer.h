/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writer of the timeline file of GPUPOOL_TRACE (Chrome trace JSON, for ui.perfetto.dev; see
 * docs/tracing.md).
 *
 * A thread collects the recorded calls of all threads and the GPU timelines of the daemons and
 * writes them to the file. Without GPUPOOL_TRACE all functions are no-ops.
 * Threads: gpc_tracer_start() and gpc_tracer_await_daemons() are called by the thread that opens
 * the sessions, the others at exit and after a fork.
 * Errors: the functions return nothing; failures are reported on stderr and end the trace.
 */
#ifndef GPC_TRACER_H
#define GPC_TRACER_H

/* Opens the file and starts the writer thread. Called when the first session is opened; further
 * calls have no effect. If the file cannot be opened, reports that on stderr and disables
 * recording. */
void gpc_tracer_start(void);

/* Called after the sessions are opened: waits until all daemons have started measuring, at most two
 * seconds. */
void gpc_tracer_await_daemons(void);

/* At exit: gpc_tracer_stop() fetches the remaining GPU timelines, so the sessions must still be
 * open; gpc_tracer_close() writes the end of the file and closes it. */
void gpc_tracer_stop(void);
void gpc_tracer_close(void);

/* Called in the child of a fork. Detaches from the parent's file; the child may start a file of its
 * own. */
void gpc_tracer_after_fork(void);

#endif /* GPC_TRACER_H */
