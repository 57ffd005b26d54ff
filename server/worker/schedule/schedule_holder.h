/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device's turns: what the thread and the executors share, and how a turn begins and ends.
 *
 * A holder is charged for the time from its first launch to the end of its work, whether the GPU
 * had short gaps in it or not: nobody else could use it.  Alone it is charged nothing, unless it
 * has a cap.  Under the lock.
 */
#ifndef GPD_SCHEDULE_HOLDER_H
#define GPD_SCHEDULE_HOLDER_H

#include "server/common/ledger/ledger.h"
#include "server/worker/schedule/schedule_turns.h"

struct gpd_turn_queue {
	pthread_mutex_t lock;
	pthread_cond_t wake; /* of the thread */
	pthread_cond_t unpinned;
	struct gpd_ledger *ledger;
	int device;
	struct gpd_order order;
	struct gpd_schedule_run *runs;
	enum gpd_policy policy;
	bool policy_changed;
	uint64_t policy_ns, tick_ns, poll_ns;
	_Atomic bool asleep; /* until there is something to measure */
	_Atomic bool dozes;  /* longer than what is found by looks allows */

	/* Of the present turn. */
	bool contended;        /* when it was looked at last */
	uint64_t contended_ns; /* since when */
	bool begun;            /* the holder has been let through */
	uint64_t charged_ns;   /* up to when */
	uint64_t cost_ns;      /* charged since it is contended */
	uint64_t busy_ns;      /* measured in it */
	uint64_t progress_ns;  /* when something was found done */
	uint64_t gaps_ns;      /* it had nothing on the GPU */
	uint64_t idle_ns;      /* since when the holder has nothing on the GPU; 0: it has */
	uint64_t revoked_ns;
};

static inline struct gpd_schedule_run *
gpd_run_from_order(struct gpd_order_run *order)
{
	return (struct gpd_schedule_run *)order;
}

/* Reads what the ledger allows, if that is some time ago or has to be done. */
void gpd_turn_refresh_policy(struct gpd_turn_queue *turns, uint64_t now);
uint8_t gpd_turn_get_rank(const struct gpd_account *account);

/* How many launches the run may have in flight, and whether there is room for one more. */
uint32_t gpd_turn_holder_get_flight(const struct gpd_turn_queue *turns,
				    const struct gpd_schedule_run *run);
bool gpd_turn_holder_has_room(const struct gpd_turn_queue *turns,
			      const struct gpd_schedule_run *run);

/* Gives the turn to whom it is due, if it is nobody's.  When to ask again; GPD_ORDER_NEVER. */
uint64_t gpd_turn_holder_pick(struct gpd_turn_queue *turns, uint64_t now);

/* A run that is not the holder has something to launch. */
void gpd_turn_holder_arrive(struct gpd_schedule_run *run, uint64_t now);

/* The holder is let through. */
void gpd_turn_holder_start(struct gpd_turn_queue *turns, uint64_t now);

/* Ends the holder's turn when it is time, and when its work is done. */
void gpd_turn_holder_poll(struct gpd_turn_queue *turns, uint64_t now);

#endif /* GPD_SCHEDULE_HOLDER_H */
