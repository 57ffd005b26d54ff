/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory of a context (cuMemAllocManaged): device memory whose pages are cached in this
 * process (docs/managed.md). This header has its allocation and the transfer of its pages.
 *
 * Ownership: the context must exist as long as its managed memory; contexts are never freed.
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note).
 */
#ifndef GPC_MANAGED_COPY_H
#define GPC_MANAGED_COPY_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_context;
struct gpc_pages_ops;

/* Allocates managed memory of the context's device; size must not be 0. Returns CUDA_SUCCESS and
 * sets *address_p; gpc_pool_free() (client/memory/pool.h) frees the memory. Returns
 * CUDA_ERROR_OUT_OF_MEMORY or an error of gpc_pool_alloc(), with *address_p unchanged. May wait for
 * the daemon. */
CUresult gpc_managed_alloc(struct gpc_context *context, uint64_t size, CUdeviceptr *address_p);

/* Operations for pages of a pool of managed memory (client/pages/pages.h). Their `owner` is the
 * struct gpc_context whose managed memory the pool contains. */
extern const struct gpc_pages_ops gpc_managed_calls;

/* Function of struct gpc_pages_ops: blocks, without limit, until all work of the context's session
 * that may have used managed memory is done. owner: as for the next two functions, the struct
 * gpc_context whose managed memory it is. Returns true, or false, after a message on standard
 * error, if the session has ended or the wait fails. */
bool gpc_managed_await(void *owner);
/* Function of struct gpc_pages_ops: copies from managed memory of the device to `to`, and blocks
 * until `to` contains the data. Returns true, or false, after a message on standard error, if the
 * session has ended or the copy fails repeatedly; `to` is then undefined. */
bool gpc_managed_fetch(void *owner, uint64_t address, uint64_t size, void *to);
/* Function of struct gpc_pages_ops: copies from `from` to managed memory of the device, before all
 * work that is posted later, and blocks until `from` may be changed. Also makes host memory to
 * which the data points accessible to kernels. Returns as gpc_managed_fetch() does. */
bool gpc_managed_push(void *owner, uint64_t address, uint64_t size, const void *from);

#endif /* GPC_MANAGED_COPY_H */
