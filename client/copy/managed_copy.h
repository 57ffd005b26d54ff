/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory of a context: device memory with a cache of its pages here (docs/managed.md), and
 * how the pages' bytes travel.  Any thread.
 */
#ifndef GPC_MANAGED_COPY_H
#define GPC_MANAGED_COPY_H

#include <cuda.h>
#include <stdint.h>

struct gpc_context;

/* Of any size but 0; gpc_pool_free() frees it. */
CUresult gpc_managed_alloc(struct gpc_context *context, uint64_t size, CUdeviceptr *address_p);

#endif /* GPC_MANAGED_COPY_H */
