/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory allocator of a session: a heap in the session's address window (the range of device
 * addresses that is reserved on both sides), managed by the client.
 *
 * Small allocations are made from mapped chunks without a round trip; large ones are mappings of
 * their own. Freed memory is reused only when the work posted before the free is done.
 *
 * Ownership: an allocation belongs to its context and is freed with it. The allocator of a session
 * is never freed.
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note).
 * Errors: functions that return CUresult return CUDA_SUCCESS; CUDA_ERROR_OUT_OF_MEMORY if the
 * quota, the device, the window or this process's memory is exhausted; the session's error; or the
 * errors named at them. Out parameters are undefined after an error.
 * Units: bytes.
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

/* Returns whether the address is in the window of any session. If so, fills in *found; its kind is
 * GPC_ADDRESS_INVALID if this allocator has nothing there. Otherwise *found is unchanged. */
bool gpc_memory_find(uint64_t address, struct gpc_address *found);

/* Stores in *bytes_p the amount of unused memory that the context can allocate without asking the
 * daemon: in its chunks, cached for its device, and in the allowance. Does not wait. Returns true,
 * or false with *bytes_p unchanged if this process's memory is exhausted. */
bool gpc_memory_available(struct gpc_context *context, uint64_t *bytes_p);

/* Returns an ID for CU_POINTER_ATTRIBUTE_BUFFER_ID, unique in this process and never 0. */
uint64_t gpc_memory_next_id(void);

/* Number of times that an allocator maps more memory for one allocation, as other threads may take
 * the memory first. */
#define GPC_GROW_TRIES 16

/* Maps at least `size` bytes of device memory for a pool and stores the mapping in *range_p. Uses a
 * cached mapping if possible; otherwise may wait for the daemon, or for posted work. The caller
 * owns the mapping and returns it with gpc_memory_unmap(). */
CUresult gpc_memory_map(struct gpc_context *context, uint64_t size, struct gpc_heap_range *range_p);
/* Caches or unmaps a mapping of gpc_memory_map(). It is reused only after all work posted before.
 * Does not wait. */
void gpc_memory_unmap(struct gpc_context *context, const struct gpc_heap_range *range);
/* Requests the progress of the posted work from the daemon, and handles the reply to the previous
 * request if it has arrived; freed memory then becomes reusable. Does not wait. */
void gpc_memory_poll(struct gpc_context *context);
/* Sends the daemon a request to which it replies when it recalls cached memory (memory_cache.h),
 * unless such a request is outstanding. Called before something is cached. Does not wait. */
void gpc_memory_allow_recall(struct gpc_context *context);
/* Adds `more` bytes (modulo 2^64, so it may be negative) to the device's count of cached memory.
 * Reports the count to the daemon when it has changed by 32 MiB. Does not wait. */
void gpc_memory_count_cached(struct gpc_device *device, uint64_t more);
/* Blocks, without limit, until all posted work and unmappings of the session are done. May return
 * the error of an earlier posted call. */
CUresult gpc_memory_settle(struct gpc_context *context);
/* Called when an allocation has failed, before it is tried again: returns all unused memory to the
 * daemon, including that of the pools of the context's device and the allowance. Blocks, without
 * limit, until all posted work is done and the memory is returned. May return the error of an
 * earlier posted call. */
CUresult gpc_memory_reclaim(struct gpc_context *context);
/* Ensures that the mapping at base is unmapped, not cached, when it is freed next. Called before it
 * is exported, because another process may then have it mapped. Does not wait. */
CUresult gpc_memory_set_uncacheable(struct gpc_context *context, uint64_t base);
/* Reserves at least `size` bytes of addresses of the window, stored in *range_p, at which the
 * caller maps memory. Does not wait. The caller releases them with
 * gpc_memory_unreserve_addresses(). Returns CUDA_SUCCESS or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gpc_memory_reserve_addresses(struct gpc_context *context, uint64_t size,
				      struct gpc_heap_range *range_p);
/* Releases addresses of gpc_memory_reserve_addresses(), which may be reused at once. Called after
 * the unmapping of what was mapped there has been posted. */
void gpc_memory_unreserve_addresses(struct gpc_context *context,
				    const struct gpc_heap_range *range);
/* Allocates memory of any size except 0 (more than the window: CUDA_ERROR_OUT_OF_MEMORY) and stores
 * its address in *address_p; gpc_memory_free() frees it. May wait for the daemon. Also waits,
 * without limit, for posted work if memory is exhausted or much freed memory waits for work. */
CUresult gpc_memory_alloc(struct gpc_context *context, uint64_t size, uint64_t *address_p);
/* Frees an allocation of any context. The memory is reused after all work posted before. context:
 * the one in which calls are posted; for memory of another daemon, its owner is used instead. Does
 * not wait. Returns CUDA_SUCCESS, or CUDA_ERROR_INVALID_VALUE, without any effect, if no allocation
 * of gpc_memory_alloc() starts at the address. */
CUresult gpc_memory_free(struct gpc_context *context, uint64_t address);

/* Callback prepare() of struct gpc_context_part (client/context/context.h), called before the
 * context is created in the daemon: reserves addresses for the first chunk of the context's heap,
 * and stores them in *args; without addresses, the context has no first chunk. Always returns
 * CUDA_SUCCESS. */
CUresult gpc_memory_prepare_context(struct gpc_context *context,
				    struct gp_args_gpContextCreate *args);
/* Callback created() of struct gpc_context_part, called after the daemon has replied: adds the
 * first chunk, or releases its addresses unless `success`. */
void gpc_memory_context_made(struct gpc_context *context,
			     const struct gp_args_gpContextCreate *args, bool success);
/* Callback drop_context() of struct gpc_context_part, called when the context is destroyed or
 * reset: unmaps the context's memory and drops all cached objects of the session. Does not wait. */
void gpc_memory_drop_context(struct gpc_context *context);

#endif /* GPC_MEMORY_H */
