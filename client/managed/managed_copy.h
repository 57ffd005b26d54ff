/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory of a context: device memory whose pages are cached in this process
 * (docs/managed.md), and the transfer of pages.
 *
 * Threads: any thread may call.
 */
#ifndef GPC_MANAGED_COPY_H
#define GPC_MANAGED_COPY_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_context;
struct gpc_pages_ops;

/* Allocates managed memory; size must not be 0. gpc_pool_free() frees it. */
CUresult gpc_managed_alloc(struct gpc_context *context, uint64_t size, CUdeviceptr *address_p);

/* Operations for pages of a pool of managed memory; the owner is the primary context of its
 * device. */
extern const struct gpc_pages_ops gpc_managed_calls;

/* Implementations of struct gpc_pages_ops for device memory of a context, which is the owner. They
 * wait for work of the session, copy from the device, and copy to the device. Each returns false if
 * the session has ended. */
bool gpc_managed_await(void *context);
bool gpc_managed_fetch(void *context, uint64_t address, uint64_t size, void *to);
bool gpc_managed_push(void *context, uint64_t address, uint64_t size, const void *from);

#endif /* GPC_MANAGED_COPY_H */
