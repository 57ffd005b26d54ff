/* SPDX-License-Identifier: Apache-2.0 */
#include "client/alloc/pool_space.h"

#include "client/alloc/heap.h"
#include "client/alloc/pool_free_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Larger blocks use whole granules: little is wasted, and two levels suffice. */
#define SMALL_MAX ((uint64_t)16 << 20)
#define MAPPING_MIN ((uint64_t)4 << 20)
#define MAPPING_MAX ((uint64_t)64 << 20)

static uint64_t
round_up(uint64_t size, uint64_t unit)
{
	return (size + unit - 1) & ~(unit - 1);
}

static struct gpc_space_level *
level_for(struct gpc_space *space, uint64_t size)
{
	return size <= SMALL_MAX ? &space->small : &space->large;
}

static uint32_t
units_for(const struct gpc_space_level *level, uint64_t size)
{
	return (uint32_t)((size + level->unit - 1) / level->unit);
}

static uint64_t
run_address(const struct gpc_space *space, const struct gpc_space_run *run)
{
	uint32_t region = gpc_tlsf_region(run->place);
	uint64_t base = run->level == &space->large ? space->mappings[region]->base
						    : space->chunks[region].base;

	return base + gpc_tlsf_unit(run->place) * run->level->unit;
}

static struct gpc_space_mapping *
run_mapping(const struct gpc_space *space, const struct gpc_space_run *run)
{
	uint32_t region = gpc_tlsf_region(run->place);

	if (run->level == &space->small)
		region = gpc_tlsf_region(space->chunks[region].outer);
	return space->mappings[region];
}

static enum gpc_space_kind
run_kind(const struct gpc_space_run *run)
{
	return (enum gpc_space_kind)(*gpc_tlsf_get_user32(&run->level->tlsf, run->place) >>
				     GPC_SPACE_KIND_SHIFT);
}

static void
run_acquire(struct gpc_space *space, const struct gpc_space_run *run)
{
	struct gpc_space_mapping *mapping = run_mapping(space, run);

	if (mapping->busy++ == 0) {
		space->idle--;
		mapping->cached = false;
	}
}

/* The run becomes reusable by all streams. */
static void
run_release(struct gpc_space *space, const struct gpc_space_run *run)
{
	struct gpc_space_mapping *mapping = run_mapping(space, run);

	gpc_tlsf_free(&run->level->tlsf, run->place);
	if (--mapping->busy == 0)
		space->idle++;
}

/* An empty space starts with small mappings again. */
static void
space_reset(struct gpc_space *space)
{
	space->next_mapping = round_up(MAPPING_MIN, space->large.unit);
	space->next_chunk = space->next_mapping;
	space->used_peak = 0;
}

void
gpc_space_init(struct gpc_space *space, uint64_t granularity)
{
	memset(space, 0, sizeof(*space));
	gpc_tlsf_init(&space->large.tlsf);
	gpc_tlsf_init(&space->small.tlsf);
	space->large.unit = granularity;
	space->small.unit = GPC_HEAP_ALIGNMENT;
	space_reset(space);
}

void
gpc_space_fini(struct gpc_space *space)
{
	for (uint32_t i = 0; i < space->large.tlsf.region_capacity; i++)
		free(space->mappings[i]);
	while (space->oldest) {
		struct gpc_space_freed *freed = space->oldest;

		space->oldest = freed->newer;
		free(freed);
	}
	while (space->free_lists) {
		struct gpc_space_free_list *free_list = space->free_lists;

		space->free_lists = free_list->next;
		free(free_list);
	}
	gpc_tlsf_fini(&space->large.tlsf);
	gpc_tlsf_fini(&space->small.tlsf);
}

static void
freed_reap(struct gpc_space *space, struct gpc_space_freed *freed)
{
	if (freed->free_list->stream == 0)
		run_mapping(space, &freed->run)->unordered--;
	gpc_free_list_remove(space, freed);
	gpc_free_list_age_remove(space, freed);
	space->waiting -= gpc_space_run_size(&freed->run);
	run_release(space, &freed->run);
	free(freed);
}

/* Reuses memory that the stream itself has freed. The rest of a longer run stays in the free
 * list. */
static bool
run_pop_freed(struct gpc_space *space, uint64_t stream, struct gpc_space_run *run, uint32_t units)
{
	struct gpc_space_free_list *free_list = gpc_free_list_find(space, stream);
	struct gpc_space_freed *freed = NULL;

	if (free_list && free_list->count > 0)
		freed = gpc_free_list_search(free_list, run->level, run->level == &space->large,
					     units);
	if (!freed)
		return false;
	gpc_free_list_remove(space, freed);
	run->place = freed->run.place;
	space->waiting -= units * run->level->unit;
	if (gpc_tlsf_get_units(&run->level->tlsf, run->place) > units) {
		gpc_tlsf_split(&run->level->tlsf, run->place, units);
		freed->run.place = run->place + units;
		gpc_free_list_add(space, freed);
		run_acquire(space, &freed->run);
	} else {
		gpc_free_list_age_remove(space, freed);
		free(freed);
	}
	return true;
}

/* Chunks */

/* Returns wholly free chunks to the large level. Returns whether there were any. */
static bool
chunks_dissolve(struct gpc_space *space, const struct gpc_space_mapping *only)
{
	bool any = false;

	for (uint32_t i = 0; i < space->small.tlsf.region_capacity; i++) {
		uint32_t outer = space->chunks[i].outer;

		if (space->chunks[i].base == 0 || !gpc_tlsf_region_is_free(&space->small.tlsf, i) ||
		    (only && only->region != gpc_tlsf_region(outer)))
			continue;
		gpc_tlsf_remove_region(&space->small.tlsf, i);
		gpc_tlsf_free(&space->large.tlsf, outer);
		space->chunks[i].base = 0;
		any = true;
	}
	return any;
}

static bool
chunk_carve(struct gpc_space *space, uint64_t least)
{
	struct gpc_space_run run = { .level = &space->large, .place = GPC_TLSF_NONE };
	uint64_t unit = space->large.unit;
	uint32_t region;

	if (space->next_chunk > least)
		run.place = gpc_tlsf_alloc(&run.level->tlsf, (uint32_t)(space->next_chunk / unit));
	if (run.place == GPC_TLSF_NONE)
		run.place = gpc_tlsf_alloc(&run.level->tlsf, (uint32_t)(least / unit));
	if (run.place == GPC_TLSF_NONE)
		return false;
	if (gpc_tlsf_add_region(&space->small.tlsf,
				(uint32_t)(gpc_space_run_size(&run) / GPC_HEAP_ALIGNMENT),
				&region)) {
		gpc_tlsf_free(&run.level->tlsf, run.place);
		return false;
	}
	gpc_space_run_set_kind(&run, GPC_SPACE_CHUNK, 0, region);
	space->chunks[region].base = run_address(space, &run);
	space->chunks[region].outer = run.place;
	if (space->next_chunk < MAPPING_MAX)
		space->next_chunk *= 2;
	return true;
}

static bool
run_alloc(struct gpc_space *space, struct gpc_space_run *run, uint32_t units)
{
	run->place = gpc_tlsf_alloc(&run->level->tlsf, units);
	if (run->place == GPC_TLSF_NONE && run->level == &space->small) {
		uint64_t least = round_up(units * run->level->unit, space->large.unit);

		if (chunk_carve(space, least) ||
		    (chunks_dissolve(space, NULL) && chunk_carve(space, least)))
			run->place = gpc_tlsf_alloc(&run->level->tlsf, units);
	} else if (run->place == GPC_TLSF_NONE && chunks_dissolve(space, NULL)) {
		run->place = gpc_tlsf_alloc(&run->level->tlsf, units);
	}
	if (run->place == GPC_TLSF_NONE)
		return false;
	run_acquire(space, run);
	return true;
}

/* The bytes that a block counts for in the usage of the pool. */
static uint64_t
block_charge(uint64_t size)
{
	return round_up(size, GPC_HEAP_ALIGNMENT);
}

int
gpc_space_alloc(struct gpc_space *space, uint64_t stream, uint64_t size, uint64_t id,
		uint64_t *address_p)
{
	struct gpc_space_run run = { .level = level_for(space, size) };
	uint32_t units;

	if (size == 0 || size / run.level->unit >= GPC_TLSF_REGION_UNITS)
		return size == 0 ? GP_E_INVALID : GP_E_RESOURCE;
	units = units_for(run.level, size);
	if (!run_pop_freed(space, stream, &run, units) && !run_alloc(space, &run, units))
		return GP_E_RESOURCE;
	gpc_space_run_set_kind(&run, GPC_SPACE_BLOCK, (uint32_t)(gpc_space_run_size(&run) - size),
			       id);
	space->blocks++;
	space->used += block_charge(size);
	if (space->used > space->used_high)
		space->used_high = space->used;
	if (space->used > space->used_peak)
		space->used_peak = space->used;
	*address_p = run_address(space, &run);
	return 0;
}

uint64_t
gpc_space_required_size(const struct gpc_space *space, uint64_t size)
{
	return round_up(size, space->large.unit);
}

uint64_t
gpc_space_preferred_size(const struct gpc_space *space, uint64_t size)
{
	uint64_t needed = gpc_space_required_size(space, size);

	return needed > space->next_mapping ? needed : space->next_mapping;
}

int
gpc_space_add(struct gpc_space *space, uint64_t base, uint64_t size,
	      struct gpc_space_mapping **mapping_p)
{
	struct gpc_space_mapping *mapping;
	int r;

	if (size / space->large.unit > GPC_TLSF_REGION_UNITS)
		return GP_E_RESOURCE;
	mapping = calloc(1, sizeof(*mapping));
	if (!mapping)
		return -ENOMEM;
	mapping->space = space;
	mapping->base = base;
	mapping->size = size;
	r = gpc_tlsf_add_region(&space->large.tlsf, (uint32_t)(size / space->large.unit),
				&mapping->region);
	if (r) {
		free(mapping);
		return r;
	}
	space->mappings[mapping->region] = mapping;
	space->idle++;
	space->reserved += size;
	if (space->reserved > space->reserved_high)
		space->reserved_high = space->reserved;
	if (space->next_mapping < MAPPING_MAX)
		space->next_mapping *= 2;
	*mapping_p = mapping;
	return 0;
}

/* Finds the used run that contains address. */
static bool
run_find(const struct gpc_space_mapping *mapping, uint64_t address, struct gpc_space_run *run)
{
	struct gpc_space *space = mapping->space;
	uint64_t offset = address - mapping->base;
	uint32_t region;

	run->level = &space->large;
	run->place = gpc_tlsf_find(
		&run->level->tlsf,
		gpc_tlsf_place(mapping->region, (uint32_t)(offset / space->large.unit)));
	if (run->place == GPC_TLSF_NONE || run_kind(run) != GPC_SPACE_CHUNK)
		return run->place != GPC_TLSF_NONE;
	region = (uint32_t)*gpc_tlsf_get_user64(&run->level->tlsf, run->place);
	offset = address - space->chunks[region].base;
	run->level = &space->small;
	run->place = gpc_tlsf_find(&run->level->tlsf,
				   gpc_tlsf_place(region, (uint32_t)(offset / space->small.unit)));
	return run->place != GPC_TLSF_NONE;
}

static bool
block_find(struct gpc_space_mapping *mapping, uint64_t address, struct gpc_space_run *run,
	   struct gpc_space_block *block)
{
	if (!run_find(mapping, address, run) || run_kind(run) != GPC_SPACE_BLOCK)
		return false;
	block->address = run_address(mapping->space, run);
	block->size = gpc_space_run_size(run) -
		      (*gpc_tlsf_get_user32(&run->level->tlsf, run->place) & GPC_SPACE_SLACK_MASK);
	block->id = *gpc_tlsf_get_user64(&run->level->tlsf, run->place);
	return true;
}

bool
gpc_space_find(struct gpc_space_mapping *mapping, uint64_t address, struct gpc_space_block *block)
{
	struct gpc_space_run run;

	return block_find(mapping, address, &run, block) && address - block->address < block->size;
}

int
gpc_space_free(struct gpc_space_mapping *mapping, uint64_t address,
	       const struct gpc_space_free_order *end)
{
	struct gpc_space *space = mapping->space;
	struct gpc_space_freed *freed = NULL;
	struct gpc_space_block block;
	struct gpc_space_run run;

	if (!block_find(mapping, address, &run, &block) || block.address != address)
		return GP_E_INVALID;
	if (end->tag > end->done) {
		freed = calloc(1, sizeof(*freed));
		if (freed)
			freed->free_list = gpc_free_list_get(space, end);
		if (!freed || !freed->free_list) {
			free(freed);
			return -ENOMEM;
		}
	}
	space->blocks--;
	space->used -= block_charge(block.size);
	if (!freed) {
		run_release(space, &run);
		return 0;
	}
	freed->run = run;
	freed->tag = end->tag;
	freed->number = end->number;
	space->waiting += gpc_space_run_size(&run);
	if (end->stream == 0)
		mapping->unordered++;
	gpc_free_list_age_append(space, freed);
	gpc_free_list_add(space, freed);
	return 0;
}

void
gpc_space_reap(struct gpc_space *space, uint64_t done)
{
	while (space->oldest && space->oldest->tag <= done)
		freed_reap(space, space->oldest);
}

static void
free_list_reap(struct gpc_space *space, struct gpc_space_free_list *free_list, uint64_t number)
{
	for (unsigned int i = 0; i < 2 * GPC_TLSF_SIZE_CLASSES && free_list->count > 0; i++) {
		struct gpc_space_freed *freed =
			free_list->lists[i / GPC_TLSF_SIZE_CLASSES][i % GPC_TLSF_SIZE_CLASSES];

		while (freed) {
			struct gpc_space_freed *next = freed->next;

			if (freed->number <= number)
				freed_reap(space, freed);
			freed = next;
		}
	}
}

void
gpc_space_reap_stream(struct gpc_space *space, uint64_t stream, uint64_t number)
{
	struct gpc_space_free_list *free_list = gpc_free_list_find(space, stream);

	if (free_list)
		free_list_reap(space, free_list, number);
}

void
gpc_space_reap_context(struct gpc_space *space, const void *context, uint64_t number)
{
	for (struct gpc_space_free_list *free_list = space->free_lists; free_list;
	     free_list = free_list->next) {
		if (free_list->context == context || free_list->stream == 0)
			free_list_reap(space, free_list, number);
	}
}

struct gpc_space_mapping *
gpc_space_find_excess(struct gpc_space *space, uint64_t keep, bool spare)
{
	struct gpc_space_mapping *largest_spare = NULL, *excess = NULL;

	if (space->idle == 0 || space->reserved <= keep)
		return NULL;
	for (uint32_t i = 0; i < space->large.tlsf.region_capacity; i++) {
		struct gpc_space_mapping *mapping = space->mappings[i];

		if (!mapping || mapping->busy > 0 || space->reserved - mapping->size < keep)
			continue;
		if (!spare || mapping->size > GPC_SPACE_CACHED_MAX ||
		    (largest_spare && mapping->size <= largest_spare->size)) {
			excess = mapping;
		} else {
			excess = largest_spare ? largest_spare : excess;
			largest_spare = mapping;
		}
	}
	if (largest_spare && !excess)
		largest_spare->cached = true;
	return excess;
}

/* Reaps what was freed in no stream's order in the mapping, if nothing else is in use there. */
static bool
mapping_release(struct gpc_space *space, const struct gpc_space_mapping *mapping)
{
	struct gpc_space_freed *next;

	if (mapping->unordered == 0 || mapping->unordered != mapping->busy)
		return false;
	for (struct gpc_space_freed *f = space->oldest; f; f = next) {
		next = f->newer;
		if (f->free_list->stream == 0 && run_mapping(space, &f->run) == mapping)
			freed_reap(space, f);
	}
	return true;
}

bool
gpc_space_release(struct gpc_space *space, uint64_t keep)
{
	bool released = false;

	for (uint32_t i = 0; !released && i < space->large.tlsf.region_capacity; i++) {
		const struct gpc_space_mapping *mapping = space->mappings[i];

		released = mapping && space->reserved - mapping->size >= keep &&
			   mapping_release(space, mapping);
	}
	return released;
}

void
gpc_space_remove(struct gpc_space *space, struct gpc_space_mapping *mapping)
{
	(void)chunks_dissolve(space, mapping);
	gpc_tlsf_remove_region(&space->large.tlsf, mapping->region);
	space->mappings[mapping->region] = NULL;
	space->idle--;
	space->reserved -= mapping->size;
	if (space->reserved == 0)
		space_reset(space);
	free(mapping);
}

uint64_t
gpc_space_cached_bytes(const struct gpc_space *space)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; space->idle > 0 && i < space->large.tlsf.region_capacity; i++) {
		if (space->mappings[i] && space->mappings[i]->cached)
			sum += space->mappings[i]->size;
	}
	return sum;
}

uint64_t
gpc_space_releasable_bytes(const struct gpc_space *space, uint64_t keep)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < space->large.tlsf.region_capacity; i++) {
		const struct gpc_space_mapping *mapping = space->mappings[i];

		if (mapping && mapping->busy == mapping->unordered &&
		    space->reserved - sum - mapping->size >= keep)
			sum += mapping->size;
	}
	return sum;
}
