/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools of the application (CUmemoryPool): stream-ordered allocations (blocks) from mappings
 * in the session's window.
 *
 * A pool belongs to its device and outlives contexts. Its mappings count as used by the session
 * until they are unmapped. Free mappings beyond the release threshold are unmapped when the
 * application synchronizes, and all free ones when memory is exhausted.
 *
 * Ownership: a destroyed pool is freed when it has no blocks and no references (gpc_pool_ref()).
 * Pools of memory that is also accessible to the program are freed when, in addition, the work
 * before the last frees is done.
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note). Pools are looked up under the pools' lock, and
 * referenced while a thread allocates from a pool without the lock. A pool pointer is valid while
 * the lock is held or a reference is owned.
 * Errors: functions that return CUresult return CUDA_SUCCESS; CUDA_ERROR_OUT_OF_MEMORY if the
 * quota, the device, the window or this process's memory is exhausted; the errors named at them; or
 * the session's error.
 * Units: bytes. Streams are given by their numbers (gpc_stream.number, client/stream/stream.h).
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

/* A memory pool. Guarded by the pools' lock. */
struct gpc_pool {
	struct gpc_handle handle;
	struct gpc_pool *next; /* in the list of all pools */
	struct gpc_device *device;
	bool is_default; /* default pool of its location; never destroyed by the application */
	/* only for locations other than devices: it is the current pool of its location */
	bool current;
	bool destroyed; /* destroyed by the application; freed when it is not in use any more */
	/* number of references (gpc_pool_ref()): of threads, and of imported mappings
	 * (ipc_pool.h) */
	unsigned int users;
	/* maximum total size of its mappings; 0: unlimited */
	uint64_t max_size;
	uint64_t threshold;    /* CU_MEMPOOL_ATTR_RELEASE_THRESHOLD */
	uint64_t peer_devices; /* bit mask of other devices (CUdevice) that may access it */
	bool follow_events, opportunistic, internal_dependencies; /* CU_MEMPOOL_ATTR_REUSE_* */
	/* Mask of CUmemAllocationHandleType with which the pool may be shared with other processes
	 * (ipc_pool.h); 0: not at all. */
	unsigned int handle_types;
	/* Export of the pool, owned; NULL: not exported. */
	struct gpc_ipc_export *export;
	/* Imported from another process: nothing can be allocated from it here. `origin` is the
	 * exporter's handle, for device memory. */
	bool imported;
	struct gp_ipc_handle origin;
	/* Type and location of the memory, as the program reads them. */
	CUmemAllocationType type;
	CUmemLocation location;
	/* pool of host memory of this machine that kernels can access (client/host/pool_block.h) */
	bool host;
	/* Pool of host memory that can be exported: the file that contains all its mappings, owned;
	 * -1: none. */
	int file;
	/* The program has a descriptor of `file`. */
	bool exported;
	/* For a pool of managed memory, the context through which its pages are transferred: a
	 * primary context, if the program created the pool. The pointer stays valid after the
	 * context is destroyed or reset, as contexts are never freed; transfers then need it to be
	 * active again. NULL: not a pool of managed memory. */
	struct gpc_context *managed;
	/* managed memory: created by the program, not by gpc_pool_get_managed() */
	bool created_by_program;
	/* managed memory: functions for its pages (client/pages/pages.h), static; NULL: not managed
	 * memory */
	const struct gpc_pages_ops *pages;
	/* unused bytes of it that are counted as cached at present (gpc_memory_count_cached(),
	 * memory.h) */
	uint64_t counted_cached;
	/* blocks and mappings (client/alloc/pool_space.h) */
	struct gpc_space space;
};

/* Acquires the pools' lock, which guards all pools and the list of pools. It is not recursive. */
void gpc_pools_lock(void);
/* Releases the pools' lock. */
void gpc_pools_unlock(void);

/* Called with the lock held: returns the pool of a handle, or NULL if the handle is invalid or the
 * pool was destroyed. */
struct gpc_pool *gpc_pool_get(CUmemoryPool handle);
/* Called with the lock held: creates a pool of device memory without mappings, which
 * gpc_pool_destroy() destroys. Returns NULL if memory or handles are exhausted. */
struct gpc_pool *gpc_pool_create(struct gpc_device *device);
/* Called with the lock held: returns the device's default pool, which is created if necessary, or
 * NULL if memory is exhausted. */
struct gpc_pool *gpc_pool_get_default(struct gpc_device *device);
/* Called with the lock held: returns the device's current pool, by default the default pool, or
 * NULL if memory is exhausted. */
struct gpc_pool *gpc_pool_get_current(struct gpc_device *device);
/* Called with the lock held: makes the pool the current pool of its device. */
void gpc_pool_set_current(struct gpc_pool *pool);

/* Called with the lock held: returns the first of all pools, linked by `next`, or NULL if there are
 * none. */
struct gpc_pool *gpc_pools_first(void);
/* Called with the lock held: returns the mapping of any pool that contains the address, or NULL if
 * there is none. */
struct gpc_space_mapping *gpc_pool_find_mapping(uint64_t address);
/* Called with the lock held: returns the pool of a mapping. */
struct gpc_pool *gpc_pool_from_mapping(const struct gpc_space_mapping *mapping);
/* Called with the lock held: acquires a reference. Until gpc_pool_unref() the pool is not freed,
 * even if it is destroyed. */
void gpc_pool_ref(struct gpc_pool *pool);

/* Returns the device for pools with locations other than devices: that of the current context or,
 * without a current context, the first device. */
struct gpc_device *gpc_pool_device(void);
/* Returns whether pools of host memory are supported, which requires that the daemon can make host
 * memory accessible to kernels. */
bool gpc_pool_can_be_host(const struct gpc_device *device);

/* Called with the lock held: returns the pool for the context's managed memory, which is created if
 * necessary and freed by gpc_pool_drop_context(). Returns NULL if memory is exhausted. pages must
 * be the same in all calls and stay valid. */
struct gpc_pool *gpc_pool_get_managed(struct gpc_context *context,
				      const struct gpc_pages_ops *pages);

/* Callback unload() of struct gpc_context_part (client/context/context.h), called without the lock
 * before the context is destroyed or reset, while calls in it are still possible: frees its managed
 * memory, even if it is in use. */
void gpc_pool_drop_context(struct gpc_context *context);

/* Returns whether there has ever been a pool. A quick check without the lock. */
bool gpc_pools_any(void);
/* Called without the lock: drops a reference. Frees a destroyed pool that is not in use any
 * more. */
void gpc_pool_unref(struct gpc_pool *pool);
/* Called without the lock, not for a default pool: invalidates the handle. The pool is freed now or
 * when it is not in use any more, so the pointer is then invalid. The caller has claimed the
 * handle (gpc_handle_claim()), so that no other thread destroys the pool at the same time. If it
 * was the current pool of its device, the default pool becomes current. */
void gpc_pool_destroy(struct gpc_pool *pool);
/* Called without the lock: unmaps free memory as long as `keep` bytes stay mapped
 * (cuMemPoolTrimTo). Does not wait. */
void gpc_pool_trim(struct gpc_pool *pool, uint64_t keep);

/* A stream number that no stream has: memory allocated with it is not reused in the order of a
 * stream, but only when the work posted before its free is done. */
#define GPC_POOL_NO_STREAM UINT64_MAX

/* Called without the lock: allocates `size` bytes, not 0, in the order of a stream and stores the
 * address in *address_p; gpc_pool_free() frees them. handle NULL means the current pool of the
 * context's device. stream: number of the stream, or GPC_POOL_NO_STREAM; context: its context. May
 * wait for the daemon, and for posted work if memory is exhausted. Returns CUDA_ERROR_INVALID_VALUE
 * for an invalid or imported pool, or CUDA_ERROR_NOT_SUPPORTED if the pool belongs to another
 * daemon than the context. */
CUresult gpc_pool_alloc(CUmemoryPool handle, const struct gpc_context *context, uint64_t stream,
			uint64_t size, CUdeviceptr *address_p);
/* Called without the lock: frees a block, or an imported block (ipc_pool.h), in the order of the
 * stream with this number. context NULL: in the order of no stream; `stream` is then ignored. Does
 * not wait for work. Returns CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE if no block starts at the
 * address or it belongs to another daemon than the context, or CUDA_ERROR_OUT_OF_MEMORY; the block
 * is then not freed. */
CUresult gpc_pool_free(uint64_t address, struct gpc_context *context, uint64_t stream);

/* Called at a free, without a lock: returns its position in the order of work, for
 * client/alloc/pool_space.h. Each call counts as one free and gives it the next number. context
 * NULL: a free in the order of no stream; `stream` is then ignored. */
struct gpc_space_free_order gpc_pool_number_free(struct gpc_session *session,
						 const struct gpc_context *context,
						 uint64_t stream);

/* Called without the lock: returns whether the address is in a block of a pool. If so, fills in
 * *found; otherwise *found is unchanged. */
bool gpc_pool_find(uint64_t address, struct gpc_address *found);

/* Returns the number of frees so far, in constant time and without a lock. It is read before a
 * synchronization and, after it, passed to gpc_pool_stream_done() or gpc_pool_context_done(). */
uint64_t gpc_pool_frees(void);
/* Called without the lock after a synchronization with the stream with this number, of the context.
 * count: gpc_pool_frees() before the synchronization. Memory that was freed in the order of the
 * stream, up to that free, is no longer in use. Also unmaps free memory of the device's pools
 * beyond their release thresholds. Does not wait for work. */
void gpc_pool_stream_done(const struct gpc_context *context, uint64_t stream, uint64_t count);
/* Called without the lock after a synchronization with the context: memory that was freed in the
 * order of any of its streams, up to the free with number `count`, is no longer in use. Otherwise
 * like gpc_pool_stream_done(). */
void gpc_pool_context_done(struct gpc_context *context, uint64_t count);
/* Called without the lock after a synchronization with an event: unmaps free memory of the device's
 * pools beyond their release thresholds, and requests the progress of the work that freed memory
 * waits for. Does not wait for it. */
void gpc_pool_event_done(struct gpc_context *context);

/* Called without the lock when memory is exhausted and all work is done: unmaps all free mappings
 * of the device's pools. Does not wait. */
void gpc_pool_reclaim(struct gpc_device *device);
/* Called without the lock when the daemon recalls cached memory: unmaps the unused memory of the
 * session's pools beyond their thresholds. Does not wait. */
void gpc_pool_release_spare(const struct gpc_session *session);
/* Called without the lock: returns the unused bytes of the device's pools beyond their
 * thresholds. */
uint64_t gpc_pool_spare(const struct gpc_device *device);

#endif /* GPC_POOL_H */
