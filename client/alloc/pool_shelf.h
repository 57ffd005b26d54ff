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
	struct gpc_space_free_list *free_list;
	struct gpc_space_freed *prev, *next;   /* on the shelf, of its class */
	struct gpc_space_freed *older, *newer; /* of the space */
	uint64_t tag, number;
};

struct gpc_space_free_list {
	struct gpc_space_free_list *next;
	uint64_t stream;
	const void *context;
	unsigned int count;
	struct gpc_space_freed *lists[2][GPC_TLSF_SIZE_CLASSES]; /* by level */
};

uint64_t gpc_space_run_size(const struct gpc_space_run *run);
void gpc_space_run_set_kind(const struct gpc_space_run *run, enum gpc_space_kind kind,
			    uint32_t slack, uint64_t value);

/* The shelf of a stream; NULL: there is none, or (get) no memory for it. */
struct gpc_space_free_list *gpc_free_list_find(struct gpc_space *space, uint64_t stream);
struct gpc_space_free_list *gpc_free_list_get(struct gpc_space *space,
					      const struct gpc_space_free_order *end);

/* Puts a run on its shelf, or takes it from there. */
void gpc_free_list_add(struct gpc_space *space, struct gpc_space_freed *freed);
void gpc_free_list_remove(struct gpc_space *space, struct gpc_space_freed *freed);
/* One with so many units, or more; NULL. */
struct gpc_space_freed *gpc_free_list_search(struct gpc_space_free_list *free_list,
					     const struct gpc_space_level *level, bool large,
					     uint32_t units);

void gpc_free_list_age_append(struct gpc_space *space, struct gpc_space_freed *freed);
void gpc_free_list_age_remove(struct gpc_space *space, struct gpc_space_freed *freed);

#endif /* GPC_POOL_SHELF_H */
