/* SPDX-License-Identifier: Apache-2.0 */
/* What the ledger says of a device's time, for the order of turns. */
#include "server/worker/schedule/account.h"
#include "server/worker/schedule/schedule_holder.h"

#define TERMS_NS UINT64_C(5000000)

static bool
is_exempt(const struct gpd_account *account, int device)
{
	return atomic_load_explicit(&account->line->devices[device].sm_assigned,
				    memory_order_relaxed) != 0;
}

bool
gpd_turns_apply(const struct gpd_account *account, int device)
{
	return atomic_load_explicit(&account->ledger->policies[device], memory_order_relaxed) !=
		       GPD_POLICY_NONE &&
	       !is_exempt(account, device);
}

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
		if (r->order.tenant == tenant && !is_exempt(r->account, turns->device))
			return true;
	}
	return false;
}

static void
set_terms(struct gpd_turns *turns, struct gpd_order_tenant *tenant, uint32_t sharers, uint64_t now)
{
	const struct gpd_ledger_tenant_line *line =
		&turns->ledger->tenants[tenant->id].devices[turns->device];
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

uint8_t
gpd_turns_rank(const struct gpd_account *account)
{
	/* 0 normal, 1 low, 2 high. */
	static const uint8_t ranks[] = { 1, 0, 2 };
	uint32_t priority = atomic_load_explicit(&account->line->priority, memory_order_relaxed);

	return ranks[priority < 3 ? priority : 0];
}

void
gpd_turns_refresh(struct gpd_turns *turns, uint64_t now)
{
	uint32_t sharers = 0;

	turns->policy = (enum gpd_policy)atomic_load_explicit(
		&turns->ledger->policies[turns->device], memory_order_relaxed);
	if (!turns->terms_changed && now - turns->terms_ns < TERMS_NS)
		return;
	turns->terms_changed = false;
	turns->terms_ns = now;
	for (struct gpd_order_tenant *t = turns->order.tenants; t; t = t->next)
		sharers += shares(turns, t);
	for (struct gpd_order_tenant *t = turns->order.tenants; t; t = t->next)
		set_terms(turns, t, sharers, now);
	for (struct gpd_schedule_run *r = turns->runs; r; r = r->next)
		r->order.rank = gpd_turns_rank(r->account);
}
