/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory pools of the application (CUmemoryPool): memory allocated and freed in stream order, cut
 * here from mappings of the session's window.  A pool belongs to its device and outlives contexts.
 * What it maps counts as used by the session until it is given back: beyond the release threshold
 * when the application synchronises, all that is free when memory runs out.  Any thread may call.
 * They are looked up under a lock, and counted while a thread allocates from one without it.
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

struct gpc_pool {
	struct gpc_handle handle;
	struct gpc_pool *next;
	struct gpc_device *device;
	bool standard;      /* the default pool of its location */
	bool current;       /* of a location that is no device: the one that was set for it */
	bool destroyed;     /* by the application; goes when nothing of it is in use */
	unsigned int users; /* threads that are allocating */
	uint64_t max_size;  /* 0: none */
	uint64_t threshold;
	uint64_t peer_devices; /* bits of the application's devices that may touch it besides */
	bool follow_events, opportunistic, internal_dependencies;
	/* For other processes (pool_share.h): as what it may be exported, and by what it has been;
	 * or it is another one's, named so, of which nothing can be allocated here. */
	unsigned int handle_types;
	struct gpc_ipc_export *share;
	bool imported;
	struct gp_ipc_handle origin;
	/* What it is made of, and, of the program's, where. */
	CUmemAllocationType type;
	CUmemLocation location;
	bool host; /* this machine's memory, which kernels reach (client/host/host_pooled.h) */
	/* Of host memory that other processes may import: the file that all mappings are parts of,
	 * else -1; and whether the program has its descriptor. */
	int file;
	bool exported;
	/* Of managed memory, which is a context's and has pages here (client/pages/pages.h); else
	 * NULL.  The program's own outlives the context's end, as pools do. */
	struct gpc_context *managed;
	bool own; /* of managed memory: the program's */
	const struct gpc_pages_ops *pages;
	uint64_t spare; /* bytes of the space, as counted in what the client keeps */
	struct gpc_space space;
};

/* For the functions below that take a pool, and all its fields. */
void gpc_pools_lock(void);
void gpc_pools_unlock(void);

/* With the lock held.  NULL: no such pool; from create and default_of: no memory for it. */
struct gpc_pool *gpc_pool_get(CUmemoryPool handle);
struct gpc_pool *gpc_pool_create(struct gpc_device *device);
struct gpc_pool *gpc_pool_get_default(struct gpc_device *device);
struct gpc_pool *gpc_pool_get_current(struct gpc_device *device);
void gpc_pool_set_current(struct gpc_pool *pool);

/* All of them, and what is mapped for one of them around the address; NULL: nothing is. */
struct gpc_pool *gpc_pools_first(void);
struct gpc_space_mapping *gpc_pool_find_mapping(uint64_t address);
struct gpc_pool *gpc_pool_from_mapping(const struct gpc_space_mapping *mapping);
/* Gives back one mapping of a pool; false: there is none to give back. */
bool gpc_pool_release_mapping(struct gpc_pool *pool, uint64_t keep, bool spare);
/* Takes what was freed before work that is known to be done. */
void gpc_pool_reap(struct gpc_pool *pool);
/* What nothing uses beyond the threshold counts as kept (memory.h), from now on, or no more. */
void gpc_pool_count_spare(struct gpc_pool *pool);
/* The pool stays as long as it is held, destroyed or not. */
void gpc_pool_ref(struct gpc_pool *pool);

/* The device whose daemon has what a location that is no device needs: the current context's, or
 * the first one. */
struct gpc_device *gpc_pool_device(void);
/* Whether there can be pools of host memory: the daemon has kernels reach it. */
bool gpc_pool_can_be_host(const struct gpc_device *device);

/* Of a context's managed memory, which its pages go with; the same for all calls. */
struct gpc_pool *gpc_pool_get_managed(struct gpc_context *context,
				      const struct gpc_pages_ops *pages);

/* Without it.  What is left of a context's managed memory goes, while calls in its name are still
 * possible. */
void gpc_pool_drop_context(struct gpc_context *context);

/* For pool.c.  More memory for the pool's blocks, and back: without the lock, or with it. */
CUresult gpc_pool_map(struct gpc_pool *pool, uint64_t size, struct gpc_heap_range *range);
void gpc_pool_unmap(const struct gpc_pool *pool, const struct gpc_heap_range *range);
/* How much more should be mapped for a block, and must be; 0: it may not.  Without the lock. */
void gpc_pool_sizes(struct gpc_pool *pool, uint64_t size, uint64_t *wanted_p, uint64_t *needed_p);

/* Whether there has been any. */
bool gpc_pools_any(void);
/* With the lock held: destroyed ones that waited for work are done with it. */
void gpc_pools_drop_unused(void);
void gpc_pool_unref(struct gpc_pool *pool);
/* The handle is forgotten; the rest goes now, or with the last block. */
void gpc_pool_destroy(struct gpc_pool *pool);
/* Gives back what is free, as long as keep bytes stay reserved. */
void gpc_pool_trim(struct gpc_pool *pool, uint64_t keep);

/* Another stream than all that there are: what is freed is had again when work is done. */
#define GPC_POOL_NO_STREAM UINT64_MAX

/* A stream is named by its number (cuStreamGetId), which is no other's, and its context.
 * Memory for it, from the pool, or from the current one of its device (handle NULL). */
CUresult gpc_pool_alloc(CUmemoryPool handle, const struct gpc_context *context, uint64_t stream,
			uint64_t size, CUdeviceptr *address_p);
/* In the order of the stream, or of none (NULL, 0).  CUDA_ERROR_INVALID_VALUE: it is no pool's. */
CUresult gpc_pool_free(uint64_t address, struct gpc_context *context, uint64_t stream);

/* The end of use for a free in the order of a stream, or of none (NULL, 0). */
struct gpc_space_free_order gpc_pool_get_end(struct gpc_session *session,
					     const struct gpc_context *context, uint64_t stream);

/* Whether address is in a block of a pool, and which. */
bool gpc_pool_find(uint64_t address, struct gpc_address *found);

/* How many frees there have been.  Asked before a synchronisation, and told after it: what was
 * freed before in this stream's order, or in that of any of the context, is not in use any more. */
uint64_t gpc_pool_frees(void);
void gpc_pool_stream_done(const struct gpc_context *context, uint64_t stream, uint64_t frees);
void gpc_pool_context_done(struct gpc_context *context, uint64_t frees);
void gpc_pool_event_done(struct gpc_context *context);

/* Memory of the device has run out, and all work is done: gives back all that is free.  Or what the
 * program does not have the pools keep: others want it. */
void gpc_pool_reclaim(struct gpc_device *device);
void gpc_pool_release_spare(const struct gpc_session *session);
/* Bytes of the device that its pools have and that nothing uses, beyond what the program has them
 * keep. */
uint64_t gpc_pool_spare(const struct gpc_device *device);

#endif /* GPC_POOL_H */
