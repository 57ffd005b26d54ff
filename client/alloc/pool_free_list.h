/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free lists of a memory pool's space (pool_space.h): memory freed in stream order that waits for
 * earlier work to complete.
 *
 * Internal to pool_space.c. Each stream has a free list, sorted by level and size class; stream 0
 * is the free list for memory that was freed in no stream's order. All freed runs of a space are
 * also in one list sorted by age.
 *
 * Ownership: the space owns runs and free lists.
 * Threads: no lock inside; the pool serializes all calls.
 */
#ifndef GPC_POOL_FREE_LIST_H
#define GPC_POOL_FREE_LIST_H

#include "client/alloc/pool_space.h"

/* 32-bit user word of a run: its kind, and the number of bytes by which the block is shorter than
 * the run. */
#define GPC_SPACE_KIND_SHIFT 30
#define GPC_SPACE_SLACK_MASK ((1u << GPC_SPACE_KIND_SHIFT) - 1)

enum gpc_space_kind {
	GPC_SPACE_BLOCK, /* 64-bit user word: the ID of the block */
	GPC_SPACE_FREED, /* 64-bit user word: its struct gpc_space_freed */
	GPC_SPACE_CHUNK, /* 64-bit user word: its region of the small level */
};

struct gpc_space_run {
	struct gpc_space_level *level;
	uint32_t place;
};

struct gpc_space_freed {
	struct gpc_space_run run;
	struct gpc_space_free_list *free_list;
	struct gpc_space_freed *prev, *next;   /* in the free list, within the size class */
	struct gpc_space_freed *older, *newer; /* in the age list of the space */
	uint64_t tag, number;
};

struct gpc_space_free_list {
	struct gpc_space_free_list *next;
	uint64_t stream;
	const void *context;
	unsigned int count;
	struct gpc_space_freed
		*lists[2][GPC_TLSF_SIZE_CLASSES]; /* [0]: small level, [1]: large level */
};

/* Return the size of a run in bytes, and set both of its user words. */
uint64_t gpc_space_run_size(const struct gpc_space_run *run);
void gpc_space_run_set_kind(const struct gpc_space_run *run, enum gpc_space_kind kind,
			    uint32_t slack, uint64_t value);

/* Return the free list of a stream. find() returns NULL if there is none; get() creates it, and
 * returns NULL if out of memory. */
struct gpc_space_free_list *gpc_free_list_find(struct gpc_space *space, uint64_t stream);
struct gpc_space_free_list *gpc_free_list_get(struct gpc_space *space,
					      const struct gpc_space_free_order *end);

/* Add a run to, or remove it from, freed->free_list. */
void gpc_free_list_add(struct gpc_space *space, struct gpc_space_freed *freed);
void gpc_free_list_remove(struct gpc_space *space, struct gpc_space_freed *freed);
/* Returns a freed run of at least this number of units, or NULL. The search within the first size
 * class is bounded. */
struct gpc_space_freed *gpc_free_list_search(struct gpc_space_free_list *free_list,
					     const struct gpc_space_level *level, bool large,
					     uint32_t units);

/* Append a run to the age list of the space, or remove it from there. */
void gpc_free_list_age_append(struct gpc_space *space, struct gpc_space_freed *freed);
void gpc_free_list_age_remove(struct gpc_space *space, struct gpc_space_freed *freed);

#endif /* GPC_POOL_FREE_LIST_H */
