/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heap: who has which part of a session's window.  Bookkeeping only: mapping and unmapping are
 * the caller's, and the memory is never touched.
 *
 * An owner (a context) has chunks, from which small blocks are cut, and large mappings of one
 * block each.  A freed block is used again once the work counted by `tag` is done, the
 * addresses of an unmapped one once the unmapping is.  Any thread may call.  Sizes are bytes.
 */
#ifndef GPC_HEAP_H
#define GPC_HEAP_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define GPC_HEAP_ALIGNMENT ((uint64_t)512)
#define GPC_HEAP_SMALL_MAX ((uint64_t)1 << 20)
#define GPC_HEAP_CHUNK_MAX ((uint64_t)64 << 20)

struct gpc_heap;

struct gpc_heap_block {
	void *owner;
	uint64_t address;
	uint64_t size; /* as asked for */
	uint64_t id;   /* of this process, never used twice */
	uint64_t mapping_base, mapping_size;
};

struct gpc_heap_range {
	uint64_t base, size;
};

/* All multiples of the granularity, a power of two of at least GPC_HEAP_SMALL_MAX. */
GP_MUST_CHECK int gpc_heap_create(uint64_t base, uint64_t size, uint64_t granularity,
				  uint64_t first_chunk, struct gpc_heap **heap_p);
void gpc_heap_destroy(struct gpc_heap *heap);
bool gpc_heap_contains(const struct gpc_heap *heap, uint64_t address);

/* size: 1 to GPC_HEAP_SMALL_MAX.  GP_E_RESOURCE: the owner's chunks have no room for it. */
GP_MUST_CHECK int gpc_heap_alloc(struct gpc_heap *heap, void *owner, uint64_t size, uint64_t id,
				 uint64_t *address_p);

/* What the owner's next chunk should have: they double. */
uint64_t gpc_heap_chunk_size(struct gpc_heap *heap, void *owner);

/*
 * Addresses for a mapping, size rounded up to the granularity.  GP_E_RESOURCE: none are left.
 * Then: gpc_heap_add_chunk() or gpc_heap_add_large() if it was mapped, else gpc_heap_unreserve().
 */
GP_MUST_CHECK int gpc_heap_reserve(struct gpc_heap *heap, uint64_t size,
				   struct gpc_heap_range *range_p);
void gpc_heap_unreserve(struct gpc_heap *heap, const struct gpc_heap_range *range);
GP_MUST_CHECK int gpc_heap_add_chunk(struct gpc_heap *heap, void *owner,
				     const struct gpc_heap_range *range);
GP_MUST_CHECK int gpc_heap_add_large(struct gpc_heap *heap, void *owner,
				     const struct gpc_heap_range *range, uint64_t size,
				     uint64_t id);

/*
 * Frees the block that begins at address.  unmap_p->size != 0: the caller unmaps this, a large
 * block or a wholly free chunk besides the owner's largest, and then says gpc_heap_defer_range().
 * GP_E_INVALID: no block begins there.
 */
GP_MUST_CHECK int gpc_heap_free(struct gpc_heap *heap, uint64_t address, uint64_t tag,
				uint64_t done, struct gpc_heap_range *unmap_p);
/* The addresses may be used again when unmapping number `tag` is done. */
void gpc_heap_defer_range(struct gpc_heap *heap, const struct gpc_heap_range *range, uint64_t tag);

/* Work up to `done`, and unmappings up to `unmapped`, are done: what waited for them is free. */
void gpc_heap_reap(struct gpc_heap *heap, uint64_t done, uint64_t unmapped);

/* Takes out a wholly free chunk, anybody's, to be unmapped; false: there is none. */
bool gpc_heap_pop_spare(struct gpc_heap *heap, struct gpc_heap_range *range_p);

/* Takes out a mapping of an owner that is going, whatever is in it; false: it has none left. */
bool gpc_heap_pop_mapping(struct gpc_heap *heap, void *owner, struct gpc_heap_range *range_p);

/* The block that address is in; false: none. */
bool gpc_heap_find(struct gpc_heap *heap, uint64_t address, struct gpc_heap_block *block);

/* Bytes of the owner's chunks that are free, or will be when work is done. */
uint64_t gpc_heap_free_bytes(struct gpc_heap *heap, void *owner);
/* Bytes of freed blocks that work may still use.  Takes no lock. */
uint64_t gpc_heap_deferred_bytes(const struct gpc_heap *heap);

#endif /* GPC_HEAP_H */
