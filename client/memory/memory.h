/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory allocator of a session: a heap in the session's address window, managed by the
 * client.
 *
 * Small allocations are taken from mapped chunks without a round trip; large ones are mappings of
 * their own (gpMemoryMap). Freed memory is reused only when the work posted before the free is
 * done.
 * Threads: any.
 * Errors: functions that return CUresult return CUDA_ERROR_OUT_OF_MEMORY if the quota, the device
 * or the window is exhausted, or the session's error.
 */
#ifndef GPC_MEMORY_H
#define GPC_MEMORY_H

#include "base/status.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gp_args_gpContextCreate;
struct gpc_address;
struct gpc_context;
struct gpc_device;
struct gpc_heap_range;

/* Returns whether the address is in the window of any session, and fills in `found`; its kind is
 * GPC_ADDRESS_INVALID if nothing is allocated there. */
bool gpc_memory_find(uint64_t address, struct gpc_address *found);

/* Returns, in *bytes_p, the amount of mapped or granted memory of the context's device that is
 * unused. Returns false if memory is exhausted. */
bool gpc_memory_available(struct gpc_context *context, uint64_t *bytes_p);

/* Returns an ID that is unique in this process. */
uint64_t gpc_memory_next_id(void);

/* Number of attempts to allocate from a new mapping, as other threads may take its memory first. */
#define GPC_GROW_TRIES 16

/* Maps memory for a pool. */
CUresult gpc_memory_map(struct gpc_context *context, uint64_t size, struct gpc_heap_range *range_p);
/* Unmaps it, ordered after all work posted before, without waiting. */
void gpc_memory_unmap(struct gpc_context *context, const struct gpc_heap_range *range);
/* Requests the progress of the work, and handles the reply to the previous request. */
void gpc_memory_poll(struct gpc_context *context);
/* Allows the daemon to recall cached memory (memory_cache.h); called before something is cached. */
void gpc_memory_allow_recall(struct gpc_context *context);
/* Adds `more` bytes (modulo 2^64, so it may be negative) to the device's cached memory. */
void gpc_memory_count_cached(struct gpc_device *device, uint64_t more);
/* Waits for all posted work; gpc_memory_reclaim() then also returns all unused memory to the
 * daemon. */
CUresult gpc_memory_settle(struct gpc_context *context);
CUresult gpc_memory_reclaim(struct gpc_context *context);
/* Ensures that the mapping at base is unmapped when it is freed, and not cached, because another
 * process may have it. */
CUresult gpc_memory_set_uncacheable(struct gpc_context *context, uint64_t base);
/* Reserves addresses of the window for the caller to map memory at. */
CUresult gpc_memory_reserve_addresses(struct gpc_context *context, uint64_t size,
				      struct gpc_heap_range *range_p);
void gpc_memory_unreserve_addresses(struct gpc_context *context,
				    const struct gpc_heap_range *range);
/* Allocates memory of any size except 0. */
CUresult gpc_memory_alloc(struct gpc_context *context, uint64_t size, uint64_t *address_p);
/* Frees memory that does not belong to a pool. Returns CUDA_ERROR_INVALID_VALUE if no allocation
 * starts at the address. */
CUresult gpc_memory_free(struct gpc_context *context, uint64_t address);

/* Hooks for struct gpc_context_part: create the first chunk of the heap with a context, and free
 * the context's memory. */
CUresult gpc_memory_prepare_context(struct gpc_context *context,
				    struct gp_args_gpContextCreate *args);
void gpc_memory_context_made(struct gpc_context *context,
			     const struct gp_args_gpContextCreate *args, bool success);
void gpc_memory_drop_context(struct gpc_context *context);

#endif /* GPC_MEMORY_H */
