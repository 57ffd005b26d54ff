/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address space of one memory pool: tracks the blocks in its mappings, and the stream order in
 * which blocks were freed.
 *
 * Bookkeeping only: the pool maps and unmaps device memory. A freed block waits in the free list of
 * its stream, whose next allocation may reuse it at once. All streams may reuse it when the work
 * before the free is known to be done (gpc_space_reap() and its variants). There are two levels:
 * small blocks are cut from chunks; chunks and large blocks are cut from the mappings. A run is a
 * sequence of units that a block or chunk occupies.
 *
 * Ownership: the space owns its bookkeeping until gpc_space_fini(); a struct gpc_space_mapping is
 * valid until gpc_space_remove().
 * Threads: no lock inside; the pool serializes all calls.
 * Errors: functions that return an int return 0 or the errors stated with the function; outputs and
 * space are then unchanged.
 * Units: addresses and sizes are bytes.
 */
#ifndef GPC_POOL_SPACE_H
#define GPC_POOL_SPACE_H

#include "base/status.h"
#include "client/alloc/segregated_fit.h"

#include <stdbool.h>
#include <stdint.h>

/* A wholly free mapping of at most this size may stay mapped for the next allocation. */
#define GPC_SPACE_CACHED_MAX ((uint64_t)64 << 20)

struct gpc_space_free_list;
struct gpc_space_freed;

/* A mapping [base, base + size) of device memory. */
struct gpc_space_mapping {
	struct gpc_space *space;
	uint64_t base, size;
	uint32_t region; /* number of the region in the large level */
	unsigned int
		busy; /* number of blocks in use, or freed and not yet reusable by all streams */
	unsigned int unordered; /* number of these that were freed in no stream's order */
	bool cached; /* wholly free and due to be unmapped, but kept for the next allocation */
	void *share; /* belongs to the pool: state by which other processes can open the memory;
			NULL: none */
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

/* The space of one pool. */
struct gpc_space {
	struct gpc_space_level
		large; /* its unit is the granularity of mappings, and its regions are mappings */
	struct gpc_space_level
		small; /* its unit is GPC_HEAP_ALIGNMENT, and its regions are chunks */
	struct gpc_space_mapping *mappings[GPC_TLSF_REGIONS];
	struct gpc_space_chunk chunks[GPC_TLSF_REGIONS];
	struct gpc_space_free_list *free_lists;
	struct gpc_space_freed *oldest,
		*newest; /* ends of the age list of freed runs, in the order of their tags */
	/* sizes of the next mapping and chunk to add */
	uint64_t next_mapping, next_chunk;
	unsigned int blocks; /* number of blocks in use */
	unsigned int idle;   /* number of mappings that are wholly free */
	uint64_t waiting;    /* bytes freed, but not yet reusable by all streams */
	/* bytes of all mappings, and their maximum */
	uint64_t reserved, reserved_high;
	/* bytes of blocks in use, and their maximum */
	uint64_t used, used_high;
	uint64_t used_peak; /* like used_high, but the application cannot reset it; 0 again when no
			       mapping is left */
};

/* A live block, as gpc_space_find() returns it. */
struct gpc_space_block {
	uint64_t address;
	uint64_t size; /* size as requested; the block may occupy more */
	uint64_t id;
};

/* Order of a free: the stream, by its number (0: in no stream's order), and the work before the
 * free. Work is counted by the caller. */
struct gpc_space_free_order {
	uint64_t stream;
	const void *context; /* the context of the stream */
	uint64_t tag;        /* count of the work that was posted before the free */
	uint64_t done;       /* count of the work that is known to be done */
	uint64_t number;     /* sequence number of this free */
};

/* Initializes an empty space. granularity: unit of mappings, a power of two. */
void gpc_space_init(struct gpc_space *space, uint64_t granularity);
/* Frees the bookkeeping, including all mappings' structs. Does not unmap any memory. */
void gpc_space_fini(struct gpc_space *space);

/* Allocates a block for a stream, by its number. id: stored with the block. Errors: GP_E_RESOURCE:
 * no free memory, so the caller adds a mapping and retries; GP_E_INVALID: size 0. */
GP_MUST_CHECK int gpc_space_alloc(struct gpc_space *space, uint64_t stream, uint64_t size,
				  uint64_t id, uint64_t *address_p);

/* Returns the preferred size of a mapping to add for a block of this size, a multiple of the
 * granularity. */
uint64_t gpc_space_preferred_size(const struct gpc_space *space, uint64_t size);
/* Returns the minimum size of such a mapping, a multiple of the granularity. */
uint64_t gpc_space_required_size(const struct gpc_space *space, uint64_t size);
/* Adds a mapping that the pool has made. On success the space owns *mapping_p. Errors: -ENOMEM;
 * GP_E_RESOURCE: too large, or too many mappings; GP_E_INVALID: size 0. */
GP_MUST_CHECK int gpc_space_add(struct gpc_space *space, uint64_t base, uint64_t size,
				struct gpc_space_mapping **mapping_p);

/* Frees the block that begins at address, an address inside the mapping. If end->tag is at most
 * end->done, all streams may reuse it at once. Errors: GP_E_INVALID: no block begins there;
 * -ENOMEM: the block stays allocated. */
GP_MUST_CHECK int gpc_space_free(struct gpc_space_mapping *mapping, uint64_t address,
				 const struct gpc_space_free_order *end);
/* Finds the live block that contains an address of the mapping. Returns false, with undefined
 * *block, if there is none. */
bool gpc_space_find(struct gpc_space_mapping *mapping, uint64_t address,
		    struct gpc_space_block *block);

/* Makes memory that was freed after work up to `done` reusable by all streams. */
void gpc_space_reap(struct gpc_space *space, uint64_t done);
/* Makes memory reusable by all streams that was freed on this stream by frees up to this number
 * (struct gpc_space_free_order). */
void gpc_space_reap_stream(struct gpc_space *space, uint64_t stream, uint64_t number);
/* Makes memory reusable by all streams that was freed, by frees up to this number, on any stream of
 * the context or in no stream's order. */
void gpc_space_reap_context(struct gpc_space *space, const void *context, uint64_t number);

/* Returns a wholly free mapping that can be unmapped while at least `keep` bytes stay reserved, or
 * NULL if there is none; the space still owns it. With `spare`, the largest mapping of at most
 * GPC_SPACE_CACHED_MAX bytes is not returned; when no other is left, it is marked as cached. */
struct gpc_space_mapping *gpc_space_find_excess(struct gpc_space *space, uint64_t keep, bool spare);
/* Makes one mapping wholly free, without which at least `keep` bytes stay reserved, and in which
 * the only memory in use was freed in no stream's order. Returns false if there is no such mapping.
 * The work before those frees may still run, so the caller must remove the mapping at once. */
bool gpc_space_release(struct gpc_space *space, uint64_t keep);
/* Removes a wholly free mapping, which the caller unmaps, and frees the struct. */
void gpc_space_remove(struct gpc_space *space, struct gpc_space_mapping *mapping);
/* Returns the bytes of mappings that are marked as cached. */
uint64_t gpc_space_cached_bytes(const struct gpc_space *space);
/* Returns the bytes of mappings that can be unmapped while at least `keep` bytes stay reserved.
 * These are the mappings in which nothing is in use, except memory freed in no stream's order. */
uint64_t gpc_space_releasable_bytes(const struct gpc_space *space, uint64_t keep);

#endif /* GPC_POOL_SPACE_H */
