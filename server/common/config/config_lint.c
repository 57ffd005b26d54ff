/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/config/config_lint.h"

#include "base/edit_distance.h"
#include "server/common/base/size_text.h"
#include "server/common/config/config_key.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

static void lint_report(const struct gpd_lint *lint, int line, const char *format, ...)
	GP_PRINTF(3, 4);

static void
lint_report(const struct gpd_lint *lint, int line, const char *format, ...)
{
	char text[GPD_CONFIG_ERROR_MAX];
	va_list args;
	int used = 0;

	if (line && lint->config->file)
		used = snprintf(text, sizeof(text), "%.300s:%d: ", lint->config->file, line);
	va_start(args, format);
	(void)vsnprintf(text + used, sizeof(text) - (size_t)used, format, args);
	va_end(args);
	lint->report(lint->arg, text);
}

/* Errors. */

/* Returns whether both amounts are numbers or both are shares, and the first is larger. */
static bool
is_more(const struct gpd_config_amount *one, const struct gpd_config_amount *other)
{
	if (!one->share != !other->share)
		return false;
	return one->share ? one->share > other->share : one->number > other->number;
}

static const char *
quota_error(const struct gpd_config_quota *quota)
{
	/* GPD_NO_LIMIT is larger than any other number, but means that the key is not set. */
	if (quota->session_memory.number != GPD_NO_LIMIT &&
	    is_more(&quota->session_memory, &quota->memory))
		return "session-memory: one session may have more than the whole tenant";
	if ((quota->session_sm.share || quota->sm.number) &&
	    is_more(&quota->session_sm, &quota->sm))
		return "session-sm: one session may have more than the whole tenant";
	return quota->time_share > quota->limit ? "time-share: it is more than the limit" : NULL;
}

static void
tenant_errors(const struct gpd_lint *lint, int index)
{
	const struct gpd_config_tenant *tenants = lint->config->tenants, *tenant = &tenants[index];
	const char *error = NULL;

	for (int i = 0; i < tenant->certificate_count; i++) {
		int first = gpd_config_certificate_find(lint->config, tenant->certificates[i]);

		if (first != index)
			lint_report(lint, tenant->line,
				    "[tenant %s]: the certificate \"%s\" is that of tenant %s "
				    "already (line %d)",
				    tenant->name, tenant->certificates[i], tenants[first].name,
				    tenants[first].line);
	}
	/* An error on one device usually applies to all devices: report the first only. */
	for (int d = 0; !error && d < GPD_LEDGER_DEVICES; d++) {
		error = quota_error(&tenant->devices[d]);
		if (error)
			lint_report(lint, tenant->line, "[tenant %s]: %s, of device %d",
				    tenant->name, error, d);
	}
}

static bool
may_be_fixed(const struct gpd_config *config, int device)
{
	for (int i = 0; i < config->device_rule_count; i++)
		if (config->device_rules[i].uuid[0] &&
		    config->device_rules[i].device.policy == GPD_POLICY_FIXED)
			return true;
	return gpd_config_device(config, device, NULL).policy == GPD_POLICY_FIXED;
}

void
gpd_lint_errors(const struct gpd_lint *lint)
{
	const struct gpd_config_tenant *tenants = lint->config->tenants;

	for (int i = 0; i < lint->config->tenant_count; i++)
		tenant_errors(lint, i);
	for (int d = 0; d < GPD_LEDGER_DEVICES; d++) {
		int count = may_be_fixed(lint->config, d) ? lint->config->tenant_count : 0;
		uint32_t sum = 0;

		for (int i = 0; i < count; i++) {
			if (tenants[i].devices[d].allowed)
				sum += tenants[i].devices[d].time_share;
			if (sum <= 100)
				continue;
			lint_report(lint, tenants[i].line,
				    "[tenant %s]: with its own the time-shares of device %d, whose "
				    "policy is fixed, are %u%%, more than 100%%",
				    tenants[i].name, d, sum);
			return;
		}
	}
}

/* Warnings. */

/* Returns whether the tenant has a limit on each of its devices. */
static bool
is_limited(const struct gpd_config_tenant *tenant)
{
	bool limited = true;

	for (int d = 0; tenant->sessions_max && d < GPD_LEDGER_DEVICES; d++) {
		const struct gpd_config_quota *quota = &tenant->devices[d];

		limited = limited &&
			  (!quota->allowed || gpd_config_amount_is_set(&quota->memory) ||
			   gpd_config_amount_is_set(&quota->sm) ||
			   gpd_config_amount_is_set(&quota->session_memory) ||
			   gpd_config_amount_is_set(&quota->session_sm) || quota->limit != 100);
	}
	return limited;
}

/* Quotas of multiprocessors hold within one CUDA context. */
static void
lint_class(const struct gpd_lint *lint, const struct gpd_config_tenant *tenant)
{
	static const char *const names[] = {
		[GPD_CONFIG_ISOLATION_TENANT] = "tenant", [GPD_CONFIG_ISOLATION_SESSION] = "session"
	};
	bool apart = gpd_config_is_apart(tenant);

	for (int d = 0; apart && d < GPD_LEDGER_DEVICES; d++) {
		const struct gpd_config_quota *quota = &tenant->devices[d];

		if (!quota->allowed || (!gpd_config_amount_is_set(&quota->sm) &&
					!gpd_config_amount_is_set(&quota->session_sm)))
			continue;
		lint_report(
			lint, tenant->line,
			"[tenant %s]: isolation = %s: its kernels run on the multiprocessors of "
			"sm, but only during the time of its own worker: two such tenants with "
			"sm = 50%% get a quarter of the device each (without isolation, the "
			"tenant shares a worker)",
			tenant->name, names[tenant->isolation]);
		return;
	}
}

void
gpd_lint_config(const struct gpd_lint *lint)
{
	const struct gpd_config_tenant *tenants = lint->config->tenants;
	bool limited = false;

	for (int i = 0; i < lint->config->old_name_count; i++) {
		const struct gpd_config_old_name *old = &lint->config->old_names[i];

		lint_report(lint, old->line, "%s: deprecated; use %s", old->old_name, old->name);
	}
	for (int i = 0; i < lint->config->tenant_count; i++)
		lint_class(lint, &tenants[i]);
	for (int i = 1; i < lint->config->tenant_count; i++)
		limited = limited || is_limited(&tenants[i]);
	if (limited && !is_limited(&tenants[GPD_TENANT_DEFAULT]))
		lint_report(
			lint, tenants[GPD_TENANT_DEFAULT].line,
			"[tenant default] has no limits while other tenants have: clients without "
			"a tenant have no limits (set memory, sm, limit, or sessions = 0)");
}

bool
gpd_lint_tenant(const struct gpd_config *config, const char *tenant,
		char text[GPD_CONFIG_ERROR_MAX])
{
	const struct gpd_config_tenant *others = &config->tenants[GPD_TENANT_DEFAULT];
	struct gp_suggestion similar = { .word = tenant };

	/* If the file names no tenants, only tokens assign clients to tenants, and no name can be
	 * misspelled. */
	if (!config->file || gpd_config_tenant_find(config, tenant) >= 0 ||
	    (config->tenant_count == 1 && others->sessions_max))
		return false;
	for (int i = 0; i < config->tenant_count; i++)
		gp_suggestion_consider(&similar, config->tenants[i].name);
	(void)snprintf(text, GPD_CONFIG_ERROR_MAX,
		       "%.160s has no [tenant %s]%s%s%s: clients with its tokens get the limits of "
		       "[tenant default]: %s",
		       config->file, tenant, similar.best ? " (did you mean " : "",
		       similar.best ? similar.best : "", similar.best ? "?)" : "",
		       others->sessions_max == 0 ? "no session"
		       : is_limited(others)      ? "a quota"
						 : "everything");
	return true;
}

void
gpd_lint_tokens(const struct gpd_lint *lint, const struct gpd_tokens *tokens)
{
	int64_t now_s = (int64_t)time(NULL);
	char text[GPD_CONFIG_ERROR_MAX];

	for (size_t i = 0; i < tokens->count; i++) {
		const struct gpd_token *token = &tokens->list[i];
		size_t k = 0;

		while (k < i && (strcmp(tokens->list[k].tenant, token->tenant) != 0 ||
				 !gpd_token_is_valid(&tokens->list[k], now_s)))
			k++;
		if (k == i && gpd_token_is_valid(token, now_s) &&
		    gpd_lint_tenant(lint->config, token->tenant, text))
			lint->report(lint->arg, text);
	}
}

static int
key_line(const struct gpd_config_tenant *tenant, const char *key, int device)
{
	int index = gpd_config_key_index(GPD_CONFIG_SECTION_TENANT, key, strlen(key));
	const struct gpd_config_lines *lines = tenant->lines ? &tenant->lines[index] : NULL;

	if (!lines)
		return 0;
	return device >= 0 && lines->single[device] ? lines->single[device] : lines->all;
}

static void
rules_lint(const struct gpd_lint *lint, const struct gpd_lint_device *devices, int count)
{
	for (int i = 0; i < lint->config->device_rule_count; i++) {
		const struct gpd_config_device_rule *rule = &lint->config->device_rules[i];
		int d = 0;

		while (rule->uuid[0] && d < count && strcasecmp(devices[d].uuid, rule->uuid) != 0)
			d++;
		if (rule->uuid[0] && d == count)
			lint_report(lint, rule->line, "[device %s]: the daemon has no such device",
				    rule->uuid);
		else if (!rule->uuid[0] && rule->ordinal >= count)
			lint_report(lint, rule->line,
				    "[device %d]: the daemon has %d device%s, counted from 0",
				    rule->ordinal, count, count == 1 ? "" : "s");
	}
}

static void
list_lint(const struct gpd_lint *lint, const struct gpd_config_tenant *tenant, int count)
{
	int line = key_line(tenant, "devices", -1);
	bool any = false, all = true;

	for (int d = 0; d < GPD_LEDGER_DEVICES; d++) {
		all = all && tenant->devices[d].allowed;
		any = any || (d < count && tenant->devices[d].allowed);
	}
	for (int d = count; line && !all && d < GPD_LEDGER_DEVICES; d++)
		if (tenant->devices[d].allowed)
			lint_report(lint, line,
				    "[tenant %s] devices: unknown device %d: the daemon has %d, "
				    "counted from 0",
				    tenant->name, d, count);
	if (line && !any)
		lint_report(lint, line, "[tenant %s] devices: none of the devices exists",
			    tenant->name);
}

const char *
gpd_lint_needed_policy(const char *key, uint32_t policy)
{
	if (strcmp(key, "time-share") == 0)
		return policy == GPD_POLICY_FIXED ? NULL : "fixed";
	if (strcmp(key, "weight") == 0)
		return policy == GPD_POLICY_BEST_EFFORT ? NULL : "best-effort";
	return strcmp(key, "limit") == 0 && policy == GPD_POLICY_NONE ? "best-effort" : NULL;
}

/* Reports the first device whose policy ignores the key. offset: of the key's value in the quota;
 * none: the value that means "not set". */
static void
time_lint(const struct gpd_lint *lint, const struct gpd_config_tenant *tenant,
	  const struct gpd_lint_device *devices, int count, const char *key, size_t offset,
	  uint32_t none)
{
	for (int d = 0; d < count; d++) {
		const struct gpd_config_quota *quota = &tenant->devices[d];
		uint32_t policy = gpd_config_device(lint->config, d, devices[d].uuid).policy;
		const char *needed = gpd_lint_needed_policy(key, policy);

		if (!needed || !quota->allowed ||
		    *(const uint32_t *)((const char *)quota + offset) == none)
			continue;
		lint_report(
			lint, key_line(tenant, key, d),
			"[tenant %s] %s: ignored by the policy of device %d (needs policy = %s)",
			tenant->name, key, d, needed);
		return;
	}
}

static void
memory_lint(const struct gpd_lint *lint, const struct gpd_config_tenant *tenant, int d,
	    const struct gpd_lint_device *device, const char *key,
	    const struct gpd_config_amount *amount)
{
	char wanted[GPD_SIZE_TEXT_MAX], all[GPD_SIZE_TEXT_MAX];

	if (amount->share || amount->number == GPD_NO_LIMIT || amount->number <= device->memory)
		return;
	lint_report(lint, key_line(tenant, key, d),
		    "[tenant %s] %s = %s: device %d has %s, so the tenant may use all of it",
		    tenant->name, key, gpd_size_format(amount->number, wanted), d,
		    gpd_size_format(device->memory, all));
}

static void
sm_lint(const struct gpd_lint *lint, const struct gpd_config_tenant *tenant, int d,
	const struct gpd_lint_device *device, const char *key,
	const struct gpd_config_amount *amount)
{
	uint32_t sms = (uint32_t)device->multiprocessors;
	uint32_t piece = gpd_config_device(lint->config, d, device->uuid).sm_granularity;
	uint32_t given = gpd_config_round_sms(gpd_config_get_sms(amount, sms), sms, piece);
	char said[32], pieces[48] = "";

	if (!gpd_config_amount_is_set(amount) || amount->share == GPD_CONFIG_SHARE_MAX || !sms ||
	    (given && amount->number <= sms))
		return;
	if (amount->share)
		(void)snprintf(said, sizeof(said), "%g%%", (double)amount->share / 100);
	else
		(void)snprintf(said, sizeof(said), "%llu", (unsigned long long)amount->number);
	if (amount->number <= sms)
		(void)snprintf(pieces, sizeof(pieces), ", assigned in multiples of %u", piece);
	lint_report(lint, key_line(tenant, key, d),
		    "[tenant %s] %s = %s: device %d has %u multiprocessors%s, so the tenant may "
		    "use all of them",
		    tenant->name, key, said, d, sms, pieces);
}

/* Contexts that take most of the device leave little for sessions. */
static void
places_lint(const struct gpd_lint *lint, int d, const struct gpd_lint_device *device)
{
	struct gpd_config_device rule = gpd_config_device(lint->config, d, device->uuid);
	char context[GPD_SIZE_TEXT_MAX], all[GPD_SIZE_TEXT_MAX];

	if (!rule.workers || gpd_config_get_remaining(device->memory, rule.workers,
						      device->context) >= device->memory / 2)
		return;
	lint_report(lint, 0,
		    "workers-per-device = %u: that many contexts, of %s each, take more than half "
		    "of device %d, which has %s",
		    rule.workers, gpd_size_format(device->context, context), d,
		    gpd_size_format(device->memory, all));
}

/* Places that do not suffice for all tenants, or for the reserve. */
static void
few_places_lint(const struct gpd_lint *lint, int d, const struct gpd_lint_device *devices,
		int count)
{
	struct gpd_config_device rules[GPD_LEDGER_DEVICES];
	const char *by_default;
	uint32_t places, apart, ready = lint->config->ready_workers;

	for (int i = 0; i < count; i++)
		rules[i] = gpd_config_device(lint->config, i, devices[i].uuid);
	places = gpd_config_get_places(&rules[d], devices[d].memory, devices[d].context);
	by_default = rules[d].workers ? "" : " (a tenth of its memory)";
	apart = gpd_config_count_apart(lint->config, rules, count, d);
	if (!rules[d].visible)
		return;
	if (places < apart)
		lint_report(lint, 0,
			    "workers-per-device = %u%s: fewer than the %u tenants that may use "
			    "device %d and do not share a worker: some have to wait for others",
			    places, by_default, apart, d);
	if (ready != GPD_READY_WORKERS_DEFAULT && places < ready)
		lint_report(lint, 0,
			    "workers-per-device = %u%s: fewer than ready-workers = %u on device "
			    "%d: the reserve stays smaller",
			    places, by_default, ready, d);
}

static bool
has_shares(const struct gpd_config *config, int d)
{
	for (int i = 0; i < config->tenant_count; i++) {
		const struct gpd_config_quota *quota = &config->tenants[i].devices[d];

		if (quota->allowed && (quota->memory.share || quota->session_memory.share))
			return true;
	}
	return false;
}

bool
gpd_lint_shares(const struct gpd_config *config, const struct gpd_lint_device *devices, int count,
		int device, char text[GPD_CONFIG_ERROR_MAX])
{
	const struct gpd_lint_device *from = &devices[device];
	char remaining[GPD_SIZE_TEXT_MAX], all[GPD_SIZE_TEXT_MAX], context[GPD_SIZE_TEXT_MAX];
	struct gpd_config_device rules[GPD_LEDGER_DEVICES];
	uint32_t contexts = 1;

	for (int i = 0; i < count; i++)
		rules[i] = gpd_config_device(config, i, devices[i].uuid);
	if (!from->context || !has_shares(config, device))
		return false;
	if (!gpd_config_has_one_worker(config, rules, count, device))
		contexts = gpd_config_get_places(&rules[device], from->memory, from->context);
	(void)snprintf(
		text, GPD_CONFIG_ERROR_MAX,
		"device %d: percentages of memory are of %s: %s without %u context%s of about %s",
		device,
		gpd_size_format(gpd_config_get_remaining(from->memory, contexts, from->context),
				remaining),
		gpd_size_format(from->memory, all), contexts, contexts == 1 ? "" : "s",
		gpd_size_format(from->context, context));
	return true;
}

void
gpd_lint_devices(const struct gpd_lint *lint, const struct gpd_lint_device *devices, int count)
{
	if (!count)
		return;
	rules_lint(lint, devices, count);
	for (int d = 0; d < count; d++) {
		places_lint(lint, d, &devices[d]);
		few_places_lint(lint, d, devices, count);
	}
	for (int i = 0; i < lint->config->tenant_count; i++) {
		const struct gpd_config_tenant *tenant = &lint->config->tenants[i];

		list_lint(lint, tenant, count);
		time_lint(lint, tenant, devices, count, "weight",
			  offsetof(struct gpd_config_quota, weight), 100);
		time_lint(lint, tenant, devices, count, "limit",
			  offsetof(struct gpd_config_quota, limit), 100);
		time_lint(lint, tenant, devices, count, "time-share",
			  offsetof(struct gpd_config_quota, time_share), 0);
		for (int d = 0; d < count; d++) {
			const struct gpd_lint_device *device = &devices[d];
			const struct gpd_config_quota *quota = &tenant->devices[d];

			if (!quota->allowed)
				continue;
			memory_lint(lint, tenant, d, device, "memory", &quota->memory);
			memory_lint(lint, tenant, d, device, "session-memory",
				    &quota->session_memory);
			sm_lint(lint, tenant, d, device, "sm", &quota->sm);
			sm_lint(lint, tenant, d, device, "session-sm", &quota->session_sm);
		}
	}
}
