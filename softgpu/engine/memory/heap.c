/* SPDX-License-Identifier: Apache-2.0 */
/* The bookkeeping is outside of device memory, where kernels cannot corrupt it. */
#include "softgpu/engine/memory/heap.h"

#include "softgpu/engine/memory/vmem.h"

#include <pthread.h>
#include <stdlib.h>

#define GRAIN 16ull

struct chunk {
	struct chunk *next;
	uint64_t offset;
	uint64_t size;
	bool is_used;
};

struct gs_heap {
	pthread_mutex_t lock;
	uint8_t *base;
	size_t size;
	struct chunk *chunks; /* in order of offset, without gaps */
};

int
gs_heap_create(size_t size, struct gs_heap **heap_p)
{
	struct gs_heap *heap = calloc(1, sizeof(*heap));
	struct chunk *chunk = calloc(1, sizeof(*chunk));

	if (heap && chunk)
		heap->base = gs_vmem_alloc(size);
	if (!heap || !chunk || !heap->base) {
		free(heap);
		free(chunk);
		return GS_OUT_OF_MEMORY;
	}
	pthread_mutex_init(&heap->lock, NULL);
	heap->size = size;
	chunk->size = size & ~(GRAIN - 1);
	heap->chunks = chunk;
	*heap_p = heap;
	return GS_OK;
}

void
gs_heap_destroy(struct gs_heap *heap)
{
	struct chunk *chunk = heap ? heap->chunks : NULL;

	if (!heap)
		return;
	while (chunk) {
		struct chunk *next = chunk->next;

		free(chunk);
		chunk = next;
	}
	gs_vmem_free(heap->base);
	pthread_mutex_destroy(&heap->lock);
	free(heap);
}

size_t
gs_heap_size(const struct gs_heap *heap)
{
	return heap->size;
}

/* Splits off the unused part of the chunk. */
static void
split_chunk(struct chunk *chunk, uint64_t size)
{
	struct chunk *rest = chunk->size > size ? calloc(1, sizeof(*rest)) : NULL;

	if (!rest)
		return;
	rest->next = chunk->next;
	rest->offset = chunk->offset + size;
	rest->size = chunk->size - size;
	chunk->next = rest;
	chunk->size = size;
}

uint64_t
gs_heap_alloc(struct gs_heap *heap, uint64_t size)
{
	struct chunk *chunk;
	uint64_t address = 0;

	if (!heap || !size || size > heap->size)
		return 0;
	size = (size + GRAIN - 1) & ~(GRAIN - 1);
	pthread_mutex_lock(&heap->lock);
	chunk = heap->chunks;
	while (chunk && (chunk->is_used || chunk->size < size))
		chunk = chunk->next;
	if (chunk) {
		split_chunk(chunk, size);
		chunk->is_used = true;
		address = (uint64_t)(uintptr_t)heap->base + chunk->offset;
	}
	pthread_mutex_unlock(&heap->lock);
	return address;
}

static void
join_next(struct chunk *chunk)
{
	struct chunk *next = chunk->next;

	if (!next || next->is_used || chunk->is_used)
		return;
	chunk->size += next->size;
	chunk->next = next->next;
	free(next);
}

bool
gs_heap_free(struct gs_heap *heap, uint64_t address)
{
	struct chunk *previous = NULL;
	struct chunk *chunk;
	uint64_t offset;

	if (!heap)
		return false;
	offset = address - (uint64_t)(uintptr_t)heap->base;
	pthread_mutex_lock(&heap->lock);
	chunk = heap->chunks;
	while (chunk && chunk->offset != offset) {
		previous = chunk;
		chunk = chunk->next;
	}
	if (chunk && chunk->is_used) {
		chunk->is_used = false;
		join_next(chunk);
		if (previous)
			join_next(previous);
	} else {
		chunk = NULL;
	}
	pthread_mutex_unlock(&heap->lock);
	return chunk != NULL;
}
