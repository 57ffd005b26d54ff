/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a pool's space, for pool_space.c only: runs, and the shelves on which those wait
 * that were freed in a stream's order, by size; all of them are also in a list by age.
 */
#ifndef GPC_POOL_SHELF_H
#define GPC_POOL_SHELF_H

#include "client/alloc/pool_space.h"

/* A run's word: its kind, and how much shorter than the run its block is. */
#define GPC_SPACE_KIND_SHIFT 30
#define GPC_SPACE_SLACK_MASK ((1u << GPC_SPACE_KIND_SHIFT) - 1)

enum gpc_space_kind {
	GPC_SPACE_BLOCK, /* value: the block's id */
	GPC_SPACE_FREED, /* value: its struct gpc_space_freed */
	GPC_SPACE_CHUNK, /* value: its region of the small level */
};

struct gpc_space_run {
	struct gpc_space_level *level;
	uint32_t place;
};

struct gpc_space_freed {
	struct gpc_space_run run;
	struct gpc_space_shelf *shelf;
	struct gpc_space_freed *prev, *next;   /* on the shelf, of its class */
	struct gpc_space_freed *older, *newer; /* of the space */
	uint64_t tag, number;
};

struct gpc_space_shelf {
	struct gpc_space_shelf *next;
	uint64_t stream;
	const void *context;
	unsigned int count;
	struct gpc_space_freed *lists[2][GPC_FIT_CLASSES]; /* by level */
};

uint64_t gpc_space_run_size(const struct gpc_space_run *run);
void gpc_space_run_mark(const struct gpc_space_run *run, enum gpc_space_kind kind, uint32_t slack,
			uint64_t value);

/* The shelf of a stream; NULL: there is none, or (get) no memory for it. */
struct gpc_space_shelf *gpc_shelf_find(struct gpc_space *space, uint64_t stream);
struct gpc_space_shelf *gpc_shelf_get(struct gpc_space *space, const struct gpc_space_end *end);

/* Puts a run on its shelf, or takes it from there. */
void gpc_shelf_put(struct gpc_space *space, struct gpc_space_freed *freed);
void gpc_shelf_take(struct gpc_space *space, struct gpc_space_freed *freed);
/* One with so many units, or more; NULL. */
struct gpc_space_freed *gpc_shelf_search(struct gpc_space_shelf *shelf,
					 const struct gpc_space_level *level, bool large,
					 uint32_t units);

void gpc_shelf_age_append(struct gpc_space *space, struct gpc_space_freed *freed);
void gpc_shelf_age_remove(struct gpc_space *space, struct gpc_space_freed *freed);

#endif /* GPC_POOL_SHELF_H */
