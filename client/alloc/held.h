/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Addresses that were given back and are not to be used again yet, the oldest first: whoever had
 * something there may need a while.  Its owner's; no locks.
 */
#ifndef GPC_HELD_H
#define GPC_HELD_H

#include "client/alloc/heap.h"

#include <stdbool.h>

#define GPC_HELD_MAX 1024

struct gpc_held {
	struct gpc_heap_range ranges[GPC_HELD_MAX];
	unsigned int first, count;
};

/* The oldest one, which is held no more; false: there is none. */
bool gpc_held_take(struct gpc_held *held, struct gpc_heap_range *range_p);
/* Whether another one, the oldest, had to make room. */
bool gpc_held_put(struct gpc_held *held, const struct gpc_heap_range *range,
		  struct gpc_heap_range *oldest_p);

#endif /* GPC_HELD_H */
