/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/engine/memory/texture_table.h"

#include <pthread.h>
#include <stdlib.h>

#define ENTRIES_MAX (1u << 16)
/* A number is the index and, above it, the use count of the entry. */
#define INDEX_BITS 20

/* Entries are never freed, so that kernels can read them without a lock. */
static struct {
	pthread_mutex_t lock;
	struct gs_texture_entry *entries[ENTRIES_MAX];
	uint32_t made;
	uint32_t *unused;
	uint32_t unused_count;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Called with the lock held; returns 0 if there is none. */
static uint32_t
alloc_entry(void)
{
	struct gs_texture_entry *entry;

	if (!table.unused)
		table.unused = calloc(ENTRIES_MAX, sizeof(*table.unused));
	if (!table.unused)
		return 0;
	if (table.unused_count)
		return table.unused[--table.unused_count];
	if (table.made + 1 == ENTRIES_MAX)
		return 0;
	entry = calloc(1, sizeof(*entry));
	if (!entry)
		return 0;
	__atomic_store_n(&table.entries[++table.made], entry, __ATOMIC_RELEASE);
	return table.made;
}

bool
gs_texture_add(const struct gs_texture *texture, uint64_t *number_p)
{
	uint32_t index;

	pthread_mutex_lock(&table.lock);
	index = alloc_entry();
	if (index) {
		struct gs_texture_entry *entry = table.entries[index];

		entry->texture = *texture;
		*number_p = ++entry->uses << INDEX_BITS | index;
		__atomic_store_n(&entry->number, *number_p, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&table.lock);
	return index != 0;
}

static struct gs_texture_entry *
find(uint64_t number)
{
	uint64_t index = number & ((1u << INDEX_BITS) - 1);
	struct gs_texture_entry *entry;

	if (index >= ENTRIES_MAX)
		return NULL;
	entry = __atomic_load_n(&table.entries[index], __ATOMIC_ACQUIRE);
	return entry && number && __atomic_load_n(&entry->number, __ATOMIC_ACQUIRE) == number
		       ? entry
		       : NULL;
}

void
gs_texture_remove(uint64_t number)
{
	struct gs_texture_entry *entry;

	pthread_mutex_lock(&table.lock);
	entry = find(number);
	if (entry) {
		__atomic_store_n(&entry->number, 0, __ATOMIC_RELEASE);
		table.unused[table.unused_count++] = (uint32_t)(number & ((1u << INDEX_BITS) - 1));
	}
	pthread_mutex_unlock(&table.lock);
}

const struct gs_texture *
gs_texture_find(uint64_t number)
{
	const struct gs_texture_entry *entry = find(number);

	return entry ? &entry->texture : NULL;
}
