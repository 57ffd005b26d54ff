/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorted set of address ranges that do not overlap, each with a pointer of the caller (item), to
 * find the range that contains an address. Changes take linear time, lookups logarithmic time.
 *
 * Ownership: the set owns its list, and lives as long as the process; there is no function to free
 * it. The items are the caller's.
 * Threads: no lock inside; the owner serializes all calls.
 * Units: addresses and sizes are bytes.
 */
#ifndef GPC_RANGES_H
#define GPC_RANGES_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

/* A range [base, base + size) and the caller's item for it. */
struct gpc_range {
	uint64_t base, size;
	void *item;
};

/* A set, sorted by base; zeroed, it is empty. */
struct gpc_ranges {
	struct gpc_range *list;
	/* number of ranges, and capacity of list */
	size_t count, capacity;
};

/* Adds a range. Returns 0; GP_E_INVALID if the range is empty, wraps around or overlaps another
 * one; or -ENOMEM. After an error the set is unchanged. */
GP_MUST_CHECK int gpc_ranges_add(struct gpc_ranges *ranges, uint64_t base, uint64_t size,
				 void *item);
/* Returns the range with the lowest address that overlaps [base, base + size), or NULL if there is
 * none. size: at least 1. With size 1 it is the range that contains the address base. The pointer
 * is valid until the next change of the set. */
struct gpc_range *gpc_ranges_find(const struct gpc_ranges *ranges, uint64_t base, uint64_t size);
/* Removes a range that gpc_ranges_find() returned since the last change. The item stays the
 * caller's. */
void gpc_ranges_remove(struct gpc_ranges *ranges, struct gpc_range *range);

#endif /* GPC_RANGES_H */
