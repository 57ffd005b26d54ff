/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turn queue of a device: the state that its thread and the executors share, and the start and end
 * of a turn.
 *
 * A holder is charged for the time from its first launch to the end of its work, including short
 * gaps on the GPU, because no other run could use it. While no other run waits it is charged
 * nothing, unless it has a cap.
 *
 * Ownership: a queue is created with the first run of its device and never freed.
 * Threads: all functions need the queue's lock.
 */
#ifndef GPD_TURN_HOLDER_H
#define GPD_TURN_HOLDER_H

#include "server/common/ledger/ledger.h"
#include "server/worker/schedule/turn.h"

struct gpd_turn_queue {
	pthread_mutex_t lock;
	pthread_cond_t wake; /* the thread waits */
	pthread_cond_t unpinned;
	struct gpd_ledger *ledger;
	int device;
	struct gpd_order order;
	struct gpd_schedule_run *runs;
	enum gpd_policy policy;
	bool policy_changed;
	uint64_t policy_ns, tick_ns, poll_ns;
	_Atomic bool asleep; /* until there is something to measure */
	_Atomic bool dozes;  /* waits longer than polled measurements allow */

	/* State of the current turn. */
	bool contended;        /* at the last poll */
	uint64_t contended_ns; /* since when */
	bool begun;            /* the holder has been allowed to launch */
	uint64_t charged_ns;   /* up to this time */
	uint64_t cost_ns;      /* charged since it became contended */
	uint64_t busy_ns;      /* measured in this turn */
	uint64_t progress_ns;  /* when completed work was last found */
	uint64_t gaps_ns;      /* time without work on the GPU */
	uint64_t idle_ns;      /* since when the holder has no work on the GPU; 0: it has */
	uint64_t revoked_ns;
};

static inline struct gpd_schedule_run *
gpd_run_from_order(struct gpd_order_run *order)
{
	return (struct gpd_schedule_run *)order;
}

/* Reads the policy from the ledger if the last time is long ago or it has changed. */
void gpd_turn_refresh_policy(struct gpd_turn_queue *turns, uint64_t now);
/* The session's rank in the turn order: 0 low, 1 normal, 2 high. */
uint8_t gpd_turn_get_rank(const struct gpd_account *account);

/* Maximum number of launches that the run may have in flight, and whether one more is allowed. */
uint32_t gpd_turn_holder_get_flight(const struct gpd_turn_queue *turns,
				    const struct gpd_schedule_run *run);
bool gpd_turn_holder_has_room(const struct gpd_turn_queue *turns,
			      const struct gpd_schedule_run *run);

/* Gives the turn to the next run if there is no holder. Returns the time of the next attempt, or
 * GPD_ORDER_NEVER. */
uint64_t gpd_turn_holder_pick(struct gpd_turn_queue *turns, uint64_t now);

/* A run that is not the holder has something to launch. */
void gpd_turn_holder_arrive(struct gpd_schedule_run *run, uint64_t now);

/* The holder is allowed to launch. */
void gpd_turn_holder_start(struct gpd_turn_queue *turns, uint64_t now);

/* Revokes the holder's turn when it is due, and ends it when its work is done. */
void gpd_turn_holder_poll(struct gpd_turn_queue *turns, uint64_t now);

#endif /* GPD_TURN_HOLDER_H */
