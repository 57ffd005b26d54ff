/* SPDX-License-Identifier: Apache-2.0 */
/* Assignment of groups of multiprocessors to sessions and tenants. */
#include "base/lock.h"
#include "server/worker/device/device.h"
#include "server/worker/device/partition_table.h"

#include <limits.h>
#include <string.h>
#include <utlist.h>

static struct gpd_shares *all_shares GP_GUARDED_BY(gpd_partition_lock);

/* The set that a share occupies: its tenant's, or its own if the tenant has no limit. */
static struct gpd_partition *
share_get_unit(const struct gpd_share *share)
{
	return share->tenant ? share->tenant : share->assigned;
}

static bool
same_tenant(const struct gpd_shares *a, const struct gpd_shares *b)
{
	return a == b || (a->tenant && a->tenant == b->tenant);
}

/* Whether an earlier share in the list has the same set of the same tenant. */
static bool
is_counted(const struct gpd_shares *shares, int device) GP_LOCKED(gpd_partition_lock)
{
	const struct gpd_share *share = &shares->devices[device];

	for (struct gpd_shares *s = all_shares; s != shares; s = s->next) {
		if (share->tenant && same_tenant(s, shares) &&
		    s->devices[device].tenant == share->tenant)
			return true;
	}
	return false;
}

static void
add_load(const struct gpd_partition *unit, unsigned int *load)
{
	for (unsigned int i = 0; i < GPD_GROUPS_MAX; i++)
		load[i] += gpd_groups_has(&unit->set, i);
}

/* Counts the users of each group: tenants, and sessions without one, except this tenant or session
 * (NULL: all are counted). */
static void
load_of_others(const struct gpd_shares *own, int device, unsigned int *load)
	GP_LOCKED(gpd_partition_lock)
{
	memset(load, 0, GPD_GROUPS_MAX * sizeof(*load));
	for (const struct gpd_shares *s = all_shares; s; s = s->next) {
		const struct gpd_share *share = &s->devices[device];
		const struct gpd_partition *unit = share_get_unit(share);
		bool mine =
			own && own->devices[device].tenant_groups ? same_tenant(s, own) : s == own;

		if (unit && !mine && !is_counted(s, device))
			add_load(unit, load);
	}
}

/* Counts the users of each group among the sessions of a tenant with its own set. */
static void
load_within(const struct gpd_shares *own, int device, unsigned int *load)
	GP_LOCKED(gpd_partition_lock)
{
	const struct gpd_partition *tenant = own->devices[device].tenant;

	memset(load, 0, GPD_GROUPS_MAX * sizeof(*load));
	for (const struct gpd_shares *s = all_shares; s; s = s->next) {
		const struct gpd_share *share = &s->devices[device];

		if (s != own && share->tenant == tenant && share->assigned)
			add_load(share->assigned, load);
	}
}

static unsigned int
load_sum(const struct gpd_groups *set, unsigned int count, const unsigned int *load)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < count; i++)
		sum += gpd_groups_has(set, i) ? load[i] : 0;
	return sum;
}

/* Returns the groups with the fewest users among the allowed ones (NULL: all); at equal load the
 * present ones are preferred. */
static struct gpd_groups
least_loaded(const struct gpd_partition_table *table, uint32_t groups, const unsigned int *load,
	     const struct gpd_groups *allowed, const struct gpd_groups *present)
{
	struct gpd_groups set = { { 0 } };

	for (uint32_t n = 0; n < groups; n++) {
		unsigned int best = GPD_GROUPS_MAX, best_key = UINT_MAX;

		for (unsigned int i = 0; i < table->count; i++) {
			unsigned int key = 2 * load[i] + !(present && gpd_groups_has(present, i));

			if (gpd_groups_has(&set, i) || (allowed && !gpd_groups_has(allowed, i)) ||
			    key >= best_key)
				continue;
			best = i;
			best_key = key;
		}
		gpd_groups_add(&set, best);
	}
	return set;
}

/* Returns an existing green context with the same load, or the chosen set. */
static struct gpd_partition *
set_choose(int device, uint32_t groups, const unsigned int *load, const struct gpd_groups *allowed,
	   const struct gpd_partition *present) GP_LOCKED(gpd_partition_lock)
{
	struct gpd_partition_table *table = gpd_partition_tables[device];
	struct gpd_groups set =
		least_loaded(table, groups, load, allowed, present ? &present->set : NULL);
	unsigned int sum = load_sum(&set, table->count, load);
	bool stays = present && memcmp(&present->set, &set, sizeof(set)) == 0;

	for (struct gpd_partition *p = table->partitions; p && !stays; p = p->next) {
		bool fits = p->groups == groups && __atomic_load_n(&p->green, __ATOMIC_ACQUIRE) &&
			    load_sum(&p->set, table->count, load) == sum;

		for (unsigned int i = 0; fits && allowed && i < GPD_GROUPS_MAX / 64; i++)
			fits = (p->set.bits[i] & ~allowed->bits[i]) == 0;
		if (fits)
			return gpd_partition_ref_locked(p);
	}
	return gpd_partition_find_or_create(device, &set, groups);
}

/* Drops a reference. *garbage lists partitions to destroy after unlocking. */
static void
partition_unref_deferred(struct gpd_partition *partition, struct gpd_partition **garbage)
	GP_LOCKED(gpd_partition_lock)
{
	partition = gpd_partition_unref_locked(partition);
	if (partition)
		LL_PREPEND(*garbage, partition);
}

static void
garbage_destroy(struct gpd_partition *garbage)
{
	while (garbage) {
		struct gpd_partition *partition = garbage;

		garbage = partition->next;
		gpd_partition_destroy(partition);
	}
}

/* Consumes the reference `with`. */
static void
reference_replace(struct gpd_partition **share_place, struct gpd_partition *with,
		  struct gpd_partition **garbage) GP_LOCKED(gpd_partition_lock)
{
	struct gpd_partition *old = *share_place;

	*share_place = with;
	partition_unref_deferred(old, garbage);
}

/* The same for the partition of the session's streams. */
static void
share_move(struct gpd_shares *shares, int device, struct gpd_partition *to,
	   struct gpd_partition **garbage) GP_LOCKED(gpd_partition_lock)
{
	struct gpd_share *share = &shares->devices[device];

	if (to != share->assigned)
		atomic_fetch_or(&shares->changed, 1u << device);
	reference_replace(&share->assigned, to, garbage);
}

/* Chooses the session's part of its tenant's set, which must exist. */
static void
share_place_within(struct gpd_shares *shares, int device, struct gpd_partition **garbage)
	GP_LOCKED(gpd_partition_lock)
{
	struct gpd_share *share = &shares->devices[device];
	struct gpd_partition *chosen;
	unsigned int load[GPD_GROUPS_MAX];

	if (!share->groups || share->groups >= share->tenant->groups) {
		chosen = gpd_partition_ref_locked(share->tenant);
	} else {
		load_within(shares, device, load);
		chosen = set_choose(device, share->groups, load, &share->tenant->set,
				    share->assigned);
	}
	/* If out of memory, the share stays as it is. */
	if (chosen)
		share_move(shares, device, chosen, garbage);
}

/* Moves all sessions of the tenant to this set; consumes its reference. */
static void
tenant_move(struct gpd_shares *shares, int device, struct gpd_partition *set,
	    struct gpd_partition **garbage) GP_LOCKED(gpd_partition_lock)
{
	for (struct gpd_shares *s = all_shares; s; s = s->next) {
		if (s->devices[device].tenant_groups != set->groups || !same_tenant(s, shares))
			continue;
		reference_replace(&s->devices[device].tenant, gpd_partition_ref_locked(set),
				  garbage);
		share_place_within(s, device, garbage);
	}
	partition_unref_deferred(set, garbage);
}

/* Returns the set that another session of the tenant already has, with a new reference. */
static struct gpd_partition *
tenant_find_set(const struct gpd_shares *shares, int device) GP_LOCKED(gpd_partition_lock)
{
	uint32_t groups = shares->devices[device].tenant_groups;

	for (struct gpd_shares *s = all_shares; s; s = s->next) {
		struct gpd_share *share = &s->devices[device];

		if (s != shares && share->tenant && share->tenant->groups == groups &&
		    same_tenant(s, shares))
			return gpd_partition_ref_locked(share->tenant);
	}
	return NULL;
}

/* Chooses groups for the share. */
static void
share_place(struct gpd_shares *shares, int device, struct gpd_partition **garbage)
	GP_LOCKED(gpd_partition_lock)
{
	struct gpd_share *share = &shares->devices[device];
	struct gpd_partition *chosen = NULL;
	unsigned int load[GPD_GROUPS_MAX];

	if (share->tenant_groups) {
		chosen = tenant_find_set(shares, device);
		if (!chosen) {
			load_of_others(shares, device, load);
			chosen =
				set_choose(device, share->tenant_groups, load, NULL, share->tenant);
		}
		if (chosen) {
			reference_replace(&share->tenant, chosen, garbage);
			share_place_within(shares, device, garbage);
		}
		return;
	}
	if (share->groups) {
		load_of_others(shares, device, load);
		chosen = set_choose(device, share->groups, load, NULL, share->assigned);
		if (!chosen)
			return;
	}
	reference_replace(&share->tenant, NULL, garbage);
	share_move(shares, device, chosen, garbage);
}

/* Moves a share to groups with fewer users, if there are any: at equal load its present groups are
 * chosen again. all: number of users of each group. Returns whether it moved. */
static bool
share_improve(struct gpd_shares *shares, int device, const unsigned int *all,
	      struct gpd_partition **garbage) GP_LOCKED(gpd_partition_lock)
{
	struct gpd_share *share = &shares->devices[device];
	struct gpd_partition *unit = share_get_unit(share), *better;
	unsigned int others[GPD_GROUPS_MAX];

	if (!unit || is_counted(shares, device))
		return false;
	for (unsigned int i = 0; i < GPD_GROUPS_MAX; i++)
		others[i] = all[i] - gpd_groups_has(&unit->set, i);
	better = set_choose(device, unit->groups, others, NULL, unit);
	if (!better || better == unit) {
		partition_unref_deferred(better, garbage);
		return false;
	}
	if (share->tenant)
		tenant_move(shares, device, better, garbage);
	else
		share_move(shares, device, better, garbage);
	return true;
}

/* After groups have become free: moves shares that overlap with others to them. A share that moves
 * may make room for those before it, so the list is scanned again. */
static void
shares_spread(int device, struct gpd_partition **garbage) GP_LOCKED(gpd_partition_lock)
{
	struct gpd_shares *shares;
	unsigned int all[GPD_GROUPS_MAX];

	do {
		load_of_others(NULL, device, all);
		shares = all_shares;
		while (shares && !share_improve(shares, device, all, garbage))
			shares = shares->next;
	} while (shares);
}

/* Converts a number of SMs into groups; 0: all. */
static uint32_t
groups_for(int device, uint32_t wanted)
{
	const struct gpd_partition_table *table = gpd_partition_tables[device];
	uint32_t groups = wanted / table->group_size;

	if (wanted == 0 || wanted >= (uint32_t)gpd_devices.all[device].multiprocessors)
		return 0;
	if (groups == 0)
		groups = 1;
	return groups < table->count ? groups : table->count;
}

uint32_t
gpd_partition_assign(struct gpd_shares *shares, int device, uint32_t tenant_wanted, uint32_t wanted)
{
	struct gpd_share *share = &shares->devices[device];
	struct gpd_partition *garbage = NULL;
	const struct gpd_partition *before;
	uint32_t count = 0;

	pthread_mutex_lock(&gpd_partition_lock);
	if (!gpd_partition_tables[device]) {
		pthread_mutex_unlock(&gpd_partition_lock);
		return 0;
	}
	if (!shares->listed)
		LL_PREPEND(all_shares, shares);
	shares->listed = true;
	share->tenant_groups = shares->tenant ? groups_for(device, tenant_wanted) : 0;
	share->groups = groups_for(device, wanted);
	before = share_get_unit(share);
	share_place(shares, device, &garbage);
	if (before && share_get_unit(share) != before)
		shares_spread(device, &garbage);
	if (share->assigned)
		count = share->assigned->groups * gpd_partition_tables[device]->group_size;
	pthread_mutex_unlock(&gpd_partition_lock);
	garbage_destroy(garbage);
	return count;
}

void
gpd_partition_unassign(struct gpd_shares *shares)
{
	struct gpd_partition *garbage = NULL;

	if (!shares->listed)
		return;
	pthread_mutex_lock(&gpd_partition_lock);
	LL_DELETE(all_shares, shares);
	shares->listed = false;
	for (int i = 0; i < GPD_PARTITION_DEVICES; i++) {
		if (!share_get_unit(&shares->devices[i]))
			continue;
		reference_replace(&shares->devices[i].tenant, NULL, &garbage);
		reference_replace(&shares->devices[i].assigned, NULL, &garbage);
		shares_spread(i, &garbage);
	}
	pthread_mutex_unlock(&gpd_partition_lock);
	garbage_destroy(garbage);
}

struct gpd_partition *
gpd_partition_current(struct gpd_shares *shares, int device)
{
	struct gpd_partition *partition;

	pthread_mutex_lock(&gpd_partition_lock);
	partition = gpd_partition_ref_locked(shares->devices[device].assigned);
	pthread_mutex_unlock(&gpd_partition_lock);
	return partition;
}
