/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/engine/parse/names.h"

#include <string.h>

struct gs_name_entry {
	struct gs_name_entry *next;
	const char *text;
	size_t len;
	uint32_t hash;
	int32_t value;
};

static uint32_t
hash_text(const char *text, size_t len)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (uint8_t)text[i]) * 16777619u;
	return hash ^ (hash >> 15);
}

static struct gs_name_entry *
find_entry(const struct gs_names *names, const char *text, size_t len, uint32_t hash)
{
	struct gs_name_entry *entry;

	if (!names->bucket_count)
		return NULL;
	entry = names->buckets[hash & (names->bucket_count - 1)];
	while (entry &&
	       (entry->hash != hash || entry->len != len || memcmp(entry->text, text, len) != 0))
		entry = entry->next;
	return entry;
}

int32_t
gs_names_find(const struct gs_names *names, const char *text, size_t len)
{
	struct gs_name_entry *entry = find_entry(names, text, len, hash_text(text, len));

	return entry ? entry->value : -1;
}

static int
enlarge(struct gs_names *names, struct gs_pool *pool)
{
	uint32_t count = names->bucket_count ? names->bucket_count * 4 : 64;
	struct gs_name_entry **buckets =
		gs_pool_alloc(pool, sizeof(struct gs_name_entry *) * count);

	if (!buckets)
		return -1;
	for (uint32_t i = 0; i < names->bucket_count; i++) {
		struct gs_name_entry *entry = names->buckets[i];

		while (entry) {
			struct gs_name_entry *next = entry->next;

			entry->next = buckets[entry->hash & (count - 1)];
			buckets[entry->hash & (count - 1)] = entry;
			entry = next;
		}
	}
	names->buckets = buckets;
	names->bucket_count = count;
	return 0;
}

int
gs_names_set(struct gs_names *names, struct gs_pool *pool, const char *text, size_t len,
	     int32_t value)
{
	uint32_t hash = hash_text(text, len);
	struct gs_name_entry *entry = find_entry(names, text, len, hash);

	if (entry) {
		entry->value = value;
		return 0;
	}
	if (names->count >= names->bucket_count && enlarge(names, pool) != 0)
		return -1;
	entry = gs_pool_alloc(pool, sizeof(*entry));
	if (!entry)
		return -1;
	*entry = (struct gs_name_entry){ names->buckets[hash & (names->bucket_count - 1)], text,
					 len, hash, value };
	names->buckets[hash & (names->bucket_count - 1)] = entry;
	names->count++;
	return 0;
}
