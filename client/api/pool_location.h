/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Location of memory pools: checks the properties of a CUDA memory pool, and creates pools of
 * device, host and managed memory.
 *
 * Ownership: a pool belongs to the list of pools (client/memory/pool.h).
 * Threads: any thread may call. "The pools lock" is that of gpc_pools_lock()
 * (client/memory/pool.h).
 */
#ifndef GPC_POOL_LOCATION_H
#define GPC_POOL_LOCATION_H

#include "client/memory/pool.h"

#include <cuda.h>

/* Checks whether a pool with these properties, which must not be NULL, can be created. Called after
 * CUDA was initialized, without the pools lock. Returns CUDA_SUCCESS or the error that
 * cuMemPoolCreate() returns: CUDA_ERROR_INVALID_VALUE or CUDA_ERROR_NOT_SUPPORTED. */
CUresult gpc_pool_check_props(const CUmemPoolProps *props);
/* Creates a pool of memory of this type at this location. The caller has checked both, for example
 * by gpc_pool_check_props(). The caller holds the pools lock. Returns the pool, which the list of
 * pools owns, or NULL if out of memory. */
struct gpc_pool *gpc_pool_create_at(CUmemLocation location, CUmemAllocationType type);

/* Checks that CUDA is usable, acquires the pools lock and looks up the handle. On success returns
 * CUDA_SUCCESS with the lock held: the caller releases it with gpc_pools_unlock(), and *pool_p is
 * valid until then. On failure the lock is not held, and *pool_p must not be used. Errors:
 * CUDA_ERROR_INVALID_VALUE if the handle is invalid, and those of gpc_enter_initialized()
 * (client/context/context.h). */
CUresult gpc_pool_enter(CUmemoryPool handle, struct gpc_pool **pool_p);

#endif /* GPC_POOL_LOCATION_H */
