/* SPDX-License-Identifier: Apache-2.0 */
/* Memory pools of devices, of the host and of managed memory.  Any thread. */
#ifndef GPC_POOL_PLACE_H
#define GPC_POOL_PLACE_H

#include "client/memory/pool.h"

#include <cuda.h>

/* Whether there can be such a pool: CUDA's error. */
CUresult gpc_pool_check_props(const CUmemPoolProps *props);
/* With the pools locked, where there can be one.  NULL: no memory for it. */
struct gpc_pool *gpc_pool_create_at(CUmemLocation location, CUmemAllocationType type);

/* The pool of the handle, with the pools locked unless it fails. */
CUresult gpc_pool_enter(CUmemoryPool handle, struct gpc_pool **pool_p);

#endif /* GPC_POOL_PLACE_H */
