/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of the library in its process: loaded, initialised by cuInit, forked, at its end.
 */
#ifndef GPC_INIT_H
#define GPC_INIT_H

#include <cuda.h>
#include <stdbool.h>

/* Opens the session if there is none, without initialising CUDA; REMOTE_GPU is set. */
CUresult gpc_session_open(void);

/* Whether cuInit has succeeded, and the process may use CUDA still. */
bool gpc_is_initialized(void);

/* The version that cuDriverGetVersion tells; opens the session if that is how to know. */
int gpc_driver_version(void);

#endif /* GPC_INIT_H */
