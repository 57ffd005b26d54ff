/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The space of one memory pool: which part of its mappings is whose, and in which order of which
 * stream it was freed.  Bookkeeping only: mapping and unmapping are the pool's, which also locks.
 *
 * Freed memory waits on the shelf of its stream, whose next allocation may have it at once; it is
 * anybody's when the work before the free is known to be done (gpc_space_reap and the others).
 * Small blocks are cut from chunks, chunks and large blocks from the mappings.  Sizes are bytes.
 */
#ifndef GPC_POOL_SPACE_H
#define GPC_POOL_SPACE_H

#include "base/status.h"
#include "client/alloc/fit.h"

#include <stdbool.h>
#include <stdint.h>

/* A wholly free mapping of up to so much may be kept for the next allocation. */
#define GPC_SPACE_CACHED_MAX ((uint64_t)64 << 20)

struct gpc_space_free_list;
struct gpc_space_freed;

struct gpc_space_mapping {
	struct gpc_space *space;
	uint64_t base, size;
	uint32_t region;        /* of the large level */
	unsigned int busy;      /* blocks in use, or freed and waiting */
	unsigned int unordered; /* of these, freed in no stream's order */
	bool cached;            /* wholly free, and kept though it should have been given back */
	void *share;            /* the pool's: what other processes may open it by */
};

struct gpc_space_chunk {
	uint64_t base;
	uint32_t outer; /* the run of the large level that it is */
};

struct gpc_space_level {
	struct gpc_tlsf tlsf;
	uint64_t unit;
};

struct gpc_space {
	struct gpc_space_level large; /* in units of the granularity; regions are mappings */
	struct gpc_space_level small; /* regions are chunks */
	struct gpc_space_mapping *mappings[GPC_TLSF_REGIONS];
	struct gpc_space_chunk chunks[GPC_TLSF_REGIONS];
	struct gpc_space_free_list *free_lists;
	struct gpc_space_freed *oldest, *newest; /* by tag */
	uint64_t next_mapping, next_chunk;
	unsigned int blocks; /* in use */
	unsigned int idle;   /* mappings that are wholly free */
	uint64_t waiting;    /* freed, but not anybody's yet */
	uint64_t reserved, reserved_high;
	uint64_t used, used_high;
	uint64_t used_peak; /* like used_high, which the application resets */
};

struct gpc_space_block {
	uint64_t address;
	uint64_t size; /* as asked for */
	uint64_t id;
};

/* The end of a block's use: in which stream's order (0: in none's), behind how much work. */
struct gpc_space_free_order {
	uint64_t stream;
	const void *context; /* of the stream */
	uint64_t tag;        /* the work posted before */
	uint64_t done;       /* and how much of that is known to be done */
	uint64_t number;     /* of this free among all */
};

/* granularity: of mappings, a power of two. */
void gpc_space_init(struct gpc_space *space, uint64_t granularity);
void gpc_space_fini(struct gpc_space *space);

/* GP_E_RESOURCE: a mapping has to be added first.  -ENOMEM. */
GP_MUST_CHECK int gpc_space_alloc(struct gpc_space *space, uint64_t stream, uint64_t size,
				  uint64_t id, uint64_t *address_p);

/* What should be mapped for a block of this size, and what must be. */
uint64_t gpc_space_preferred_size(const struct gpc_space *space, uint64_t size);
uint64_t gpc_space_required_size(const struct gpc_space *space, uint64_t size);
/* -ENOMEM, GP_E_RESOURCE. */
GP_MUST_CHECK int gpc_space_add(struct gpc_space *space, uint64_t base, uint64_t size,
				struct gpc_space_mapping **mapping_p);

/* address is inside the mapping.  GP_E_INVALID: no block begins there.  -ENOMEM: it is not freed.
 */
GP_MUST_CHECK int gpc_space_free(struct gpc_space_mapping *mapping, uint64_t address,
				 const struct gpc_space_free_order *end);
/* The block that an address of the mapping is in; false: none. */
bool gpc_space_find(struct gpc_space_mapping *mapping, uint64_t address,
		    struct gpc_space_block *block);

/* What was freed behind work up to `done` is anybody's; or on a stream, or on all of a context and
 * on none, by the frees up to this number. */
void gpc_space_reap(struct gpc_space *space, uint64_t done);
void gpc_space_reap_stream(struct gpc_space *space, uint64_t stream, uint64_t number);
void gpc_space_reap_context(struct gpc_space *space, const void *context, uint64_t number);

/* A wholly free mapping without which at least `keep` bytes stay reserved; NULL: there is none.
 * With spare the last one may be kept: it is marked as due then, and not returned. */
struct gpc_space_mapping *gpc_space_find_excess(struct gpc_space *space, uint64_t keep, bool spare);
/* Makes one mapping wholly free, without which at least `keep` bytes stay reserved, where all that
 * is not free was freed in no stream's order; false: none can be made so.  The work before those
 * frees may still run, so the caller removes the mapping at once. */
bool gpc_space_release(struct gpc_space *space, uint64_t keep);
/* Takes a wholly free mapping out, and frees what describes it. */
void gpc_space_remove(struct gpc_space *space, struct gpc_space_mapping *mapping);
/* Bytes of mappings that are due. */
uint64_t gpc_space_cached_bytes(const struct gpc_space *space);
/* Bytes of mappings that could be given back while at least `keep` bytes stay reserved: nothing is
 * in use there, but for what was freed in no stream's order. */
uint64_t gpc_space_releasable_bytes(const struct gpc_space *space, uint64_t keep);

#endif /* GPC_POOL_SPACE_H */
