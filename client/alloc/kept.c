/* SPDX-License-Identifier: Apache-2.0 */
#include "client/alloc/kept.h"

#include <string.h>

void
gpc_kept_init(struct gpc_kept *kept)
{
	memset(kept, 0, sizeof(*kept));
	(void)pthread_mutex_init(&kept->lock, NULL);
}

static struct gpc_range *
find_refused(struct gpc_kept *kept, uint64_t base)
{
	return gpc_ranges_find(&kept->refused, base, 1);
}

int
gpc_kept_refuse(struct gpc_kept *kept, uint64_t base)
{
	int r = 0;

	(void)pthread_mutex_lock(&kept->lock);
	if (!find_refused(kept, base))
		r = gpc_ranges_add(&kept->refused, base, 1, NULL);
	(void)pthread_mutex_unlock(&kept->lock);
	return r;
}

bool
gpc_kept_put(struct gpc_kept *kept, const struct gpc_kept_mapping *mapping)
{
	struct gpc_range *refused;
	bool fits;

	(void)pthread_mutex_lock(&kept->lock);
	refused = find_refused(kept, mapping->range.base);
	if (refused)
		gpc_ranges_remove(&kept->refused, refused);
	fits = !refused && kept->count < GPC_KEPT_COUNT;
	if (fits) {
		kept->mappings[kept->count++] = *mapping;
		kept->bytes += mapping->range.size;
	}
	(void)pthread_mutex_unlock(&kept->lock);
	return fits;
}

static void
take_out_locked(struct gpc_kept *kept, unsigned int place)
{
	kept->bytes -= kept->mappings[place].range.size;
	kept->count--;
	memmove(&kept->mappings[place], &kept->mappings[place + 1],
		(kept->count - place) * sizeof(*kept->mappings));
}

bool
gpc_kept_take_excess(struct gpc_kept *kept, uint64_t bytes, struct gpc_kept_mapping *mapping)
{
	bool found;

	(void)pthread_mutex_lock(&kept->lock);
	found = kept->count == GPC_KEPT_COUNT || kept->bytes > bytes;
	if (found) {
		*mapping = kept->mappings[0];
		take_out_locked(kept, 0);
	}
	(void)pthread_mutex_unlock(&kept->lock);
	return found;
}

bool
gpc_kept_take(struct gpc_kept *kept, const void *owner, uint64_t size, uint64_t done,
	      struct gpc_heap_range *range_p, bool *waits_p)
{
	bool found = false;

	*waits_p = false;
	(void)pthread_mutex_lock(&kept->lock);
	for (unsigned int i = kept->count; i-- > 0 && !found;) {
		const struct gpc_kept_mapping *mapping = &kept->mappings[i];

		if (mapping->owner != owner || mapping->range.size != size)
			continue;
		found = mapping->tag <= done;
		*waits_p = !found;
		if (found) {
			*range_p = mapping->range;
			take_out_locked(kept, i);
		}
	}
	(void)pthread_mutex_unlock(&kept->lock);
	return found;
}

uint64_t
gpc_kept_bytes(struct gpc_kept *kept, const void *owner)
{
	uint64_t bytes = 0;

	(void)pthread_mutex_lock(&kept->lock);
	for (unsigned int i = 0; i < kept->count; i++) {
		if (kept->mappings[i].owner == owner)
			bytes += kept->mappings[i].range.size;
	}
	(void)pthread_mutex_unlock(&kept->lock);
	return bytes;
}
