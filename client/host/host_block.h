/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registry of host memory blocks: memory that the program allocated with CUDA, registered with
 * CUDA, or mapped from a pool or a physical allocation, and how kernels access it
 * (docs/host-memory.md).
 *
 * Ownership: the registry owns a block until gpc_host_block_remove() returns it to one thread,
 * which then frees it with gpc_host_block_destroy(). Lookups return copies, so no reference is
 * needed.
 * Threads: any thread. A function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note) may only call gpc_host_block_find(),
 * gpc_host_block_is_mapped() and gpc_host_block_may_be_registered(). The registry has two locks of
 * its own; one is held while a block is mapped for kernels, which waits for the daemon.
 * Units: sizes in bytes.
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

/* How kernels access a block (docs/host-memory.md). The program's address of a block and the
 * kernels' may differ. */
enum gpc_host_state {
	/* not accessible to kernels; registered and placed blocks become so by
	 * gpc_host_block_map(), the others never */
	GPC_HOST_PLAIN,
	/* used by copies only; mapped for kernels when kernels may get its address */
	GPC_HOST_COPY_ONLY,
	/* the worker has a replica, kept identical by coherence.h */
	GPC_HOST_REPLICATED,
	/* the same memory as the worker's, at the same address */
	GPC_HOST_SHARED,
};

/* Which object owns the memory itself. */
enum gpc_host_origin {
	GPC_HOST_ALLOCATED,  /* the block; freed with it */
	GPC_HOST_REGISTERED, /* the program */
	/* a CUDA memory pool (pool_block.h), whose mapping contains the block */
	GPC_HOST_POOLED,
	GPC_HOST_PLACED, /* a mapped physical allocation (client/memory/virtual_memory.h) */
};

/* A block of host memory. Guarded by the registry's lock. After gpc_host_block_add() only state,
 * device, worker_range, copied, speculative and awaited change. */
struct gpc_host_block {
	struct gpc_context
		*context; /* context that it was allocated or registered in; never NULL */
	/* CU_MEMHOSTALLOC_* or CU_MEMHOSTREGISTER_*, by origin */
	unsigned int flags;
	enum gpc_host_origin origin;
	enum gpc_host_state state;
	uint64_t id;     /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
	uint64_t host;   /* start address in this process */
	uint64_t device; /* address of the start for kernels, now or once mapped; 0: none */
	/* only for a registered block that is replicated: the worker's memory; size 0: none */
	struct gpc_heap_range worker_range;
	/* for plain allocated blocks, size in whole pages of the memory to be unmapped with the
	 * block; 0 for all other blocks */
	size_t mapped;
	void *pool;  /* for pooled blocks, the CUmemoryPool; NULL for all other blocks */
	bool copied; /* the program has passed it to a copy */
	/* replicated only because a scan found its address in memory where the pointer may be left
	 * over (pointer_scan.h), or copy-only again after such a replication */
	bool speculative;
	bool awaited;   /* streams have waited for values in it */
	bool exchanged; /* for pooled blocks: other processes may have mapped the memory too */
};

/* Numbers of blocks of all sessions, for quick checks without a lock: blocks that are copy-only or
 * speculative, registered blocks, and blocks that are shared with the worker. */
extern atomic_uint gpc_host_memory_copy_only, gpc_host_memory_registered, gpc_host_memory_shared;

/* Set, and never cleared, when host memory was exported to or imported from other processes.
 * Afterwards events that are shared with other processes exchange changes
 * (client/stream/event.c). */
extern atomic_bool gpc_host_memory_exchanged;

/* Adds a copy of *what to the registry, with `host` set to the address, and registers the memory
 * for RDMA (gp_memory_register(), transport). what->state is GPC_HOST_PLAIN, GPC_HOST_COPY_ONLY or
 * GPC_HOST_SHARED. Afterwards copies and kernels treat the memory as pinned. Returns 0,
 * GP_E_INVALID if another block overlaps or the range is empty, or -ENOMEM. After an error the
 * registry is unchanged, and the caller still owns the memory. */
GP_MUST_CHECK int gpc_host_block_add(void *address, size_t size, const struct gpc_host_block *what);

/* Finds the block around an address. elsewhere_p NULL: the address is one of the program. Otherwise
 * it may also be an address of kernels, and *elsewhere_p is set to whether it is one of kernels
 * only. Returns true, and stores the block's range in *range_p and a copy of its current state in
 * *copy_p. Returns false if there is no block; *range_p and *copy_p are then unchanged, and
 * *elsewhere_p is undefined. */
bool gpc_host_block_find(uint64_t address, struct gpc_range *range_p, struct gpc_host_block *copy_p,
			 bool *elsewhere_p);

/* Removes the block that starts at the address and has this origin, and returns it; the caller owns
 * it and must call gpc_host_block_destroy(). Waits while another thread maps a block for kernels.
 * Its range is stored in *taken. Returns NULL, with *taken unchanged, if there is no such block. In
 * both cases *known_p is set to whether the address is in any block. */
struct gpc_host_block *gpc_host_block_remove(uint64_t address, enum gpc_host_origin origin,
					     struct gpc_range *taken, bool *known_p);
/* Destroys a removed block: waits, without limit, for copies in flight to or from the memory,
 * unmaps it from the device, drops listed copies that read it (listed_copy.h) and frees the block.
 * Frees the memory too if the origin is GPC_HOST_ALLOCATED; otherwise its owner does. range: the
 * one that gpc_host_block_remove() stored. Returns CUDA_SUCCESS or the error of the copies; the
 * block is destroyed in either case. */
CUresult gpc_host_block_destroy(struct gpc_host_block *block, const struct gpc_range *range);

/* Makes the block around an address of the program accessible to kernels, and all blocks that its
 * contents point to. Stores the kernels' address that corresponds to `address` in *device_p. Waits
 * for the daemon if the block is not mapped yet. Returns CUDA_SUCCESS; CUDA_ERROR_NOT_SUPPORTED if
 * kernels cannot access the block; CUDA_ERROR_NOT_PERMITTED if kernels access the same memory at
 * another address; CUDA_ERROR_INVALID_VALUE if there is no block or the program has unmapped it;
 * CUDA_ERROR_OUT_OF_MEMORY; or the session's error. *device_p is undefined after an error. */
CUresult gpc_host_block_map(uint64_t address, uint64_t *device_p);

/* Makes all blocks in the list (pointer_scan.h), and all blocks that their contents point to,
 * accessible to kernels. Waits for the daemon. Addresses without a block, and blocks that kernels
 * cannot access, are skipped. Returns CUDA_SUCCESS with an empty list, or an error of
 * gpc_host_block_map() with the addresses that are left. The caller calls gpc_pointer_scan_fini()
 * in either case. */
CUresult gpc_host_block_map_pointers(struct gpc_pointer_scan *pointers);

/* Called before a copy that reads or writes the block around an address of the program: the block
 * is then marked as copied. Has no effect if there is no block. A speculative replica is dropped
 * first: the kernels' changes are fetched, which waits for the daemon, and the block becomes
 * copy-only. It remains speculative, because kernels may still access the memory. */
void gpc_host_block_note_copied(uint64_t address);

/* Called before a stream waits for a value in the block around an address of the program or of
 * kernels. Has no effect if there is no block. */
void gpc_host_block_note_awaited(uint64_t address);
/* Called before the block around an address of the program is freed. If streams have waited for
 * values in it, waits, without limit, until all work of its context's session is done. Returns
 * CUDA_SUCCESS or an error of gpc_fence_wait() (client/context/fence.h). */
CUresult gpc_host_block_settle_wait_values(uint64_t address);

/* Returns whether the whole range, whose size is not 0, is mapped in this process. Makes a system
 * call. */
bool gpc_host_block_is_mapped(const void *memory, size_t size);

/* Returns false if the address was never in registered memory, and true if it may be. A quick check
 * without a lock. */
bool gpc_host_block_may_be_registered(uint64_t address);

/* Removes and destroys the allocated and registered blocks of the context. Blocks without limit, as
 * gpc_host_block_destroy() does. */
void gpc_host_block_drop_context(struct gpc_context *context);

#endif /* GPC_HOST_BLOCK_H */
