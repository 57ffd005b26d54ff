/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal state of a session's device memory, for memory*.c only: memory.c handles mappings,
 * memory_release.c their removal.
 *
 * Ownership: the session.
 * Threads: executor only, except members protected by `lock`, which the responder changes, too.
 */
#ifndef GPD_MEMORY_INTERNAL_H
#define GPD_MEMORY_INTERNAL_H

#include "server/common/ledger/channel.h"
#include "server/worker/device/device.h"
#include "server/worker/memory/memory.h"

#include <pthread.h>
#include <stddef.h>

/* Maximum number of address ranges besides the window. */
#define RESERVED_MAX 64

/* A mapping of memory at an address. */
struct gpd_chunk {
	uint64_t address;
	uint64_t size;
	int device;
	CUmemGenericAllocationHandle handle;
	struct gpd_physical *physical;      /* NULL: the chunk owns the memory */
	struct gpd_shared_physical *shared; /* if not NULL, the chunk is one of its users */
	bool granted;                       /* set until it is mapped: the caller owns the handle */
	bool host;                          /* memory of the machine, accessible to all devices */
	bool rdma_tried, rdma_registered;   /* with the lanes' RDMA device */
};

/* A chunk that is being unmapped. */
struct gpd_leaving {
	struct gpd_leaving *next;
	struct gpd_memory *memory;
	struct gpd_chunk chunk;
	uint32_t leave; /* from gpd_ledger_free_begin() */
	bool wedged;    /* the end of its use cannot be detected */
};

struct gpd_allowance;

struct gpd_memory {
	struct gpd_session *session;
	struct gpd_chunk *chunks; /* sorted by address */
	size_t count;
	size_t room;
	struct gpd_range reserved[RESERVED_MAX];      /* size 0: a free entry */
	struct gpd_extent *extents;                   /* memory.h; utlist */
	const struct gpd_memory_array_ops *array_ops; /* NULL: it has no arrays */
	struct gpd_allowance *allowance;              /* allowance.h; NULL before the first one */
	uint32_t peer_access[GPD_DEVICES_MAX];        /* by owner: bit n, device n has access */

	pthread_mutex_t lock;
	struct gpd_leaving *leaving;
};

/* Unmaps the chunk, and frees its memory if the chunk owns it; memory.c. */
void gpd_chunk_drop(const struct gpd_chunk *chunk);
/* Returns the index of the first chunk that ends after address. */
size_t gpd_memory_find(const struct gpd_memory *memory, uint64_t address);

/* Waits until no chunk in the range is being unmapped. CUDA_ERROR_INVALID_VALUE: one of them will
 * never be; memory_release.c. */
CUresult gpd_memory_wait_unmapped(struct gpd_memory *memory, uint64_t address, uint64_t size);
/* Unmaps and frees a chunk that no work uses. */
void gpd_memory_leave_now(struct gpd_leaving *leaving);

#endif /* GPD_MEMORY_INTERNAL_H */
