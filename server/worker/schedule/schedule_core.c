/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/schedule/schedule_core.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#define UNIT 1024
/* How much less GPU time than the others a run may have when it requests a turn after a pause. */
#define CREDIT_NS UINT64_C(20000000)
/* After a short pause it is this, minus the pause: the run still gets what the others are ahead. */
#define OWED_NS UINT64_C(100000000)
/* Budget that a tenant with a cap can save, and budget that it needs to start. */
#define BUDGET_MAX INT64_C(50000000)
#define BUDGET_START INT64_C(1000000)
/* Minimum charge for a turn, however short its work, so that passing it around is not free. */
#define TURN_NS UINT64_C(20000)

static uint64_t
per_weight(const struct gpd_order_tenant *tenant, uint64_t ns)
{
	return ns * UNIT / tenant->weight;
}

int
gpd_order_add(struct gpd_order *order, struct gpd_order_run *run, uint32_t id, uint64_t now)
{
	struct gpd_order_tenant *tenant;

	LL_SEARCH_SCALAR(order->tenants, tenant, id, id);
	if (!tenant) {
		tenant = calloc(1, sizeof(*tenant));
		if (!tenant)
			return -ENOMEM;
		tenant->id = id;
		tenant->weight = 1;
		tenant->cap = GPD_ORDER_UNCAPPED;
		tenant->had = order->had;
		tenant->grown_ns = now;
		LL_PREPEND(order->tenants, tenant);
	}
	tenant->runs++;
	run->tenant = tenant;
	run->wants = run->aged = false;
	LL_PREPEND(order->runs, run);
	return 0;
}

void
gpd_order_remove(struct gpd_order *order, struct gpd_order_run *run)
{
	if (order->holder == run)
		order->holder = NULL;
	LL_DELETE(order->runs, run);
	if (--run->tenant->runs == 0) {
		LL_DELETE(order->tenants, run->tenant);
		free(run->tenant);
	}
	run->tenant = NULL;
	run->wants = false;
}

static void
budget_grow(struct gpd_order_tenant *tenant, uint64_t now)
{
	uint64_t passed = now - tenant->grown_ns;

	if (now <= tenant->grown_ns)
		return;
	if (passed > UINT64_C(1000000000))
		passed = UINT64_C(1000000000);
	tenant->grown_ns = now;
	tenant->budget += (int64_t)(passed * tenant->cap / GPD_ORDER_UNCAPPED);
	if (tenant->budget > BUDGET_MAX)
		tenant->budget = BUDGET_MAX;
}

void
gpd_order_set_policy(struct gpd_order_tenant *tenant, uint32_t weight, uint32_t cap, uint64_t now)
{
	if (weight == 0)
		weight = 1;
	/* Time used without a cap is not held against the tenant, and none was saved. */
	if (tenant->cap == GPD_ORDER_UNCAPPED) {
		tenant->budget = 0;
		tenant->grown_ns = now;
	}
	budget_grow(tenant, now);
	tenant->weight = weight;
	tenant->cap = cap;
}

static uint64_t
sub_saturated(uint64_t from, uint64_t amount)
{
	return from > amount ? from - amount : 0;
}

static void
raise_to_least(uint64_t *value, uint64_t least)
{
	if (*value < least)
		*value = least;
}

/* How much less GPU time than the others a run that was served or waited at `seen_ns` may have when
 * it requests a turn. */
static uint64_t
get_credit_ns(uint64_t seen_ns, uint64_t now)
{
	uint64_t away = now - seen_ns;

	return away < OWED_NS - CREDIT_NS ? OWED_NS - away : CREDIT_NS;
}

static bool
budget_is_spent(struct gpd_order_tenant *tenant, uint64_t now)
{
	if (tenant->cap == GPD_ORDER_UNCAPPED)
		return false;
	budget_grow(tenant, now);
	return tenant->budget <= 0;
}

/* GPU time that a tenant misses while its cap delays it is not made up for. */
static void
order_advance(struct gpd_order *order, uint64_t now)
{
	uint64_t least = UINT64_MAX;

	for (const struct gpd_order_run *r = order->runs; r; r = r->next) {
		if ((r->wants || r == order->holder) && !budget_is_spent(r->tenant, now) &&
		    r->tenant->had < least)
			least = r->tenant->had;
	}
	if (least != UINT64_MAX)
		raise_to_least(&order->had, least);
	for (struct gpd_order_tenant *t = order->tenants; t; t = t->next) {
		if (budget_is_spent(t, now))
			raise_to_least(&t->had,
				       sub_saturated(order->had, per_weight(t, CREDIT_NS)));
	}
}

void
gpd_order_want(struct gpd_order *order, struct gpd_order_run *run, uint64_t now)
{
	struct gpd_order_tenant *tenant = run->tenant;
	uint64_t least = UINT64_MAX; /* minimum of the tenant's runs that wait or have the turn */

	if (run->wants)
		return;
	order_advance(order, now);
	for (const struct gpd_order_run *r = order->runs; r; r = r->next) {
		if (r->tenant == tenant && (r->wants || r == order->holder) && r->had < least)
			least = r->had;
	}
	if (least == UINT64_MAX)
		raise_to_least(
			&tenant->had,
			sub_saturated(order->had,
				      per_weight(tenant, get_credit_ns(tenant->seen_ns, now))));
	else
		raise_to_least(&run->had, sub_saturated(least, get_credit_ns(run->seen_ns, now)));
	run->wants = true;
	run->since_ns = run->seen_ns = tenant->seen_ns = now;
}

void
gpd_order_charge(struct gpd_order *order, struct gpd_order_run *run, uint64_t ns, uint64_t now)
{
	run->seen_ns = run->tenant->seen_ns = now;
	run->had += ns;
	run->tenant->had += per_weight(run->tenant, ns);
	if (run->tenant->cap < GPD_ORDER_UNCAPPED) {
		budget_grow(run->tenant, now);
		run->tenant->budget -= (int64_t)ns;
	}
	order_advance(order, now);
}

static bool
has_aged(const struct gpd_order_run *run, uint64_t now)
{
	return run->wants && now - run->since_ns >= GPD_ORDER_AGE_NS;
}

/* Whether a is served before b; both wait. */
static bool
run_precedes(const struct gpd_order_run *a, const struct gpd_order_run *b, uint64_t now)
{
	if (a->rank != b->rank) {
		const struct gpd_order_run *low = a->rank < b->rank ? a : b;

		return has_aged(low, now) ? a == low : a != low;
	}
	if (a->tenant != b->tenant)
		return a->tenant->had < b->tenant->had;
	return a->had < b->had || (a->had == b->had && a->since_ns < b->since_ns);
}

/* When the run may start as far as its tenant's cap is concerned. */
static uint64_t
allowed_at(struct gpd_order_run *run, uint64_t now)
{
	struct gpd_order_tenant *tenant = run->tenant;

	if (tenant->cap == GPD_ORDER_UNCAPPED)
		return now;
	budget_grow(tenant, now);
	if (tenant->budget >= BUDGET_START)
		return now;
	return now + (uint64_t)(BUDGET_START - tenant->budget) * GPD_ORDER_UNCAPPED / tenant->cap +
	       1;
}

struct gpd_order_run *
gpd_order_pick(struct gpd_order *order, uint64_t now, uint64_t *when_p)
{
	struct gpd_order_run *best = NULL;
	bool below = false;

	*when_p = GPD_ORDER_NEVER;
	if (order->holder)
		return NULL;
	for (struct gpd_order_run *r = order->runs; r; r = r->next) {
		uint64_t when = r->wants ? allowed_at(r, now) : GPD_ORDER_NEVER;

		if (when > now) {
			*when_p = when < *when_p ? when : *when_p;
			continue;
		}
		below = below || (best && best->rank != r->rank);
		if (!best || run_precedes(r, best, now))
			best = r;
	}
	if (!best)
		return NULL;
	best->aged = below && has_aged(best, now);
	best->wants = false;
	order->holder = best;
	order->since_ns = now;
	gpd_order_charge(order, best, TURN_NS, now);
	return best;
}

/* Whether the holder must yield to a waiting run. */
static bool
must_yield(const struct gpd_order *order, const struct gpd_order_run *to, uint64_t pending,
	   uint64_t now)
{
	const struct gpd_order_run *holder = order->holder;
	uint64_t held = now - order->since_ns;

	if (to->rank > holder->rank)
		return !holder->aged || held >= GPD_ORDER_QUANTUM_NS;
	if (to->rank < holder->rank)
		return has_aged(to, now) && held >= GPD_ORDER_QUANTUM_NS;
	if (held < GPD_ORDER_TURN_MIN_NS)
		return false;
	if (to->tenant == holder->tenant)
		return holder->had + pending > to->had + GPD_ORDER_QUANTUM_NS;
	return holder->tenant->had + per_weight(holder->tenant, pending) >
	       to->tenant->had + per_weight(holder->tenant, GPD_ORDER_QUANTUM_NS);
}

bool
gpd_order_must_end(struct gpd_order *order, uint64_t pending, uint64_t now)
{
	struct gpd_order_run *holder = order->holder;

	if (holder->tenant->cap < GPD_ORDER_UNCAPPED) {
		budget_grow(holder->tenant, now);
		if (holder->tenant->budget <= (int64_t)pending)
			return true;
	}
	for (struct gpd_order_run *r = order->runs; r; r = r->next) {
		if (r->wants && r != holder && must_yield(order, r, pending, now) &&
		    allowed_at(r, now) <= now)
			return true;
	}
	return false;
}

bool
gpd_order_others_wait(const struct gpd_order *order)
{
	for (const struct gpd_order_run *r = order->runs; r; r = r->next) {
		if (r->wants && r != order->holder)
			return true;
	}
	return false;
}

bool
gpd_order_is_contended(const struct gpd_order *order)
{
	return gpd_order_others_wait(order) ||
	       (order->holder && order->holder->tenant->cap < GPD_ORDER_UNCAPPED);
}
