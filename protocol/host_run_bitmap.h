/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Run bitmap of replicated host memory: distinguishes remainders of data from flags
 * (docs/host-memory.md). A consistent copy (host_consistent_copy.h) may be taken while a program is
 * writing data. The remainder of the data, which the next copy contains, may be as short as a flag,
 * but must be stored before flags. A short run counts as a remainder if its first or last word was
 * part of a long run that was sent earlier, or was next to it, and has not been sent in a short run
 * since. A run is a range of changed words (host_changes.h); it is long if it exceeds
 * GP_CHANGES_SHORT bytes.
 *
 * The bitmap has a bit for each word of 4 bytes, which is set if a change of the word alone is a
 * remainder. The caller allocates it with the shadow and initializes it to zeros.
 *
 * Ownership: all memory is the caller's.
 * Threads: any; one thread at a time per bitmap.
 */
#ifndef GP_HOST_RUN_BITMAP_H
#define GP_HOST_RUN_BITMAP_H

#include "protocol/host_changes.h"

/* Returns the size of the bitmap, in bytes, for memory of `size` bytes at any address. */
static inline size_t
gp_run_bitmap_get_size(size_t size)
{
	return size / 32 + 2;
}

/* Returns the bitmap byte for an address in a block of memory. marks: the bitmap of the block,
 * whose first byte covers the 32 aligned bytes in which the block begins. block: address of the
 * block. */
static inline uint8_t *
gp_run_bitmap_at(uint8_t *marks, uint64_t block, uint64_t address)
{
	return marks + ((address >> 5) - (block >> 5));
}

/* Returns whether a short run of the range may be the remainder of a long one; false if the range
 * has no bitmap. */
bool gp_run_bitmap_is_fragment(const struct gp_changes_range *range, const struct gp_change *run);
/* Updates the bitmap, if the range has one, after a run of the range was sent: a long run sets the
 * bits of its words and of the words next to it, a short run clears the bits of its words. */
void gp_run_bitmap_update(const struct gp_changes_range *range, const struct gp_change *run);

#endif /* GP_HOST_RUN_BITMAP_H */
