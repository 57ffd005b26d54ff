/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/ranges.h"

#include "client/base/list.h"

#include <errno.h>
#include <string.h>

/* Returns the number of ranges that end at or before address. */
static size_t
ranges_lower_bound(const struct gpc_ranges *ranges, uint64_t address)
{
	size_t low = 0, high = ranges->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->list[middle].base + ranges->list[middle].size <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

int
gpc_ranges_add(struct gpc_ranges *ranges, uint64_t base, uint64_t size, void *item)
{
	struct gpc_range *list;
	size_t at;

	if (size == 0 || base + size < base || gpc_ranges_find(ranges, base, size))
		return GP_E_INVALID;
	list = gpc_list_grow(ranges->list, ranges->count, &ranges->capacity, sizeof(*list));
	if (!list)
		return -ENOMEM;
	ranges->list = list;
	at = ranges_lower_bound(ranges, base);
	memmove(ranges->list + at + 1, ranges->list + at,
		(ranges->count - at) * sizeof(*ranges->list));
	ranges->list[at] = (struct gpc_range){ .base = base, .size = size, .item = item };
	ranges->count++;
	return 0;
}

struct gpc_range *
gpc_ranges_find(const struct gpc_ranges *ranges, uint64_t base, uint64_t size)
{
	size_t at = ranges_lower_bound(ranges, base);

	if (at == ranges->count)
		return NULL;
	/* The range ends after base, so it overlaps unless it starts too late. */
	if (ranges->list[at].base > base && ranges->list[at].base - base >= size)
		return NULL;
	return &ranges->list[at];
}

void
gpc_ranges_remove(struct gpc_ranges *ranges, struct gpc_range *range)
{
	size_t at = (size_t)(range - ranges->list);

	ranges->count--;
	memmove(range, range + 1, (ranges->count - at) * sizeof(*range));
}
