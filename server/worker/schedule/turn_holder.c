/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/schedule/turn_holder.h"

/* Limits on a holder's work in flight while other runs wait, and while none does. */
#define FLIGHT_NS UINT64_C(8000000)
#define FLIGHT_ALONE_NS UINT64_C(40000000)
#define FLIGHT_MAX 256
#define FLIGHT_ALONE_MAX 1024
#define GAPS_MAX 10
#define CHARGE_MAX_NS UINT64_C(100000000)
#define DRAIN_NS UINT64_C(500000000)

uint64_t gpd_turn_idle_ns = 200000;

uint32_t
gpd_turn_holder_get_flight(const struct gpd_turn_queue *turns, const struct gpd_schedule_run *run)
{
	bool alone = !gpd_order_is_contended(&turns->order);
	uint64_t one = atomic_load(&run->meter.launch_ns);
	uint64_t count = alone ? 2 : 1;

	if (one && (alone ? FLIGHT_ALONE_NS : FLIGHT_NS) / one > count)
		count = (alone ? FLIGHT_ALONE_NS : FLIGHT_NS) / one;
	if (count > (alone ? FLIGHT_ALONE_MAX : FLIGHT_MAX))
		count = alone ? FLIGHT_ALONE_MAX : FLIGHT_MAX;
	return (uint32_t)count;
}

bool
gpd_turn_holder_has_room(const struct gpd_turn_queue *turns, const struct gpd_schedule_run *run)
{
	uint32_t flight = gpd_turn_holder_get_flight(turns, run);

	if (flight > run->window)
		flight = run->window;
	return atomic_load(&run->meter.launches) < flight &&
	       atomic_load(&run->meter.entries) <= GPD_USAGE_METER_ENTRIES - GPD_USAGE_METER_BATCH;
}

/* Estimated time that the holder's work in flight still takes. */
static uint64_t
pending_ns(const struct gpd_turn_queue *turns, const struct gpd_schedule_run *run, uint64_t now)
{
	uint64_t guess = atomic_load(&run->meter.launches) * atomic_load(&run->meter.launch_ns);
	uint64_t took = now - turns->progress_ns;

	return guess > took ? guess - took : 0;
}

static void
holder_charge(struct gpd_turn_queue *turns, uint64_t now)
{
	uint64_t ns = now > turns->charged_ns ? now - turns->charged_ns : 0;

	/* After a long time without a poll: the rest is charged when it is measured. */
	if (ns > CHARGE_MAX_NS)
		ns = CHARGE_MAX_NS;
	gpd_order_charge(&turns->order, turns->order.holder, ns, now);
	turns->cost_ns += ns;
	turns->charged_ns = now;
}

static void
holder_release(struct gpd_turn_queue *turns, uint64_t now)
{
	struct gpd_schedule_run *run = gpd_run_from_order(turns->order.holder);

	/* Idle time reserved for the holder is charged only if other runs wait. */
	if (turns->begun && gpd_order_others_wait(&turns->order))
		holder_charge(turns, now);
	else if (turns->begun && turns->idle_ns > turns->charged_ns)
		/* It became idle at an unknown time between two polls; half of the interval is
		 * charged. */
		holder_charge(turns, turns->charged_ns + (turns->idle_ns - turns->charged_ns) / 2);
	/* The end of its work was detected late, so the measured time is larger. */
	if (turns->busy_ns > turns->cost_ns)
		gpd_order_charge(&turns->order, turns->order.holder,
				 turns->busy_ns - turns->cost_ns, now);
	turns->order.holder = NULL;
	run->left_ns = turns->begun ? turns->idle_ns : 0;
	if (run->waiting)
		gpd_order_want(&turns->order, &run->order, now);
}

uint64_t
gpd_turn_holder_pick(struct gpd_turn_queue *turns, uint64_t now)
{
	uint64_t when;
	struct gpd_order_run *next = gpd_order_pick(&turns->order, now, &when);

	if (!next)
		return when;
	turns->begun = false;
	turns->busy_ns = turns->cost_ns = turns->idle_ns = turns->gaps_ns = 0;
	turns->progress_ns = turns->contended_ns = now;
	turns->contended = gpd_order_is_contended(&turns->order);
	atomic_store(&gpd_run_from_order(next)->revoked, false);
	return GPD_ORDER_NEVER;
}

void
gpd_turn_holder_start(struct gpd_turn_queue *turns, uint64_t now)
{
	if (turns->begun)
		return;
	turns->begun = true;
	turns->charged_ns = turns->progress_ns = now;
	turns->idle_ns = 0;
}

static void
learn_gap(struct gpd_schedule_run *run, uint64_t ns)
{
	if (ns < GAPS_MAX * gpd_turn_idle_ns)
		run->gap_ns = (3 * run->gap_ns + ns) / 4;
}

void
gpd_turn_holder_arrive(struct gpd_schedule_run *run, uint64_t now)
{
	if (run->left_ns)
		learn_gap(run, now - run->left_ns);
	run->left_ns = 0;
}

static bool
holder_wastes(const struct gpd_turn_queue *turns, const struct gpd_schedule_run *run, uint64_t now)
{
	uint64_t gap = 2 * run->gap_ns;

	if (gap < gpd_turn_idle_ns)
		gap = gpd_turn_idle_ns;
	if (gap > GAPS_MAX * gpd_turn_idle_ns)
		gap = GAPS_MAX * gpd_turn_idle_ns;
	return now - turns->idle_ns > gap ||
	       turns->gaps_ns > (now - turns->contended_ns) / 2 + 2 * gap;
}

/* A batch enters the meter before `open` is cleared, hence this order. */
static bool
is_drained(struct gpd_schedule_run *run)
{
	return !atomic_load(&run->open) && atomic_load(&run->meter.entries) == 0;
}

static bool
note_drained(struct gpd_turn_queue *turns, struct gpd_schedule_run *run, uint64_t now)
{
	bool drained = is_drained(run);

	if (drained && !turns->idle_ns)
		turns->idle_ns = now;
	if (!drained && turns->idle_ns) {
		if (turns->begun) {
			learn_gap(run, now - turns->idle_ns);
			turns->gaps_ns += now - turns->idle_ns;
		}
		turns->idle_ns = 0;
		turns->progress_ns = now;
	}
	return drained;
}

static bool
note_contended(struct gpd_turn_queue *turns, uint64_t now)
{
	bool contended = gpd_order_is_contended(&turns->order);

	if (contended && !turns->contended) {
		turns->charged_ns = turns->contended_ns = now;
		turns->busy_ns = turns->cost_ns = turns->gaps_ns = 0;
	}
	turns->contended = contended;
	return contended;
}

static bool
holder_hangs(const struct gpd_turn_queue *turns, const struct gpd_schedule_run *run, uint64_t now)
{
	uint64_t timeout_ns = 4 * atomic_load(&run->meter.launch_ns);

	return now - turns->revoked_ns > (timeout_ns > DRAIN_NS ? timeout_ns : DRAIN_NS);
}

void
gpd_turn_holder_poll(struct gpd_turn_queue *turns, uint64_t now)
{
	struct gpd_schedule_run *run = gpd_run_from_order(turns->order.holder);
	bool revoked = atomic_load(&run->revoked);
	bool drained = note_drained(turns, run, now);

	if (!note_contended(turns, now)) {
		atomic_store(&run->revoked, false);
		return;
	}
	if (!drained && turns->begun)
		holder_charge(turns, now);
	if (!revoked && (gpd_order_must_end(&turns->order, pending_ns(turns, run, now), now) ||
			 (drained && !run->waiting && holder_wastes(turns, run, now)))) {
		revoked = true;
		turns->revoked_ns = now;
		/* The executor sets `open` before it checks `revoked`, so one of the two sides sees
		 * the other. */
		atomic_store(&run->revoked, true);
		drained = is_drained(run);
	}
	if (revoked && (drained || holder_hangs(turns, run, now)))
		holder_release(turns, now);
}
