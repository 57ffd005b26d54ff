/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocator of runs of units inside regions of up to GPC_TLSF_REGION_UNITS units each: a segregated
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

#define GPC_TLSF_UNIT_BITS 17
#define GPC_TLSF_REGION_UNITS (1u << GPC_TLSF_UNIT_BITS)
/* So that a place, and "none", fit in 31 bits. */
#define GPC_TLSF_REGIONS ((1u << (31 - GPC_TLSF_UNIT_BITS)) - 1)
#define GPC_TLSF_NONE UINT32_MAX

/* Size classes: eight per power of two. */
#define GPC_TLSF_SIZE_CLASSES ((GPC_TLSF_UNIT_BITS + 1) * 8)

struct gpc_tlsf_region;

struct gpc_tlsf {
	uint32_t heads[GPC_TLSF_SIZE_CLASSES]; /* free runs by size class */
	uint64_t filled[(GPC_TLSF_SIZE_CLASSES + 63) / 64];
	struct gpc_tlsf_region **regions;
	uint32_t region_room;
	uint64_t free_units;
};

void gpc_tlsf_init(struct gpc_tlsf *tlsf);
void gpc_tlsf_fini(struct gpc_tlsf *tlsf);

/* A region of free units; -ENOMEM.  GP_E_RESOURCE: there are GPC_TLSF_REGIONS already. */
GP_MUST_CHECK int gpc_tlsf_add_region(struct gpc_tlsf *tlsf, uint32_t units, uint32_t *region_p);
/* The region must be wholly free. */
void gpc_tlsf_remove_region(struct gpc_tlsf *tlsf, uint32_t region);
bool gpc_tlsf_region_is_free(const struct gpc_tlsf *tlsf, uint32_t region);

/* GPC_TLSF_NONE: no run of so many units is free. */
uint32_t gpc_tlsf_alloc(struct gpc_tlsf *tlsf, uint32_t units);
/* place is what gpc_tlsf_alloc() returned, or gpc_tlsf_find(). */
void gpc_tlsf_free(struct gpc_tlsf *tlsf, uint32_t place);

/* Cuts a used run behind so many units, fewer than it has; the rest is a used run with words of
 * zero. */
void gpc_tlsf_split(struct gpc_tlsf *tlsf, uint32_t place, uint32_t units);

/* The used run that the unit at place belongs to; GPC_TLSF_NONE: it is free or outside. */
uint32_t gpc_tlsf_find(const struct gpc_tlsf *tlsf, uint32_t place);
uint32_t gpc_tlsf_get_units(const struct gpc_tlsf *tlsf, uint32_t place);

/* The caller's words of a used run; zeros after gpc_tlsf_alloc(). */
uint32_t *gpc_tlsf_get_user32(const struct gpc_tlsf *tlsf, uint32_t place);
uint64_t *gpc_tlsf_get_user64(const struct gpc_tlsf *tlsf, uint32_t place);

/* The size class of a run, and the least class all of whose runs have so many units: for owners who
 * keep used runs of theirs by size.  The latter may be GPC_TLSF_SIZE_CLASSES. */
unsigned int gpc_tlsf_size_class(uint32_t units);
unsigned int gpc_tlsf_size_class_fitting(uint32_t units);

static inline uint32_t
gpc_tlsf_place(uint32_t region, uint32_t unit)
{
	return region << GPC_TLSF_UNIT_BITS | unit;
}

static inline uint32_t
gpc_tlsf_region(uint32_t place)
{
	return place >> GPC_TLSF_UNIT_BITS;
}

static inline uint32_t
gpc_tlsf_unit(uint32_t place)
{
	return place & (GPC_TLSF_REGION_UNITS - 1);
}

#endif /* GPC_FIT_H */
