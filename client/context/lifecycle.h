/* SPDX-License-Identifier: Apache-2.0 */
/* Life-cycle state of the library in this process: whether CUDA calls are allowed. Set by
 * entry/init.c, checked by every call. */
#ifndef GPC_LIFECYCLE_H
#define GPC_LIFECYCLE_H

#include <cuda.h>
#include <stdatomic.h>

/* CUDA_SUCCESS after a successful cuInit(); otherwise the error that every call returns: not
 * initialized, in the child of a fork, or while the process exits. */
extern atomic_int gpc_lifecycle;

/* Returns CUDA_SUCCESS if calls are allowed, otherwise the error to return. */
static inline CUresult
gpc_lifecycle_check(void)
{
	return (CUresult)atomic_load_explicit(&gpc_lifecycle, memory_order_acquire);
}

#endif /* GPC_LIFECYCLE_H */
