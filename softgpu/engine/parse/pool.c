/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/engine/parse/pool.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_SIZE ((size_t)64 << 10)
#define ALIGNMENT ((size_t)16)

struct gs_pool_chunk {
	struct gs_pool_chunk *next;
	size_t used;
	size_t capacity;
	size_t padding;
};

static struct gs_pool_chunk *
add_chunk(struct gs_pool *pool, size_t size)
{
	size_t capacity = size > CHUNK_SIZE ? size : CHUNK_SIZE;
	struct gs_pool_chunk *chunk = calloc(1, sizeof(*chunk) + capacity);

	if (!chunk)
		return NULL;
	chunk->capacity = capacity;
	chunk->next = pool->chunks;
	pool->chunks = chunk;
	return chunk;
}

void *
gs_pool_alloc(struct gs_pool *pool, size_t size)
{
	struct gs_pool_chunk *chunk = pool->chunks;
	void *result;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
	if (!chunk || chunk->capacity - chunk->used < size) {
		chunk = add_chunk(pool, size);
		if (!chunk)
			return NULL;
	}
	result = (char *)(chunk + 1) + chunk->used;
	chunk->used += size;
	return result;
}

void *
gs_pool_grow(struct gs_pool *pool, void *array, size_t element, size_t count, size_t *capacity)
{
	size_t larger;
	void *copy;

	if (count < *capacity)
		return array;
	larger = *capacity ? *capacity * 2 : 16;
	copy = gs_pool_alloc(pool, larger * element);
	if (!copy)
		return NULL;
	if (count)
		memcpy(copy, array, count * element);
	*capacity = larger;
	return copy;
}

char *
gs_pool_strndup(struct gs_pool *pool, const char *text, size_t len)
{
	char *copy = gs_pool_alloc(pool, len + 1);

	if (copy)
		memcpy(copy, text, len);
	return copy;
}

void
gs_pool_fini(struct gs_pool *pool)
{
	struct gs_pool_chunk *chunk = pool->chunks;

	while (chunk) {
		struct gs_pool_chunk *next = chunk->next;

		free(chunk);
		chunk = next;
	}
	pool->chunks = NULL;
}
