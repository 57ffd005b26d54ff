/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life-cycle state of the library in this process: whether CUDA calls are allowed.
 *
 * Threads: any thread may read; client/entry/init.c sets the state, and every CUDA function that
 * needs it checks it.
 */
#ifndef GPC_LIFECYCLE_H
#define GPC_LIFECYCLE_H

#include <cuda.h>
#include <stdatomic.h>

/* CUDA_SUCCESS after a successful cuInit(); otherwise the error that every call returns:
 * CUDA_ERROR_NOT_INITIALIZED before it and in the child of a fork, or CUDA_ERROR_DEINITIALIZED
 * while the process exits. */
extern atomic_int gpc_lifecycle;

/* Returns CUDA_SUCCESS if calls are allowed, otherwise the error to return. */
static inline CUresult
gpc_lifecycle_check(void)
{
	return (CUresult)atomic_load_explicit(&gpc_lifecycle, memory_order_acquire);
}

#endif /* GPC_LIFECYCLE_H */
