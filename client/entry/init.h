/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life cycle of the library in a process: loading, cuInit(), opening of sessions, fork and exit.
 *
 * The constructor fills the entry table and, if REMOTE_GPU is not set, tries pass-through to the
 * machine's own driver. The destructor closes the sessions. In a forked child of a process that has
 * called cuInit(), CUDA stays unusable, as with NVIDIA's driver. If the parent had only opened
 * sessions, the child can open its own.
 *
 * Threads: any thread may call. One thread at a time opens sessions; other callers block until it
 * has finished.
 */
#ifndef GPC_INIT_H
#define GPC_INIT_H

#include <cuda.h>
#include <stdbool.h>

/* Opens one session for each daemon that REMOTE_GPU names, and creates their devices, unless
 * sessions are open already. Does not initialize CUDA. Starts the writer of the timeline if
 * GPUPOOL_TRACE is set (client/trace/tracer.h). Waits for the connections and, as GPUPOOL_WAIT
 * allows, for session slots. Returns CUDA_SUCCESS. If REMOTE_GPU is invalid or not set, or if any
 * session cannot be opened, none is open afterwards; the reason was reported by gpc_log_always()
 * (client/base/log.h), unless memory was exhausted before the first connection, and the result is
 * GPC_ERROR_NO_SESSION (client/base/error.h) or CUDA_ERROR_OUT_OF_MEMORY. For two seconds after a
 * failure the previous result is returned without another attempt or report. */
CUresult gpc_session_open(void);

/* Returns whether cuInit has succeeded and CUDA is still usable in this process. */
bool gpc_is_initialized(void);

/* Returns the version that cuDriverGetVersion() reports: the lowest of CUDA_VERSION and the
 * daemons' driver versions. Opens the sessions if none are open, with the waits of
 * gpc_session_open(). Returns CUDA_VERSION if this fails or REMOTE_GPU is not set. */
int gpc_driver_version(void);

#endif /* GPC_INIT_H */
