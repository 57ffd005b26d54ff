/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/rdma/registered_memory.h"

#include "base/lock.h"
#include "transport/transport.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Sorted by address; ranges do not overlap. */
static struct gp_memory *ranges GP_GUARDED_BY(lock);
static size_t range_count GP_GUARDED_BY(lock), range_room GP_GUARDED_BY(lock);

/* Returns the first range that ends after the address. */
static size_t
range_find_index(const uint8_t *base) GP_LOCKED(lock)
{
	size_t low = 0, high = range_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges[middle].base + ranges[middle].size <= base)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool
range_add(const struct gp_memory *memory)
{
	uint8_t *base = memory->base;
	struct gp_memory *more;
	bool kept;
	size_t at;

	pthread_mutex_lock(&lock);
	more = ranges;
	at = range_find_index(base);
	if (range_count == range_room) {
		more = realloc(ranges, (range_room * 2 + 16) * sizeof(*ranges));
		if (more) {
			ranges = more;
			range_room = range_room * 2 + 16;
		}
	}
	kept = more && (at == range_count || base + memory->size <= ranges[at].base);
	if (kept) {
		memmove(ranges + at + 1, ranges + at, (range_count - at) * sizeof(*ranges));
		ranges[at] = *memory;
		range_count++;
	}
	pthread_mutex_unlock(&lock);
	return kept;
}

void
gp_memory_register(void *base, size_t size)
{
	(void)range_add(&(struct gp_memory){ .base = base, .size = size });
}

bool
gp_memory_register_fixed(void *base, size_t size, struct gp_memory_registrations *registrations)
{
	return range_add(&(struct gp_memory){ .base = base,
					      .size = size,
					      .registrations = registrations,
					      .has_fixed_registrations = true });
}

void
gp_memory_unregister(void *base)
{
	struct gp_memory_registrations *registrations = NULL;
	size_t at;

	pthread_mutex_lock(&lock);
	at = range_find_index(base);
	if (at < range_count && ranges[at].base == base) {
		registrations = ranges[at].registrations;
		range_count--;
		memmove(ranges + at, ranges + at + 1, (range_count - at) * sizeof(*ranges));
	}
	if (range_count == 0) {
		free(ranges);
		ranges = NULL;
		range_room = 0;
	}
	pthread_mutex_unlock(&lock);
	if (registrations)
		gp_memory_destroy_registrations(registrations);
}

struct gp_memory *
gp_memory_acquire(const void *base, size_t size) GP_LOCK_UNCHECKED
{
	const uint8_t *from = base;
	size_t at;

	pthread_mutex_lock(&lock);
	at = range_find_index(from);
	if (at < range_count && ranges[at].base <= from &&
	    size <= ranges[at].size - (size_t)(from - ranges[at].base))
		return &ranges[at];
	pthread_mutex_unlock(&lock);
	return NULL;
}

void
gp_memory_release(void) GP_LOCK_UNCHECKED
{
	pthread_mutex_unlock(&lock);
}
