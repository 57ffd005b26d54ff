/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocator of runs of units inside regions of up to GPC_FIT_REGION_UNITS units each: a segregated
 * fit with coalescing, constant time for every operation.  It manages numbers only; the heap puts
 * bytes or address space behind them.  A place is region and unit in one number.
 *
 * Each used run carries two words of the caller's.  Not locked: the owner does that.
 */
#ifndef GPC_FIT_H
#define GPC_FIT_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define GPC_FIT_UNIT_BITS 17
#define GPC_FIT_REGION_UNITS (1u << GPC_FIT_UNIT_BITS)
/* So that a place, and "none", fit in 31 bits. */
#define GPC_FIT_REGIONS ((1u << (31 - GPC_FIT_UNIT_BITS)) - 1)
#define GPC_FIT_NONE UINT32_MAX

/* Size classes: eight per power of two. */
#define GPC_FIT_CLASSES ((GPC_FIT_UNIT_BITS + 1) * 8)

struct gpc_fit_region;

struct gpc_fit {
	uint32_t heads[GPC_FIT_CLASSES]; /* free runs by size class */
	uint64_t filled[(GPC_FIT_CLASSES + 63) / 64];
	struct gpc_fit_region **regions;
	uint32_t region_room;
	uint64_t free_units;
};

void gpc_fit_init(struct gpc_fit *fit);
void gpc_fit_fini(struct gpc_fit *fit);

/* A region of free units; -ENOMEM.  GP_E_RESOURCE: there are GPC_FIT_REGIONS already. */
GP_MUST_CHECK int gpc_fit_add(struct gpc_fit *fit, uint32_t units, uint32_t *region_p);
/* The region must be wholly free. */
void gpc_fit_remove(struct gpc_fit *fit, uint32_t region);
bool gpc_fit_is_free(const struct gpc_fit *fit, uint32_t region);

/* GPC_FIT_NONE: no run of so many units is free. */
uint32_t gpc_fit_alloc(struct gpc_fit *fit, uint32_t units);
/* place is what gpc_fit_alloc() returned, or gpc_fit_find(). */
void gpc_fit_free(struct gpc_fit *fit, uint32_t place);

/* Cuts a used run behind so many units, fewer than it has; the rest is a used run with words of
 * zero. */
void gpc_fit_split(struct gpc_fit *fit, uint32_t place, uint32_t units);

/* The used run that the unit at place belongs to; GPC_FIT_NONE: it is free or outside. */
uint32_t gpc_fit_find(const struct gpc_fit *fit, uint32_t place);
uint32_t gpc_fit_units(const struct gpc_fit *fit, uint32_t place);

/* The caller's words of a used run; zeros after gpc_fit_alloc(). */
uint32_t *gpc_fit_word(const struct gpc_fit *fit, uint32_t place);
uint64_t *gpc_fit_value(const struct gpc_fit *fit, uint32_t place);

/* The size class of a run, and the least class all of whose runs have so many units: for owners who
 * keep used runs of theirs by size.  The latter may be GPC_FIT_CLASSES. */
unsigned int gpc_fit_class(uint32_t units);
unsigned int gpc_fit_class_for(uint32_t units);

static inline uint32_t
gpc_fit_place(uint32_t region, uint32_t unit)
{
	return region << GPC_FIT_UNIT_BITS | unit;
}

static inline uint32_t
gpc_fit_region(uint32_t place)
{
	return place >> GPC_FIT_UNIT_BITS;
}

static inline uint32_t
gpc_fit_unit(uint32_t place)
{
	return place & (GPC_FIT_REGION_UNITS - 1);
}

#endif /* GPC_FIT_H */
