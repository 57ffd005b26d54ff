/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device heap: assigns the address range (window) of a session to mappings and blocks.
 *
 * Bookkeeping only: the caller maps and unmaps device memory, and the heap never accesses it. An
 * owner (a context) has chunks, from which small blocks are cut, and large mappings of one block
 * each. Work is counted by the caller: a freed block is reused once the work up to its `tag`, the
 * count at the time of the free, is done; the addresses of an unmapped range are reused once the
 * unmapping is done.
 *
 * Ownership: the caller owns the heap; gpc_heap_destroy() frees it with all its bookkeeping. An
 * owner is an opaque pointer that is only compared.
 * Threads: any thread may call; the heap has its own lock. gpc_heap_destroy() requires that no
 * other thread uses the heap.
 * Errors: functions that return an int return 0 or the errors stated with the function; outputs are
 * then unchanged.
 * Units: addresses and sizes are bytes.
 */
#ifndef GPC_HEAP_H
#define GPC_HEAP_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Alignment of blocks, in bytes. */
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
	uint64_t id;   /* unique in this process, never reused */
	/* the mapping that contains the block */
	uint64_t mapping_base, mapping_size;
};

/* A range [base, base + size) of the window. */
struct gpc_heap_range {
	uint64_t base, size;
};

/* Creates a heap for [base, base + size). granularity: the unit of mappings, a power of two from
 * GPC_HEAP_SMALL_MAX to GPC_HEAP_CHUNK_MAX, of which base is a multiple; size is rounded down to
 * it. first_chunk: size of an owner's first chunk, rounded up to the granularity; 0: the
 * granularity. On success the caller owns *heap_p. Errors: GP_E_INVALID: invalid argument;
 * GP_E_RESOURCE: the window is too large; -ENOMEM. */
GP_MUST_CHECK int gpc_heap_create(uint64_t base, uint64_t size, uint64_t granularity,
				  uint64_t first_chunk, struct gpc_heap **heap_p);
/* Frees the heap. Does not unmap any memory. Accepts NULL. */
void gpc_heap_destroy(struct gpc_heap *heap);
/* Returns whether address is in the window, whether or not it is allocated. Takes no lock. */
bool gpc_heap_contains(const struct gpc_heap *heap, uint64_t address);

/* Allocates a small block, of 1 to GPC_HEAP_SMALL_MAX bytes, from the chunks of the owner. id:
 * stored with the block. Errors: GP_E_RESOURCE: no chunk has enough free memory, so the caller adds
 * a chunk and retries; GP_E_INVALID: invalid size. */
GP_MUST_CHECK int gpc_heap_alloc(struct gpc_heap *heap, void *owner, uint64_t size, uint64_t id,
				 uint64_t *address_p);

/* Returns the size for the next chunk of the owner. It starts with first_chunk and doubles with
 * each chunk up to GPC_HEAP_CHUNK_MAX. */
uint64_t gpc_heap_chunk_size(struct gpc_heap *heap, void *owner);

/*
 * Reserves addresses for a mapping; the size is rounded up to the granularity. The caller then maps
 * memory there and calls gpc_heap_add_chunk() or gpc_heap_add_large(), or calls
 * gpc_heap_unreserve() if mapping failed.
 * Errors: GP_E_RESOURCE: no addresses left; GP_E_INVALID: size 0.
 */
GP_MUST_CHECK int gpc_heap_reserve(struct gpc_heap *heap, uint64_t size,
				   struct gpc_heap_range *range_p);
/* Releases reserved addresses at which nothing was mapped. */
void gpc_heap_unreserve(struct gpc_heap *heap, const struct gpc_heap_range *range);
/* Adds a reserved and mapped range as a chunk of the owner. Errors: -ENOMEM; GP_E_INVALID: too
 * large; GP_E_RESOURCE: too many chunks. After an error the addresses stay reserved; the caller
 * unmaps the range and calls gpc_heap_defer_range(). */
GP_MUST_CHECK int gpc_heap_add_chunk(struct gpc_heap *heap, void *owner,
				     const struct gpc_heap_range *range);
/* Adds a reserved and mapped range as a large block of this size and ID. Error: -ENOMEM, after
 * which the caller does as for gpc_heap_add_chunk(). */
GP_MUST_CHECK int gpc_heap_add_large(struct gpc_heap *heap, void *owner,
				     const struct gpc_heap_range *range, uint64_t size,
				     uint64_t id);

/*
 * Frees the block that begins at address. A small block is reused once work up to `tag` is done
 * (`done`: work known to be done). If unmap_p->size is not 0 on return, the caller unmaps that
 * range and then calls gpc_heap_defer_range(). The range is that of a large block, or a wholly free
 * chunk of an owner that has another one. Errors: GP_E_INVALID: no block begins there;
 * unmap_p->size is 0.
 */
GP_MUST_CHECK int gpc_heap_free(struct gpc_heap *heap, uint64_t address, uint64_t tag,
				uint64_t done, struct gpc_heap_range *unmap_p);
/* Allows the addresses of a range that the caller unmaps to be reused once the unmapping with
 * number `tag`, in the caller's count of unmappings, is done. */
void gpc_heap_defer_range(struct gpc_heap *heap, const struct gpc_heap_range *range, uint64_t tag);

/* Makes memory reusable: blocks that waited for work up to `done`, and addresses that waited for
 * unmappings up to `unmapped`. */
void gpc_heap_reap(struct gpc_heap *heap, uint64_t done, uint64_t unmapped);

/* Removes a wholly free chunk of any owner and stores its range, which the caller unmaps and passes
 * to gpc_heap_defer_range(). Returns false if there is none. */
bool gpc_heap_pop_spare(struct gpc_heap *heap, struct gpc_heap_range *range_p);

/* Removes a mapping of an owner that is being destroyed, including all blocks in it, and stores its
 * range, which the caller unmaps and passes to gpc_heap_defer_range(). The caller repeats this
 * until it returns false: no mapping is left, and the owner is then unknown to the heap. */
bool gpc_heap_pop_mapping(struct gpc_heap *heap, void *owner, struct gpc_heap_range *range_p);

/* Finds the live block that contains address. Returns false, with undefined *block, if there is
 * none. */
bool gpc_heap_find(struct gpc_heap *heap, uint64_t address, struct gpc_heap_block *block);

/* Returns the bytes of the owner's chunks that are free or will be once work is done. owner: NULL:
 * all owners. */
uint64_t gpc_heap_free_bytes(struct gpc_heap *heap, void *owner);
/* Returns the bytes of freed small blocks that work may still use. Takes no lock. */
uint64_t gpc_heap_deferred_bytes(const struct gpc_heap *heap);

#endif /* GPC_HEAP_H */
