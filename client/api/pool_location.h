/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Location of memory pools: creates and looks up pools of device, host and managed memory.
 *
 * Ownership: a pool belongs to the list of pools (client/memory/pool.h).
 * Threads: any thread may call; the pools lock is held where noted.
 */
#ifndef GPC_POOL_LOCATION_H
#define GPC_POOL_LOCATION_H

#include "client/memory/pool.h"

#include <cuda.h>

/* Checks whether a pool with these properties can be created. Returns CUDA_SUCCESS or the error
 * that cuMemPoolCreate() returns. */
CUresult gpc_pool_check_props(const CUmemPoolProps *props);
/* Creates a pool at a location that has been checked. The caller holds the pools lock. Returns NULL
 * if out of memory. */
struct gpc_pool *gpc_pool_create_at(CUmemLocation location, CUmemAllocationType type);

/* Starts a call on a pool. On success the pools lock is held; the caller unlocks it. Errors:
 * CUDA_ERROR_INVALID_VALUE if the handle is invalid. */
CUresult gpc_pool_enter(CUmemoryPool handle, struct gpc_pool **pool_p);

#endif /* GPC_POOL_LOCATION_H */
