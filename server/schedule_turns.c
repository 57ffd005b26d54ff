/* SPDX-License-Identifier: Apache-2.0 */
#include "server/schedule_turns.h"

#include "server/driver.h"
#include "server/ledger.h"
#include "server/log.h"
#include "server/session.h"
#include "server/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

/* What a holder may have in flight while others wait, and while nobody does. */
#define FLIGHT_NS UINT64_C(5000000)
#define FLIGHT_ALONE_NS UINT64_C(40000000)
#define FLIGHT_MAX 256
#define FLIGHT_ALONE_MAX 1024
#define PASS_MAX 256
#define DRAIN_NS UINT64_C(500000000)
/* How often what the ledger allows is looked at, and what nobody waits for is measured. */
#define TERMS_NS UINT64_C(5000000)
#define TICK_NS UINT64_C(20000000)
/* An executor that waits looks so often whether its session has ended. */
#define LOOK_NS UINT64_C(50000000)
/* The thread looks again after a part of the time that it has waited. */
#define NAP_PART 64
#define NAP_MIN_NS UINT64_C(10000)
#define NAP_MAX_NS UINT64_C(100000)
#define NAP_ALLOWANCE_NS UINT64_C(1000000)
#define FOREVER UINT64_MAX

uint64_t gpd_turns_idle_ns = 200000;

struct gpd_turns {
	pthread_mutex_t lock;
	pthread_cond_t wake; /* of the thread */
	pthread_cond_t unpinned;
	pthread_t thread;
	bool runs_thread;
	int device;
	struct gpd_order order;
	struct gpd_schedule_run *runs;
	enum gpd_policy policy;
	bool terms_changed;
	uint64_t terms_ns, tick_ns;
	_Atomic bool asleep;

	/* Of the present turn. */
	uint64_t busy_ns;     /* measured in it */
	uint64_t progress_ns; /* when something was found done */
	uint64_t idle_ns;     /* since when the holder has nothing on the GPU; 0: it has */
	uint64_t revoked_ns;
};

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static struct gpd_turns *all[GPD_DEVICES_MAX];

uint64_t
gpd_turns_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct gpd_schedule_run *
run_of(struct gpd_order_run *order)
{
	return (struct gpd_schedule_run *)order;
}

static bool
is_exempt(const struct gpd_session *session, int device)
{
	return atomic_load_explicit(&session->account.line->devices[device].sm_assigned,
				    memory_order_relaxed) != 0;
}

bool
gpd_turns_apply(const struct gpd_session *session, int device)
{
	return atomic_load_explicit(&session->account.ledger->policies[device],
				    memory_order_relaxed) != GPD_POLICY_NONE &&
	       !is_exempt(session, device);
}

/* Terms. */

static uint32_t
of_per_cent(uint32_t per_cent)
{
	if (per_cent == 0)
		per_cent = 1;
	return per_cent >= 100 ? GPD_ORDER_UNCAPPED : per_cent * (GPD_ORDER_UNCAPPED / 100);
}

static bool
shares(const struct gpd_turns *turns, const struct gpd_order_tenant *tenant)
{
	for (const struct gpd_schedule_run *r = turns->runs; r; r = r->next) {
		if (r->order.tenant == tenant && !is_exempt(r->session, turns->device))
			return true;
	}
	return false;
}

static void
set_terms(struct gpd_turns *turns, struct gpd_order_tenant *tenant, uint32_t sharers, uint64_t now)
{
	const struct gpd_ledger_tenant_line *line =
		&gpd_worker.ledger->tenants[tenant->id].devices[turns->device];
	uint32_t weight = atomic_load_explicit(&line->weight, memory_order_relaxed);
	uint32_t limit = atomic_load_explicit(&line->limit, memory_order_relaxed);
	uint32_t part = atomic_load_explicit(&line->time_share, memory_order_relaxed);
	uint32_t cap = limit ? of_per_cent(limit) : GPD_ORDER_UNCAPPED;

	switch (turns->policy) {
	case GPD_POLICY_EQUAL:
		weight = 1;
		if (sharers && GPD_ORDER_UNCAPPED / sharers < cap)
			cap = GPD_ORDER_UNCAPPED / sharers;
		break;
	case GPD_POLICY_FIXED:
		weight = part;
		if (of_per_cent(part) < cap)
			cap = of_per_cent(part);
		break;
	case GPD_POLICY_BEST_EFFORT:
	case GPD_POLICY_NONE:
		break;
	}
	gpd_order_terms(tenant, weight, cap, now);
}

static uint8_t
rank_of(const struct gpd_schedule_run *run)
{
	/* 0 normal, 1 low, 2 high. */
	static const uint8_t ranks[] = { 1, 0, 2 };
	uint32_t priority =
		atomic_load_explicit(&run->session->account.line->priority, memory_order_relaxed);

	return ranks[priority < 3 ? priority : 0];
}

static void
refresh_terms(struct gpd_turns *turns, uint64_t now)
{
	uint32_t sharers = 0;

	turns->policy = (enum gpd_policy)atomic_load_explicit(
		&gpd_worker.ledger->policies[turns->device], memory_order_relaxed);
	if (!turns->terms_changed && now - turns->terms_ns < TERMS_NS)
		return;
	turns->terms_changed = false;
	turns->terms_ns = now;
	for (struct gpd_order_tenant *t = turns->order.tenants; t; t = t->next)
		sharers += shares(turns, t);
	for (struct gpd_order_tenant *t = turns->order.tenants; t; t = t->next)
		set_terms(turns, t, sharers, now);
	for (struct gpd_schedule_run *r = turns->runs; r; r = r->next)
		r->order.rank = rank_of(r);
}

/* Turns; under the lock. */

static uint32_t
flight_of(const struct gpd_turns *turns, const struct gpd_schedule_run *run)
{
	bool alone = !gpd_order_is_contended(&turns->order);
	uint64_t one = atomic_load_explicit(&run->meter.launch_ns, memory_order_relaxed);
	uint64_t count = alone ? 2 : 1;

	if (one && (alone ? FLIGHT_ALONE_NS : FLIGHT_NS) / one > count)
		count = (alone ? FLIGHT_ALONE_NS : FLIGHT_NS) / one;
	if (count > (alone ? FLIGHT_ALONE_MAX : FLIGHT_MAX))
		count = alone ? FLIGHT_ALONE_MAX : FLIGHT_MAX;
	return (uint32_t)count;
}

static bool
has_room(const struct gpd_turns *turns, const struct gpd_schedule_run *run)
{
	uint32_t flight = flight_of(turns, run);

	if (flight > run->window)
		flight = run->window;
	return atomic_load_explicit(&run->meter.launches, memory_order_relaxed) < flight &&
	       atomic_load_explicit(&run->meter.entries, memory_order_relaxed) <=
		       GPD_METER_ENTRIES - GPD_METER_BATCH;
}

/* What the holder's work in flight takes: as others of it did, or as long as it already has. */
static uint64_t
pending_ns(const struct gpd_turns *turns, const struct gpd_schedule_run *run, uint64_t now)
{
	uint64_t count = atomic_load_explicit(&run->meter.launches, memory_order_relaxed);
	uint64_t guess = count * atomic_load_explicit(&run->meter.launch_ns, memory_order_relaxed);
	uint64_t took = count ? now - turns->progress_ns : 0;

	return guess > took ? guess : took;
}

static void
release(struct gpd_turns *turns, uint64_t now)
{
	struct gpd_schedule_run *run = run_of(turns->order.holder);

	atomic_store_explicit(&run->revoked, true, memory_order_relaxed);
	gpd_order_release(&turns->order);
	if (run->waiting)
		gpd_order_want(&turns->order, &run->order, now);
}

/* Whose turn it is now, if it is nobody's.  When to ask again. */
static uint64_t
hand_on(struct gpd_turns *turns, uint64_t now)
{
	uint64_t when;
	struct gpd_order_run *next = gpd_order_pick(&turns->order, now, &when);

	if (!next)
		return when;
	turns->busy_ns = turns->idle_ns = 0;
	turns->progress_ns = now;
	atomic_store_explicit(&run_of(next)->revoked, false, memory_order_relaxed);
	return GPD_ORDER_NEVER;
}

static bool
wastes(const struct gpd_turns *turns, uint64_t now)
{
	return now - turns->idle_ns > gpd_turns_idle_ns ||
	       now - turns->order.since_ns > 2 * turns->busy_ns + 2 * gpd_turns_idle_ns;
}

/* Ends the holder's turn when it is time, and when its work is done. */
static void
look_at_holder(struct gpd_turns *turns, uint64_t now)
{
	struct gpd_schedule_run *run = run_of(turns->order.holder);
	bool revoked = atomic_load_explicit(&run->revoked, memory_order_relaxed);
	/* In this order: a batch is in the meter before it is not open any more. */
	bool drained = !atomic_load_explicit(&run->open, memory_order_acquire) &&
		       atomic_load_explicit(&run->meter.entries, memory_order_relaxed) == 0;
	uint64_t patience = 4 * atomic_load_explicit(&run->meter.launch_ns, memory_order_relaxed);

	if (drained && !turns->idle_ns)
		turns->idle_ns = now;
	if (!drained && turns->idle_ns) {
		turns->idle_ns = 0;
		turns->progress_ns = now;
	}
	if (!gpd_order_is_contended(&turns->order)) {
		atomic_store_explicit(&run->revoked, false, memory_order_relaxed);
		return;
	}
	if (!revoked && gpd_order_ends(&turns->order, pending_ns(turns, run, now), now)) {
		revoked = true;
		atomic_store_explicit(&run->revoked, true, memory_order_relaxed);
		turns->revoked_ns = now;
	}
	if (drained && (revoked || (!run->waiting && wastes(turns, now))))
		release(turns, now);
	else if (revoked && now - turns->revoked_ns > (patience > DRAIN_NS ? patience : DRAIN_NS))
		release(turns, now);
}

static void
write_down(struct gpd_schedule_run *run, const struct gpd_meter_harvest *harvest)
{
	struct gpd_ledger_session *line = run->session->account.line;

	run->measured_ns += harvest->all_ns;
	run->measured_batches += harvest->batches;
	if (harvest->all_ns)
		gpd_ledger_count(&line->devices[run->device].gpu_ns, harvest->all_ns);
}

/* Of the last batches, for which no other stands. */
static uint64_t
unseen_ns(const struct gpd_schedule_run *run)
{
	return run->measured_batches ? run->represents * run->measured_ns / run->measured_batches
				     : 0;
}

/* The lock is not held while the driver is asked. */
static void
harvest(struct gpd_turns *turns, struct gpd_schedule_run *run)
{
	struct gpd_meter_harvest found;
	uint64_t now;

	run->pins++;
	pthread_mutex_unlock(&turns->lock);
	found = gpd_meter_take(&run->meter);
	pthread_mutex_lock(&turns->lock);
	if (--run->pins == 0)
		pthread_cond_broadcast(&turns->unpinned);
	write_down(run, &found);
	if (!found.entries)
		return;
	now = gpd_turns_now();
	if (run->takes_turns)
		gpd_order_charge(&turns->order, &run->order, found.busy_ns, now);
	if (turns->order.holder == &run->order) {
		turns->busy_ns += found.busy_ns;
		turns->progress_ns = now;
	}
}

/* Those whose turn it is, or was: often; all: now and then.  Whether there is more to come. */
static bool
harvest_all(struct gpd_turns *turns, bool contended)
{
	uint64_t now = gpd_turns_now();
	bool tick = now - turns->tick_ns >= TICK_NS;
	bool more = false;

	if (tick)
		turns->tick_ns = now;
	for (struct gpd_schedule_run *r = turns->runs; r; r = r->next) {
		if (atomic_load(&r->meter.entries) == 0)
			continue;
		if (tick || (contended && r->takes_turns))
			harvest(turns, r);
		more = more || atomic_load(&r->meter.entries) != 0;
	}
	return more;
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
				   (turns->order.holder == &r->order &&
				    !atomic_load_explicit(&r->revoked, memory_order_relaxed) &&
				    has_room(turns, r))))
			pthread_cond_signal(&r->go);
	}
}

/* How long the thread may sleep after it has done what there is to do. */
static uint64_t
step(struct gpd_turns *turns)
{
	bool waits = anybody_waits(turns);
	bool more = harvest_all(turns, waits);
	uint64_t now = gpd_turns_now(), when, nap;

	refresh_terms(turns, now);
	if (turns->policy != GPD_POLICY_NONE && turns->order.holder)
		look_at_holder(turns, now);
	when = hand_on(turns, now);
	signal_waiting(turns);
	if (!waits && !gpd_order_is_contended(&turns->order))
		return more ? TICK_NS : FOREVER;
	if (!turns->order.holder && when != GPD_ORDER_NEVER)
		return when - now < NAP_ALLOWANCE_NS ? when - now : NAP_ALLOWANCE_NS;
	nap = (now - turns->progress_ns) / NAP_PART;
	return nap < NAP_MIN_NS ? NAP_MIN_NS : nap < NAP_MAX_NS ? nap : NAP_MAX_NS;
}

static void
wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t end)
{
	struct timespec until = { .tv_sec = (time_t)(end / 1000000000),
				  .tv_nsec = (long)(end % 1000000000) };

	(void)pthread_cond_timedwait(cond, lock, &until);
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

static void *
run_turns(void *arg)
{
	struct gpd_turns *turns = arg;

	(void)prctl(PR_SET_NAME, "turns", 0, 0, 0);
	/* Naps are shorter than the 50 microseconds by which the kernel likes to be late. */
	(void)prctl(PR_SET_TIMERSLACK, 1000ul, 0, 0, 0);
	(void)gpd_device_enter(turns->device);
	pthread_mutex_lock(&turns->lock);
	for (;;) {
		uint64_t nap = step(turns);

		if (nap != FOREVER) {
			wait_until(&turns->wake, &turns->lock, gpd_turns_now() + nap);
			continue;
		}
		atomic_store(&turns->asleep, true);
		if (nothing_new(turns))
			pthread_cond_wait(&turns->wake, &turns->lock);
		atomic_store(&turns->asleep, false);
	}
	return NULL;
}

static void
init_cond(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

static struct gpd_turns *
make_turns(int device)
{
	struct gpd_turns *turns = calloc(1, sizeof(*turns));

	if (!turns)
		return NULL;
	turns->device = device;
	pthread_mutex_init(&turns->lock, NULL);
	init_cond(&turns->wake);
	init_cond(&turns->unpinned);
	if (pthread_create(&turns->thread, NULL, run_turns, turns)) {
		free(turns);
		return NULL;
	}
	(void)pthread_detach(turns->thread);
	return turns;
}

/* They are as old as the process, once there was a launch on the device. */
static struct gpd_turns *
get_turns(int device)
{
	struct gpd_turns *turns;

	pthread_mutex_lock(&start_lock);
	if (!all[device])
		all[device] = make_turns(device);
	turns = all[device];
	pthread_mutex_unlock(&start_lock);
	return turns;
}

int
gpd_turns_join(struct gpd_schedule_run *run)
{
	struct gpd_turns *turns = get_turns(run->device);
	int r;

	if (!turns)
		return -ENOMEM;
	pthread_mutex_lock(&turns->lock);
	r = gpd_order_join(&turns->order, &run->order, run->session->account.line->tenant,
			   gpd_turns_now());
	if (r == 0) {
		run->turns = turns;
		run->order.rank = rank_of(run);
		run->window = 1;
		init_cond(&run->go);
		gpd_meter_init(&run->meter);
		run->next = turns->runs;
		turns->runs = run;
		turns->terms_changed = true;
	}
	pthread_mutex_unlock(&turns->lock);
	return r;
}

void
gpd_turns_leave(struct gpd_schedule_run *run)
{
	struct gpd_turns *turns = run->turns;
	struct gpd_schedule_run **link = &turns->runs;
	struct gpd_meter_harvest found;

	(void)gpd_device_enter(run->device);
	pthread_mutex_lock(&turns->lock);
	while (run->pins)
		pthread_cond_wait(&turns->unpinned, &turns->lock);
	while (*link != run)
		link = &(*link)->next;
	*link = run->next;
	gpd_order_leave(&turns->order, &run->order);
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
	return atomic_load(&run->session->closing) || atomic_load(&gpd_worker.lost) ||
	       !gpd_turns_apply(run->session, run->device);
}

static bool
may_go(struct gpd_turns *turns, struct gpd_schedule_run *run, uint64_t now)
{
	if (turns->order.holder != &run->order) {
		gpd_order_want(&turns->order, &run->order, now);
		(void)hand_on(turns, now);
	}
	return turns->order.holder == &run->order &&
	       !atomic_load_explicit(&run->revoked, memory_order_relaxed) && has_room(turns, run);
}

/* The window grows step by step: the first kernels may be shorter than the others. */
static uint32_t
pass_of(const struct gpd_turns *turns, struct gpd_schedule_run *run)
{
	uint64_t flight = atomic_load_explicit(&run->meter.launches, memory_order_relaxed);
	uint32_t wide = flight_of(turns, run), pass;
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
	now = gpd_turns_now();
	run->takes_turns = true;
	refresh_terms(turns, now);
	while (!may_not_wait(run) && !may_go(turns, run, now)) {
		if (!since)
			since = now;
		run->waiting = true;
		pthread_cond_signal(&turns->wake);
		wait_until(&run->go, &turns->lock, now + LOOK_NS);
		run->waiting = false;
		now = gpd_turns_now();
	}
	if (turns->order.holder != &run->order)
		gpd_order_forgo(&run->order);
	atomic_store_explicit(&run->open, true, memory_order_relaxed);
	/* What was waited for may have measured everything. */
	*timed_p = since != 0 || gpd_order_is_contended(&turns->order);
	pass = pass_of(turns, run);
	pthread_mutex_unlock(&turns->lock);
	if (since)
		gpd_ledger_count(&run->session->account.line->counts.waited_ns, now - since);
	return pass;
}

void
gpd_turns_quit(struct gpd_schedule_run *run, bool drains)
{
	struct gpd_turns *turns = run->turns;

	pthread_mutex_lock(&turns->lock);
	gpd_order_forgo(&run->order);
	if (drains && turns->order.holder == &run->order) {
		atomic_store_explicit(&run->revoked, true, memory_order_relaxed);
		turns->revoked_ns = gpd_turns_now();
	} else {
		if (turns->order.holder == &run->order)
			gpd_order_release(&turns->order);
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

	if (!atomic_load(&turns->asleep))
		return;
	pthread_mutex_lock(&turns->lock);
	pthread_cond_signal(&turns->wake);
	pthread_mutex_unlock(&turns->lock);
}
