/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tells the rest of data from a flag (docs/host-memory.md).  A picture may fall into the
 * middle of data; what is left for the next one may be as short as a flag.  But it was sent within
 * something long before, or something long was sent that ends beside it.
 *
 * One bit for each word of 4 bytes, which an end keeps beside its shadow.  Plain memory of the
 * caller's; any thread, one at a time.
 */
#ifndef GP_PROTOCOL_RUN_BITMAP_H
#define GP_PROTOCOL_RUN_BITMAP_H

#include "protocol/host_changes.h"

/* What the marks of memory of that size take, wherever it lies. */
static inline size_t
gp_run_bitmap_get_size(size_t size)
{
	return size / 32 + 2;
}

/* Those of address among those of a block, whose first byte has the bits of the 32 bytes that the
 * block begins in. */
static inline uint8_t *
gp_run_bitmap_at(uint8_t *marks, uint64_t block, uint64_t address)
{
	return marks + ((address >> 5) - (block >> 5));
}

/* Whether a short run in the range may be the rest of something long. */
bool gp_run_bitmap_is_fragment(const struct gp_changes_range *range, const struct gp_change *run);
/* The run is sent. */
void gp_run_bitmap_update(const struct gp_changes_range *range, const struct gp_change *run);

#endif /* GP_PROTOCOL_RUN_BITMAP_H */
