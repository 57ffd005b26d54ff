/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/schedule/schedule_turns.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "server/common/ledger/ledger.h"
#include "server/worker/device/device.h"
#include "server/worker/schedule/account.h"
#include "server/worker/schedule/schedule_holder.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <utlist.h>

#define PASS_MAX 256
#define JOINS_MAX 64
/* How often what nobody waits for is measured. */
#define TICK_NS UINT64_C(20000000)
/* The same where lengths are found by looks. */
#define LOOKS_NS UINT64_C(250000)
/* An executor that waits looks so often whether its session has ended. */
#define LOOK_NS UINT64_C(50000000)
/* The thread looks again after a part of the time that it has waited. */
#define NAP_PART 64
#define NAP_MIN_NS UINT64_C(10000)
#define NAP_MAX_NS UINT64_C(100000)
/* While it waits for an allowance, or for room among what nobody else waits behind. */
#define NAP_LONG_NS UINT64_C(1000000)
#define FOREVER UINT64_MAX

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpd_turns *all[GPD_DEVICES_MAX] GP_GUARDED_BY(start_lock);

/* Into the ledger.  A session that runs on several streams at a time uses the GPU once, so whatever
 * samples stand for, it is no more than the time that has passed. */
static void
credit(struct gpd_schedule_run *run, uint64_t ns)
{
	uint64_t passed = gp_now_ns() - run->since_ns;
	uint64_t room = passed > run->credited_ns ? passed - run->credited_ns : 0;

	if (ns > room)
		ns = room;
	run->credited_ns += ns;
	if (ns)
		gpd_ledger_count(&run->account->line->devices[run->device].gpu_ns, ns);
}

static void
write_down(struct gpd_schedule_run *run, const struct gpd_meter_harvest *harvest)
{
	uint64_t known = harvest->all_ns < run->advanced_ns ? harvest->all_ns : run->advanced_ns;

	run->measured_ns += harvest->all_ns;
	run->measured_batches += harvest->batches;
	run->advanced_ns -= known;
	credit(run, harvest->all_ns - known);
}

/* A kernel may run for long, and is measured when it is done: until then what is seen of it counts,
 * so that nobody who looks takes the GPU for idle. */
static void
advance(struct gpd_schedule_run *run, uint64_t running, uint64_t now)
{
	if (running && running == run->running) {
		run->advanced_ns += now - run->running_ns;
		credit(run, now - run->running_ns);
	}
	run->running = running;
	run->running_ns = now;
}

/* Of the last batches, for which no other stands. */
static uint64_t
unseen_ns(const struct gpd_schedule_run *run)
{
	return run->measured_batches ? run->represents * run->measured_ns / run->measured_batches
				     : 0;
}

/* The lock is not held while the driver is asked.  looks: also at what runs. */
static void
harvest(struct gpd_turns *turns, struct gpd_schedule_run *run, bool looks) GP_LOCKED(turns->lock)
{
	struct gpd_meter_harvest found;
	uint64_t running = 0, now;

	run->pins++;
	pthread_mutex_unlock(&turns->lock);
	found = gpd_meter_take(&run->meter);
	now = gp_now_ns();
	if (looks)
		running = gpd_meter_running(&run->meter);
	pthread_mutex_lock(&turns->lock);
	if (--run->pins == 0)
		pthread_cond_broadcast(&turns->unpinned);
	write_down(run, &found);
	if (looks)
		advance(run, running, now);
	if (found.entries && turns->order.holder == &run->order) {
		turns->busy_ns += found.busy_ns;
		turns->progress_ns = gp_now_ns();
	}
}

/* At moments of the clock. */
static uint64_t
next_look_ns(void)
{
	return (gp_now_ns() / LOOKS_NS + 1) * LOOKS_NS;
}

/*
 * Those whose turn it is, or was: often; all: now and then.  Looks that tell lengths come at
 * moments of the clock, so that when a batch began plays no part.  When to come again; FOREVER:
 * nothing is left.
 */
static uint64_t
harvest_all(struct gpd_turns *turns, bool contended) GP_LOCKED(turns->lock)
{
	uint64_t now = gp_now_ns(), when = FOREVER;
	bool tick = now - turns->tick_ns >= TICK_NS, look = now >= turns->look_ns;

	if (tick)
		turns->tick_ns = now;
	if (look)
		turns->look_ns = next_look_ns();
	for (struct gpd_schedule_run *r = turns->runs; r; r = r->next) {
		if (atomic_load(&r->meter.entries) == 0)
			continue;
		if (tick || (contended && r->takes_turns) ||
		    (look && atomic_load(&r->meter.looked)))
			harvest(turns, r, tick);
		if (atomic_load(&r->meter.looked))
			when = turns->look_ns;
		else if (atomic_load(&r->meter.entries) && when == FOREVER)
			when = now + TICK_NS;
	}
	return when;
}

static bool
anybody_waits(const struct gpd_turns *turns)
{
	for (const struct gpd_schedule_run *r = turns->runs; r; r = r->next) {
		if (r->waiting)
			return true;
	}
	return false;
}

/* Those who may go on are told. */
static void
signal_waiting(struct gpd_turns *turns)
{
	for (struct gpd_schedule_run *r = turns->runs; r; r = r->next) {
		if (r->waiting && (turns->policy == GPD_POLICY_NONE ||
				   (turns->order.holder == &r->order && !atomic_load(&r->revoked) &&
				    gpd_holder_has_room(turns, r))))
			pthread_cond_signal(&r->go);
	}
}

/* How long the thread may sleep for those who wait; FOREVER: there are none. */
static uint64_t
nap_of(const struct gpd_turns *turns, uint64_t when, uint64_t now)
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

/* How long it may sleep after it has done what there is to do. */
static uint64_t
step(struct gpd_turns *turns) GP_LOCKED(turns->lock)
{
	bool waits = anybody_waits(turns);
	uint64_t more = harvest_all(turns, waits || gpd_order_is_contended(&turns->order));
	uint64_t now = gp_now_ns(), nap;

	gpd_turns_refresh(turns, now);
	if (turns->policy == GPD_POLICY_NONE)
		turns->order.holder = NULL;
	else if (turns->order.holder)
		gpd_holder_look(turns, now);
	nap = nap_of(turns, gpd_holder_pick(turns, now), now);
	signal_waiting(turns);
	if (more == FOREVER)
		return nap;
	more = more > now ? more - now : 0;
	return more < nap ? more : nap;
}

static bool
nothing_new(const struct gpd_turns *turns)
{
	for (const struct gpd_schedule_run *r = turns->runs; r; r = r->next) {
		if (r->waiting || atomic_load(&r->meter.entries))
			return false;
	}
	return true;
}

static bool
nothing_to_look_at(const struct gpd_turns *turns)
{
	for (const struct gpd_schedule_run *r = turns->runs; r; r = r->next) {
		if (atomic_load(&r->meter.looked))
			return false;
	}
	return true;
}

static void
doze(struct gpd_turns *turns, uint64_t nap) GP_LOCKED(turns->lock)
{
	atomic_store(&turns->dozes, true);
	if (nothing_to_look_at(turns))
		(void)gp_cond_wait_until(&turns->wake, &turns->lock, gp_now_ns() + nap);
	atomic_store(&turns->dozes, false);
	/* What woke it has just begun. */
	turns->look_ns = next_look_ns();
}

static void
sleep_long(struct gpd_turns *turns) GP_LOCKED(turns->lock)
{
	atomic_store(&turns->asleep, true);
	if (nothing_new(turns))
		pthread_cond_wait(&turns->wake, &turns->lock);
	atomic_store(&turns->asleep, false);
	turns->look_ns = next_look_ns();
}

static void *
run_turns(void *arg)
{
	struct gpd_turns *turns = arg;

	/* Naps are shorter than the 50 microseconds by which the kernel likes to be late. */
	(void)prctl(PR_SET_TIMERSLACK, 1000ul, 0, 0, 0);
	(void)gpd_device_enter(turns->device);
	pthread_mutex_lock(&turns->lock);
	for (;;) {
		uint64_t nap = step(turns);

		if (nap == FOREVER)
			sleep_long(turns);
		else if (nap > LOOKS_NS)
			doze(turns, nap);
		else
			(void)gp_cond_wait_until(&turns->wake, &turns->lock, gp_now_ns() + nap);
	}
	return NULL;
}

static struct gpd_turns *
make_turns(struct gpd_ledger *ledger, int device)
{
	struct gpd_turns *turns = calloc(1, sizeof(*turns));

	if (!turns)
		return NULL;
	turns->ledger = ledger;
	turns->device = device;
	pthread_mutex_init(&turns->lock, NULL);
	gp_cond_init(&turns->wake);
	gp_cond_init(&turns->unpinned);
	if (gp_thread_start("turns", 0, run_turns, turns)) {
		free(turns);
		return NULL;
	}
	return turns;
}

/* They are as old as the process, once there was a launch on the device. */
static struct gpd_turns *
get_turns(struct gpd_ledger *ledger, int device)
{
	struct gpd_turns *turns;

	pthread_mutex_lock(&start_lock);
	if (!all[device])
		all[device] = make_turns(ledger, device);
	turns = all[device];
	pthread_mutex_unlock(&start_lock);
	return turns;
}

int
gpd_turns_add(struct gpd_schedule_run *run)
{
	struct gpd_turns *turns = get_turns(run->account->ledger, run->device);
	int r;

	/* Not under the lock: pinned memory may have to be had. */
	if (!turns || gpd_device_enter(run->device) != CUDA_SUCCESS ||
	    gpd_meter_init(&run->meter, run->device))
		return -ENOMEM;
	pthread_mutex_lock(&turns->lock);
	r = gpd_order_add(&turns->order, &run->order, run->account->line->tenant, gp_now_ns());
	if (r == 0) {
		run->turns = turns;
		run->order.rank = gpd_turns_rank(run->account);
		run->window = 1;
		run->since_ns = gp_now_ns();
		gp_cond_init(&run->go);
		LL_PREPEND(turns->runs, run);
		turns->terms_changed = true;
	}
	pthread_mutex_unlock(&turns->lock);
	if (r)
		gpd_meter_fini(&run->meter);
	return r;
}

void
gpd_turns_remove(struct gpd_schedule_run *run)
{
	struct gpd_turns *turns = run->turns;
	struct gpd_meter_harvest found;

	(void)gpd_device_enter(run->device);
	pthread_mutex_lock(&turns->lock);
	while (run->pins)
		pthread_cond_wait(&turns->unpinned, &turns->lock);
	LL_DELETE(turns->runs, run);
	gpd_order_remove(&turns->order, &run->order);
	turns->terms_changed = true;
	pthread_mutex_unlock(&turns->lock);
	pthread_cond_signal(&turns->wake);
	found = gpd_meter_take(&run->meter);
	write_down(run, &found);
	write_down(run, &(struct gpd_meter_harvest){ .all_ns = unseen_ns(run) });
	gpd_meter_fini(&run->meter);
	pthread_cond_destroy(&run->go);
}

/* Whether the executor must not wait. */
static bool
may_not_wait(const struct gpd_schedule_run *run)
{
	return atomic_load(run->account->closing) || atomic_load(&gpd_devices.lost) ||
	       !gpd_turns_apply(run->account, run->device);
}

static bool
may_go(struct gpd_turns *turns, struct gpd_schedule_run *run, uint64_t now)
{
	if (turns->order.holder != &run->order) {
		gpd_holder_comes(run, now);
		gpd_order_want(&turns->order, &run->order, now);
		(void)gpd_holder_pick(turns, now);
	}
	return turns->order.holder == &run->order && !atomic_load(&run->revoked) &&
	       gpd_holder_has_room(turns, run);
}

/* The window grows step by step: the first kernels may be shorter than the others. */
static uint32_t
pass_of(const struct gpd_turns *turns, struct gpd_schedule_run *run)
{
	uint64_t flight = atomic_load(&run->meter.launches);
	uint32_t wide = gpd_holder_flight(turns, run), pass;
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
gpd_turns_take(struct gpd_schedule_run *run, bool *timed_p)
{
	struct gpd_turns *turns = run->turns;
	uint64_t since = 0, now;
	uint32_t pass;

	pthread_mutex_lock(&turns->lock);
	now = gp_now_ns();
	run->takes_turns = true;
	gpd_turns_refresh(turns, now);
	while (!may_not_wait(run) && !may_go(turns, run, now)) {
		if (!since) {
			since = now;
			/* What it waits for may be done, and nobody has looked. */
			harvest(turns, run, false);
			now = gp_now_ns();
			continue;
		}
		run->waiting = true;
		pthread_cond_signal(&turns->wake);
		(void)gp_cond_wait_until(&run->go, &turns->lock, now + LOOK_NS);
		run->waiting = false;
		now = gp_now_ns();
	}
	if (turns->order.holder == &run->order)
		gpd_holder_begin(turns, now);
	else
		run->order.wants = false;
	atomic_store(&run->open, true);
	/* Who is not known yet has to be. */
	*timed_p = !atomic_load(&run->meter.launch_ns);
	pass = pass_of(turns, run);
	run->joins = run->window / (gpd_order_is_contended(&turns->order) ? 16 : 8);
	if (run->joins > JOINS_MAX)
		run->joins = JOINS_MAX;
	pthread_mutex_unlock(&turns->lock);
	if (since)
		gpd_ledger_count(&run->account->line->counts.waited_ns, now - since);
	return pass;
}

void
gpd_turns_quit(struct gpd_schedule_run *run, bool drains)
{
	struct gpd_turns *turns = run->turns;

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
gpd_turns_poke(struct gpd_schedule_run *run)
{
	struct gpd_turns *turns = run->turns;

	if (!atomic_load(&turns->asleep) &&
	    !(atomic_load(&turns->dozes) && atomic_load(&run->meter.looked)))
		return;
	pthread_mutex_lock(&turns->lock);
	pthread_cond_signal(&turns->wake);
	pthread_mutex_unlock(&turns->lock);
}
