/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device heap: assigns the address range (window) of a session to mappings and blocks.
 *
 * Bookkeeping only: the caller maps and unmaps memory, and the heap never accesses it. An owner
 * (such as a context) has two kinds of mappings: chunks, from which small blocks are cut, and
 * mappings that are one large block each. The caller numbers the work that may use memory, and,
 * separately, the unmappings. A freed small block is reused once the work up to its `tag` is done.
 * The addresses of an unmapped range are reused once the unmapping with their `tag` is done.
 *
 * Ownership: the caller owns the heap; gpc_heap_destroy() frees it with all its bookkeeping. The
 * owner of a mapping is an opaque pointer, which the heap only compares.
 * Threads: any thread may call; the heap has its own lock. gpc_heap_destroy() requires that no
 * other thread uses the heap.
 * Errors: functions that return an int return 0 or the errors stated with the function. After an
 * error the outputs are unchanged, except *unmap_p of gpc_heap_free().
 * Units: addresses and sizes are bytes.
 */
#ifndef GPC_HEAP_H
#define GPC_HEAP_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Alignment of blocks, and the unit in which chunks are cut, in bytes. */
#define GPC_HEAP_ALIGNMENT ((uint64_t)512)
/* Maximum size of a small block, in bytes. */
#define GPC_HEAP_SMALL_MAX ((uint64_t)1 << 20)
/* Maximum size of a chunk, in bytes. */
#define GPC_HEAP_CHUNK_MAX ((uint64_t)64 << 20)

struct gpc_heap;

/* A live block, as gpc_heap_find() returns it. */
struct gpc_heap_block {
	void *owner;
	uint64_t address;
	uint64_t size; /* size as requested; the block may occupy more */
	uint64_t id;   /* as given to gpc_heap_alloc() or gpc_heap_add_large() */
	/* the mapping (chunk or large block) that contains the block */
	uint64_t mapping_base, mapping_size;
};

/* A range [base, base + size) of the window, whole granules. */
struct gpc_heap_range {
	uint64_t base, size;
};

/* Creates a heap for [base, base + size). granularity: the unit of mappings, a power of two from
 * GPC_HEAP_SMALL_MAX to GPC_HEAP_CHUNK_MAX, of which base is a multiple; size is rounded down to
 * it, and must be at least one granule. first_chunk: size of an owner's first chunk, which is
 * rounded up to the granularity and limited to GPC_HEAP_CHUNK_MAX; 0: the granularity. On success
 * the caller owns *heap_p. Errors: GP_E_INVALID: invalid argument; GP_E_RESOURCE: the window is too
 * large (more than GPC_TLSF_REGIONS * GPC_TLSF_REGION_UNITS granules, tlsf.h);
 * -ENOMEM. */
GP_MUST_CHECK int gpc_heap_create(uint64_t base, uint64_t size, uint64_t granularity,
				  uint64_t first_chunk, struct gpc_heap **heap_p);
/* Frees the heap. Does not unmap any memory. Accepts NULL. */
void gpc_heap_destroy(struct gpc_heap *heap);
/* Returns whether the address is in the window, even if it is not allocated. Acquires no lock. */
bool gpc_heap_contains(const struct gpc_heap *heap, uint64_t address);

/* Allocates a small block, of 1 to GPC_HEAP_SMALL_MAX bytes, from the chunks of the owner. id:
 * stored with the block, for gpc_heap_find(). Errors: GP_E_RESOURCE: the owner has no chunk with
 * enough contiguous free memory, so the caller adds a chunk and retries; GP_E_INVALID: invalid
 * size. */
GP_MUST_CHECK int gpc_heap_alloc(struct gpc_heap *heap, void *owner, uint64_t size, uint64_t id,
				 uint64_t *address_p);

/* Returns the preferred size of the owner's next chunk. It is first_chunk at the beginning. Each
 * added chunk of at least this size doubles it, while it is less than GPC_HEAP_CHUNK_MAX. */
uint64_t gpc_heap_chunk_size(struct gpc_heap *heap, void *owner);

/*
 * Reserves addresses for a mapping; the size is rounded up to the granularity. The caller then maps
 * memory there and calls gpc_heap_add_chunk() or gpc_heap_add_large(). If it maps nothing, it calls
 * gpc_heap_unreserve().
 * Errors: GP_E_RESOURCE: no free range is long enough, or the size exceeds GPC_TLSF_REGION_UNITS
 * granules (tlsf.h); GP_E_INVALID: size 0.
 */
GP_MUST_CHECK int gpc_heap_reserve(struct gpc_heap *heap, uint64_t size,
				   struct gpc_heap_range *range_p);
/* Releases reserved addresses at which nothing was mapped. */
void gpc_heap_unreserve(struct gpc_heap *heap, const struct gpc_heap_range *range);
/* Adds a reserved and mapped range as a chunk of the owner. Errors: -ENOMEM; GP_E_INVALID: larger
 * than GPC_HEAP_CHUNK_MAX; GP_E_RESOURCE: the owner has GPC_TLSF_REGIONS chunks already. After an
 * error the addresses stay reserved: the caller unmaps the range, then calls gpc_heap_defer_range()
 * for it. */
GP_MUST_CHECK int gpc_heap_add_chunk(struct gpc_heap *heap, void *owner,
				     const struct gpc_heap_range *range);
/* Adds a reserved and mapped range as one block, which begins at range->base. size: as requested,
 * any size up to that of the range; id: stored with the block. Error: -ENOMEM, after which the
 * caller does as for gpc_heap_add_chunk(). */
GP_MUST_CHECK int gpc_heap_add_large(struct gpc_heap *heap, void *owner,
				     const struct gpc_heap_range *range, uint64_t size,
				     uint64_t id);

/*
 * Frees the block that begins at address. tag: number of the last work that may use the block;
 * done: the work up to this number is known to be done.
 *
 * Large block: tag and done are ignored; its range is stored in *unmap_p. Small block: it becomes
 * reusable at once if tag <= done, or else in a later gpc_heap_reap(). In the first case a wholly
 * free chunk of the owner, the smallest, is removed and stored in *unmap_p, if the owner has more
 * than one.
 *
 * If unmap_p->size is not 0 on return, the caller unmaps *unmap_p, in the order after the work that
 * uses it, and then calls gpc_heap_defer_range(). Errors: GP_E_INVALID: no live block begins there;
 * unmap_p->size is then 0.
 */
GP_MUST_CHECK int gpc_heap_free(struct gpc_heap *heap, uint64_t address, uint64_t tag,
				uint64_t done, struct gpc_heap_range *unmap_p);
/* Makes the addresses of a range that the caller unmaps reusable after the unmapping. The range was
 * removed by gpc_heap_free(), gpc_heap_pop_spare() or gpc_heap_pop_mapping(), or could not be
 * added. tag: number of the unmapping, in the caller's count of them; gpc_heap_reap() frees the
 * addresses when it is done. */
void gpc_heap_defer_range(struct gpc_heap *heap, const struct gpc_heap_range *range, uint64_t tag);

/* Makes memory reusable: the blocks that waited for work up to the number `done`, and the addresses
 * that waited for unmappings up to the number `unmapped`. The caller knows that both are done.
 * Unmaps nothing; see gpc_heap_pop_spare(). */
void gpc_heap_reap(struct gpc_heap *heap, uint64_t done, uint64_t unmapped);

/* Removes a wholly free chunk of any owner and stores its range, which the caller unmaps and passes
 * to gpc_heap_defer_range(). Returns false, with *range_p unchanged, if there is none. */
bool gpc_heap_pop_spare(struct gpc_heap *heap, struct gpc_heap_range *range_p);

/* Removes a mapping of an owner that is being destroyed, including all blocks in it, and stores its
 * range. The caller unmaps the range and passes it to gpc_heap_defer_range(). The caller repeats
 * the call until it returns false, with *range_p unchanged: then the owner has no mapping left and
 * is unknown to the heap. From the first call on, nothing can be allocated from the owner's
 * chunks. */
bool gpc_heap_pop_mapping(struct gpc_heap *heap, void *owner, struct gpc_heap_range *range_p);

/* Finds the live block that contains the address, within the requested size. Returns false, with
 * undefined *block, if there is none. */
bool gpc_heap_find(struct gpc_heap *heap, uint64_t address, struct gpc_heap_block *block);

/* Returns the bytes of the owner's chunks that are free, or freed and waiting for work. owner:
 * NULL: all owners. */
uint64_t gpc_heap_free_bytes(struct gpc_heap *heap, void *owner);
/* Returns the bytes of freed small blocks, of all owners, that wait for work. Acquires no lock. */
uint64_t gpc_heap_deferred_bytes(const struct gpc_heap *heap);

#endif /* GPC_HEAP_H */
