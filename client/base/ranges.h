/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address ranges that do not overlap, in order: what is looked up by an address inside.  Changes
 * are linear, lookups logarithmic.  Not locked: the owner does that.
 */
#ifndef GPC_RANGES_H
#define GPC_RANGES_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

struct gpc_range {
	uint64_t base, size;
	void *item;
};

struct gpc_ranges {
	struct gpc_range *list;
	size_t count, room;
};

/* GP_E_INVALID: empty, or it overlaps another one.  -ENOMEM. */
GP_MUST_CHECK int gpc_ranges_add(struct gpc_ranges *ranges, uint64_t base, uint64_t size,
				 void *item);
/* The first range that has an address in [base, base + size); NULL: none has. */
struct gpc_range *gpc_ranges_find(const struct gpc_ranges *ranges, uint64_t base, uint64_t size);
/* range is what gpc_ranges_find() returned; the item stays the caller's. */
void gpc_ranges_remove(struct gpc_ranges *ranges, struct gpc_range *range);
void gpc_ranges_fini(struct gpc_ranges *ranges);

#endif /* GPC_RANGES_H */
