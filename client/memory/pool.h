/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools of the application (CUmemoryPool): stream-ordered allocations from mappings in the
 * session's window.
 *
 * A pool belongs to its device and outlives contexts. Its mappings count as used by the session
 * until they are unmapped: beyond the release threshold when the application synchronizes, and all
 * free ones when memory is exhausted.
 * Ownership: a destroyed pool is freed when it has no blocks and no references (gpc_pool_ref()).
 * Threads: any. Pools are looked up under the pools' lock, and referenced while a thread allocates
 * from one without the lock.
 * Errors: functions that return CUresult return CUDA_ERROR_OUT_OF_MEMORY if the quota, the device
 * or the window is exhausted.
 */
#ifndef GPC_POOL_H
#define GPC_POOL_H

#include "client/alloc/pool_space.h"
#include "client/base/handle.h"
#include "client/context/context.h"
#include "protocol/ipc_handle.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_address;
struct gpc_heap_range;
struct gpc_ipc_export;
struct gpc_pages_ops;

/* A memory pool. */
struct gpc_pool {
	struct gpc_handle handle;
	struct gpc_pool *next;
	struct gpc_device *device;
	bool standard;      /* default pool of its location */
	bool current;       /* location other than a device: set as its current pool */
	bool destroyed;     /* by the application; freed when nothing of it is in use */
	unsigned int users; /* number of references */
	uint64_t max_size;  /* 0: unlimited */
	uint64_t threshold;
	uint64_t peer_devices; /* bit mask of other devices that may access it */
	bool follow_events, opportunistic, internal_dependencies;
	/* Sharing with other processes (ipc_pool.h): allowed handle types and the export; or, for
	 * an imported pool, from which nothing can be allocated here, the exporter's handle. */
	unsigned int handle_types;
	struct gpc_ipc_export *share;
	bool imported;
	struct gp_ipc_handle origin;
	/* Kind of memory and, for the program's own pools, its location. */
	CUmemAllocationType type;
	CUmemLocation location;
	bool host; /* memory of this machine, accessible to kernels (client/host/pool_block.h) */
	/* Host memory that can be exported: the file that contains all mappings, else -1; and
	 * whether the program has its descriptor. */
	int file;
	bool exported;
	/* Managed memory: the context, and pages here (client/pages/pages.h); else NULL. The
	 * program's own pools outlive the context, as pools do. */
	struct gpc_context *managed;
	bool own; /* managed memory: a pool of the program's own */
	const struct gpc_pages_ops *pages;
	uint64_t spare; /* unused bytes of the space that are counted as cached */
	struct gpc_space space;
};

/* Lock for the functions below that take a pool, and for all fields. */
void gpc_pools_lock(void);
void gpc_pools_unlock(void);

/* Called with the lock held. Return NULL if there is no such pool or, for create and get_default,
 * if memory is exhausted. */
struct gpc_pool *gpc_pool_get(CUmemoryPool handle);
struct gpc_pool *gpc_pool_create(struct gpc_device *device);
struct gpc_pool *gpc_pool_get_default(struct gpc_device *device);
struct gpc_pool *gpc_pool_get_current(struct gpc_device *device);
void gpc_pool_set_current(struct gpc_pool *pool);

/* Return the first of all pools, and the pool mapping around the address, or NULL. */
struct gpc_pool *gpc_pools_first(void);
struct gpc_space_mapping *gpc_pool_find_mapping(uint64_t address);
struct gpc_pool *gpc_pool_from_mapping(const struct gpc_space_mapping *mapping);
/* Unmaps one free mapping of a pool, as long as `keep` bytes stay mapped; with `spare`, the last
 * one may be retained. Returns false if there is none to unmap. */
bool gpc_pool_release_mapping(struct gpc_pool *pool, uint64_t keep, bool spare);
/* Makes freed memory available if the work posted before its free is known to be done. */
void gpc_pool_reap(struct gpc_pool *pool);
/* Updates the count of cached memory (memory.h) with the pool's unused bytes beyond the
 * threshold. */
void gpc_pool_count_spare(struct gpc_pool *pool);
/* Acquires a reference: the pool is not freed until gpc_pool_unref(), even if it is destroyed. */
void gpc_pool_ref(struct gpc_pool *pool);

/* Returns the device whose daemon serves locations other than devices: that of the current context,
 * or the first one. */
struct gpc_device *gpc_pool_device(void);
/* Returns whether host memory pools are supported, as the daemon can make host memory accessible to
 * kernels. */
bool gpc_pool_can_be_host(const struct gpc_device *device);

/* Returns the pool for a context's managed memory, which is freed with the context; pages must be
 * the same in all calls. */
struct gpc_pool *gpc_pool_get_managed(struct gpc_context *context,
				      const struct gpc_pages_ops *pages);

/* Called without the lock: frees the rest of a context's managed memory, while calls in the context
 * are still possible. */
void gpc_pool_drop_context(struct gpc_context *context);

/* For pool.c: map memory for the pool's blocks (without the lock), and unmap it (with or without
 * the lock). */
CUresult gpc_pool_map(struct gpc_pool *pool, uint64_t size, struct gpc_heap_range *range);
void gpc_pool_unmap(const struct gpc_pool *pool, const struct gpc_heap_range *range);
/* Returns the size to map for a block: the preferred and the required one; 0: the pool's maximum
 * size is reached. Called without the lock. */
void gpc_pool_sizes(struct gpc_pool *pool, uint64_t size, uint64_t *wanted_p, uint64_t *needed_p);

/* Returns whether there has ever been a pool. */
bool gpc_pools_any(void);
/* Called with the lock held: frees destroyed pools that waited only for work that is now done. */
void gpc_pools_drop_unused(void);
void gpc_pool_unref(struct gpc_pool *pool);
/* Invalidates the handle; the pool is freed now or with its last block. */
void gpc_pool_destroy(struct gpc_pool *pool);
/* Unmaps free memory as long as `keep` bytes stay reserved. */
void gpc_pool_trim(struct gpc_pool *pool, uint64_t keep);

/* A stream number that no stream has: memory freed with it is reused only when the work is done. */
#define GPC_POOL_NO_STREAM UINT64_MAX

/* Allocates memory from the pool, or from the current pool of the context's device (handle NULL). A
 * stream is identified by its number (cuStreamGetId), which is unique, and its context. Returns
 * CUDA_ERROR_INVALID_VALUE for an invalid or imported pool. */
CUresult gpc_pool_alloc(CUmemoryPool handle, const struct gpc_context *context, uint64_t stream,
			uint64_t size, CUdeviceptr *address_p);
/* Frees memory in the order of the stream, or of no stream (NULL, 0). Returns
 * CUDA_ERROR_INVALID_VALUE if the address is not a block of a pool. */
CUresult gpc_pool_free(uint64_t address, struct gpc_context *context, uint64_t stream);

/* Returns the order of a free on a stream, or on no stream (NULL, 0). */
struct gpc_space_free_order gpc_pool_get_end(struct gpc_session *session,
					     const struct gpc_context *context, uint64_t stream);

/* Fills in `found` and returns true if the address is in a block of a pool. */
bool gpc_pool_find(uint64_t address, struct gpc_address *found);

/* gpc_pool_frees() returns the number of frees so far. It is called before a synchronization, and
 * the number is passed to one of the other functions after it: memory freed before in the order of
 * this stream, or of any stream of the context, is no longer in use. */
uint64_t gpc_pool_frees(void);
void gpc_pool_stream_done(const struct gpc_context *context, uint64_t stream, uint64_t frees);
void gpc_pool_context_done(struct gpc_context *context, uint64_t frees);
void gpc_pool_event_done(struct gpc_context *context);

/* gpc_pool_reclaim() unmaps all free memory of the device's pools; called when memory is exhausted
 * and all work is done. gpc_pool_release_spare() unmaps the cached memory of the session's pools
 * when the daemon recalls it. */
void gpc_pool_reclaim(struct gpc_device *device);
void gpc_pool_release_spare(const struct gpc_session *session);
/* Returns the unused bytes of the device's pools beyond their thresholds. */
uint64_t gpc_pool_spare(const struct gpc_device *device);

#endif /* GPC_POOL_H */
