/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free lists of a memory pool's space (pool_space.h): memory that was freed in the order of a
 * stream, and that only this stream may reuse until the work before the free is done.
 *
 * Internal to pool_space.c. Each stream with freed runs has a free list, by level and size class.
 * The free list of stream number 0 is for memory that was freed in no stream's order. All freed
 * runs of a space are also in one list, sorted by age. gpc_space_free() adds a run to both lists.
 * When its stream reuses it, or all streams may reuse it, pool_space.c removes it from both.
 *
 * Ownership: the space owns free lists and every struct gpc_space_freed, and frees them at the
 * latest in gpc_space_fini().
 * Threads: no lock inside; the pool serializes all calls.
 */
#ifndef GPC_POOL_FREE_LIST_H
#define GPC_POOL_FREE_LIST_H

#include "client/alloc/pool_space.h"

/* 32-bit user word of a run (tlsf.h): its kind (enum gpc_space_kind) in the top 2 bits,
 * and below them its slack, the number of bytes by which the block is shorter than the run. */
#define GPC_SPACE_KIND_SHIFT 30
#define GPC_SPACE_SLACK_MASK ((1u << GPC_SPACE_KIND_SHIFT) - 1)

/* Use of a run. It defines the meaning of the run's 64-bit user word. */
enum gpc_space_kind {
	GPC_SPACE_BLOCK, /* 64-bit user word: the ID of the block */
	GPC_SPACE_FREED, /* 64-bit user word: address of its struct gpc_space_freed */
	GPC_SPACE_CHUNK, /* 64-bit user word: number of its region in the small level */
};

/* A run of one level; it begins at place. */
struct gpc_space_run {
	struct gpc_space_level *level;
	uint32_t place;
};

/* A freed run in a free list, until the work before its free is done. */
struct gpc_space_freed {
	struct gpc_space_run run;
	struct gpc_space_free_list *free_list;
	struct gpc_space_freed *prev, *next;   /* links in the free list, within the size class */
	struct gpc_space_freed *older, *newer; /* links in the age list of the space */
	/* of the free, as in struct gpc_space_free_order (pool_space.h) */
	uint64_t tag, number;
};

/* The freed runs of one stream. The space frees empty lists when it has many of them. */
struct gpc_space_free_list {
	struct gpc_space_free_list *next;
	uint64_t stream;
	const void *context;
	/* number of freed runs in all of lists[] */
	unsigned int count;
	struct gpc_space_freed
		*lists[2][GPC_TLSF_SIZE_CLASSES]; /* first run of each level and size class; [0]:
						     small level, [1]: large level */
};

/* Returns the size of a run in bytes. */
uint64_t gpc_space_run_size(const struct gpc_space_run *run);
/* Sets both user words of a run. slack: for GPC_SPACE_BLOCK, the bytes by which the block is
 * shorter than the run, at most GPC_SPACE_SLACK_MASK; otherwise 0. value: the 64-bit user word. */
void gpc_space_run_set_kind(const struct gpc_space_run *run, enum gpc_space_kind kind,
			    uint32_t slack, uint64_t value);

/* Returns the free list of a stream, by the stream's number, or NULL if there is none. The list is
 * valid until the next gpc_free_list_get(), or longer while it has freed runs. */
struct gpc_space_free_list *gpc_free_list_find(struct gpc_space *space, uint64_t stream);
/* Returns the free list of end->stream, and creates it if necessary, with end->context. May free
 * empty free lists of other streams. Returns NULL if out of memory. */
struct gpc_space_free_list *gpc_free_list_get(struct gpc_space *space,
					      const struct gpc_space_free_order *end);

/* Adds a freed run, whose `run` and `free_list` are set, to freed->free_list, and sets the run's
 * user words for GPC_SPACE_FREED. */
void gpc_free_list_add(struct gpc_space *space, struct gpc_space_freed *freed);
/* Removes a freed run from freed->free_list. The run stays allocated in its level. `freed` stays in
 * the age list; after gpc_free_list_age_remove() the caller may free it. */
void gpc_free_list_remove(struct gpc_space *space, struct gpc_space_freed *freed);
/* Returns a freed run of at least this number of units, which is not 0, or NULL if none was found.
 * The run stays in the list. large: whether `level` is the large level of the space. Of the size
 * class of `units` at most 32 runs are examined, so a run that is long enough may be missed. */
struct gpc_space_freed *gpc_free_list_search(struct gpc_space_free_list *free_list,
					     const struct gpc_space_level *level, bool large,
					     uint32_t units);

/* Appends a freed run to the age list of the space as the newest. */
void gpc_free_list_age_append(struct gpc_space *space, struct gpc_space_freed *freed);
/* Removes a freed run from the age list of the space. */
void gpc_free_list_age_remove(struct gpc_space *space, struct gpc_space_freed *freed);

#endif /* GPC_POOL_FREE_LIST_H */
