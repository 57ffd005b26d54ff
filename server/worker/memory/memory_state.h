/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a session's device memory, for memory*.c only: memory.c has what is mapped,
 * memory_leave.c what is on its way out.  The session's; executor only, but for what `lock` guards,
 * which the responder changes, too.
 */
#ifndef GPD_MEMORY_STATE_H
#define GPD_MEMORY_STATE_H

#include "server/common/ledger/channel.h"
#include "server/worker/device/device.h"
#include "server/worker/memory/memory.h"

#include <pthread.h>
#include <stddef.h>

/* Ranges of addresses besides the window. */
#define RESERVED_MAX 64

struct gpd_chunk {
	uint64_t address;
	uint64_t size;
	int device;
	CUmemGenericAllocationHandle handle;
	struct gpd_physical *physical;      /* NULL: the memory is the chunk's own */
	struct gpd_shared_physical *shared; /* or one of its users, if this is not NULL */
	bool granted;                       /* until it is placed: the handle is the caller's */
	bool host;                          /* of the machine's memory, which all devices reach */
	bool rdma_tried, rdma_registered;   /* for, and by, the lanes' RDMA device */
};

/* A chunk on its way out. */
struct gpd_leaving {
	struct gpd_leaving *next;
	struct gpd_memory *memory;
	struct gpd_chunk chunk;
	uint32_t leave; /* gpd_ledger_free_begin() */
	bool wedged;    /* nobody can tell when no work uses it any more */
};

struct gpd_allowance;

struct gpd_memory {
	struct gpd_session *session;
	uint64_t base;
	uint64_t size;
	struct gpd_chunk *chunks; /* by address */
	size_t count;
	size_t room;
	struct gpd_range reserved[RESERVED_MAX];      /* size 0: a free place */
	struct gpd_extent *extents;                   /* memory.h; utlist */
	const struct gpd_memory_array_ops *array_ops; /* NULL: it has no arrays */
	struct gpd_allowance *allowance;              /* grant.h; NULL before the first one */
	uint32_t peer_access[GPD_DEVICES_MAX]; /* whose memory: bit n, device n is given it, too */

	pthread_mutex_t lock;
	struct gpd_leaving *leaving;
};

/* memory.c: unmaps it, and gives the memory back if it is the chunk's own. */
void gpd_chunk_drop(const struct gpd_chunk *chunk);
/* The first chunk that ends behind address. */
size_t gpd_memory_find(const struct gpd_memory *memory, uint64_t address);

/* memory_leave.c: until nothing in the range is on its way out.  CUDA_ERROR_INVALID_VALUE:
 * something never will be. */
CUresult gpd_memory_wait_unmapped(struct gpd_memory *memory, uint64_t address, uint64_t size);
/* Is gone at once: no work uses it.  Frees it. */
void gpd_memory_leave_now(struct gpd_leaving *leaving);

#endif /* GPD_MEMORY_STATE_H */
