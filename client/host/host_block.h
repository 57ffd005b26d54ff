/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of host memory that the program had from CUDA or told it of: which there are, and whether
 * kernels reach them (docs/host-memory.md).
 *
 * A block is the list's until it is taken out, which one thread alone does; it goes with
 * gpc_host_block_destroy().  Any thread may call.
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

/* docs/host-memory.md says how they differ. */
enum gpc_host_state {
	GPC_HOST_PLAIN,      /* no kernel will reach it */
	GPC_HOST_COPY_ONLY,  /* none does yet */
	GPC_HOST_REPLICATED, /* the daemon has a copy */
	GPC_HOST_SHARED,     /* the daemon has the same */
};

/* Who has the memory itself. */
enum gpc_host_origin {
	GPC_HOST_ALLOCATED,  /* the block: it goes with it */
	GPC_HOST_REGISTERED, /* the program */
	GPC_HOST_POOLED,     /* a mapping of a pool, of which the block is a part */
	GPC_HOST_PLACED,     /* physical memory (client/memory/virtual_memory.h), which is mapped */
};

struct gpc_host_block {
	struct gpc_context *context;
	unsigned int flags;
	enum gpc_host_origin origin;
	enum gpc_host_state state;
	uint64_t id;
	uint64_t host;   /* where it begins */
	uint64_t device; /* where kernels reach it, or will; 0: nowhere */
	struct gpc_heap_range
		worker_range; /* registered and mirrored: what the daemon has for it */
	size_t mapped;        /* plain and allocated: whole pages */
	void *pool;           /* pooled: the CUmemoryPool */
	bool copied;          /* the program has named it to a copy */
	bool speculative;     /* only what may be left over had it mirrored */
	bool awaited;         /* streams may wait for words of it */
	bool exchanged;       /* pooled: other processes may have the memory, too */
};

/* Blocks that kernels do not reach yet and could, or that are doubted; those that were registered;
 * and those that are shared with the daemon: of all sessions. */
extern atomic_uint gpc_host_memory_copy_only, gpc_host_memory_registered, gpc_host_memory_shared;

/* Host memory was exported to, or imported from, other processes: their events are points of
 * exchange from then on (client/stream/event.c). */
extern atomic_bool gpc_host_memory_exchanged;

/* A copy of what it says is in the list from now on, as the memory at the address.  GP_E_INVALID:
 * there is one already; -ENOMEM. */
GP_MUST_CHECK int gpc_host_block_add(void *address, size_t size, const struct gpc_host_block *what);

/* The block around an address of the program's, or (elsewhere_p is not NULL, and set) of kernels',
 * as it is now. */
bool gpc_host_block_find(uint64_t address, struct gpc_range *range_p, struct gpc_host_block *copy_p,
			 bool *elsewhere_p);

/* Takes out the block that begins at address.  NULL: there is none of that origin.  *known_p:
 * address lies in a block. */
struct gpc_host_block *gpc_host_block_remove(uint64_t address, enum gpc_host_origin origin,
					     struct gpc_range *taken, bool *known_p);
/* Copies that are still on their way to it, or from it, come first: their error. */
CUresult gpc_host_block_destroy(struct gpc_host_block *block, const struct gpc_range *range);

/* Kernels reach the block around the address from now on, at *device_p, and the blocks that it
 * names.  CUDA_ERROR_NOT_SUPPORTED: they cannot; CUDA_ERROR_NOT_PERMITTED: they reach the same at
 * another address; CUDA_ERROR_INVALID_VALUE: there is no block. */
CUresult gpc_host_block_map(uint64_t address, uint64_t *device_p);

/* The same for all that are named; the list is empty then, unless there is an error. */
CUresult gpc_host_block_map_pointers(struct gpc_pointer_scan *pointers);

/* A copy is about to read or write the block around an address of the program's.  One that is
 * doubted is cold again from then on, and stays doubted: kernels may still reach it. */
void gpc_host_block_note_copied(uint64_t address);

/* A stream is about to wait for a word of the block around an address, of the program's or of
 * kernels'. */
void gpc_host_block_note_awaited(uint64_t address);
/* Streams that wait for words of the block around the address wait no more. */
CUresult gpc_host_block_settle_wait_values(uint64_t address);

/* Whether there is memory all over the range. */
bool gpc_host_block_is_mapped(const void *memory, size_t size);

/* Whether it may be an address of registered memory: a quick answer for most that are none. */
bool gpc_host_block_may_be_registered(uint64_t address);

/* All that is the context's: allocated and registered. */
void gpc_host_block_drop_context(struct gpc_context *context);

#endif /* GPC_HOST_BLOCK_H */
