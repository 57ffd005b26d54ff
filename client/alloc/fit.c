/* SPDX-License-Identifier: Apache-2.0 */
#include "client/alloc/fit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORDS (GPC_FIT_REGION_UNITS / 64)
/* How many runs are looked at that may be too short. */
#define TRIES 32

/*
 * Of the first and the last unit of a run; what lies between is stale.  The last unit says whether
 * the run is free, and then how long: that is how the right neighbour finds its start.
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

struct gpc_fit_region {
	uint32_t units;
	uint64_t starts[WORDS];       /* units where a run begins */
	uint64_t summary[WORDS / 64]; /* words of starts that are not zero */
	struct node nodes[];          /* untouched pages cost nothing */
};

static struct node *
node_at(const struct gpc_fit *fit, uint32_t place)
{
	return &fit->regions[gpc_fit_region(place)]->nodes[gpc_fit_unit(place)];
}

/* Runs of below 8 units have a class each; above, eight classes share a power of two. */
unsigned int
gpc_fit_class(uint32_t units)
{
	unsigned int power;

	if (units < 8)
		return units;
	power = 31 - (unsigned int)__builtin_clz(units);
	return (power - 2) * 8 + ((units >> (power - 3)) & 7);
}

/* The least class all of whose runs have so many units. */
unsigned int
gpc_fit_class_for(uint32_t units)
{
	if (units < 8)
		return units;
	return gpc_fit_class(units + (1u << (31 - __builtin_clz(units) - 3)) - 1);
}

static void
start_set(struct gpc_fit *fit, uint32_t place)
{
	struct gpc_fit_region *region = fit->regions[gpc_fit_region(place)];
	uint32_t unit = gpc_fit_unit(place);

	region->starts[unit / 64] |= 1ull << (unit % 64);
	region->summary[unit / 4096] |= 1ull << (unit / 64 % 64);
}

static void
start_clear(struct gpc_fit *fit, uint32_t place)
{
	struct gpc_fit_region *region = fit->regions[gpc_fit_region(place)];
	uint32_t unit = gpc_fit_unit(place);

	region->starts[unit / 64] &= ~(1ull << (unit % 64));
	if (region->starts[unit / 64] == 0)
		region->summary[unit / 4096] &= ~(1ull << (unit / 64 % 64));
}

static void
list_add(struct gpc_fit *fit, uint32_t place, uint32_t units)
{
	unsigned int class = gpc_fit_class(units);
	struct node *first = node_at(fit, place);
	struct node *last = first + units - 1;

	last->units = units;
	last->free = 1;
	first->units = units;
	first->free = 1;
	first->prev = GPC_FIT_NONE;
	first->next = fit->heads[class];
	if (first->next != GPC_FIT_NONE)
		node_at(fit, first->next)->prev = place;
	fit->heads[class] = place;
	fit->filled[class / 64] |= 1ull << (class % 64);
	fit->free_units += units;
}

static void
list_remove(struct gpc_fit *fit, uint32_t place)
{
	struct node *first = node_at(fit, place);
	unsigned int class = gpc_fit_class(first->units);

	if (first->prev == GPC_FIT_NONE)
		fit->heads[class] = first->next;
	else
		node_at(fit, first->prev)->next = first->next;
	if (first->next != GPC_FIT_NONE)
		node_at(fit, first->next)->prev = first->prev;
	if (fit->heads[class] == GPC_FIT_NONE)
		fit->filled[class / 64] &= ~(1ull << (class % 64));
	fit->free_units -= first->units;
}

void
gpc_fit_init(struct gpc_fit *fit)
{
	memset(fit, 0, sizeof(*fit));
	memset(fit->heads, 0xff, sizeof(fit->heads));
}

void
gpc_fit_fini(struct gpc_fit *fit)
{
	for (uint32_t i = 0; i < fit->region_room; i++)
		free(fit->regions[i]);
	free(fit->regions);
	memset(fit, 0, sizeof(*fit));
}

static int
region_slot(struct gpc_fit *fit, uint32_t *region_p)
{
	struct gpc_fit_region **more;
	uint32_t slot, room;

	for (slot = 0; slot < fit->region_room; slot++) {
		if (!fit->regions[slot]) {
			*region_p = slot;
			return 0;
		}
	}
	if (slot == GPC_FIT_REGIONS)
		return GP_E_RESOURCE;
	room = slot ? slot * 2 : 8;
	if (room > GPC_FIT_REGIONS)
		room = GPC_FIT_REGIONS;
	more = realloc(fit->regions, room * sizeof(struct gpc_fit_region *));
	if (!more)
		return -ENOMEM;
	memset(more + slot, 0, (room - slot) * sizeof(struct gpc_fit_region *));
	fit->regions = more;
	fit->region_room = room;
	*region_p = slot;
	return 0;
}

int
gpc_fit_add(struct gpc_fit *fit, uint32_t units, uint32_t *region_p)
{
	struct gpc_fit_region *region;
	uint32_t slot;
	int r;

	if (units == 0 || units > GPC_FIT_REGION_UNITS)
		return GP_E_INVALID;
	r = region_slot(fit, &slot);
	if (r)
		return r;
	region = calloc(1, sizeof(*region) + units * sizeof(struct node));
	if (!region)
		return -ENOMEM;
	region->units = units;
	fit->regions[slot] = region;
	start_set(fit, gpc_fit_place(slot, 0));
	list_add(fit, gpc_fit_place(slot, 0), units);
	*region_p = slot;
	return 0;
}

void
gpc_fit_remove(struct gpc_fit *fit, uint32_t region)
{
	list_remove(fit, gpc_fit_place(region, 0));
	free(fit->regions[region]);
	fit->regions[region] = NULL;
}

bool
gpc_fit_is_free(const struct gpc_fit *fit, uint32_t region)
{
	const struct gpc_fit_region *r = fit->regions[region];

	return r->nodes[0].free && r->nodes[0].units == r->units;
}

static unsigned int
class_filled(const struct gpc_fit *fit, unsigned int class)
{
	unsigned int word = class / 64;
	uint64_t bits;

	if (class >= GPC_FIT_CLASSES)
		return GPC_FIT_CLASSES;
	bits = fit->filled[word] & ~0ull << (class % 64);
	while (!bits) {
		if (++word == sizeof(fit->filled) / sizeof(fit->filled[0]))
			return GPC_FIT_CLASSES;
		bits = fit->filled[word];
	}
	return word * 64 + (unsigned int)__builtin_ctzll(bits);
}

static uint32_t
take(struct gpc_fit *fit, uint32_t place, uint32_t units)
{
	struct node *first = node_at(fit, place);
	uint32_t rest = first->units - units;

	list_remove(fit, place);
	if (rest > 0) {
		start_set(fit, place + units);
		list_add(fit, place + units, rest);
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
gpc_fit_alloc(struct gpc_fit *fit, uint32_t units)
{
	unsigned int class;
	uint32_t place;

	if (units == 0 || units > GPC_FIT_REGION_UNITS)
		return GPC_FIT_NONE;
	class = class_filled(fit, gpc_fit_class_for(units));
	if (class < GPC_FIT_CLASSES)
		return take(fit, fit->heads[class], units);
	/* What is left may fit without its whole class doing so, a region's only run for one. */
	place = fit->heads[gpc_fit_class(units)];
	for (int i = 0; i < TRIES && place != GPC_FIT_NONE; i++) {
		if (node_at(fit, place)->units >= units)
			return take(fit, place, units);
		place = node_at(fit, place)->next;
	}
	return GPC_FIT_NONE;
}

void
gpc_fit_free(struct gpc_fit *fit, uint32_t place)
{
	const struct gpc_fit_region *region = fit->regions[gpc_fit_region(place)];
	uint32_t units = node_at(fit, place)->units;
	uint32_t right = place + units;

	if (gpc_fit_unit(place) + units < region->units && node_at(fit, right)->free) {
		units += node_at(fit, right)->units;
		list_remove(fit, right);
		start_clear(fit, right);
	}
	if (gpc_fit_unit(place) > 0 && node_at(fit, place - 1)->free) {
		uint32_t left = place - node_at(fit, place - 1)->units;

		units += node_at(fit, left)->units;
		list_remove(fit, left);
		start_clear(fit, place);
		place = left;
	}
	list_add(fit, place, units);
}

void
gpc_fit_split(struct gpc_fit *fit, uint32_t place, uint32_t units)
{
	struct node *first = node_at(fit, place), *second = first + units;
	uint32_t rest = first->units - units;

	start_set(fit, place + units);
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
gpc_fit_find(const struct gpc_fit *fit, uint32_t place)
{
	uint32_t slot = gpc_fit_region(place), unit = gpc_fit_unit(place);
	const struct gpc_fit_region *region = slot < fit->region_room ? fit->regions[slot] : NULL;
	uint32_t word = unit / 64, group = word / 64;
	uint64_t bits;

	if (!region || unit >= region->units)
		return GPC_FIT_NONE;
	bits = region->starts[word] & ~0ull >> (63 - unit % 64);
	if (!bits) {
		/* Unit 0 begins a run, so there is a word before this one. */
		bits = region->summary[group] & ((1ull << (word % 64)) - 1);
		while (!bits)
			bits = region->summary[--group];
		word = group * 64 + 63 - (uint32_t)__builtin_clzll(bits);
		bits = region->starts[word];
	}
	unit = word * 64 + 63 - (uint32_t)__builtin_clzll(bits);
	return region->nodes[unit].free ? GPC_FIT_NONE : gpc_fit_place(slot, unit);
}

uint32_t
gpc_fit_units(const struct gpc_fit *fit, uint32_t place)
{
	return node_at(fit, place)->units;
}

uint32_t *
gpc_fit_word(const struct gpc_fit *fit, uint32_t place)
{
	return &node_at(fit, place)->word;
}

uint64_t *
gpc_fit_value(const struct gpc_fit *fit, uint32_t place)
{
	return &node_at(fit, place)->value;
}
