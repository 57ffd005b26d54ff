/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of GPUPOOL_TRACE, and the thread that writes it: a user opens it in ui.perfetto.dev
 * (docs/tracing.md).  Without GPUPOOL_TRACE none of these does anything.
 */
#ifndef GPC_TRACER_H
#define GPC_TRACER_H

/* With the first session; again has no effect.  A file that cannot be opened is told on stderr, and
 * nothing is recorded. */
void gpc_tracer_start(void);

/* The sessions are open: returns when their daemons measure, or some time has passed. */
void gpc_tracer_await_daemons(void);

/* At exit: what is known of the GPUs, while there are sessions; then the file's end. */
void gpc_tracer_stop(void);
void gpc_tracer_close(void);

/* In the child of a fork, which may begin a file of its own. */
void gpc_tracer_after_fork(void);

#endif /* GPC_TRACER_H */
