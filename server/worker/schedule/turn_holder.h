/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turn queue of a device: the state that its thread and the executors share, and the start and end
 * of a turn. A run is a session on the device; the holder is the run that has the turn (turn.h).
 *
 * A holder is charged for the time from its first launch to the end of its work, including short
 * gaps on the GPU, because no other run could use it. While no other run waits it is charged
 * nothing, unless it has a cap.
 *
 * Called by turn.c, except gpd_turn_refresh_policy() and gpd_turn_get_rank(), which are in
 * policy.c.
 *
 * Ownership: a queue is created with the first run of its device and never freed.
 * Threads: all functions need the queue's lock; none waits.
 * Units: nanoseconds; now is the time of gp_now_ns().
 */
#ifndef GPD_TURN_HOLDER_H
#define GPD_TURN_HOLDER_H

#include "server/common/ledger/ledger.h"
#include "server/worker/schedule/turn.h"

/* The queue, initially zero; the lock protects all members except the atomic ones. ledger and
 * device are constant. */
struct gpd_turn_queue {
	pthread_mutex_t lock;
	pthread_cond_t wake;     /* the device's thread waits on it */
	pthread_cond_t unpinned; /* gpd_turn_remove_run() waits on it for pins to become 0 */
	struct gpd_ledger *ledger;
	int device;
	struct gpd_order order;        /* turn order of the runs */
	struct gpd_schedule_run *runs; /* list of the runs on the device */
	enum gpd_policy policy;        /* as last read from the ledger */
	bool policy_changed;           /* weights and caps must be computed again */
	/* Times at which weights were last applied, of the last tick and of the next poll. */
	uint64_t policy_ns, tick_ns, poll_ns;
	_Atomic bool asleep; /* the thread waits until there is something to measure */
	_Atomic bool dozes;  /* the thread waits longer than polled measurements allow */

	/* State of the current turn. A turn is contended while another run waits or the holder has
	 * a cap. */
	bool contended;        /* the turn was contended at the last poll */
	uint64_t contended_ns; /* time since which it is contended */
	bool begun;            /* the holder has been allowed to launch */
	uint64_t charged_ns;   /* time up to which the holder has been charged */
	uint64_t cost_ns;      /* GPU time charged since the turn became contended */
	uint64_t busy_ns;      /* GPU time measured since the turn began or became contended */
	uint64_t progress_ns;  /* time at which completed work was last found */
	uint64_t gaps_ns; /* total time without work on the GPU since the turn became contended */
	uint64_t idle_ns; /* time since which the holder has no work on the GPU; 0: it has work */
	uint64_t revoked_ns; /* time at which the turn was revoked */
};

static inline struct gpd_schedule_run *
gpd_run_from_order(struct gpd_order_run *order)
{
	return (struct gpd_schedule_run *)order;
}

/* Reads the policy from the ledger. Also applies weights, caps and ranks to the tenants and runs,
 * if the last time was at least 5 ms ago or policy_changed is set. */
void gpd_turn_refresh_policy(struct gpd_turn_queue *turns, uint64_t now);
/* Returns the session's rank in the turn order, from its priority in the ledger: 0 low, 1 normal, 2
 * high. */
uint8_t gpd_turn_get_rank(const struct gpd_account *account);

/* Returns the maximum number of launches that the run may have in flight, at least 1, from the
 * usual time of a launch. While others wait it is smaller. run->window may limit it further. */
uint32_t gpd_turn_holder_get_flight(const struct gpd_turn_queue *turns,
				    const struct gpd_schedule_run *run);
/* Returns whether the run may have one more launch in flight, and its meter has entries for a
 * batch. */
bool gpd_turn_holder_has_room(const struct gpd_turn_queue *turns,
			      const struct gpd_schedule_run *run);

/* Starts a turn of the next run if there is no holder: resets the state of the turn and clears the
 * run's `revoked`. Returns the time of the next attempt; or GPD_ORDER_NEVER if a turn has started,
 * there is a holder already or no run waits. */
uint64_t gpd_turn_holder_pick(struct gpd_turn_queue *turns, uint64_t now);

/* Called when a run that is not the holder has something to launch: updates its usual time without
 * work. */
void gpd_turn_holder_arrive(struct gpd_schedule_run *run, uint64_t now);

/* Called when the holder, which must exist, is allowed to launch: starts its charges, once per
 * turn. */
void gpd_turn_holder_start(struct gpd_turn_queue *turns, uint64_t now);

/* Charges the holder, revokes its turn when it is due, and ends a revoked turn when the holder's
 * work is done or hangs; there is then no holder, and the caller picks the next one. Withdraws the
 * revocation if the turn is no longer contended. There must be a holder. */
void gpd_turn_holder_poll(struct gpd_turn_queue *turns, uint64_t now);

#endif /* GPD_TURN_HOLDER_H */
