/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine's memory for device code, which all workers together have a part of.
 *
 * Each worker has a place in the ledger, where it alone writes what its images take; what all take
 * is the sum of the places, so a worker that is killed leaves nothing wrong behind: the supervisor
 * clears its place.  What sessions hold and what a worker keeps for nobody are told apart: the
 * latter goes when the worker needs room, and is in the way of no session that asks for its least.
 * Any thread of the worker that has the place.
 */
#ifndef GPD_CODE_MEMORY_H
#define GPD_CODE_MEMORY_H

#include "protocol/status.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* More than there can be: one for each session, and those that have no session (any more). */
#define GPD_CODE_PLACES 8192
/* What each session may load whatever others have, as long as all have not more beyond the limit
 * than this for each session that there is. */
#define GPD_CODE_MIN ((uint64_t)32 << 20)

#define GPD_CODE_NO_LIMIT UINT64_MAX

struct gpd_code_place {
	_Atomic int32_t worker; /* 0: free */
	_Atomic uint64_t held;  /* bytes */
	_Atomic uint64_t kept;  /* that no session holds */
};

struct gpd_code_memory {
	pthread_mutex_t lock; /* of whoever takes some; a worker may die with it */
	_Atomic uint64_t max; /* bytes; GPD_CODE_NO_LIMIT */
	_Atomic uint32_t end; /* no place behind it was ever used */
	struct gpd_code_place places[GPD_CODE_PLACES];
};

/* In memory that is all zeros and that workers will share; without a limit. */
GP_MUST_CHECK int gpd_code_init(struct gpd_code_memory *memory);

/* A place for a worker, by itself; NULL: all are taken. */
struct gpd_code_place *gpd_code_enter(struct gpd_code_memory *memory, int32_t worker);
/* Supervisor: the worker is gone, and what it had is free. */
void gpd_code_leave(struct gpd_code_memory *memory, int32_t worker);

/* What all workers have; while some take and give, it may be what they had at no one moment. */
uint64_t gpd_code_used(const struct gpd_code_memory *memory);

/*
 * Whether it may hold so many more: if all together, but for what it keeps itself, have no more
 * than they may; or, `more` not 0, if no more than they may and `more` are held.  The second is for
 * a session's least, and what is kept by whom ever does not count for it.  But what is kept goes
 * only when no kernel runs, so there is an end to that: half as much again as they may, and `more`.
 */
bool gpd_code_fits(const struct gpd_code_memory *memory, const struct gpd_code_place *place,
		   uint64_t bytes, uint64_t more);
/* False, and nothing is taken, if it may not. */
bool gpd_code_take(struct gpd_code_memory *memory, struct gpd_code_place *place, uint64_t bytes,
		   uint64_t more);
/* What is held. */
void gpd_code_give(struct gpd_code_place *place, uint64_t bytes);

/* What was held is kept; what was kept is held again, if it may be (as above); or it is dropped. */
void gpd_code_keep(struct gpd_code_memory *memory, struct gpd_code_place *place, uint64_t bytes);
bool gpd_code_hold(struct gpd_code_memory *memory, struct gpd_code_place *place, uint64_t bytes,
		   uint64_t more);
void gpd_code_drop(struct gpd_code_place *place, uint64_t bytes);

#endif /* GPD_CODE_MEMORY_H */
