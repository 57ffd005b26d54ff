/* SPDX-License-Identifier: Apache-2.0 */
#include "client/alloc/tlsf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BITMAP_WORDS (GPC_TLSF_REGION_UNITS / 64)
/* Maximum number of runs examined that may be too short. */
#define SCAN_MAX 32

/*
 * Valid only for the first and the last unit of a run; nodes between them are stale. The last node
 * stores whether the run is free and its length, by which the right neighbor finds the start of the
 * run when it merges.
 */
struct node {
	uint32_t units : 31;
	uint32_t free : 1;
	uint32_t word;
	union {
		uint64_t value;
		struct {
			uint32_t prev, next;
		};
	};
};

_Static_assert(sizeof(struct node) == 16, "a region of 64 MiB has 2 MiB of nodes");

struct gpc_tlsf_region {
	uint32_t units;
	uint64_t starts[BITMAP_WORDS];       /* one bit per unit: a run begins here */
	uint64_t summary[BITMAP_WORDS / 64]; /* one bit per word of starts: not zero */
	struct node nodes[];                 /* untouched pages use no memory */
};

static struct node *
node_at(const struct gpc_tlsf *tlsf, uint32_t place)
{
	return &tlsf->regions[gpc_tlsf_region(place)]->nodes[gpc_tlsf_unit(place)];
}

/* Below 8 units each length is a class of its own; above, eight classes share a power of two. */
unsigned int
gpc_tlsf_size_class(uint32_t units)
{
	unsigned int power;

	if (units < 8)
		return units;
	power = 31 - (unsigned int)__builtin_clz(units);
	return (power - 2) * 8 + ((units >> (power - 3)) & 7);
}

/* Rounds up, so that every run of the returned class is long enough. */
unsigned int
gpc_tlsf_size_class_fitting(uint32_t units)
{
	if (units < 8)
		return units;
	return gpc_tlsf_size_class(units + (1u << (31 - __builtin_clz(units) - 3)) - 1);
}

static void
start_set(struct gpc_tlsf *tlsf, uint32_t place)
{
	struct gpc_tlsf_region *region = tlsf->regions[gpc_tlsf_region(place)];
	uint32_t unit = gpc_tlsf_unit(place);

	region->starts[unit / 64] |= 1ull << (unit % 64);
	region->summary[unit / 4096] |= 1ull << (unit / 64 % 64);
}

static void
start_clear(struct gpc_tlsf *tlsf, uint32_t place)
{
	struct gpc_tlsf_region *region = tlsf->regions[gpc_tlsf_region(place)];
	uint32_t unit = gpc_tlsf_unit(place);

	region->starts[unit / 64] &= ~(1ull << (unit % 64));
	if (region->starts[unit / 64] == 0)
		region->summary[unit / 4096] &= ~(1ull << (unit / 64 % 64));
}

static void
list_add(struct gpc_tlsf *tlsf, uint32_t place, uint32_t units)
{
	unsigned int class = gpc_tlsf_size_class(units);
	struct node *first = node_at(tlsf, place);
	struct node *last = first + units - 1;

	last->units = units;
	last->free = 1;
	first->units = units;
	first->free = 1;
	first->prev = GPC_TLSF_NONE;
	first->next = tlsf->heads[class];
	if (first->next != GPC_TLSF_NONE)
		node_at(tlsf, first->next)->prev = place;
	tlsf->heads[class] = place;
	tlsf->filled[class / 64] |= 1ull << (class % 64);
	tlsf->free_units += units;
}

static void
list_remove(struct gpc_tlsf *tlsf, uint32_t place)
{
	struct node *first = node_at(tlsf, place);
	unsigned int class = gpc_tlsf_size_class(first->units);

	if (first->prev == GPC_TLSF_NONE)
		tlsf->heads[class] = first->next;
	else
		node_at(tlsf, first->prev)->next = first->next;
	if (first->next != GPC_TLSF_NONE)
		node_at(tlsf, first->next)->prev = first->prev;
	if (tlsf->heads[class] == GPC_TLSF_NONE)
		tlsf->filled[class / 64] &= ~(1ull << (class % 64));
	tlsf->free_units -= first->units;
}

void
gpc_tlsf_init(struct gpc_tlsf *tlsf)
{
	memset(tlsf, 0, sizeof(*tlsf));
	memset(tlsf->heads, 0xff, sizeof(tlsf->heads));
}

void
gpc_tlsf_fini(struct gpc_tlsf *tlsf)
{
	for (uint32_t i = 0; i < tlsf->region_capacity; i++)
		free(tlsf->regions[i]);
	free(tlsf->regions);
	memset(tlsf, 0, sizeof(*tlsf));
}

static int
region_find_slot(struct gpc_tlsf *tlsf, uint32_t *region_p)
{
	struct gpc_tlsf_region **more;
	uint32_t slot, capacity;

	for (slot = 0; slot < tlsf->region_capacity; slot++) {
		if (!tlsf->regions[slot]) {
			*region_p = slot;
			return 0;
		}
	}
	if (slot == GPC_TLSF_REGIONS)
		return GP_E_RESOURCE;
	capacity = slot ? slot * 2 : 8;
	if (capacity > GPC_TLSF_REGIONS)
		capacity = GPC_TLSF_REGIONS;
	more = realloc(tlsf->regions, capacity * sizeof(struct gpc_tlsf_region *));
	if (!more)
		return -ENOMEM;
	memset(more + slot, 0, (capacity - slot) * sizeof(struct gpc_tlsf_region *));
	tlsf->regions = more;
	tlsf->region_capacity = capacity;
	*region_p = slot;
	return 0;
}

int
gpc_tlsf_add_region(struct gpc_tlsf *tlsf, uint32_t units, uint32_t *region_p)
{
	struct gpc_tlsf_region *region;
	uint32_t slot;
	int r;

	if (units == 0 || units > GPC_TLSF_REGION_UNITS)
		return GP_E_INVALID;
	r = region_find_slot(tlsf, &slot);
	if (r)
		return r;
	region = calloc(1, sizeof(*region) + units * sizeof(struct node));
	if (!region)
		return -ENOMEM;
	region->units = units;
	tlsf->regions[slot] = region;
	start_set(tlsf, gpc_tlsf_place(slot, 0));
	list_add(tlsf, gpc_tlsf_place(slot, 0), units);
	*region_p = slot;
	return 0;
}

void
gpc_tlsf_remove_region(struct gpc_tlsf *tlsf, uint32_t region)
{
	list_remove(tlsf, gpc_tlsf_place(region, 0));
	free(tlsf->regions[region]);
	tlsf->regions[region] = NULL;
}

bool
gpc_tlsf_region_is_free(const struct gpc_tlsf *tlsf, uint32_t region)
{
	const struct gpc_tlsf_region *r = tlsf->regions[region];

	return r->nodes[0].free && r->nodes[0].units == r->units;
}

static unsigned int
size_class_find(const struct gpc_tlsf *tlsf, unsigned int class)
{
	unsigned int word = class / 64;
	uint64_t bits;

	if (class >= GPC_TLSF_SIZE_CLASSES)
		return GPC_TLSF_SIZE_CLASSES;
	bits = tlsf->filled[word] & ~0ull << (class % 64);
	while (!bits) {
		if (++word == sizeof(tlsf->filled) / sizeof(tlsf->filled[0]))
			return GPC_TLSF_SIZE_CLASSES;
		bits = tlsf->filled[word];
	}
	return word * 64 + (unsigned int)__builtin_ctzll(bits);
}

static uint32_t
run_acquire(struct gpc_tlsf *tlsf, uint32_t place, uint32_t units)
{
	struct node *first = node_at(tlsf, place);
	uint32_t rest = first->units - units;

	list_remove(tlsf, place);
	if (rest > 0) {
		start_set(tlsf, place + units);
		list_add(tlsf, place + units, rest);
	}
	first[units - 1].units = units;
	first[units - 1].free = 0;
	first->units = units;
	first->free = 0;
	first->word = 0;
	first->value = 0;
	return place;
}

uint32_t
gpc_tlsf_alloc(struct gpc_tlsf *tlsf, uint32_t units)
{
	unsigned int class;
	uint32_t place;

	if (units == 0 || units > GPC_TLSF_REGION_UNITS)
		return GPC_TLSF_NONE;
	class = size_class_find(tlsf, gpc_tlsf_size_class_fitting(units));
	if (class < GPC_TLSF_SIZE_CLASSES)
		return run_acquire(tlsf, tlsf->heads[class], units);
	/* A run of the same class as the request may still be long enough, for example the only run
	 * of a region. */
	place = tlsf->heads[gpc_tlsf_size_class(units)];
	for (int i = 0; i < SCAN_MAX && place != GPC_TLSF_NONE; i++) {
		if (node_at(tlsf, place)->units >= units)
			return run_acquire(tlsf, place, units);
		place = node_at(tlsf, place)->next;
	}
	return GPC_TLSF_NONE;
}

void
gpc_tlsf_free(struct gpc_tlsf *tlsf, uint32_t place)
{
	const struct gpc_tlsf_region *region = tlsf->regions[gpc_tlsf_region(place)];
	uint32_t units = node_at(tlsf, place)->units;
	uint32_t right = place + units;

	if (gpc_tlsf_unit(place) + units < region->units && node_at(tlsf, right)->free) {
		units += node_at(tlsf, right)->units;
		list_remove(tlsf, right);
		start_clear(tlsf, right);
	}
	if (gpc_tlsf_unit(place) > 0 && node_at(tlsf, place - 1)->free) {
		uint32_t left = place - node_at(tlsf, place - 1)->units;

		units += node_at(tlsf, left)->units;
		list_remove(tlsf, left);
		start_clear(tlsf, place);
		place = left;
	}
	list_add(tlsf, place, units);
}

void
gpc_tlsf_split(struct gpc_tlsf *tlsf, uint32_t place, uint32_t units)
{
	struct node *first = node_at(tlsf, place), *second = first + units;
	uint32_t rest = first->units - units;

	start_set(tlsf, place + units);
	first[units - 1].units = units;
	first[units - 1].free = 0;
	first->units = units;
	second[rest - 1].units = rest;
	second[rest - 1].free = 0;
	second->units = rest;
	second->free = 0;
	second->word = 0;
	second->value = 0;
}

uint32_t
gpc_tlsf_find(const struct gpc_tlsf *tlsf, uint32_t place)
{
	uint32_t slot = gpc_tlsf_region(place), unit = gpc_tlsf_unit(place);
	const struct gpc_tlsf_region *region =
		slot < tlsf->region_capacity ? tlsf->regions[slot] : NULL;
	uint32_t word = unit / 64, group = word / 64;
	uint64_t bits;

	if (!region || unit >= region->units)
		return GPC_TLSF_NONE;
	bits = region->starts[word] & ~0ull >> (63 - unit % 64);
	if (!bits) {
		/* A run begins at unit 0, so an earlier word is not zero. */
		bits = region->summary[group] & ((1ull << (word % 64)) - 1);
		while (!bits)
			bits = region->summary[--group];
		word = group * 64 + 63 - (uint32_t)__builtin_clzll(bits);
		bits = region->starts[word];
	}
	unit = word * 64 + 63 - (uint32_t)__builtin_clzll(bits);
	return region->nodes[unit].free ? GPC_TLSF_NONE : gpc_tlsf_place(slot, unit);
}

uint32_t
gpc_tlsf_get_units(const struct gpc_tlsf *tlsf, uint32_t place)
{
	return node_at(tlsf, place)->units;
}

uint32_t *
gpc_tlsf_get_user32(const struct gpc_tlsf *tlsf, uint32_t place)
{
	return &node_at(tlsf, place)->word;
}

uint64_t *
gpc_tlsf_get_user64(const struct gpc_tlsf *tlsf, uint32_t place)
{
	return &node_at(tlsf, place)->value;
}
