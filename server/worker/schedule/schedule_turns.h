/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The turns of a device: who may give it work, while there is a policy.
 *
 * A run is a session on the device.  The one whose turn it is launches, with so much in flight that
 * it can be stopped within a quantum; when its turn ends, the GPU finishes what it was given before
 * the next begins, so that what is measured is the run's own.  A thread per device looks at stamps
 * and hands the turn on; nobody holds a lock while waiting.  What does not finish within half a
 * second (or four times what a launch usually takes) is waited for no longer: a stream may hang on
 * a host function.
 *
 * The executor ends a run when the thread does not look at it (pins); what the thread has once seen
 * it looks up again under the lock.
 */
#ifndef GPD_SCHEDULE_TURNS_H
#define GPD_SCHEDULE_TURNS_H

#include "server/worker/schedule/schedule_core.h"
#include "server/worker/schedule/schedule_meter.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_account;
struct gpd_turn_queue;

struct gpd_schedule_run {
	struct gpd_order_run order; /* under the turns' lock */
	struct gpd_schedule_run *next;
	struct gpd_schedule_run *session_next;
	struct gpd_account *account;
	struct gpd_turn_queue *turns;
	int device;
	struct gpd_usage_meter meter;

	/* The executor's own: the batch that it is in. */
	uint64_t batch;
	uint32_t pass;  /* launches that may still go */
	uint32_t from;  /* what pass was when the batch began */
	uint32_t times; /* batches that this one stands for */
	uint32_t skip, represents, seen;
	uint64_t begun_ns, period_ns;
	uint32_t random;
	bool holds;     /* pass is of a turn */
	bool must;      /* its time must be known */
	uint32_t joins; /* launches that need no mark: nobody else waits */
	bool in_batch, measured, timed;

	_Atomic bool open;    /* in a batch; seq_cst with revoked: each side says, then looks */
	_Atomic bool revoked; /* its turn is over, or never was */

	/* Under the turns' lock. */
	pthread_cond_t go;
	bool waiting;
	bool takes_turns;
	uint32_t window; /* launches in flight */
	unsigned int pins;
	uint64_t measured_ns, measured_batches; /* in all */
	/* What the ledger has of it: no more than the time since the first launch.  Some of that in
	 * advance, of work that was seen to run at two looks and is not done. */
	uint64_t since_ns, credited_ns, advanced_ns;
	uint64_t running, running_ns; /* which entry was seen to run last, and when */
	uint64_t left_ns; /* since when it had nothing on the GPU as its turn ended; 0: it had */
	uint64_t gap_ns;  /* how long it usually has nothing, if not for long */
};

/* How long the GPU is kept for a holder that has nothing to launch at least (and at most ten times,
 * if it usually comes back so late), and twice that in all beyond as long as it was used: a client
 * that waits for each kernel keeps its turn. */
extern uint64_t gpd_turn_idle_ns;

/* Whether the session's launches on the device are held back for others. */
bool gpd_turn_is_required(const struct gpd_account *account, int device);

/* 0 or -ENOMEM. */
int gpd_turn_add_run(struct gpd_schedule_run *run);
/* Returns when nobody else uses the run; what its work took has been written down. */
void gpd_turn_remove_run(struct gpd_schedule_run *run);

/* Waits for the run's turn.  How many launches may go; *timed_p: their time must be known. */
uint32_t gpd_turn_acquire(struct gpd_schedule_run *run, bool *timed_p);
/* It takes none any more: no policy, or it has multiprocessors of its own, or it closes.  drains:
 * the turn goes on when its work is done. */
void gpd_turn_release(struct gpd_schedule_run *run, bool drains);

/* There is something new to measure. */
void gpd_turn_wake(struct gpd_schedule_run *run);

#endif /* GPD_SCHEDULE_TURNS_H */
