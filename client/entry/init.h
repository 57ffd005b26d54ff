/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of the library in its process: loaded, initialised by cuInit, forked, at its end.
 */
#ifndef GPC_INIT_H
#define GPC_INIT_H

#include <cuda.h>
#include <stdatomic.h>

/* CUDA_SUCCESS once cuInit has succeeded; else what every call answers: not initialised, forked
 * since, or the process is ending. */
extern atomic_int gpc_lifecycle;

static inline CUresult
gpc_lifecycle_check(void)
{
	return (CUresult)atomic_load_explicit(&gpc_lifecycle, memory_order_acquire);
}

/* Opens the session if there is none, without initialising CUDA; REMOTE_GPU is set. */
CUresult gpc_session_open(void);

/* The version that cuDriverGetVersion tells; opens the session if that is how to know. */
int gpc_driver_version(void);

#endif /* GPC_INIT_H */
