/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of limits at run time. */
#include "server/common/base/log.h"
#include "server/common/base/size_text.h"
#include "server/common/config/config_key.h"
#include "server/common/config/config_lint.h"
#include "server/supervisor/admin/manage.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define WEIGHT_MAX 1000

/* Settings, and their range if they are numbers. */
static const struct {
	const char *name;
	uint64_t min, max;
	bool tenant_only; /* not available for a session */
	bool per_device;  /* may be a share of the device's total */
	const char *range;
} keys[] = {
	[GPUPOOL__ADMIN_SETTING__KEY__MEMORY] = { "memory", 0, UINT64_MAX, .per_device = true },
	[GPUPOOL__ADMIN_SETTING__KEY__SM] = { "sm", 0, UINT64_MAX, .per_device = true },
	[GPUPOOL__ADMIN_SETTING__KEY__PRIORITY] = { "priority", 0, 2,
						    .range = "0 (normal), 1 (low) or 2 (high)" },
	[GPUPOOL__ADMIN_SETTING__KEY__WEIGHT] = { "weight", 1, WEIGHT_MAX, true,
						  .range = "1 to 1000" },
	[GPUPOOL__ADMIN_SETTING__KEY__LIMIT] = { "limit", 1, 100, true,
						 .range = "1 to 100 per cent" },
	[GPUPOOL__ADMIN_SETTING__KEY__TIME_SHARE] = { "time-share", 0, 100, true,
						      .range = "0 to 100 per cent" },
	[GPUPOOL__ADMIN_SETTING__KEY__BANDWIDTH] = { "bandwidth", GPD_BANDWIDTH_MIN, UINT64_MAX,
						     true,
						     .range = "bytes per second from 64K, as 500M; "
							      "or unlimited" },
	[GPUPOOL__ADMIN_SETTING__KEY__SESSIONS] = { "sessions", 0, UINT32_MAX, true,
						    .range = "0 to 4096, or unlimited" },
};

/* Target of a request: a session or a tenant. */
struct target {
	struct gpd_manager *manager;
	struct gpd_ledger_session *session;
	struct gpd_ledger_tenant *tenant;
	uint32_t tenant_index;
	int first, end; /* range of devices */
	char *error;
	size_t size;
};

static int set_error(const struct target *t, const char *format, ...) GP_PRINTF(2, 3);

static int
set_error(const struct target *t, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(t->error, t->size, format, args);
	va_end(args);
	return GP_E_INVALID;
}

static int
setting_check(const struct target *t, const Gpupool__AdminSetting *setting)
{
	unsigned long long number = setting->number;
	size_t key = (size_t)setting->key;

	if (setting->share > GPD_CONFIG_SHARE_MAX)
		return set_error(t, "a share of more than 100%%");
	if (key >= sizeof(keys) / sizeof(keys[0]) || !keys[key].name)
		return set_error(t, "this daemon (" GPD_VERSION ") does not know setting %d",
				 (int)setting->key);
	if (keys[key].tenant_only && t->session)
		return set_error(t, "%s: applies to tenants, not to sessions", keys[key].name);
	if (keys[key].per_device && setting->share)
		return 0;
	if (setting->share)
		return set_error(t, "%s: a share of the device is not allowed", keys[key].name);
	/* The same minimum as in the configuration. */
	if (setting->key == GPUPOOL__ADMIN_SETTING__KEY__MEMORY && number < GPD_MEMORY_MIN)
		return set_error(t, "memory: %llu bytes are less than 2M, the smallest size",
				 number);
	if (number < keys[key].min || number > keys[key].max)
		return set_error(t, "%s: %llu is out of range (%s)", keys[key].name, number,
				 keys[key].range);
	return 0;
}

/* Returns the tenant's value after the request: the last one requested, else the present one. */
static uint32_t
setting_planned_value(const Gpupool__AdminSet *setting_apply, Gpupool__AdminSetting__Key key,
		      uint32_t present)
{
	for (size_t i = 0; i < setting_apply->n_settings; i++) {
		if (setting_apply->settings[i]->key == key)
			present = (uint32_t)setting_apply->settings[i]->number;
	}
	return present;
}

/* Time shares of a device with the policy "fixed" must not exceed 100 % in total, and a tenant's
 * must not exceed its limit. */
static int
check_time_shares(const struct target *t, const Gpupool__AdminSet *setting_apply)
{
	const struct gpd_ledger *ledger = t->manager->admission->quota->ledger;

	for (int d = t->first; t->tenant && d < t->end; d++) {
		const struct gpd_ledger_tenant_line *own = &t->tenant->devices[d];
		uint32_t had = atomic_load(&own->time_share);
		uint32_t share = setting_planned_value(
			setting_apply, GPUPOOL__ADMIN_SETTING__KEY__TIME_SHARE, had);
		uint32_t limit =
			setting_planned_value(setting_apply, GPUPOOL__ADMIN_SETTING__KEY__LIMIT,
					      atomic_load(&own->limit));
		uint32_t sum = share;

		if (share > limit)
			return set_error(
				t, "time-share: %u%% of device %d are more than the limit, %u%%",
				share, d, limit);
		for (uint32_t i = 0; i < GPD_LEDGER_TENANTS; i++) {
			if (ledger->tenants[i].name[0] && &ledger->tenants[i] != t->tenant)
				sum += atomic_load(&ledger->tenants[i].devices[d].time_share);
		}
		if (share > had && atomic_load(&ledger->policies[d]) == GPD_POLICY_FIXED &&
		    sum > 100)
			return set_error(
				t,
				"time-share: with it those of device %d, whose policy is fixed, "
				"are %u%%, more than 100%%",
				d, sum);
	}
	return 0;
}

/* Sessions with the tenant's previous priority get its new one. For multiprocessors the workers do
 * the same. */
static void
priority_propagate(const struct target *t, uint32_t before, uint32_t now)
{
	struct gpd_ledger *ledger = t->manager->admission->quota->ledger;

	for (struct gpd_ledger_session *s = NULL;
	     (s = gpd_ledger_next(ledger, s, GPD_LEDGER_ANY_WORKER));) {
		if (s->tenant == t->tenant_index && atomic_load(&s->priority) == before)
			atomic_store(&s->priority, now);
	}
}

static void
setting_apply_to_device(const struct target *t, const Gpupool__AdminSetting *setting, int device)
{
	struct gpd_ledger_tenant_line *tenant = t->tenant ? &t->tenant->devices[device] : NULL;
	struct gpd_ledger_line *session = t->session ? &t->session->devices[device] : NULL;
	const struct gpd_tenants *tenants = &t->manager->admission->quota->tenants;
	const struct gpd_config_amount amount = { setting->number, setting->share };
	uint32_t number = (uint32_t)setting->number;

	switch (setting->key) {
	case GPUPOOL__ADMIN_SETTING__KEY__MEMORY:
		atomic_store(
			tenant ? &tenant->memory_max : &session->memory_max,
			gpd_config_get_bytes(&amount, gpd_tenants_get_remaining(tenants, device)));
		break;
	case GPUPOOL__ADMIN_SETTING__KEY__SM:
		atomic_store(tenant ? &tenant->sm_wanted : &session->sm_wanted,
			     gpd_tenants_round_sms(tenants, device, &amount));
		break;
	case GPUPOOL__ADMIN_SETTING__KEY__WEIGHT:
		atomic_store(&tenant->weight, number);
		break;
	case GPUPOOL__ADMIN_SETTING__KEY__LIMIT:
		atomic_store(&tenant->limit, number);
		break;
	case GPUPOOL__ADMIN_SETTING__KEY__TIME_SHARE:
		atomic_store(&tenant->time_share, number);
		break;
	default:
		break;
	}
}

static void
setting_apply(const struct target *t, const Gpupool__AdminSetting *setting)
{
	uint32_t number = (uint32_t)setting->number;

	for (int d = t->first; d < t->end; d++)
		setting_apply_to_device(t, setting, d);
	if (setting->key == GPUPOOL__ADMIN_SETTING__KEY__SESSIONS)
		t->manager->admission->quota->tenants.sessions_max[t->tenant_index] = number;
	else if (setting->key == GPUPOOL__ADMIN_SETTING__KEY__BANDWIDTH)
		gpd_ledger_set_bandwidth(t->tenant, setting->number);
	else if (setting->key == GPUPOOL__ADMIN_SETTING__KEY__PRIORITY && t->session)
		atomic_store(&t->session->priority, number);
	else if (setting->key == GPUPOOL__ADMIN_SETTING__KEY__PRIORITY)
		priority_propagate(t, atomic_exchange(&t->tenant->priority, number), number);
}

static int
target_find(struct target *t, const Gpupool__AdminSet *wanted)
{
	struct gpd_ledger *ledger = t->manager->admission->quota->ledger;
	int count = t->manager->admission->quota->tenants.device_count;

	t->session = gpd_ledger_find(ledger, wanted->session);
	if (wanted->session && !t->session)
		return set_error(t, "unknown session %llu", (unsigned long long)wanted->session);
	for (uint32_t i = 0; i < GPD_LEDGER_TENANTS && !t->session && wanted->tenant[0]; i++) {
		if (strcmp(ledger->tenants[i].name, wanted->tenant) == 0) {
			t->tenant = &ledger->tenants[i];
			t->tenant_index = i;
		}
	}
	if (!t->session && !t->tenant)
		return gpd_manager_unknown_tenant(t->manager, wanted->tenant, t->error, t->size);
	if (wanted->device < 0 || wanted->device > count)
		return set_error(t, "unknown device %lld: the daemon has %d, counted from 0",
				 (long long)wanted->device - 1, count);
	t->first = wanted->device ? wanted->device - 1 : 0;
	t->end = wanted->device ? wanted->device : count;
	return 0;
}

/* Size of a current value as text. */
#define VALUE_MAX 48

static void
format_amount(uint64_t number, const char *none, const char *unit, char text[VALUE_MAX])
{
	char size[GPD_SIZE_TEXT_MAX];

	if (number == GPD_NO_LIMIT)
		(void)snprintf(text, VALUE_MAX, "%s", none);
	else
		(void)snprintf(text, VALUE_MAX, "%s%s", gpd_size_format(number, size), unit);
}

static void
format_number(uint32_t number, uint32_t none, const char *word, const char *unit,
	      char text[VALUE_MAX])
{
	if (number == none)
		(void)snprintf(text, VALUE_MAX, "%s", word);
	else
		(void)snprintf(text, VALUE_MAX, "%u%s", number, unit);
}

static void
setting_format(const struct target *t, Gpupool__AdminSetting__Key key, int device,
	       char text[VALUE_MAX])
{
	static const char *const priorities[] = { "normal", "low", "high" };
	const struct gpd_ledger_tenant_line *tenant =
		t->tenant ? &t->tenant->devices[device] : NULL;
	const struct gpd_ledger_line *session = t->session ? &t->session->devices[device] : NULL;
	uint32_t priority = atomic_load(t->tenant ? &t->tenant->priority : &t->session->priority);

	text[0] = 0;
	switch (key) {
	case GPUPOOL__ADMIN_SETTING__KEY__MEMORY:
		format_amount(atomic_load(tenant ? &tenant->memory_max : &session->memory_max),
			      "all", "", text);
		break;
	case GPUPOOL__ADMIN_SETTING__KEY__SM:
		format_number(atomic_load(tenant ? &tenant->sm_wanted : &session->sm_wanted), 0,
			      "all", "", text);
		break;
	case GPUPOOL__ADMIN_SETTING__KEY__PRIORITY:
		(void)snprintf(text, VALUE_MAX, "%s", priorities[priority % 3]);
		break;
	case GPUPOOL__ADMIN_SETTING__KEY__WEIGHT:
		format_number(atomic_load(&tenant->weight), 0, "", "", text);
		break;
	case GPUPOOL__ADMIN_SETTING__KEY__LIMIT:
		format_number(atomic_load(&tenant->limit), UINT32_MAX, "", "%", text);
		break;
	case GPUPOOL__ADMIN_SETTING__KEY__TIME_SHARE:
		format_number(atomic_load(&tenant->time_share), UINT32_MAX, "", "%", text);
		break;
	case GPUPOOL__ADMIN_SETTING__KEY__BANDWIDTH:
		format_amount(atomic_load(&t->tenant->bandwidth_max), "unlimited", "/s", text);
		break;
	case GPUPOOL__ADMIN_SETTING__KEY__SESSIONS:
		format_number(t->manager->admission->quota->tenants.sessions_max[t->tenant_index],
			      UINT32_MAX, "unlimited", "", text);
		break;
	default:
		break;
	}
}

/* Old and new value of a setting, on one device or on all. */
struct change {
	char from[VALUE_MAX], to[VALUE_MAX];
};

static void
log_change(const struct target *t, const struct gpd_admin_peer *peer, const char *key, int device,
	   const struct change *change)
{
	char of[32] = "", whose[GPD_TENANT_NAME_MAX + 16];

	if (device >= 0)
		(void)snprintf(of, sizeof(of), " of device %d", device);
	if (t->session)
		(void)snprintf(whose, sizeof(whose), "session %llu",
			       (unsigned long long)atomic_load(&t->session->id));
	else
		(void)snprintf(whose, sizeof(whose), "tenant %s", t->tenant->name);
	gpd_info("%s: %s%s: %s -> %s, by user %u (process %d)", whose, key, of, change->from,
		 change->to, (unsigned int)peer->uid, (int)peer->pid);
}

static bool
setting_is_per_device(Gpupool__AdminSetting__Key key)
{
	return key != GPUPOOL__ADMIN_SETTING__KEY__PRIORITY &&
	       key != GPUPOOL__ADMIN_SETTING__KEY__BANDWIDTH &&
	       key != GPUPOOL__ADMIN_SETTING__KEY__SESSIONS;
}

/* An identical change on several devices is logged once. */
static void
set_and_log(const struct target *t, const struct gpd_admin_peer *peer,
	    const Gpupool__AdminSetting *setting)
{
	struct change changes[GPD_LEDGER_DEVICES];
	const char *name = keys[setting->key].name;
	bool same = true;

	if (!setting_is_per_device(setting->key)) {
		setting_format(t, setting->key, 0, changes[0].from);
		setting_apply(t, setting);
		setting_format(t, setting->key, 0, changes[0].to);
		log_change(t, peer, name, -1, &changes[0]);
		return;
	}
	for (int d = t->first; d < t->end; d++)
		setting_format(t, setting->key, d, changes[d].from);
	setting_apply(t, setting);
	for (int d = t->first; d < t->end; d++) {
		setting_format(t, setting->key, d, changes[d].to);
		same = same && strcmp(changes[d].from, changes[t->first].from) == 0 &&
		       strcmp(changes[d].to, changes[t->first].to) == 0;
	}
	if (same && t->end - t->first > 1)
		log_change(t, peer, name, -1, &changes[t->first]);
	else
		for (int d = t->first; d < t->end; d++)
			log_change(t, peer, name, d, &changes[d]);
}

/* Warns of a setting that the device's policy ignores. */
static void
warn_policy(const struct target *t, const Gpupool__AdminSetting *setting, int d, char *warning)
{
	const char *key = keys[setting->key].name;
	const char *needed = gpd_lint_needed_policy(
		key, atomic_load(&t->manager->admission->quota->ledger->policies[d]));

	if (needed)
		(void)snprintf(warning, t->size,
			       "%s: ignored by the policy of device %d (needs policy = %s in "
			       "gpupoold.conf)",
			       key, d, needed);
}

/* Warns of a value above the device's total, or without effect; it is in force nevertheless, as in
 * the configuration. */
static void
warn_device(const struct target *t, const Gpupool__AdminSetting *setting, int d, char *warning)
{
	const struct gpd_tenants *tenants = &t->manager->admission->quota->tenants;
	const struct gpd_tenants_device *device = &tenants->devices[d];
	const struct gpd_config_amount amount = { setting->number, setting->share };
	uint32_t sms = device->multiprocessors;
	char wanted[GPD_SIZE_TEXT_MAX], all[GPD_SIZE_TEXT_MAX];

	warn_policy(t, setting, d, warning);
	if (setting->key == GPUPOOL__ADMIN_SETTING__KEY__MEMORY && !setting->share &&
	    setting->number != GPD_NO_LIMIT && setting->number > device->memory)
		(void)snprintf(warning, t->size,
			       "memory = %s: device %d has %s, so all of that may be used",
			       gpd_size_format(setting->number, wanted), d,
			       gpd_size_format(device->memory, all));
	if (setting->key != GPUPOOL__ADMIN_SETTING__KEY__SM ||
	    gpd_tenants_round_sms(tenants, d, &amount))
		return;
	if (setting->number > sms)
		(void)snprintf(warning, t->size,
			       "sm = %llu: device %d has %u multiprocessors, so all of them may be "
			       "used",
			       (unsigned long long)setting->number, d, sms);
	else if (setting->number ? setting->number < sms
				 : setting->share && setting->share < GPD_CONFIG_SHARE_MAX)
		(void)snprintf(warning, t->size,
			       "sm: device %d has %u multiprocessors, assigned in multiples of %u, "
			       "so all of them may be used",
			       d, sms, device->rule.sm_granularity);
}

/* Appends the warning for the first affected device to those of previous settings. */
static void
warning_add(const struct target *t, const Gpupool__AdminSetting *setting, char *warning)
{
	struct target room = *t;
	size_t used = strlen(warning);

	if (used + 3 >= t->size)
		return;
	room.size = t->size - used - 2;
	for (int d = t->first; d < t->end; d++) {
		char *text = warning + used + (used ? 2 : 0);

		text[0] = 0;
		warn_device(&room, setting, d, text);
		if (text[0] && used)
			memcpy(warning + used, "; ", 2);
		if (text[0])
			return;
	}
}

int
gpd_manager_set(struct gpd_manager *manager, const struct gpd_admin_peer *peer,
		const Gpupool__AdminSet *wanted, char *error, char *warning, size_t size)
{
	struct target t = { .manager = manager, .error = error, .size = size };
	int r = target_find(&t, wanted);

	for (size_t i = 0; r == 0 && i < wanted->n_settings; i++)
		r = setting_check(&t, wanted->settings[i]);
	if (r == 0)
		r = check_time_shares(&t, wanted);
	if (r)
		return r;
	for (size_t i = 0; i < wanted->n_settings; i++) {
		set_and_log(&t, peer, wanted->settings[i]);
		warning_add(&t, wanted->settings[i], warning);
	}
	gpd_admission_quotas_changed(manager->admission);
	return 0;
}
