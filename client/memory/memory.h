/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory of the session: a heap over the window, kept by the client.  Small allocations are
 * cut from mapped chunks without a round trip; large ones are chunks of their own (gpMemoryMap).
 * Freed memory is used again only when the work posted before the free is done.  Any thread.
 */
#ifndef GPC_MEMORY_H
#define GPC_MEMORY_H

#include "base/status.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gp_args_gpContextCreate;
struct gpc_address;
struct gpc_context;
struct gpc_device;
struct gpc_heap_range;
struct gpc_session;

/* Whether the address is in a session's window; found->kind is GPC_ADDRESS_INVALID where nothing
 * was allocated in it here. */
bool gpc_memory_find(uint64_t address, struct gpc_address *found);

/* How much of what is mapped nothing uses.  false: no memory. */
bool gpc_memory_available(struct gpc_context *context, uint64_t *bytes_p);

/* Never used twice in this process. */
uint64_t gpc_memory_next_id(void);

/* So often may other threads take what one has mapped for its own block, before it gives up. */
#define GPC_GROW_TRIES 16

/* For memory pools.  CUDA_ERROR_OUT_OF_MEMORY: the quota, the device or the window has no room. */
CUresult gpc_memory_map(struct gpc_context *context, uint64_t size, struct gpc_heap_range *range_p);
/* After all work posted before; nobody needs to wait for it. */
void gpc_memory_unmap(struct gpc_context *context, const struct gpc_heap_range *range);
/* Asks how far the work is, and takes the answer to what was asked before. */
void gpc_memory_poll(struct gpc_context *context);
/* Something may be cached: the daemon may recall it (memory_cache.h). */
void gpc_memory_allow_recall(struct gpc_context *context);
/* So many bytes more are kept of the device's memory, or (modulo 2^64) less. */
void gpc_memory_count_cached(struct gpc_device *device, uint64_t more);
/* Waits for all work posted; and gives everything back besides that nothing uses. */
CUresult gpc_memory_settle(struct gpc_context *context);
CUresult gpc_memory_reclaim(struct gpc_context *context);
/* What is mapped at base is given back when it is freed, and not kept: another process may have it.
 */
CUresult gpc_memory_set_uncacheable(struct gpc_context *context, uint64_t base);
/* Addresses of the window at which nothing is mapped, for the caller to map at. */
CUresult gpc_memory_reserve_addresses(struct gpc_context *context, uint64_t size,
				      struct gpc_heap_range *range_p);
void gpc_memory_unreserve_addresses(struct gpc_context *context,
				    const struct gpc_heap_range *range);
/* Of any size but 0. */
CUresult gpc_memory_alloc(struct gpc_context *context, uint64_t size, uint64_t *address_p);
/* What is no pool's. */
CUresult gpc_memory_free(struct gpc_context *context, uint64_t address);

/* For struct gpc_context_part: the first chunk of the heap comes, and its memory goes, with a
 * context. */
CUresult gpc_memory_prepare_context(struct gpc_context *context,
				    struct gp_args_gpContextCreate *args);
void gpc_memory_context_made(struct gpc_context *context,
			     const struct gp_args_gpContextCreate *args, bool success);
void gpc_memory_drop_context(struct gpc_context *context);

#endif /* GPC_MEMORY_H */
