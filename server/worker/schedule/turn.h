/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns of a device: decides which session may launch, while a policy is set.
 *
 * A run is a session on the device. The run with the turn launches, with a limited number of
 * launches in flight, so that it can be stopped within a quantum. When its turn ends, the GPU
 * finishes its work before the next turn starts, so that measured time belongs to one run. A thread
 * per device polls GPU timestamps and passes the turn on; no lock is held while waiting. Work that
 * does not finish within half a second (or four times the usual time of a launch) is not waited for
 * any longer, because a stream may hang on a host function.
 *
 * The executor removes a run only while the thread does not use it (pins); after unlocking, the
 * thread looks up runs again under the lock.
 *
 * Ownership: a run belongs to its session and is freed after gpd_turn_remove_run(). The queue of a
 * device is created with its first run and never freed.
 * Threads: the session's executor; the queue's lock protects the members that the thread uses, too.
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

struct gpd_schedule_run {
	struct gpd_order_run order; /* under the queue's lock */
	struct gpd_schedule_run *next;
	struct gpd_schedule_run *session_next;
	struct gpd_account *account;
	struct gpd_turn_queue *turns;
	int device;
	struct gpd_usage_meter meter;

	/* The executor's own: the current batch. */
	uint64_t batch;
	uint32_t pass;  /* launches left */
	uint32_t from;  /* value of pass at the start of the batch */
	uint32_t times; /* batches that this one represents */
	uint32_t skip, represents, seen;
	uint64_t begun_ns, period_ns;
	uint32_t random;
	bool holds;     /* pass was granted with a turn */
	bool must;      /* its time must be measured */
	uint32_t joins; /* launches that need no marker: no other run waits */
	bool in_batch, measured, timed;

	_Atomic bool open;    /* in a batch; ordered (seq_cst) with revoked */
	_Atomic bool revoked; /* its turn is over, or it has none */

	/* Under the queue's lock. */
	pthread_cond_t go;
	bool waiting;
	bool takes_turns;
	uint32_t window; /* maximum number of launches in flight */
	unsigned int pins;
	uint64_t measured_ns, measured_batches; /* totals */
	/* Time credited to the ledger: at most the time since the first launch. Part of it is in
	 * advance, for work that two polls found running and that is not done. */
	uint64_t since_ns, credited_ns, advanced_ns;
	uint64_t running, running_ns; /* the entry last seen running, and when */
	uint64_t left_ns;             /* start of its idle time at the end of its turn; 0: none */
	uint64_t gap_ns;              /* its usual time without work, if short */
};

/* Minimum time for which the GPU is reserved for a holder without work (at most ten times that if
 * it usually returns later), and twice that in total beyond the time it was used: a client that
 * waits for each kernel keeps its turn. */
extern uint64_t gpd_turn_idle_ns;

/* Whether the session's launches on the device need a turn. */
bool gpd_turn_is_required(const struct gpd_account *account, int device);

/* Adds a run to its device's queue, which is created on first use. Returns 0 or -ENOMEM. */
int gpd_turn_add_run(struct gpd_schedule_run *run);
/* Removes the run when no other thread uses it; its work must be done, and its time has then been
 * recorded in the ledger. */
void gpd_turn_remove_run(struct gpd_schedule_run *run);

/* Waits for the run's turn. Returns the number of launches allowed; *timed_p: their time must be
 * measured. */
uint32_t gpd_turn_acquire(struct gpd_schedule_run *run, bool *timed_p);
/* The run needs no turn any more: no policy, multiprocessors of its own, or closing. drains: the
 * turn is passed on when its work is done. */
void gpd_turn_release(struct gpd_schedule_run *run, bool drains);

/* Notifies the thread that there is something new to measure. */
void gpd_turn_wake(struct gpd_schedule_run *run);

#endif /* GPD_TURN_H */
