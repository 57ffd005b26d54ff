/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory of a context: device memory with a cache of its pages here (docs/managed.md), and
 * how the pages' bytes travel.  Any thread.
 */
#ifndef GPC_MANAGED_COPY_H
#define GPC_MANAGED_COPY_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_context;
struct gpc_pages_ops;

/* Of any size but 0; gpc_pool_free() frees it. */
CUresult gpc_managed_alloc(struct gpc_context *context, uint64_t size, CUdeviceptr *address_p);

/* What a pool of such memory has of its device's primary context. */
extern const struct gpc_pages_ops gpc_managed_calls;

/* What struct gpc_pages_ops has, of a context's device memory; the context is the owner. */
bool gpc_managed_await(void *context);
bool gpc_managed_fetch(void *context, uint64_t address, uint64_t size, void *to);
bool gpc_managed_push(void *context, uint64_t address, uint64_t size, const void *from);

#endif /* GPC_MANAGED_COPY_H */
