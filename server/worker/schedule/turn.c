/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/schedule/turn.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "server/common/ledger/ledger.h"
#include "server/worker/device/device.h"
#include "server/worker/schedule/account.h"
#include "server/worker/schedule/turn_holder.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <utlist.h>

#define PASS_MAX 256
#define JOINS_MAX 64
/* Measuring interval while no run waits. */
#define TICK_NS UINT64_C(20000000)
/* Measuring interval of entries that are measured by polling. */
#define MEASURE_POLL_NS UINT64_C(250000)
/* A waiting executor checks at this interval whether its session has ended. */
#define CLOSE_POLL_NS UINT64_C(50000000)
/* The thread polls again after this fraction of the time it has waited. */
#define NAP_PART 64
#define NAP_MIN_NS UINT64_C(10000)
#define NAP_MAX_NS UINT64_C(100000)
/* Maximum while it waits for a budget, or for room when no other run waits. */
#define NAP_LONG_NS UINT64_C(1000000)
#define FOREVER UINT64_MAX

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpd_turn_queue *all[GPD_DEVICES_MAX] GP_GUARDED_BY(start_lock);

/* Adds to the ledger. A session that runs on several streams at once uses the GPU once, so the
 * scaled samples are limited to the time that has passed. */
static void
run_credit(struct gpd_schedule_run *run, uint64_t ns)
{
	uint64_t passed = gp_now_ns() - run->since_ns;
	uint64_t room = passed > run->credited_ns ? passed - run->credited_ns : 0;

	if (ns > room)
		ns = room;
	run->credited_ns += ns;
	if (ns)
		gpd_ledger_count(&run->account->entry->devices[run->device].gpu_ns, ns);
}

static void
run_account(struct gpd_schedule_run *run, const struct gpd_usage_meter_harvest *run_harvest)
{
	uint64_t known =
		run_harvest->all_ns < run->advanced_ns ? run_harvest->all_ns : run->advanced_ns;

	run->measured_ns += run_harvest->all_ns;
	run->measured_batches += run_harvest->batches;
	run->advanced_ns -= known;
	run_credit(run, run_harvest->all_ns - known);
}

/* A long kernel is measured only when it is done. Until then the time it was seen running is
 * credited, so that the GPU does not appear idle. */
static void
run_advance(struct gpd_schedule_run *run, uint64_t running, uint64_t now)
{
	if (running && running == run->running) {
		run->advanced_ns += now - run->running_ns;
		run_credit(run, now - run->running_ns);
	}
	run->running = running;
	run->running_ns = now;
}

/* Estimate for the last batches, which no measured batch represents. */
static uint64_t
unseen_ns(const struct gpd_schedule_run *run)
{
	return run->measured_batches ? run->represents * run->measured_ns / run->measured_batches
				     : 0;
}

/* The lock is released while the driver is called. looks: also checks what is running. */
static void
run_harvest(struct gpd_turn_queue *turns, struct gpd_schedule_run *run, bool looks)
	GP_LOCKED(turns->lock)
{
	struct gpd_usage_meter_harvest found;
	uint64_t running = 0, now;

	run->pins++;
	pthread_mutex_unlock(&turns->lock);
	found = gpd_usage_meter_collect(&run->meter);
	now = gp_now_ns();
	if (looks)
		running = gpd_usage_meter_get_running(&run->meter);
	pthread_mutex_lock(&turns->lock);
	if (--run->pins == 0)
		pthread_cond_broadcast(&turns->unpinned);
	run_account(run, &found);
	if (looks)
		run_advance(run, running, now);
	if (found.entries && turns->order.holder == &run->order) {
		turns->busy_ns += found.busy_ns;
		turns->progress_ns = gp_now_ns();
	}
}

/* At fixed multiples of the interval. */
static uint64_t
next_poll_ns(void)
{
	return (gp_now_ns() / MEASURE_POLL_NS + 1) * MEASURE_POLL_NS;
}

/*
 * Collects measurements: often for runs that take turns, all of them at each tick. Polls that
 * determine lengths are at fixed times, independent of the start of batches. Returns the time of
 * the next call; FOREVER: nothing is left.
 */
static uint64_t
runs_harvest(struct gpd_turn_queue *turns, bool contended) GP_LOCKED(turns->lock)
{
	uint64_t now = gp_now_ns(), when = FOREVER;
	bool tick = now - turns->tick_ns >= TICK_NS, look = now >= turns->poll_ns;

	if (tick)
		turns->tick_ns = now;
	if (look)
		turns->poll_ns = next_poll_ns();
	for (struct gpd_schedule_run *r = turns->runs; r; r = r->next) {
		if (atomic_load(&r->meter.entries) == 0)
			continue;
		if (tick || (contended && r->takes_turns) ||
		    (look && atomic_load(&r->meter.polled)))
			run_harvest(turns, r, tick);
		if (atomic_load(&r->meter.polled))
			when = turns->poll_ns;
		else if (atomic_load(&r->meter.entries) && when == FOREVER)
			when = now + TICK_NS;
	}
	return when;
}

static bool
anybody_waits(const struct gpd_turn_queue *turns)
{
	for (const struct gpd_schedule_run *r = turns->runs; r; r = r->next) {
		if (r->waiting)
			return true;
	}
	return false;
}

/* Wakes the runs that may continue. */
static void
signal_waiting(struct gpd_turn_queue *turns)
{
	for (struct gpd_schedule_run *r = turns->runs; r; r = r->next) {
		if (r->waiting && (turns->policy == GPD_POLICY_NONE ||
				   (turns->order.holder == &r->order && !atomic_load(&r->revoked) &&
				    gpd_turn_holder_has_room(turns, r))))
			pthread_cond_signal(&r->go);
	}
}

/* How long the thread may sleep while runs wait; FOREVER: none waits. */
static uint64_t
get_nap_ns(const struct gpd_turn_queue *turns, uint64_t when, uint64_t now)
{
	bool contended = gpd_order_is_contended(&turns->order);
	uint64_t nap = (now - turns->progress_ns) / NAP_PART;
	uint64_t longest = contended ? NAP_MAX_NS : NAP_LONG_NS;

	if (!anybody_waits(turns) && !contended)
		return FOREVER;
	if (!turns->order.holder && when != GPD_ORDER_NEVER)
		return when - now < NAP_LONG_NS ? when - now : NAP_LONG_NS;
	return nap < NAP_MIN_NS ? NAP_MIN_NS : nap < longest ? nap : longest;
}

/* Does all that is due and returns how long the thread may sleep. */
static uint64_t
turn_queue_step(struct gpd_turn_queue *turns) GP_LOCKED(turns->lock)
{
	bool waits = anybody_waits(turns);
	uint64_t more = runs_harvest(turns, waits || gpd_order_is_contended(&turns->order));
	uint64_t now = gp_now_ns(), nap;

	gpd_turn_refresh_policy(turns, now);
	if (turns->policy == GPD_POLICY_NONE)
		turns->order.holder = NULL;
	else if (turns->order.holder)
		gpd_turn_holder_poll(turns, now);
	nap = get_nap_ns(turns, gpd_turn_holder_pick(turns, now), now);
	signal_waiting(turns);
	if (more == FOREVER)
		return nap;
	more = more > now ? more - now : 0;
	return more < nap ? more : nap;
}

static bool
nothing_new(const struct gpd_turn_queue *turns)
{
	for (const struct gpd_schedule_run *r = turns->runs; r; r = r->next) {
		if (r->waiting || atomic_load(&r->meter.entries))
			return false;
	}
	return true;
}

static bool
nothing_to_poll(const struct gpd_turn_queue *turns)
{
	for (const struct gpd_schedule_run *r = turns->runs; r; r = r->next) {
		if (atomic_load(&r->meter.polled))
			return false;
	}
	return true;
}

static void
turn_queue_doze(struct gpd_turn_queue *turns, uint64_t nap) GP_LOCKED(turns->lock)
{
	atomic_store(&turns->dozes, true);
	if (nothing_to_poll(turns))
		(void)gp_cond_wait_until(&turns->wake, &turns->lock, gp_now_ns() + nap);
	atomic_store(&turns->dozes, false);
	/* The work that woke the thread has just started, so the next poll is a full interval
	 * later. */
	turns->poll_ns = next_poll_ns();
}

static void
turn_queue_sleep(struct gpd_turn_queue *turns) GP_LOCKED(turns->lock)
{
	atomic_store(&turns->asleep, true);
	if (nothing_new(turns))
		pthread_cond_wait(&turns->wake, &turns->lock);
	atomic_store(&turns->asleep, false);
	turns->poll_ns = next_poll_ns();
}

static void *
turn_queue_run(void *arg)
{
	struct gpd_turn_queue *turns = arg;

	/* Sleeps are shorter than the kernel's default timer slack of 50 us. */
	(void)prctl(PR_SET_TIMERSLACK, 1000ul, 0, 0, 0);
	(void)gpd_device_enter(turns->device);
	pthread_mutex_lock(&turns->lock);
	for (;;) {
		uint64_t nap = turn_queue_step(turns);

		if (nap == FOREVER)
			turn_queue_sleep(turns);
		else if (nap > MEASURE_POLL_NS)
			turn_queue_doze(turns, nap);
		else
			(void)gp_cond_wait_until(&turns->wake, &turns->lock, gp_now_ns() + nap);
	}
	return NULL;
}

static struct gpd_turn_queue *
turn_queue_create(struct gpd_ledger *ledger, int device)
{
	struct gpd_turn_queue *turns = calloc(1, sizeof(*turns));

	if (!turns)
		return NULL;
	turns->ledger = ledger;
	turns->device = device;
	pthread_mutex_init(&turns->lock, NULL);
	gp_cond_init(&turns->wake);
	gp_cond_init(&turns->unpinned);
	if (gp_thread_start("turn", 0, turn_queue_run, turns)) {
		free(turns);
		return NULL;
	}
	return turns;
}

/* Created with the first launch on the device; never freed. */
static struct gpd_turn_queue *
turn_queue_get(struct gpd_ledger *ledger, int device)
{
	struct gpd_turn_queue *turns;

	pthread_mutex_lock(&start_lock);
	if (!all[device])
		all[device] = turn_queue_create(ledger, device);
	turns = all[device];
	pthread_mutex_unlock(&start_lock);
	return turns;
}

int
gpd_turn_add_run(struct gpd_schedule_run *run)
{
	struct gpd_turn_queue *turns = turn_queue_get(run->account->ledger, run->device);
	int r;

	/* Without the lock: pinned memory may have to be allocated. */
	if (!turns || gpd_device_enter(run->device) != CUDA_SUCCESS ||
	    gpd_usage_meter_init(&run->meter, run->device))
		return -ENOMEM;
	pthread_mutex_lock(&turns->lock);
	r = gpd_order_add(&turns->order, &run->order, run->account->entry->tenant, gp_now_ns());
	if (r == 0) {
		run->turns = turns;
		run->order.rank = gpd_turn_get_rank(run->account);
		run->window = 1;
		run->since_ns = gp_now_ns();
		gp_cond_init(&run->go);
		LL_PREPEND(turns->runs, run);
		turns->policy_changed = true;
	}
	pthread_mutex_unlock(&turns->lock);
	if (r)
		gpd_usage_meter_fini(&run->meter);
	return r;
}

void
gpd_turn_remove_run(struct gpd_schedule_run *run)
{
	struct gpd_turn_queue *turns = run->turns;
	struct gpd_usage_meter_harvest found;

	(void)gpd_device_enter(run->device);
	pthread_mutex_lock(&turns->lock);
	while (run->pins)
		pthread_cond_wait(&turns->unpinned, &turns->lock);
	LL_DELETE(turns->runs, run);
	gpd_order_remove(&turns->order, &run->order);
	turns->policy_changed = true;
	pthread_mutex_unlock(&turns->lock);
	pthread_cond_signal(&turns->wake);
	found = gpd_usage_meter_collect(&run->meter);
	run_account(run, &found);
	run_account(run, &(struct gpd_usage_meter_harvest){ .all_ns = unseen_ns(run) });
	gpd_usage_meter_fini(&run->meter);
	pthread_cond_destroy(&run->go);
}

/* Whether the executor must go on without a turn. */
static bool
run_must_not_wait(const struct gpd_schedule_run *run)
{
	return atomic_load(run->account->closing) || atomic_load(&gpd_devices.lost) ||
	       !gpd_turn_is_required(run->account, run->device);
}

static bool
run_may_go(struct gpd_turn_queue *turns, struct gpd_schedule_run *run, uint64_t now)
{
	if (turns->order.holder != &run->order) {
		gpd_turn_holder_arrive(run, now);
		gpd_order_want(&turns->order, &run->order, now);
		(void)gpd_turn_holder_pick(turns, now);
	}
	return turns->order.holder == &run->order && !atomic_load(&run->revoked) &&
	       gpd_turn_holder_has_room(turns, run);
}

/* The window grows gradually: the first kernels may be shorter than later ones. */
static uint32_t
get_pass_size(const struct gpd_turn_queue *turns, struct gpd_schedule_run *run)
{
	uint64_t flight = atomic_load(&run->meter.launches);
	uint32_t wide = gpd_turn_holder_get_flight(turns, run), pass;
	uint64_t left;

	run->window = wide < 2 * run->window ? wide : 2 * run->window;
	left = run->window > flight ? run->window - flight : 1;
	pass = run->window / 4;
	if (pass > left)
		pass = (uint32_t)left;
	if (pass > PASS_MAX)
		pass = PASS_MAX;
	return pass ? pass : 1;
}

uint32_t
gpd_turn_acquire(struct gpd_schedule_run *run, bool *timed_p)
{
	struct gpd_turn_queue *turns = run->turns;
	uint64_t since = 0, now;
	uint32_t pass;

	pthread_mutex_lock(&turns->lock);
	now = gp_now_ns();
	run->takes_turns = true;
	gpd_turn_refresh_policy(turns, now);
	while (!run_must_not_wait(run) && !run_may_go(turns, run, now)) {
		if (!since) {
			since = now;
			/* Its work may be done without a poll having found it. */
			run_harvest(turns, run, false);
			now = gp_now_ns();
			continue;
		}
		run->waiting = true;
		pthread_cond_signal(&turns->wake);
		(void)gp_cond_wait_until(&run->go, &turns->lock, now + CLOSE_POLL_NS);
		run->waiting = false;
		now = gp_now_ns();
	}
	if (turns->order.holder == &run->order)
		gpd_turn_holder_start(turns, now);
	else
		run->order.wants = false;
	atomic_store(&run->open, true);
	/* A run without any measurement must be measured. */
	*timed_p = !atomic_load(&run->meter.launch_ns);
	pass = get_pass_size(turns, run);
	run->joins = run->window / (gpd_order_is_contended(&turns->order) ? 16 : 8);
	if (run->joins > JOINS_MAX)
		run->joins = JOINS_MAX;
	pthread_mutex_unlock(&turns->lock);
	if (since)
		gpd_ledger_count(&run->account->entry->counts.waited_ns, now - since);
	return pass;
}

void
gpd_turn_release(struct gpd_schedule_run *run, bool drains)
{
	struct gpd_turn_queue *turns = run->turns;

	pthread_mutex_lock(&turns->lock);
	run->order.wants = false;
	if (drains && turns->order.holder == &run->order) {
		atomic_store(&run->revoked, true);
		turns->revoked_ns = gp_now_ns();
	} else {
		if (turns->order.holder == &run->order)
			turns->order.holder = NULL;
		run->takes_turns = false;
		atomic_store_explicit(&run->revoked, false, memory_order_relaxed);
	}
	pthread_mutex_unlock(&turns->lock);
	pthread_cond_signal(&turns->wake);
}

void
gpd_turn_wake(struct gpd_schedule_run *run)
{
	struct gpd_turn_queue *turns = run->turns;

	if (!atomic_load(&turns->asleep) &&
	    !(atomic_load(&turns->dozes) && atomic_load(&run->meter.polled)))
		return;
	pthread_mutex_lock(&turns->lock);
	pthread_cond_signal(&turns->wake);
	pthread_mutex_unlock(&turns->lock);
}
