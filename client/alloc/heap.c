/* SPDX-License-Identifier: Apache-2.0 */
#include "client/alloc/heap.h"

#include "client/alloc/deferred_free.h"
#include "client/alloc/tlsf.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

struct mapping {
	struct gpc_heap_range range;
	struct arena *arena;
	struct mapping *prev, *next;
	bool chunk;
	bool spare;      /* a wholly free chunk */
	uint32_t region; /* of a chunk: in the allocator of its arena */
	uint64_t size;   /* of a large block: as requested */
	uint64_t id;
};

/* The mappings of one owner. */
struct arena {
	void *owner;
	struct arena *next;
	/* Allocator of its chunks. The unit is GPC_HEAP_ALIGNMENT; the 32-bit user word of a live
	 * run is the requested size. */
	struct gpc_tlsf tlsf;
	struct mapping *chunks[GPC_TLSF_REGIONS];
	struct mapping *mappings;
	struct gpc_deferred_free deferred;
	unsigned int spares;
	uint64_t next_chunk;
};

struct gpc_heap {
	pthread_mutex_t lock;
	struct gpc_heap_range window;
	uint64_t granularity;
	uint64_t first_chunk;
	/* Allocator of the window. The unit is the granularity; the 64-bit user word of a mapped
	 * run is its mapping. */
	struct gpc_tlsf addresses;
	struct gpc_deferred_free unmapped;
	struct arena *arenas;
	atomic_uint_fast64_t deferred; /* bytes, over all arenas */
};

static uint64_t
round_up(uint64_t size, uint64_t unit)
{
	return (size + unit - 1) & ~(unit - 1);
}

static struct arena *
arena_find(struct gpc_heap *heap, const void *owner)
{
	struct arena *arena = heap->arenas;

	while (arena && arena->owner != owner)
		arena = arena->next;
	return arena;
}

static struct arena *
arena_get(struct gpc_heap *heap, void *owner)
{
	struct arena *arena = arena_find(heap, owner);

	if (arena)
		return arena;
	arena = calloc(1, sizeof(*arena));
	if (!arena)
		return NULL;
	arena->owner = owner;
	arena->next_chunk = heap->first_chunk;
	gpc_tlsf_init(&arena->tlsf);
	gpc_deferred_free_init(&arena->deferred);
	arena->next = heap->arenas;
	heap->arenas = arena;
	return arena;
}

static void
arena_link(struct arena *arena, struct mapping *mapping)
{
	mapping->arena = arena;
	mapping->prev = NULL;
	mapping->next = arena->mappings;
	if (mapping->next)
		mapping->next->prev = mapping;
	arena->mappings = mapping;
}

static uint32_t
window_index(const struct gpc_heap *heap, uint64_t address)
{
	return (uint32_t)((address - heap->window.base) / heap->granularity);
}

/* A chunk must be spare. The addresses stay in use until gpc_heap_defer_range() and
 * gpc_heap_reap(). */
static void
mapping_remove(struct gpc_heap *heap, struct mapping *mapping, struct gpc_heap_range *range_p)
{
	struct arena *arena = mapping->arena;

	*range_p = mapping->range;
	*gpc_tlsf_get_user64(&heap->addresses, window_index(heap, mapping->range.base)) = 0;
	if (mapping->prev)
		mapping->prev->next = mapping->next;
	else
		arena->mappings = mapping->next;
	if (mapping->next)
		mapping->next->prev = mapping->prev;
	if (mapping->chunk) {
		gpc_tlsf_remove_region(&arena->tlsf, mapping->region);
		arena->spares--;
		arena->chunks[mapping->region] = NULL;
	}
	free(mapping);
}

int
gpc_heap_create(uint64_t base, uint64_t size, uint64_t granularity, uint64_t first_chunk,
		struct gpc_heap **heap_p)
{
	struct gpc_heap *heap;

	if (granularity < GPC_HEAP_SMALL_MAX || granularity > GPC_HEAP_CHUNK_MAX ||
	    (granularity & (granularity - 1)) || base % granularity || size < granularity)
		return GP_E_INVALID;
	heap = calloc(1, sizeof(*heap));
	if (!heap)
		return -ENOMEM;
	(void)pthread_mutex_init(&heap->lock, NULL);
	heap->window.base = base;
	heap->window.size = size & ~(granularity - 1);
	heap->granularity = granularity;
	heap->first_chunk = round_up(first_chunk ? first_chunk : granularity, granularity);
	if (heap->first_chunk > GPC_HEAP_CHUNK_MAX)
		heap->first_chunk = GPC_HEAP_CHUNK_MAX;
	gpc_tlsf_init(&heap->addresses);
	gpc_deferred_free_init(&heap->unmapped);
	for (uint64_t left = heap->window.size / granularity; left > 0;) {
		uint64_t units = left < GPC_TLSF_REGION_UNITS ? left : GPC_TLSF_REGION_UNITS;
		uint32_t region;
		int r = gpc_tlsf_add_region(&heap->addresses, (uint32_t)units, &region);

		if (r) {
			gpc_heap_destroy(heap);
			return r;
		}
		left -= units;
	}
	*heap_p = heap;
	return 0;
}

void
gpc_heap_destroy(struct gpc_heap *heap)
{
	if (!heap)
		return;
	while (heap->arenas) {
		struct arena *arena = heap->arenas;

		heap->arenas = arena->next;
		while (arena->mappings) {
			struct mapping *mapping = arena->mappings;

			arena->mappings = mapping->next;
			free(mapping);
		}
		gpc_tlsf_fini(&arena->tlsf);
		free(arena);
	}
	gpc_tlsf_fini(&heap->addresses);
	(void)pthread_mutex_destroy(&heap->lock);
	free(heap);
}

bool
gpc_heap_contains(const struct gpc_heap *heap, uint64_t address)
{
	return address - heap->window.base < heap->window.size;
}

int
gpc_heap_alloc(struct gpc_heap *heap, void *owner, uint64_t size, uint64_t id, uint64_t *address_p)
{
	struct mapping *mapping;
	struct arena *arena;
	uint32_t place = GPC_TLSF_NONE;
	int r = GP_E_RESOURCE;

	if (size == 0 || size > GPC_HEAP_SMALL_MAX)
		return GP_E_INVALID;
	(void)pthread_mutex_lock(&heap->lock);
	arena = arena_find(heap, owner);
	if (arena)
		place = gpc_tlsf_alloc(&arena->tlsf, (uint32_t)((size + GPC_HEAP_ALIGNMENT - 1) /
								GPC_HEAP_ALIGNMENT));
	if (place != GPC_TLSF_NONE) {
		*gpc_tlsf_get_user32(&arena->tlsf, place) = (uint32_t)size;
		*gpc_tlsf_get_user64(&arena->tlsf, place) = id;
		mapping = arena->chunks[gpc_tlsf_region(place)];
		arena->spares -= mapping->spare;
		mapping->spare = false;
		*address_p = mapping->range.base + gpc_tlsf_unit(place) * GPC_HEAP_ALIGNMENT;
		r = 0;
	}
	(void)pthread_mutex_unlock(&heap->lock);
	return r;
}

uint64_t
gpc_heap_chunk_size(struct gpc_heap *heap, void *owner)
{
	struct arena *arena;
	uint64_t size = heap->first_chunk;

	(void)pthread_mutex_lock(&heap->lock);
	arena = arena_find(heap, owner);
	if (arena)
		size = arena->next_chunk;
	(void)pthread_mutex_unlock(&heap->lock);
	return size;
}

int
gpc_heap_reserve(struct gpc_heap *heap, uint64_t size, struct gpc_heap_range *range_p)
{
	uint64_t units;
	uint32_t place;

	if (size == 0)
		return GP_E_INVALID;
	if (size > heap->window.size)
		return GP_E_RESOURCE;
	units = round_up(size, heap->granularity) / heap->granularity;
	if (units > GPC_TLSF_REGION_UNITS)
		return GP_E_RESOURCE;
	(void)pthread_mutex_lock(&heap->lock);
	place = gpc_tlsf_alloc(&heap->addresses, (uint32_t)units);
	(void)pthread_mutex_unlock(&heap->lock);
	if (place == GPC_TLSF_NONE)
		return GP_E_RESOURCE;
	range_p->base = heap->window.base + place * heap->granularity;
	range_p->size = units * heap->granularity;
	return 0;
}

void
gpc_heap_unreserve(struct gpc_heap *heap, const struct gpc_heap_range *range)
{
	(void)pthread_mutex_lock(&heap->lock);
	gpc_tlsf_free(&heap->addresses, window_index(heap, range->base));
	(void)pthread_mutex_unlock(&heap->lock);
}

static int
chunk_init(struct arena *arena, struct mapping *mapping)
{
	uint64_t units = mapping->range.size / GPC_HEAP_ALIGNMENT;
	int r;

	if (units > GPC_TLSF_REGION_UNITS)
		return GP_E_INVALID;
	r = gpc_tlsf_add_region(&arena->tlsf, (uint32_t)units, &mapping->region);
	if (r)
		return r;
	mapping->chunk = true;
	mapping->spare = true;
	arena->spares++;
	arena->chunks[mapping->region] = mapping;
	if (arena->next_chunk <= mapping->range.size && arena->next_chunk < GPC_HEAP_CHUNK_MAX)
		arena->next_chunk *= 2;
	return 0;
}

static int
mapping_add(struct gpc_heap *heap, void *owner, const struct gpc_heap_range *range, bool chunk,
	    uint64_t size, uint64_t id)
{
	struct mapping *mapping = calloc(1, sizeof(*mapping));
	struct arena *arena;
	int r = 0;

	if (!mapping)
		return -ENOMEM;
	mapping->range = *range;
	mapping->size = size;
	mapping->id = id;
	(void)pthread_mutex_lock(&heap->lock);
	arena = arena_get(heap, owner);
	if (!arena)
		r = -ENOMEM;
	else if (chunk)
		r = chunk_init(arena, mapping);
	if (!r) {
		arena_link(arena, mapping);
		*gpc_tlsf_get_user64(&heap->addresses, window_index(heap, range->base)) =
			(uintptr_t)mapping;
	}
	(void)pthread_mutex_unlock(&heap->lock);
	if (r)
		free(mapping);
	return r;
}

int
gpc_heap_add_chunk(struct gpc_heap *heap, void *owner, const struct gpc_heap_range *range)
{
	return mapping_add(heap, owner, range, true, 0, 0);
}

int
gpc_heap_add_large(struct gpc_heap *heap, void *owner, const struct gpc_heap_range *range,
		   uint64_t size, uint64_t id)
{
	return mapping_add(heap, owner, range, false, size, id);
}

static struct mapping *
mapping_find(struct gpc_heap *heap, uint64_t address)
{
	uint32_t place;

	if (!gpc_heap_contains(heap, address))
		return NULL;
	place = gpc_tlsf_find(&heap->addresses, window_index(heap, address));
	if (place == GPC_TLSF_NONE || gpc_deferred_free_contains(&heap->addresses, place))
		return NULL;
	return (struct mapping *)(uintptr_t)*gpc_tlsf_get_user64(&heap->addresses, place);
}

/* Returns the live block of the chunk that contains address. */
static uint32_t
block_find(const struct mapping *mapping, uint64_t address)
{
	const struct gpc_tlsf *tlsf = &mapping->arena->tlsf;
	uint32_t unit = (uint32_t)((address - mapping->range.base) / GPC_HEAP_ALIGNMENT);
	uint32_t place = gpc_tlsf_find(tlsf, gpc_tlsf_place(mapping->region, unit));

	if (place != GPC_TLSF_NONE && gpc_deferred_free_contains(tlsf, place))
		return GPC_TLSF_NONE;
	return place;
}

static uint64_t
block_address(const struct mapping *mapping, uint32_t place)
{
	return mapping->range.base + gpc_tlsf_unit(place) * GPC_HEAP_ALIGNMENT;
}

static void
block_release(struct arena *arena, uint32_t place)
{
	struct mapping *mapping = arena->chunks[gpc_tlsf_region(place)];

	gpc_tlsf_free(&arena->tlsf, place);
	if (gpc_tlsf_region_is_free(&arena->tlsf, mapping->region)) {
		mapping->spare = true;
		arena->spares++;
	}
}

/* Pops the smallest spare chunk if the arena has more than spares_min of them. */
static bool
arena_pop_spare(struct gpc_heap *heap, struct arena *arena, unsigned int spares_min,
		struct gpc_heap_range *range_p)
{
	struct mapping *least = NULL;

	if (arena->spares <= spares_min)
		return false;
	for (uint32_t i = 0; i < arena->tlsf.region_capacity; i++) {
		struct mapping *mapping = arena->chunks[i];

		if (mapping && mapping->spare &&
		    (!least || mapping->range.size < least->range.size))
			least = mapping;
	}
	mapping_remove(heap, least, range_p);
	return true;
}

static uint64_t
block_size(const struct arena *arena, uint32_t place)
{
	return gpc_tlsf_get_units(&arena->tlsf, place) * GPC_HEAP_ALIGNMENT;
}

static void
block_defer(struct gpc_heap *heap, struct arena *arena, uint32_t place, uint64_t tag)
{
	gpc_deferred_free_push(&arena->deferred, &arena->tlsf, place, tag);
	atomic_fetch_add_explicit(&heap->deferred, block_size(arena, place), memory_order_relaxed);
}

static int
heap_free_locked(struct gpc_heap *heap, uint64_t address, uint64_t tag, uint64_t done,
		 struct gpc_heap_range *unmap_p)
{
	struct mapping *mapping = mapping_find(heap, address);
	uint32_t place;

	if (!mapping)
		return GP_E_INVALID;
	if (!mapping->chunk) {
		if (address != mapping->range.base)
			return GP_E_INVALID;
		mapping_remove(heap, mapping, unmap_p);
		return 0;
	}
	place = block_find(mapping, address);
	if (place == GPC_TLSF_NONE || block_address(mapping, place) != address)
		return GP_E_INVALID;
	if (tag <= done) {
		block_release(mapping->arena, place);
		arena_pop_spare(heap, mapping->arena, 1, unmap_p);
	} else {
		block_defer(heap, mapping->arena, place, tag);
	}
	return 0;
}

int
gpc_heap_free(struct gpc_heap *heap, uint64_t address, uint64_t tag, uint64_t done,
	      struct gpc_heap_range *unmap_p)
{
	int r;

	unmap_p->size = 0;
	(void)pthread_mutex_lock(&heap->lock);
	r = heap_free_locked(heap, address, tag, done, unmap_p);
	(void)pthread_mutex_unlock(&heap->lock);
	return r;
}

void
gpc_heap_defer_range(struct gpc_heap *heap, const struct gpc_heap_range *range, uint64_t tag)
{
	(void)pthread_mutex_lock(&heap->lock);
	gpc_deferred_free_push(&heap->unmapped, &heap->addresses, window_index(heap, range->base),
			       tag);
	(void)pthread_mutex_unlock(&heap->lock);
}

void
gpc_heap_reap(struct gpc_heap *heap, uint64_t done, uint64_t unmapped)
{
	uint32_t place;

	(void)pthread_mutex_lock(&heap->lock);
	for (struct arena *arena = heap->arenas; arena; arena = arena->next) {
		while ((place = gpc_deferred_free_pop(&arena->deferred, &arena->tlsf, done)) !=
		       GPC_TLSF_NONE) {
			atomic_fetch_sub_explicit(&heap->deferred, block_size(arena, place),
						  memory_order_relaxed);
			block_release(arena, place);
		}
	}
	while ((place = gpc_deferred_free_pop(&heap->unmapped, &heap->addresses, unmapped)) !=
	       GPC_TLSF_NONE)
		gpc_tlsf_free(&heap->addresses, place);
	(void)pthread_mutex_unlock(&heap->lock);
}

bool
gpc_heap_pop_spare(struct gpc_heap *heap, struct gpc_heap_range *range_p)
{
	bool found = false;

	(void)pthread_mutex_lock(&heap->lock);
	for (struct arena *arena = heap->arenas; arena && !found; arena = arena->next)
		found = arena_pop_spare(heap, arena, 0, range_p);
	(void)pthread_mutex_unlock(&heap->lock);
	return found;
}

static void
arena_remove(struct gpc_heap *heap, struct arena *arena)
{
	struct arena **link = &heap->arenas;

	while (*link != arena)
		link = &(*link)->next;
	*link = arena->next;
	gpc_tlsf_fini(&arena->tlsf);
	free(arena);
}

/* Converts chunks to plain mappings, from which nothing is allocated. */
static void
arena_dissolve(struct gpc_heap *heap, struct arena *arena)
{
	atomic_fetch_sub_explicit(&heap->deferred, arena->deferred.units * GPC_HEAP_ALIGNMENT,
				  memory_order_relaxed);
	for (struct mapping *mapping = arena->mappings; mapping; mapping = mapping->next) {
		if (!mapping->chunk)
			continue;
		arena->chunks[mapping->region] = NULL;
		mapping->chunk = false;
		mapping->size = mapping->range.size;
	}
	gpc_tlsf_fini(&arena->tlsf);
	gpc_tlsf_init(&arena->tlsf);
	gpc_deferred_free_init(&arena->deferred);
	arena->spares = 0;
}

bool
gpc_heap_pop_mapping(struct gpc_heap *heap, void *owner, struct gpc_heap_range *range_p)
{
	struct arena *arena;
	bool found = false;

	(void)pthread_mutex_lock(&heap->lock);
	arena = arena_find(heap, owner);
	if (arena && arena->mappings) {
		arena_dissolve(heap, arena);
		mapping_remove(heap, arena->mappings, range_p);
		found = true;
	} else if (arena) {
		arena_remove(heap, arena);
	}
	(void)pthread_mutex_unlock(&heap->lock);
	return found;
}

static bool
heap_find_locked(struct gpc_heap *heap, uint64_t address, struct gpc_heap_block *block)
{
	const struct mapping *mapping = mapping_find(heap, address);
	const struct gpc_tlsf *tlsf;
	uint32_t place;

	if (!mapping)
		return false;
	block->owner = mapping->arena->owner;
	block->mapping_base = mapping->range.base;
	block->mapping_size = mapping->range.size;
	if (!mapping->chunk) {
		block->address = mapping->range.base;
		block->size = mapping->size;
		block->id = mapping->id;
		return address - block->address < block->size;
	}
	place = block_find(mapping, address);
	if (place == GPC_TLSF_NONE)
		return false;
	tlsf = &mapping->arena->tlsf;
	block->address = block_address(mapping, place);
	block->size = *gpc_tlsf_get_user32(tlsf, place);
	block->id = *gpc_tlsf_get_user64(tlsf, place);
	return address - block->address < block->size;
}

bool
gpc_heap_find(struct gpc_heap *heap, uint64_t address, struct gpc_heap_block *block)
{
	bool found;

	(void)pthread_mutex_lock(&heap->lock);
	found = heap_find_locked(heap, address, block);
	(void)pthread_mutex_unlock(&heap->lock);
	return found;
}

uint64_t
gpc_heap_free_bytes(struct gpc_heap *heap, void *owner)
{
	struct arena *arena;
	uint64_t units = 0;

	(void)pthread_mutex_lock(&heap->lock);
	for (arena = heap->arenas; arena; arena = arena->next) {
		if (!owner || arena->owner == owner)
			units += arena->tlsf.free_units + arena->deferred.units;
	}
	(void)pthread_mutex_unlock(&heap->lock);
	return units * GPC_HEAP_ALIGNMENT;
}

uint64_t
gpc_heap_deferred_bytes(const struct gpc_heap *heap)
{
	return atomic_load_explicit(&heap->deferred, memory_order_relaxed);
}
