/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns of a device: decides which session may launch, while a policy (enum gpd_policy) is set.
 *
 * A run is a session on the device. The run that has the turn is the holder; it launches, with a
 * limited number of launches in flight, so that it can be stopped within a quantum. When its turn
 * ends, the GPU finishes its work before the next turn starts, so that measured time belongs to one
 * run. A thread per device polls GPU timestamps and passes the turn on; no lock is held while
 * waiting. Work that does not finish within half a second, or within four times the usual time of a
 * launch if that is longer, is not waited for, because a stream may hang on a host function.
 *
 * The device's thread pins a run while it uses the run without the lock. gpd_turn_remove_run()
 * waits until the run is not pinned.
 *
 * Sequence of calls, by schedule.c: gpd_turn_add_run() at the session's first launch on the device;
 * gpd_turn_acquire() when `pass` is used up or the turn was revoked; gpd_turn_wake() after a
 * measured batch; gpd_turn_release() when no turn is needed any more or the session is closing;
 * gpd_turn_remove_run() at its end.
 *
 * Ownership: a run belongs to its session and is freed after gpd_turn_remove_run(). The queue of a
 * device is created with its first run and never freed.
 * Threads: the session's executor, without the queue's lock, which the functions acquire. The lock
 * protects the members that the device's thread uses, too.
 * Units: nanoseconds.
 */
#ifndef GPD_TURN_H
#define GPD_TURN_H

#include "server/worker/schedule/schedule_core.h"
#include "server/worker/schedule/usage_meter.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_account;
struct gpd_turn_queue;

/* A session on a device. */
struct gpd_schedule_run {
	/* Entry of the turn order (schedule_core.h); protected by the queue's lock. */
	struct gpd_order_run order;
	/* next in the queue's list of runs; protected by the queue's lock */
	struct gpd_schedule_run *next;
	/* next in the list of the session's runs; executor only */
	struct gpd_schedule_run *session_next;
	struct gpd_account *account;  /* account of the session */
	struct gpd_turn_queue *turns; /* queue of the device */
	int device;                   /* the worker's number of the device */
	struct gpd_usage_meter meter; /* measures its GPU time (usage_meter.h) */

	/* The members below are used by the executor only, in schedule.c: the current batch, which
	 * is a sequence of launches that is measured as a whole. */
	uint64_t batch; /* number of the current batch, from 1; a stream's batch of 0 means none */
	/* Number of launches that may still be made without asking again. If it was granted with a
	 * turn (`holds`), the rest outlasts the batch, until the turn is revoked. */
	uint32_t pass;
	uint32_t from; /* value of pass at the start of the batch */
	/* number of batches that the measured time of this batch represents; 0: not timed */
	uint32_t times;
	/* Sampling of batches to time. skip: number of batches to skip before the next timed one.
	 * represents: number of batches since the last timed one. seen: number of first batches
	 * that were all timed. */
	uint32_t skip, represents, seen;
	/* Start of the first and of the last batch (0: none), and the average interval between
	 * batches. */
	uint64_t first_ns, begun_ns, period_ns;
	/* State of the random number generator for `skip`; never 0. */
	uint32_t random;
	bool holds; /* `pass` was granted with a turn */
	bool must;  /* the batch's time must be measured; from gpd_turn_acquire() */
	/* Maximum launches without a marker, for gpd_usage_meter_close(); set by
	 * gpd_turn_acquire(). */
	uint32_t joins;
	/* in_batch: a batch has begun and not ended. measured: the meter observes its end. timed:
	 * the meter also measures its time. */
	bool in_batch, measured, timed;

	/* The members below are used by both threads. */

	/* A batch is open. Set and cleared by the executor; ordered (seq_cst) with revoked. */
	_Atomic bool open;
	/* The run's turn is over: the executor must end the batch and acquire another turn. Set
	 * and cleared with the queue's lock. */
	_Atomic bool revoked;

	/* The members below are protected by the queue's lock. */
	pthread_cond_t go; /* the executor waits on it in gpd_turn_acquire() */
	bool waiting;      /* the executor waits */
	bool takes_turns;  /* its launches need a turn; from acquire to release */
	uint32_t window;   /* maximum number of launches in flight */
	unsigned int pins; /* number of uses by the device's thread without the lock */
	/* Totals: measured GPU time and number of batches. */
	uint64_t measured_ns, measured_batches;
	/* since_ns: time of the first launch. credited_ns: time credited to the ledger, at most the
	 * time since then. advanced_ns: part of it credited in advance, for work that two polls
	 * found running and that is not done. */
	uint64_t since_ns, credited_ns, advanced_ns;
	/* Entry of the meter last seen running, and the time of that poll. */
	uint64_t running, running_ns;
	uint64_t left_ns; /* start of its idle time at the end of its turn; 0: it was not idle */
	uint64_t gap_ns;  /* its usual time without work if that is short; 0: unknown or long */
};

/* Minimum time for which the GPU stays reserved for a holder without work, so that a client that
 * waits for each kernel keeps its turn. The time is longer, but at most ten times this, if the
 * holder usually returns later (gap_ns). A holder that wastes more than about half of its turn in
 * this way loses the turn. */
extern uint64_t gpd_turn_idle_ns;

/* Returns whether the session's launches on the device need a turn now: a policy is set, and the
 * session has no multiprocessors of its own. Any thread. */
bool gpd_turn_is_required(const struct gpd_account *account, int device);

/* Adds a run to its device's queue, which is created on first use. The caller has zeroed the run
 * and set account, device, batch (1) and random (not 0); the session's tenant and rank are from the
 * ledger. Makes the device current. May block until pinned memory is allocated (marker_page.h).
 * Returns 0; or -ENOMEM, also if the thread or the device is not available, and the run is not
 * added. */
int gpd_turn_add_run(struct gpd_schedule_run *run);
/* Removes the run, whose work must be done, and records its remaining time in the ledger. Blocks
 * while the device's thread uses the run, and makes the device current. The caller then frees the
 * run. */
void gpd_turn_remove_run(struct gpd_schedule_run *run);

/* Blocks, without a limit, until the run has the turn and room for a launch in flight, the session
 * is closing, the GPU is lost or no turn is needed any more. The run's earlier launches must have
 * been passed to the driver (gpd_issue_settle(), issue.h), and its last batch must be closed. The
 * turn ends when the device's thread revokes it (run->revoked) or by gpd_turn_release(). Sets
 * run->open and run->joins. Returns the number of launches allowed, at least 1, and sets *timed_p
 * to whether their time must be measured. */
uint32_t gpd_turn_acquire(struct gpd_schedule_run *run, bool *timed_p);
/* Ends the run's need for turns: there is no policy, it has multiprocessors of its own, or it is
 * closing. drains: the turn is passed on only when the run's work is done; otherwise at once. Does
 * not wait. */
void gpd_turn_release(struct gpd_schedule_run *run, bool drains);

/* Notifies the device's thread that a batch was closed (gpd_usage_meter_close()), whose end it has
 * to detect. */
void gpd_turn_wake(struct gpd_schedule_run *run);

#endif /* GPD_TURN_H */
