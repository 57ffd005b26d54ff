/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory arena of one call, used at both ends by generated code for the call's arrays, structs and
 * strings. All memory is freed at once.
 *
 * Ownership: the arena, initialized to zeros, owns all its memory until gp_scratch_free().
 * Threads: one thread at a time.
 */
#ifndef GP_SCRATCH_H
#define GP_SCRATCH_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum size of an array, in bytes. */
#define GP_SCRATCH_MAX ((size_t)1 << 20)

struct gp_scratch {
	struct gp_scratch_block *blocks;
};

/*
 * Returns zeroed memory for count items of `size` bytes (not 0), aligned to 16, until
 * gp_scratch_free(). If count is 0, the result is not NULL, but must not be accessed. NULL: larger
 * than GP_SCRATCH_MAX, or out of memory.
 */
void *gp_scratch_alloc(struct gp_scratch *scratch, size_t count, size_t size);

/* Returns zeroed memory for count elements of `width` cells (not 0) of 8 bytes each, as
 * gp_scratch_alloc(). */
uint64_t *gp_scratch_alloc_cells(struct gp_scratch *scratch, size_t count, size_t width);

/* Passes malloc'ed memory to the arena, which frees it in gp_scratch_free(). NULL has no effect.
 * Returns true; or false if out of memory: then the memory has been freed. */
GP_MUST_CHECK bool gp_scratch_adopt(struct gp_scratch *scratch, void *memory);
/* Frees all memory; the arena is then empty and may be reused. */
void gp_scratch_free(struct gp_scratch *scratch);

#endif /* GP_SCRATCH_H */
