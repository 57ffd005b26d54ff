/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registry of host memory blocks: memory that the program allocated with CUDA, registered with
 * CUDA, or mapped from a pool or a physical allocation, and how kernels access it
 * (docs/host-memory.md).
 *
 * Ownership: the registry owns a block until gpc_host_block_remove() returns it to one thread,
 * which then frees it with gpc_host_block_destroy().
 * Threads: any.
 */
#ifndef GPC_HOST_BLOCK_H
#define GPC_HOST_BLOCK_H

#include "base/status.h"
#include "client/alloc/heap.h"
#include "client/base/ranges.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_context;
struct gpc_pointer_scan;

/* How kernels access a block; see docs/host-memory.md. */
enum gpc_host_state {
	GPC_HOST_PLAIN,      /* never accessible to kernels */
	GPC_HOST_COPY_ONLY,  /* not yet accessible to kernels */
	GPC_HOST_REPLICATED, /* the daemon has a replica */
	GPC_HOST_SHARED,     /* the same memory as the daemon's */
};

/* Owner of the memory itself. */
enum gpc_host_origin {
	GPC_HOST_ALLOCATED,  /* the block; freed with it */
	GPC_HOST_REGISTERED, /* the program */
	GPC_HOST_POOLED,     /* a mapping of a pool, which contains the block */
	GPC_HOST_PLACED,     /* a mapped physical allocation (client/memory/virtual_memory.h) */
};

/* A block of host memory. */
struct gpc_host_block {
	struct gpc_context *context;
	unsigned int flags;
	enum gpc_host_origin origin;
	enum gpc_host_state state;
	uint64_t id;
	uint64_t host;                      /* start address in this process */
	uint64_t device;                    /* address for kernels, now or later; 0: none */
	struct gpc_heap_range worker_range; /* registered and replicated: the daemon's memory */
	size_t mapped;                      /* plain and allocated: size in whole pages */
	void *pool;                         /* pooled: the CUmemoryPool */
	bool copied;                        /* the program has passed it to a copy */
	bool speculative; /* replicated only because of pointers that may be stale */
	bool awaited;     /* streams may wait for values in it */
	bool exchanged;   /* pooled: other processes may have the memory too */
};

/* Numbers of blocks of all sessions: those that are copy-only or speculative, those that were
 * registered, and those that are shared with the daemon. */
extern atomic_uint gpc_host_memory_copy_only, gpc_host_memory_registered, gpc_host_memory_shared;

/* Set when host memory was exported to or imported from other processes: from then on their events
 * exchange changes (client/stream/event.c). */
extern atomic_bool gpc_host_memory_exchanged;

/* Adds a copy of `what` to the registry, for the memory at the address. Returns GP_E_INVALID if a
 * block overlaps, or -ENOMEM. */
GP_MUST_CHECK int gpc_host_block_add(void *address, size_t size, const struct gpc_host_block *what);

/* Finds the block around an address of the program or, if elsewhere_p is not NULL, of kernels
 * (*elsewhere_p is then true). Copies its current state to *copy_p. Returns false if there is
 * none. */
bool gpc_host_block_find(uint64_t address, struct gpc_range *range_p, struct gpc_host_block *copy_p,
			 bool *elsewhere_p);

/* Removes the block that starts at the address and returns it; the caller owns it. Returns NULL if
 * there is none of that origin; *known_p tells whether the address is in any block. */
struct gpc_host_block *gpc_host_block_remove(uint64_t address, enum gpc_host_origin origin,
					     struct gpc_range *taken, bool *known_p);
/* Waits for copies in flight to or from the memory, unmaps it from the device and frees the block.
 * Returns the error of these copies. */
CUresult gpc_host_block_destroy(struct gpc_host_block *block, const struct gpc_range *range);

/* Makes the block around the address accessible to kernels, at *device_p, and all blocks that its
 * contents point to. Returns CUDA_ERROR_NOT_SUPPORTED if kernels cannot access it,
 * CUDA_ERROR_NOT_PERMITTED if kernels access the same memory at another address,
 * CUDA_ERROR_INVALID_VALUE if there is no block. */
CUresult gpc_host_block_map(uint64_t address, uint64_t *device_p);

/* The same for all blocks in the list, which is then empty unless an error is returned. */
CUresult gpc_host_block_map_pointers(struct gpc_pointer_scan *pointers);

/* Called before a copy that reads or writes the block around an address of the program. A
 * speculative block becomes copy-only and remains speculative, because kernels may still access
 * it. */
void gpc_host_block_note_copied(uint64_t address);

/* Called before a stream waits for a value in the block around an address of the program or of
 * kernels. */
void gpc_host_block_note_awaited(uint64_t address);
/* Waits until no stream waits for values in the block around the address. */
CUresult gpc_host_block_settle_wait_values(uint64_t address);

/* Returns whether the whole range is mapped in this process. */
bool gpc_host_block_is_mapped(const void *memory, size_t size);

/* Returns false if the address cannot be in registered memory: a quick check without a lock. */
bool gpc_host_block_may_be_registered(uint64_t address);

/* Destroys the context's allocated and registered blocks. */
void gpc_host_block_drop_context(struct gpc_context *context);

#endif /* GPC_HOST_BLOCK_H */
