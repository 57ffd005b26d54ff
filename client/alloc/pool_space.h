/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address space of one memory pool (client/memory/pool.h): allocates blocks in the pool's mappings,
 * and lets a stream reuse memory that was freed earlier in its order.
 *
 * Bookkeeping only: the pool maps and unmaps device memory. A freed block waits in the free list of
 * its stream, from which a later allocation of this stream may reuse it at once. All streams may
 * reuse it when the work before the free is known to be done (gpc_space_reap() and its variants).
 * There are two levels: chunks and large blocks (more than 16 MiB) are cut from the mappings; small
 * blocks are cut from chunks. A run is a sequence of units that a block or chunk occupies.
 *
 * Ownership: the space owns its bookkeeping until gpc_space_fini(); a struct gpc_space_mapping is
 * valid until gpc_space_remove().
 * Threads: no lock inside; the pool serializes all calls.
 * Errors: functions that return an int return 0 or the errors stated with the function. After an
 * error the outputs and the blocks are unchanged.
 * Units: addresses and sizes are bytes.
 */
#ifndef GPC_POOL_SPACE_H
#define GPC_POOL_SPACE_H

#include "base/status.h"
#include "client/alloc/tlsf.h"

#include <stdbool.h>
#include <stdint.h>

/* Maximum size, in bytes, of a wholly free mapping that gpc_space_find_excess() keeps for the next
 * allocation. */
#define GPC_SPACE_CACHED_MAX ((uint64_t)64 << 20)

struct gpc_space_free_list;
struct gpc_space_freed;

/* A mapping [base, base + size) of device memory. */
struct gpc_space_mapping {
	struct gpc_space *space;
	uint64_t base, size;
	uint32_t region;   /* number of the mapping's region in the large level */
	unsigned int busy; /* number of runs that are blocks in use, or freed and not yet reusable
			      by all streams */
	unsigned int unordered; /* number of these runs that were freed in no stream's order */
	bool cached;  /* marked by gpc_space_find_excess(): wholly free, and kept for the next
			 allocation */
	void *export; /* written by the pool, which owns it: state by which other processes can open
			the memory; gpc_ipc_export_withdraw() (client/memory/ipc_memory.h) frees it;
			NULL: not exported */
};

/* A chunk; base 0: unused element. */
struct gpc_space_chunk {
	uint64_t base;
	uint32_t outer; /* place of the run of the large level that the chunk occupies */
};

/* An allocator and the size of its units in bytes. */
struct gpc_space_level {
	struct gpc_tlsf tlsf;
	uint64_t unit;
};

/* The space of one pool. Members are internal, except that the pool may read the statistics from
 * `blocks` on and set reserved_high and used_high. */
struct gpc_space {
	struct gpc_space_level
		large; /* its unit is the granularity of mappings, and its regions are mappings */
	struct gpc_space_level
		small; /* its unit is GPC_HEAP_ALIGNMENT, and its regions are chunks */
	/* mappings and chunks, by the number of their region in the large and the small level;
	 * mappings[]: NULL: unused */
	struct gpc_space_mapping *mappings[GPC_TLSF_REGIONS];
	struct gpc_space_chunk chunks[GPC_TLSF_REGIONS];
	struct gpc_space_free_list *free_lists;
	struct gpc_space_freed *oldest,
		*newest; /* ends of the list of all freed runs, in the order of their frees */
	/* preferred sizes of the next mapping and chunk, in bytes */
	uint64_t next_mapping, next_chunk;
	unsigned int blocks; /* number of blocks in use */
	unsigned int idle;   /* number of mappings whose `busy` is 0 */
	uint64_t waiting;    /* bytes freed, but not yet reusable by all streams */
	/* bytes of all mappings, and their maximum */
	uint64_t reserved, reserved_high;
	/* bytes of used blocks, each rounded up to GPC_HEAP_ALIGNMENT (heap.h), and their
	 * maximum */
	uint64_t used, used_high;
	uint64_t used_peak; /* like used_high, but never reset by the pool; 0 again when no mapping
			       is left */
};

/* A live block, as gpc_space_find() returns it. */
struct gpc_space_block {
	uint64_t address;
	uint64_t size; /* size as requested; the block may occupy more */
	uint64_t id;
};

/* Order of a free: the stream in whose order it happens, and the work before it. The caller numbers
 * the work and the frees. */
struct gpc_space_free_order {
	/* number of the stream; 0: in no stream's order */
	uint64_t stream;
	const void *context; /* context of the stream; NULL for stream 0 */
	uint64_t tag;        /* number of the last work that was posted before the free */
	uint64_t done;       /* all work up to this number is known to be done */
	uint64_t number;     /* number of this free, greater than those of earlier frees */
};

/* Initializes an empty space. granularity: unit of mappings in bytes, a power of two, with the
 * limits of gpc_heap_create() (heap.h). */
void gpc_space_init(struct gpc_space *space, uint64_t granularity);
/* Frees the bookkeeping, including all mappings' structs, but not their `export`. Does not unmap
 * any memory. */
void gpc_space_fini(struct gpc_space *space);

/* Allocates a block for a stream, by its number. id: stored with the block. Errors: GP_E_RESOURCE:
 * no free memory, so the caller adds a mapping and retries; also if the size is
 * GPC_TLSF_REGION_UNITS granules or more, or if out of memory for the bookkeeping; GP_E_INVALID:
 * size 0. */
GP_MUST_CHECK int gpc_space_alloc(struct gpc_space *space, uint64_t stream, uint64_t size,
				  uint64_t id, uint64_t *address_p);

/* Returns the preferred size of a mapping to add for a block of this size, a multiple of the
 * granularity. */
uint64_t gpc_space_preferred_size(const struct gpc_space *space, uint64_t size);
/* Returns the minimum size of such a mapping, a multiple of the granularity. */
uint64_t gpc_space_required_size(const struct gpc_space *space, uint64_t size);
/* Adds a mapping that the pool has made; base and size are multiples of the granularity. On success
 * stores the mapping, which the space owns. Errors: -ENOMEM; GP_E_RESOURCE: more than
 * GPC_TLSF_REGION_UNITS granules, or too many mappings; GP_E_INVALID: size 0. */
GP_MUST_CHECK int gpc_space_add(struct gpc_space *space, uint64_t base, uint64_t size,
				struct gpc_space_mapping **mapping_p);

/* Frees the block that begins at address, which must be inside the mapping. If end->tag is at most
 * end->done, all streams may reuse it at once. Errors: GP_E_INVALID: no live block begins there;
 * -ENOMEM: the block stays allocated. */
GP_MUST_CHECK int gpc_space_free(struct gpc_space_mapping *mapping, uint64_t address,
				 const struct gpc_space_free_order *end);
/* Finds the live block that contains the address, which must be inside the mapping. Returns false,
 * with undefined *block, if there is none. */
bool gpc_space_find(struct gpc_space_mapping *mapping, uint64_t address,
		    struct gpc_space_block *block);

/* Makes freed memory reusable by all streams if its tag is at most `done`. Stops at the first run
 * with a greater tag, in the order of the frees. */
void gpc_space_reap(struct gpc_space *space, uint64_t done);
/* Makes memory that was freed on this stream reusable by all streams. number: applies to frees up
 * to this number (struct gpc_space_free_order). */
void gpc_space_reap_stream(struct gpc_space *space, uint64_t stream, uint64_t number);
/* Makes memory that was freed on any stream of the context, or in no stream's order, reusable by
 * all streams. number: as for gpc_space_reap_stream(). */
void gpc_space_reap_context(struct gpc_space *space, const void *context, uint64_t number);

/* Returns a wholly free mapping that can be unmapped so that at least `keep` bytes of mappings
 * remain, or NULL if there is none. The space still owns it. spare: keep the largest such mapping
 * of at most GPC_SPACE_CACHED_MAX bytes for the next allocation; when no other one is left, it is
 * marked as cached and NULL is returned. */
struct gpc_space_mapping *gpc_space_find_excess(struct gpc_space *space, uint64_t keep, bool spare);
/* Makes one mapping wholly free that can then be unmapped so that at least `keep` bytes of mappings
 * remain. It is a mapping in which everything was freed, but some of it in no stream's order and
 * before the work was known to be done. Returns false if there is no such mapping. That work may
 * still run, so the caller must remove the mapping before the next allocation. */
bool gpc_space_release(struct gpc_space *space, uint64_t keep);
/* Removes a wholly free mapping and frees its struct, but not its `export`. The caller unmaps the
 * memory. */
void gpc_space_remove(struct gpc_space *space, struct gpc_space_mapping *mapping);
/* Returns the bytes of mappings that are marked as cached. */
uint64_t gpc_space_cached_bytes(const struct gpc_space *space);
/* Returns the bytes of mappings that can be unmapped so that at least `keep` bytes of mappings
 * remain: wholly free mappings, and those that gpc_space_release() can make so. */
uint64_t gpc_space_releasable_bytes(const struct gpc_space *space, uint64_t keep);

#endif /* GPC_POOL_SPACE_H */
