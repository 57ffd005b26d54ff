/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory of a context (cuMemAllocManaged): device memory whose pages are cached in this
 * process (docs/managed.md), and the transfer of pages.
 *
 * Ownership: the context must exist as long as its managed memory; contexts are never freed.
 * Threads: any thread may call.
 */
#ifndef GPC_MANAGED_COPY_H
#define GPC_MANAGED_COPY_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_context;
struct gpc_pages_ops;

/* Allocates managed memory of the context's device; size must not be 0. Returns CUDA_SUCCESS and
 * sets *address_p; gpc_pool_free() frees it. Errors, with *address_p unchanged:
 * CUDA_ERROR_OUT_OF_MEMORY, and those of gpc_pool_alloc(). */
CUresult gpc_managed_alloc(struct gpc_context *context, uint64_t size, CUdeviceptr *address_p);

/* Operations for pages of a pool of managed memory (client/pages/pages.h). The `owner` that they
 * receive is the primary context of the pool's device. */
extern const struct gpc_pages_ops gpc_managed_calls;

/* Function of struct gpc_pages_ops: waits, without limit, until all work that was posted to the
 * context's session is done. Returns true, or false, after a message on standard error, if the
 * session has ended. */
bool gpc_managed_await(void *context);
/* Function of struct gpc_pages_ops: copies from the device's managed memory to `to`, and waits
 * until `to` contains the data. Returns as gpc_managed_await(); after false, `to` is undefined. */
bool gpc_managed_fetch(void *context, uint64_t address, uint64_t size, void *to);
/* Function of struct gpc_pages_ops: copies from `from` to the device's managed memory, and waits
 * until `from` may be reused. Returns as gpc_managed_await(). */
bool gpc_managed_push(void *context, uint64_t address, uint64_t size, const void *from);

#endif /* GPC_MANAGED_COPY_H */
