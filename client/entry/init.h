/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Library life cycle in a process: loading, cuInit(), opening of sessions, fork and exit.
 *
 * The constructor fills the entry table and, if REMOTE_GPU is not set, tries pass-through to the
 * machine's own driver. The destructor closes the sessions. In a forked child of an initialized
 * process CUDA stays unusable, as with NVIDIA's driver.
 *
 * Threads: any. One thread at a time opens sessions; other callers wait for it.
 */
#ifndef GPC_INIT_H
#define GPC_INIT_H

#include <cuda.h>
#include <stdbool.h>

/* Opens one session for each daemon that REMOTE_GPU names, unless sessions are open already. Does
 * not initialize CUDA. REMOTE_GPU must be set. Waits for the connections and, as GPUPOOL_WAIT
 * allows, for session slots. Returns CUDA_SUCCESS, or a CUDA error if any session cannot be opened;
 * then none is open, and the reason was printed on standard error. For two seconds after a failure
 * the previous result is returned without another attempt. */
CUresult gpc_session_open(void);

/* Returns whether cuInit has succeeded and CUDA is still usable in this process. */
bool gpc_is_initialized(void);

/* Returns the version that cuDriverGetVersion() reports: the lowest of CUDA_VERSION and the
 * daemons' driver versions. Opens the sessions if necessary, with the waits of gpc_session_open().
 * Returns CUDA_VERSION if that is not possible. */
int gpc_driver_version(void);

#endif /* GPC_INIT_H */
