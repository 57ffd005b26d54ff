/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device heap: assigns the address range (window) of a session to mappings and blocks.
 *
 * Bookkeeping only: the caller maps and unmaps device memory, and the heap never touches it. An
 * owner (a context) has chunks, from which small blocks are cut, and large mappings of one block
 * each. A freed block is reused once the work counted by its `tag` is done; the addresses of an
 * unmapped range are reused once the unmapping is done.
 *
 * Ownership: the caller owns the heap; gpc_heap_destroy() frees it with all its bookkeeping. An
 * owner is an opaque pointer.
 * Threads: any thread may call; the heap has its own lock.
 * Units: sizes are bytes.
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
	uint64_t size; /* as requested */
	uint64_t id;   /* unique in this process, never reused */
	uint64_t mapping_base, mapping_size;
};

struct gpc_heap_range {
	uint64_t base, size;
};

/* Creates a heap for [base, base + size). base is a multiple of the granularity, a power of two
 * from GPC_HEAP_SMALL_MAX to GPC_HEAP_CHUNK_MAX; size is rounded down to it, first_chunk (0:
 * default) up. Errors: GP_E_INVALID, GP_E_RESOURCE, -ENOMEM. */
GP_MUST_CHECK int gpc_heap_create(uint64_t base, uint64_t size, uint64_t granularity,
				  uint64_t first_chunk, struct gpc_heap **heap_p);
void gpc_heap_destroy(struct gpc_heap *heap);
/* Returns whether address is in the window, whether or not it is allocated. */
bool gpc_heap_contains(const struct gpc_heap *heap, uint64_t address);

/* Allocates a small block, of 1 to GPC_HEAP_SMALL_MAX bytes, from the chunks of the owner. Errors:
 * GP_E_RESOURCE: no chunk has room, so the caller adds one and retries; GP_E_INVALID: invalid
 * size. */
GP_MUST_CHECK int gpc_heap_alloc(struct gpc_heap *heap, void *owner, uint64_t size, uint64_t id,
				 uint64_t *address_p);

/* Returns the size for the next chunk of the owner. It doubles with each chunk up to
 * GPC_HEAP_CHUNK_MAX. */
uint64_t gpc_heap_chunk_size(struct gpc_heap *heap, void *owner);

/*
 * Reserves addresses for a mapping; the size is rounded up to the granularity. After mapping it,
 * the caller calls gpc_heap_add_chunk() or gpc_heap_add_large(); if mapping failed,
 * gpc_heap_unreserve().
 * Errors: reserve: GP_E_RESOURCE: no addresses left; GP_E_INVALID: size 0. add: -ENOMEM, and for a
 * chunk GP_E_INVALID (too large) or GP_E_RESOURCE.
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
 * Frees the block that begins at address, once work up to `tag` is done (`done`: work known to be
 * done). If unmap_p->size is not 0, the caller unmaps that range, which is a large block or a
 * wholly free chunk (of several, the largest stays), and then calls gpc_heap_defer_range().
 * Errors: GP_E_INVALID: no block begins there.
 */
GP_MUST_CHECK int gpc_heap_free(struct gpc_heap *heap, uint64_t address, uint64_t tag,
				uint64_t done, struct gpc_heap_range *unmap_p);
/* Allows the addresses of an unmapped range to be reused once unmapping number `tag` is done. */
void gpc_heap_defer_range(struct gpc_heap *heap, const struct gpc_heap_range *range, uint64_t tag);

/* Makes reusable what waited for work up to `done` or for unmappings up to `unmapped`. */
void gpc_heap_reap(struct gpc_heap *heap, uint64_t done, uint64_t unmapped);

/* Removes a wholly free chunk of any owner, which the caller then unmaps. Returns false if there is
 * none. */
bool gpc_heap_pop_spare(struct gpc_heap *heap, struct gpc_heap_range *range_p);

/* Removes a mapping of an owner that is being destroyed, including all blocks in it. Returns false
 * if the owner has no mapping left; the owner is then unknown to the heap. */
bool gpc_heap_pop_mapping(struct gpc_heap *heap, void *owner, struct gpc_heap_range *range_p);

/* Finds the live block that contains address. Returns false if there is none. */
bool gpc_heap_find(struct gpc_heap *heap, uint64_t address, struct gpc_heap_block *block);

/* Returns the bytes of the owner's chunks (NULL: of all owners) that are free or will be once work
 * is done. */
uint64_t gpc_heap_free_bytes(struct gpc_heap *heap, void *owner);
/* Returns the bytes of freed blocks that work may still use. Takes no lock. */
uint64_t gpc_heap_deferred_bytes(const struct gpc_heap *heap);

#endif /* GPC_HEAP_H */
