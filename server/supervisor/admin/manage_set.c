/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas that are changed while they are in use. */
#include "server/common/base/log.h"
#include "server/common/config/config_value.h"
#include "server/supervisor/admin/manage.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SHARE_ALL 10000
#define WEIGHT_MAX 1000
#define SHARE_UNIT ((uint64_t)2 << 20) /* of memory given as a share */

/* What can be set, and for numbers from what to what. */
static const struct {
	const char *name;
	uint64_t min, max;
	bool of_tenant; /* a session does not have it */
} keys[] = {
	[GPUPOOL__ADMIN_SETTING__KEY__MEMORY] = { "memory" },
	[GPUPOOL__ADMIN_SETTING__KEY__SM] = { "sm" },
	[GPUPOOL__ADMIN_SETTING__KEY__PRIORITY] = { "priority", 0, 2 },
	[GPUPOOL__ADMIN_SETTING__KEY__WEIGHT] = { "weight", 1, WEIGHT_MAX, true },
	[GPUPOOL__ADMIN_SETTING__KEY__LIMIT] = { "limit", 1, 100, true },
	[GPUPOOL__ADMIN_SETTING__KEY__TIME_SHARE] = { "share", 0, 100, true },
	[GPUPOOL__ADMIN_SETTING__KEY__BANDWIDTH] = { "bandwidth", GPD_BANDWIDTH_MIN, UINT64_MAX,
						     true },
};

/* What a request is about; exactly one of session and tenant. */
struct target {
	struct gpd_manager *manager;
	struct gpd_ledger_session *session;
	struct gpd_ledger_tenant *tenant;
	uint32_t tenant_index;
	int first, end; /* devices */
	char *error;
	size_t size;
};

static int refuse(const struct target *t, const char *format, ...) GP_PRINTF(2, 3);

static int
refuse(const struct target *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(t->error, t->size, format, args);
	va_end(args);
	return GP_E_INVALID;
}

static uint64_t
memory_on(const struct target *t, const Gpupool__AdminSetting *setting, int device)
{
	uint64_t all = t->manager->roster.devices[device].memory;

	if (!setting->share)
		return setting->number;
	return all * setting->share / SHARE_ALL / SHARE_UNIT * SHARE_UNIT;
}

static uint32_t
multiprocessors_on(const struct target *t, const Gpupool__AdminSetting *setting, int device)
{
	uint32_t all = t->manager->roster.devices[device].multiprocessors;
	uint32_t wanted = (uint32_t)((uint64_t)all * setting->share / SHARE_ALL);

	if (!setting->share)
		return setting->number < all ? (uint32_t)setting->number : 0;
	if (setting->share == SHARE_ALL)
		return 0;
	return wanted ? wanted : 1;
}

/* Whether the number lies in its range. */
static int
check_number(const struct target *t, const Gpupool__AdminSetting *setting)
{
	const char *name = keys[setting->key].name;
	uint64_t min = keys[setting->key].min, max = keys[setting->key].max;

	if (keys[setting->key].of_tenant && t->session)
		return refuse(t, "%s: a tenant has that, not a session", name);
	if (setting->share)
		return refuse(t, "%s: a share of the device makes no sense here", name);
	if (setting->number < min || setting->number > max)
		return refuse(t, "%s: %llu is not from %llu to %llu", name,
			      (unsigned long long)setting->number, (unsigned long long)min,
			      (unsigned long long)max);
	return 0;
}

static int
check_multiprocessors(const struct target *t, const Gpupool__AdminSetting *setting)
{
	for (int d = t->first; d < t->end && !setting->share; d++) {
		uint32_t all = t->manager->roster.devices[d].multiprocessors;

		if (setting->number > all)
			return refuse(t, "sm: device %d has only %u multiprocessors", d, all);
	}
	return 0;
}

/* As in the configuration. */
static int
check_memory(const struct target *t, const Gpupool__AdminSetting *setting)
{
	if (!setting->share && setting->number < GPD_MEMORY_MIN)
		return refuse(t, "memory: %llu bytes are less than 2M, the smallest size",
			      (unsigned long long)setting->number);
	return 0;
}

static int
check(const struct target *t, const Gpupool__AdminSetting *setting)
{
	if (setting->share > SHARE_ALL)
		return refuse(t, "a share of more than 100%%");
	if ((size_t)setting->key >= sizeof(keys) / sizeof(keys[0]) || !keys[setting->key].name)
		return refuse(t, "this daemon (" GPD_VERSION ") does not know setting %d",
			      (int)setting->key);
	if (setting->key == GPUPOOL__ADMIN_SETTING__KEY__MEMORY)
		return check_memory(t, setting);
	if (setting->key == GPUPOOL__ADMIN_SETTING__KEY__SM)
		return check_multiprocessors(t, setting);
	return check_number(t, setting);
}

/* What the tenant's setting will be: the last of those asked for, or as it is. */
static uint32_t
future(const Gpupool__AdminSet *set, Gpupool__AdminSetting__Key key, uint32_t present)
{
	for (size_t i = 0; i < set->n_settings; i++) {
		if (set->settings[i]->key == key)
			present = (uint32_t)set->settings[i]->number;
	}
	return present;
}

/* Fixed shares of a device are of the same time, and no tenant's goes beyond its limit. */
static int
check_time(const struct target *t, const Gpupool__AdminSet *set)
{
	const struct gpd_ledger *ledger = t->manager->quota->ledger;

	for (int d = t->first; t->tenant && d < t->end; d++) {
		const struct gpd_ledger_tenant_line *own = &t->tenant->devices[d];
		uint32_t had = atomic_load(&own->time_share);
		uint32_t share = future(set, GPUPOOL__ADMIN_SETTING__KEY__TIME_SHARE, had);
		uint32_t limit =
			future(set, GPUPOOL__ADMIN_SETTING__KEY__LIMIT, atomic_load(&own->limit));
		uint32_t sum = share;

		if (share > limit)
			return refuse(t, "share: %u%% of device %d are more than the limit, %u%%",
				      share, d, limit);
		for (uint32_t i = 0; i < GPD_LEDGER_TENANTS; i++) {
			if (ledger->tenants[i].name[0] && &ledger->tenants[i] != t->tenant)
				sum += atomic_load(&ledger->tenants[i].devices[d].time_share);
		}
		if (share > had && atomic_load(&ledger->policies[d]) == GPD_POLICY_FIXED &&
		    sum > 100)
			return refuse(t,
				      "share: with it those of device %d, whose policy is fixed, "
				      "are %u%%, more than 100%%",
				      d, sum);
	}
	return 0;
}

static void
set_session(const struct target *t, const Gpupool__AdminSetting *setting)
{
	for (int d = t->first; d < t->end; d++) {
		struct gpd_ledger_line *line = &t->session->devices[d];

		if (setting->key == GPUPOOL__ADMIN_SETTING__KEY__MEMORY)
			atomic_store(&line->memory_max, memory_on(t, setting, d));
		else if (setting->key == GPUPOOL__ADMIN_SETTING__KEY__SM)
			atomic_store(&line->sm_wanted, multiprocessors_on(t, setting, d));
	}
	if (setting->key == GPUPOOL__ADMIN_SETTING__KEY__PRIORITY)
		atomic_store(&t->session->priority, (uint32_t)setting->number);
}

/* Sessions that had what the tenant had go on to have what it has; with the multiprocessors the
 * workers see to that. */
static void
pass_priority_on(const struct target *t, uint32_t before, uint32_t now)
{
	struct gpd_ledger *ledger = t->manager->quota->ledger;

	for (int i = 0; i < GPD_LEDGER_SESSIONS; i++) {
		struct gpd_ledger_session *session = &ledger->sessions[i];

		if (atomic_load(&session->id) && session->tenant == t->tenant_index &&
		    atomic_load(&session->priority) == before)
			atomic_store(&session->priority, now);
	}
}

static void
set_tenant_device(const struct target *t, const Gpupool__AdminSetting *setting, int device)
{
	struct gpd_ledger_tenant_line *line = &t->tenant->devices[device];
	uint32_t number = (uint32_t)setting->number;

	switch (setting->key) {
	case GPUPOOL__ADMIN_SETTING__KEY__MEMORY:
		atomic_store(&line->memory_max, memory_on(t, setting, device));
		break;
	case GPUPOOL__ADMIN_SETTING__KEY__SM:
		atomic_store(&line->sm_wanted, multiprocessors_on(t, setting, device));
		break;
	case GPUPOOL__ADMIN_SETTING__KEY__WEIGHT:
		atomic_store(&line->weight, number);
		break;
	case GPUPOOL__ADMIN_SETTING__KEY__LIMIT:
		atomic_store(&line->limit, number);
		break;
	case GPUPOOL__ADMIN_SETTING__KEY__TIME_SHARE:
		atomic_store(&line->time_share, number);
		break;
	default:
		break;
	}
}

static void
set_tenant(const struct target *t, const Gpupool__AdminSetting *setting)
{
	for (int d = t->first; d < t->end; d++)
		set_tenant_device(t, setting, d);
	if (setting->key == GPUPOOL__ADMIN_SETTING__KEY__BANDWIDTH)
		gpd_ledger_set_bandwidth(t->tenant, setting->number);
	if (setting->key == GPUPOOL__ADMIN_SETTING__KEY__PRIORITY)
		pass_priority_on(t,
				 atomic_exchange(&t->tenant->priority, (uint32_t)setting->number),
				 (uint32_t)setting->number);
}

static int
find_devices(struct target *t, const Gpupool__AdminSet *set)
{
	int count = t->manager->roster.device_count;

	if (set->device < 0 || set->device > count)
		return refuse(t, "there is no device %lld", (long long)set->device - 1);
	t->first = set->device ? set->device - 1 : 0;
	t->end = set->device ? set->device : count;
	return 0;
}

static int
find(struct target *t, const Gpupool__AdminSet *set)
{
	struct gpd_ledger *ledger = t->manager->quota->ledger;

	if (set->session) {
		t->session = gpd_ledger_find(ledger, set->session);
		return t->session ? find_devices(t, set)
				  : refuse(t, "there is no session %llu",
					   (unsigned long long)set->session);
	}
	for (uint32_t i = 0; i < GPD_LEDGER_TENANTS && set->tenant[0]; i++) {
		if (strcmp(ledger->tenants[i].name, set->tenant) == 0) {
			t->tenant = &ledger->tenants[i];
			t->tenant_index = i;
			return find_devices(t, set);
		}
	}
	return refuse(t, "there is no tenant \"%.64s\"", set->tenant);
}

/* The workers that have sessions which this is about read their lines again. */
static void
tell_workers(const struct target *t)
{
	struct gpd_ledger *ledger = t->manager->quota->ledger;

	for (int i = 0; i < GPD_LEDGER_SESSIONS; i++) {
		struct gpd_ledger_session *session = &ledger->sessions[i];
		uint64_t id = atomic_load(&session->id);

		if (id &&
		    (session == t->session || (t->tenant && session->tenant == t->tenant_index)))
			gpd_admission_quota_changed(t->manager->admission, id);
	}
}

int
gpd_manage_set(struct gpd_manager *manager, const Gpupool__AdminSet *set, char *error, size_t size)
{
	struct target t = { .manager = manager, .error = error, .size = size };
	int r = find(&t, set);

	for (size_t i = 0; r == 0 && i < set->n_settings; i++)
		r = check(&t, set->settings[i]);
	if (r == 0)
		r = check_time(&t, set);
	if (r)
		return r;
	for (size_t i = 0; i < set->n_settings; i++) {
		if (t.session)
			set_session(&t, set->settings[i]);
		else
			set_tenant(&t, set->settings[i]);
	}
	tell_workers(&t);
	if (t.session)
		gpd_info("session %llu: quota changed", (unsigned long long)set->session);
	else
		gpd_info("tenant %s: quota changed", t.tenant->name);
	return 0;
}

int
gpd_manage_set_defaults(struct gpd_manager *manager, const Gpupool__AdminDefaults *wanted,
			char *error, size_t size)
{
	struct gpd_defaults *defaults = &manager->quota->defaults;
	const struct target t = { .manager = manager, .error = error, .size = size };

	if (wanted->thread_share > SHARE_ALL)
		return refuse(&t, "a percentage is more than 0 and at most 100");
	if (wanted->set_priority && wanted->priority > 1)
		return refuse(&t, "a default priority is 0 (normal) or 1 (below normal)");
	for (size_t i = 0; i < wanted->n_memory; i++) {
		if (wanted->memory[i]->device >= (uint32_t)manager->roster.device_count)
			return refuse(&t, "there is no device %u", wanted->memory[i]->device);
	}
	if (wanted->thread_share)
		defaults->thread_share = wanted->thread_share;
	if (wanted->set_priority)
		defaults->priority = wanted->priority;
	for (size_t i = 0; i < wanted->n_memory; i++)
		defaults->memory[wanted->memory[i]->device] = wanted->memory[i]->bytes;
	return 0;
}
