/* SPDX-License-Identifier: Apache-2.0 */
/* Bandwidth limits of tenants: slots of time on a link that their sessions share. */
#include "server/common/ledger/ledger_internal.h"

/* Limits of one slot on the link. */
#define LINK_BYTES_MIN ((uint64_t)4 << 10)
#define LINK_BYTES_MAX ((uint64_t)1 << 20)

/* Small enough that an unused slot does not matter, large enough that the cost of reserving does
 * not either. */
static uint64_t
link_slot_bytes(uint64_t max)
{
	uint64_t bytes = max / (1000000000 / GPD_LEDGER_LINK_SLOT_NS);

	if (bytes < LINK_BYTES_MIN)
		return LINK_BYTES_MIN;
	return bytes < LINK_BYTES_MAX ? bytes : LINK_BYTES_MAX;
}

static uint64_t
link_cost(uint64_t bytes, uint64_t max)
{
	return (uint64_t)((double)bytes * 1e9 / (double)max);
}

/* Occupies the link for cost_ns, starting now or when the link becomes free. Returns the start. */
static uint64_t
link_occupy(struct gpd_ledger_tenant *tenant, uint64_t cost_ns, uint64_t now_ns)
{
	uint64_t before = atomic_load(&tenant->link_free_ns), start;

	do
		start = before > now_ns ? before : now_ns;
	while (!atomic_compare_exchange_weak(&tenant->link_free_ns, &before, start + cost_ns));
	return start;
}

/* Only later reservations start earlier; existing ones keep their start. The limit still holds,
 * because the returned time is in the future. */
void
gpd_ledger_refund_link(struct gpd_ledger_tenant *tenant, uint64_t ns)
{
	uint64_t before = atomic_load(&tenant->link_free_ns);

	while (ns && !atomic_compare_exchange_weak(&tenant->link_free_ns, &before,
						   before > ns ? before - ns : 0))
		;
}

struct gpd_ledger_link_slot
gpd_ledger_link_acquire(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
			uint64_t bytes, uint64_t now_ns)
{
	struct gpd_ledger_tenant *tenant = &ledger->tenants[session->tenant];
	/* Read link_limit before the limit: a slot computed with the previous limit is then
	 * recognized as outdated. */
	struct gpd_ledger_link_slot slot = { .bytes = bytes,
					     .limit = atomic_load(&tenant->link_limit) };
	uint64_t max = atomic_load(&tenant->bandwidth_max);
	uint64_t most;

	if (__builtin_expect(max == GPD_NO_LIMIT || max == 0, 1))
		return slot;
	most = link_slot_bytes(max);
	slot.bytes = bytes < most ? bytes : most;
	slot.cost_ns = link_cost(slot.bytes, max);
	slot.start_ns = link_occupy(tenant, slot.cost_ns, now_ns);
	if (slot.start_ns > now_ns)
		atomic_fetch_add(&session->link_ns, slot.cost_ns);
	return slot;
}

bool
gpd_ledger_link_is_current(const struct gpd_ledger *ledger,
			   const struct gpd_ledger_session *session,
			   const struct gpd_ledger_link_slot *slot)
{
	return atomic_load(&ledger->tenants[session->tenant].link_limit) == slot->limit;
}

void
gpd_ledger_link_release(struct gpd_ledger *ledger, struct gpd_ledger_session *session,
			const struct gpd_ledger_link_slot *slot, uint64_t now_ns)
{
	atomic_fetch_sub(&session->link_ns, slot->cost_ns);
	if (now_ns < slot->start_ns && gpd_ledger_link_is_current(ledger, session, slot))
		gpd_ledger_refund_link(&ledger->tenants[session->tenant], slot->cost_ns);
}

void
gpd_ledger_link_charge(struct gpd_ledger *ledger, const struct gpd_ledger_session *session,
		       uint64_t bytes, uint64_t now_ns)
{
	struct gpd_ledger_tenant *tenant = &ledger->tenants[session->tenant];
	uint64_t max = atomic_load(&tenant->bandwidth_max);

	if (max != GPD_NO_LIMIT && max != 0)
		(void)link_occupy(tenant, link_cost(bytes, max), now_ns);
}

void
gpd_ledger_set_bandwidth(struct gpd_ledger_tenant *tenant, uint64_t bytes_per_second)
{
	if (atomic_exchange(&tenant->bandwidth_max, bytes_per_second) == bytes_per_second)
		return;
	atomic_store(&tenant->link_free_ns, 0);
	/* Last, so that callers with an older slot reserve again. */
	atomic_fetch_add(&tenant->link_limit, 1);
}
