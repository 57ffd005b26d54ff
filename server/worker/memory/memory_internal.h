/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal state of a session's device memory, for the .c files of this folder only: memory.c adds
 * mappings, memory_release.c removes them.
 *
 * Ownership: session->memory, created and freed by memory.c.
 * Threads: executor only, except members protected by `lock`, which the responder also uses.
 * Errors: CUresult.
 * Units: bytes; devices are the worker's numbers.
 */
#ifndef GPD_MEMORY_INTERNAL_H
#define GPD_MEMORY_INTERNAL_H

#include "server/common/ledger/channel.h"
#include "server/worker/device/device.h"
#include "server/worker/memory/memory.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* Maximum number of additional address ranges per session. */
#define RESERVED_MAX 64

/* A mapping of memory at an address. */
struct gpd_chunk {
	uint64_t address;
	uint64_t size;
	int device;
	CUmemGenericAllocationHandle handle; /* of the driver */
	struct gpd_physical *physical; /* memory object that is mapped, borrowed; NULL: none */
	/* Memory shared with other sessions, a reference; NULL: not shared. The chunk owns `handle`
	 * if `physical` and `shared` are both NULL and `granted` is false. */
	struct gpd_shared_physical *shared;
	bool granted; /* until it is mapped the caller owns `handle`; then false */
	bool host;    /* host memory, accessible to all devices */
	/* Registration with the RDMA device of the data lanes: whether it was attempted, and
	 * whether it succeeded. */
	bool rdma_tried, rdma_registered;
};

/* A chunk that the client has unmapped and that stays mapped until the work enqueued before is
 * done. Allocated; freed by gpd_memory_leave_now(). */
struct gpd_leaving {
	struct gpd_leaving *next; /* list gpd_memory.leaving; lock */
	struct gpd_memory *memory;
	struct gpd_chunk chunk;
	uint32_t free_epoch; /* from gpd_ledger_free_begin(), for gpd_ledger_free_end() */
	/* its last use cannot be detected, because the GPU contexts are lost; executor only */
	bool wedged;
};

struct gpd_allowance;

/* Device memory of a session. */
struct gpd_memory {
	struct gpd_session *session;
	/* Mappings, sorted by address; allocated; NULL before the first one. */
	struct gpd_chunk *chunks;
	size_t count;    /* number of chunks */
	size_t capacity; /* of `chunks`, in elements */
	/* Additional address ranges; size 0: a free entry. */
	struct gpd_range reserved[RESERVED_MAX];
	struct gpd_extent *extents;                   /* open extents (memory.h), list (utlist) */
	const struct gpd_memory_array_ops *array_ops; /* NULL: the session has no arrays */
	/* Number of mappings, including those being unmapped, and of additional address ranges
	 * (gpd_memory_mapping_acquire()). */
	atomic_uint mappings;
	struct gpd_allowance *allowance; /* NULL before the first allowance */
	/* Indexed by the device that has the memory; bit n: device n has access. */
	uint32_t peer_access[GPD_DEVICES_MAX];

	/* Protects the list `leaving`, and the members leaving, released and counted of memory
	 * objects (physical_memory.h). */
	pthread_mutex_t lock;
	struct gpd_leaving *leaving; /* chunks being unmapped; a utlist; owned; lock */
};

/* Counts a mapping or an address range of the session against the worker's quota of mappings
 * (device/mapping_quota.h); if it is exhausted, after waiting for mappings that the session has
 * unmapped. Returns false, logs the refusal and counts nothing if it stays exhausted. Executor
 * only, without `lock` held. */
bool gpd_memory_mapping_acquire(struct gpd_memory *memory);
/* Ends what gpd_memory_mapping_acquire() has counted. Executor or responder. */
void gpd_memory_mapping_release(struct gpd_memory *memory);

/* Unmaps the chunk and, if the chunk owns its memory, releases the memory. First ends its
 * registration for RDMA. Does not drop references, uncharge or free the struct. Does not wait for
 * the GPU; no work may use the memory. Any thread. */
void gpd_chunk_drop(const struct gpd_chunk *chunk);
/* Returns the index of the first chunk that ends after address; memory->count if there is none. */
size_t gpd_memory_find(const struct gpd_memory *memory, uint64_t address);

/* Blocks until no chunk in the range is being unmapped, which takes as long as the session's work
 * that may use it. Returns CUDA_SUCCESS; or CUDA_ERROR_INVALID_VALUE if a chunk in the range is
 * wedged and will never be unmapped. Executor only, without `lock` held. */
CUresult gpd_memory_wait_unmapped(struct gpd_memory *memory, uint64_t address, uint64_t size);
/* Unmaps a chunk that no work uses, removes it from the list, drops its references, uncharges its
 * memory and frees `leaving`. If it was the last mapping of a released memory object, frees the
 * object. Executor or responder, without `lock` held. */
void gpd_memory_leave_now(struct gpd_leaving *leaving);

#endif /* GPD_MEMORY_INTERNAL_H */
