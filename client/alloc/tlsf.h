/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLSF allocator (two-level segregated fit, with coalescing): allocates runs of units inside
 * regions of at most GPC_TLSF_REGION_UNITS units each. Every operation takes constant time, except
 * gpc_tlsf_add_region() and gpc_tlsf_fini().
 *
 * It manages numbers only; its owner maps them to bytes or to address space. A place is the number
 * of a region and of a unit in it, packed in 31 bits. Each used run has two user words, of 32 and
 * 64 bits, in which the owner stores data of its own.
 *
 * Ownership: the caller owns the struct, and the allocator its bookkeeping until gpc_tlsf_fini().
 * The memory that the units stand for is the caller's and is never accessed.
 * Threads: no lock inside; the owner serializes all calls.
 * Units: lengths are units.
 */
#ifndef GPC_TLSF_H
#define GPC_TLSF_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define GPC_TLSF_UNIT_BITS 17
#define GPC_TLSF_REGION_UNITS (1u << GPC_TLSF_UNIT_BITS)
/* Maximum number of regions. Every place is below 0x7fffffff, because deferred_free.c uses that
 * value and the top bit for itself. */
#define GPC_TLSF_REGIONS ((1u << (31 - GPC_TLSF_UNIT_BITS)) - 1)
/* No place. */
#define GPC_TLSF_NONE UINT32_MAX

/* Size classes: eight per power of two. */
#define GPC_TLSF_SIZE_CLASSES ((GPC_TLSF_UNIT_BITS + 1) * 8)

struct gpc_tlsf_region;

/* An allocator; its members are internal, except region_capacity and free_units, which may be read.
 */
struct gpc_tlsf {
	uint32_t heads[GPC_TLSF_SIZE_CLASSES]; /* first free run of each size class */
	/* bit per size class: it has free runs */
	uint64_t filled[(GPC_TLSF_SIZE_CLASSES + 63) / 64];
	/* by number of the region; NULL: unused; region_capacity is the number of elements */
	struct gpc_tlsf_region **regions;
	uint32_t region_capacity;
	/* units of all free runs */
	uint64_t free_units;
};

/* Initializes an allocator without regions. Undone by gpc_tlsf_fini(). */
void gpc_tlsf_init(struct gpc_tlsf *tlsf);
/* Frees the bookkeeping of all regions, even if runs are used. The allocator must be initialized
 * again before the next use. */
void gpc_tlsf_fini(struct gpc_tlsf *tlsf);

/* Adds a region of free units and stores its number. Returns 0 or an error, after which *region_p
 * is unchanged: -ENOMEM; GP_E_INVALID: units is 0 or more than GPC_TLSF_REGION_UNITS;
 * GP_E_RESOURCE: there are already GPC_TLSF_REGIONS regions. */
GP_MUST_CHECK int gpc_tlsf_add_region(struct gpc_tlsf *tlsf, uint32_t units, uint32_t *region_p);
/* Removes a region. All its units must be free. A later region may get its number. */
void gpc_tlsf_remove_region(struct gpc_tlsf *tlsf, uint32_t region);
/* Returns whether all units of an existing region are free. */
bool gpc_tlsf_region_is_free(const struct gpc_tlsf *tlsf, uint32_t region);

/* Allocates a run of exactly this number of units and returns its place. Both user words are zero.
 * Returns GPC_TLSF_NONE if none was found, or if units is 0 or more than GPC_TLSF_REGION_UNITS. The
 * search is bounded: of the runs in the size class of `units` only 32 are examined, so a run that
 * is long enough may be missed. */
uint32_t gpc_tlsf_alloc(struct gpc_tlsf *tlsf, uint32_t units);
/* Frees the used run that begins at place, and merges it with free neighbors. */
void gpc_tlsf_free(struct gpc_tlsf *tlsf, uint32_t place);

/* Splits a used run in two; place: where it begins. The first part has `units` units, which must be
 * fewer than the run has, and keeps the user words. The second part becomes a used run of its own,
 * which begins at place + units, with both user words zero. */
void gpc_tlsf_split(struct gpc_tlsf *tlsf, uint32_t place, uint32_t units);

/* Returns the place of the used run that contains the unit at place, or GPC_TLSF_NONE if the unit
 * is free or in no region. */
uint32_t gpc_tlsf_find(const struct gpc_tlsf *tlsf, uint32_t place);
/* Returns the length of the run that begins at place, which must be used. */
uint32_t gpc_tlsf_get_units(const struct gpc_tlsf *tlsf, uint32_t place);

/* Returns a pointer to the 32-bit user word of the used run that begins at place, valid until the
 * run is freed. */
uint32_t *gpc_tlsf_get_user32(const struct gpc_tlsf *tlsf, uint32_t place);
/* Like gpc_tlsf_get_user32(), for the 64-bit user word. */
uint64_t *gpc_tlsf_get_user64(const struct gpc_tlsf *tlsf, uint32_t place);

/* Returns the size class of a run of this length, at most GPC_TLSF_REGION_UNITS. */
unsigned int gpc_tlsf_size_class(uint32_t units);
/* Returns the smallest size class in which every run has at least this number of units, which must
 * be at most GPC_TLSF_REGION_UNITS. Owners that sort used runs by size need it, too. */
unsigned int gpc_tlsf_size_class_fitting(uint32_t units);

/* Returns the place of a unit, by the number of its region and its number in the region. */
static inline uint32_t
gpc_tlsf_place(uint32_t region, uint32_t unit)
{
	return region << GPC_TLSF_UNIT_BITS | unit;
}

/* Returns the number of the region from a place. */
static inline uint32_t
gpc_tlsf_region(uint32_t place)
{
	return place >> GPC_TLSF_UNIT_BITS;
}

/* Returns the number of the unit in its region from a place. */
static inline uint32_t
gpc_tlsf_unit(uint32_t place)
{
	return place & (GPC_TLSF_REGION_UNITS - 1);
}

#endif /* GPC_TLSF_H */
