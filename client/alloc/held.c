/* SPDX-License-Identifier: Apache-2.0 */
#include "client/alloc/held.h"

bool
gpc_held_take(struct gpc_held *held, struct gpc_heap_range *range_p)
{
	if (held->count == 0)
		return false;
	*range_p = held->ranges[held->first];
	held->first = (held->first + 1) % GPC_HELD_MAX;
	held->count--;
	return true;
}

bool
gpc_held_put(struct gpc_held *held, const struct gpc_heap_range *range,
	     struct gpc_heap_range *oldest_p)
{
	bool full = held->count == GPC_HELD_MAX && gpc_held_take(held, oldest_p);

	held->ranges[(held->first + held->count++) % GPC_HELD_MAX] = *range;
	return full;
}
