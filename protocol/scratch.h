/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory arena of one call, used at both ends by generated code for the call's arrays, structs and
 * strings. All memory is freed at once.
 *
 * Ownership: initialized to zeros; gp_scratch_free() frees everything.
 * Threads: one thread at a time.
 */
#ifndef GP_SCRATCH_H
#define GP_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

/* Maximum size of an array. */
#define GP_SCRATCH_MAX ((size_t)1 << 20)

struct gp_scratch {
	struct gp_scratch_block *blocks;
};

/*
 * Returns zeroed memory for count items of `size` bytes. count may be 0: the memory must not be
 * written then. NULL: too large, or out of memory.
 */
void *gp_scratch_alloc(struct gp_scratch *scratch, size_t count, size_t size);

/* The same for count elements of `width` cells of 8 bytes each. */
uint64_t *gp_scratch_alloc_cells(struct gp_scratch *scratch, size_t count, size_t width);

/* Adds malloc'ed memory, or NULL, to the arena, which then frees it. */
void gp_scratch_adopt(struct gp_scratch *scratch, void *memory);
void gp_scratch_free(struct gp_scratch *scratch);

#endif /* GP_SCRATCH_H */
