/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of one call, at either end: what the generated code makes of its arrays, structs and
 * strings.  All of it goes at once.  One thread's; zeroed is empty.
 */
#ifndef GP_SCRATCH_H
#define GP_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

/* The most that one array may take. */
#define GP_SCRATCH_MAX ((size_t)1 << 20)

struct gp_scratch {
	struct gp_scratch_block *blocks;
};

/*
 * Zeroed room for count items of size bytes.  count may be 0: then no byte of it may be written.
 * NULL: too many, or no memory.
 */
void *gp_scratch_alloc(struct gp_scratch *scratch, size_t count, size_t size);

/* The same for count elements of width cells of 8 bytes each. */
uint64_t *gp_scratch_alloc_cells(struct gp_scratch *scratch, size_t count, size_t width);

/* Frees this with the rest; malloc'ed, or NULL. */
void gp_scratch_adopt(struct gp_scratch *scratch, void *memory);
void gp_scratch_free(struct gp_scratch *scratch);

#endif /* GP_SCRATCH_H */
