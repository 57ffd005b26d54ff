/* SPDX-License-Identifier: Apache-2.0 */
/* Condition values that kernels set for conditional nodes of graphs, by number. */
#include "softgpu/engine/engine.h"

#include <pthread.h>

#define ENTRIES_MAX (1u << 16)
/* A number is the index and, above it, the use count of the entry. */
#define INDEX_BITS 20

static struct entry {
	uint64_t number; /* 0: unused */
	uint64_t uses;
	uint32_t value;
} entries[ENTRIES_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t last;

static struct entry *
find(uint64_t number)
{
	struct entry *entry = &entries[number % ENTRIES_MAX];

	return number && __atomic_load_n(&entry->number, __ATOMIC_ACQUIRE) == number ? entry : NULL;
}

uint64_t
gs_condition_add(void)
{
	uint64_t number = 0;

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < ENTRIES_MAX && !number; i++) {
		uint32_t index = ++last % ENTRIES_MAX;

		if (!index || entries[index].number)
			continue;
		number = ++entries[index].uses << INDEX_BITS | index;
		entries[index].value = 0;
		__atomic_store_n(&entries[index].number, number, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	return number;
}

void
gs_condition_remove(uint64_t number)
{
	struct entry *entry;

	pthread_mutex_lock(&lock);
	entry = find(number);
	if (entry)
		__atomic_store_n(&entry->number, 0, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
}

bool
gs_condition_set(uint64_t number, uint32_t value)
{
	struct entry *entry = find(number);

	if (entry)
		__atomic_store_n(&entry->value, value, __ATOMIC_RELEASE);
	return entry != NULL;
}

uint32_t
gs_condition_get(uint64_t number)
{
	const struct entry *entry = find(number);

	return entry ? __atomic_load_n(&entry->value, __ATOMIC_ACQUIRE) : 0;
}
