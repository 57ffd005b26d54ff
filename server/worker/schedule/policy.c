/* SPDX-License-Identifier: Apache-2.0 */
/* Translates the ledger's policy for a device into weights, caps and ranks of the turn order. */
#include "server/worker/schedule/account.h"
#include "server/worker/schedule/turn_holder.h"

#define POLICY_NS UINT64_C(5000000)

static bool
is_exempt(const struct gpd_account *account, int device)
{
	return atomic_load(&account->entry->devices[device].sm_assigned) != 0;
}

bool
gpd_turn_is_required(const struct gpd_account *account, int device)
{
	return atomic_load(&account->ledger->policies[device]) != GPD_POLICY_NONE &&
	       !is_exempt(account, device);
}

static uint32_t
cap_from_percent(uint32_t per_cent)
{
	if (per_cent == 0)
		per_cent = 1;
	return per_cent >= 100 ? GPD_ORDER_UNCAPPED : per_cent * (GPD_ORDER_UNCAPPED / 100);
}

static bool
tenant_shares_device(const struct gpd_turn_queue *turns, const struct gpd_order_tenant *tenant)
{
	for (const struct gpd_schedule_run *r = turns->runs; r; r = r->next) {
		if (r->order.tenant == tenant && !is_exempt(r->account, turns->device))
			return true;
	}
	return false;
}

static void
tenant_set_policy(struct gpd_turn_queue *turns, struct gpd_order_tenant *tenant, uint32_t sharers,
		  uint64_t now)
{
	const struct gpd_ledger_tenant_line *line =
		&turns->ledger->tenants[tenant->id].devices[turns->device];
	uint32_t weight = atomic_load(&line->weight);
	uint32_t limit = atomic_load(&line->limit);
	uint32_t part = atomic_load(&line->time_share);
	uint32_t cap = limit ? cap_from_percent(limit) : GPD_ORDER_UNCAPPED;
	uint32_t most = GPD_ORDER_UNCAPPED;

	if (turns->policy == GPD_POLICY_EQUAL) {
		weight = 1;
		most = sharers ? GPD_ORDER_UNCAPPED / sharers : GPD_ORDER_UNCAPPED;
	} else if (turns->policy == GPD_POLICY_FIXED) {
		weight = part;
		most = cap_from_percent(part);
	}
	gpd_order_set_policy(tenant, weight, cap < most ? cap : most, now);
}

uint8_t
gpd_turn_get_rank(const struct gpd_account *account)
{
	/* Index: 0 normal, 1 low, 2 high. */
	static const uint8_t ranks[] = { 1, 0, 2 };
	uint32_t priority = atomic_load(&account->entry->priority);

	return ranks[priority < 3 ? priority : 0];
}

void
gpd_turn_refresh_policy(struct gpd_turn_queue *turns, uint64_t now)
{
	uint32_t sharers = 0;

	turns->policy = (enum gpd_policy)atomic_load(&turns->ledger->policies[turns->device]);
	if (!turns->policy_changed && now - turns->policy_ns < POLICY_NS)
		return;
	turns->policy_changed = false;
	turns->policy_ns = now;
	for (struct gpd_order_tenant *t = turns->order.tenants; t; t = t->next)
		sharers += tenant_shares_device(turns, t);
	for (struct gpd_order_tenant *t = turns->order.tenants; t; t = t->next)
		tenant_set_policy(turns, t, sharers, now);
	for (struct gpd_schedule_run *r = turns->runs; r; r = r->next)
		r->order.rank = gpd_turn_get_rank(r->account);
}
