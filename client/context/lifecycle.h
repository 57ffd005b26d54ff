/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this process may use CUDA; entry/init.c says so, every call asks. */
#ifndef GPC_LIFECYCLE_H
#define GPC_LIFECYCLE_H

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

#endif /* GPC_LIFECYCLE_H */
