/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/config/config_doubt.h"

#include "base/similar.h"
#include "server/common/base/size_text.h"
#include "server/common/config/config_parser.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Who is told, and of what file. */
struct teller {
	const struct gpd_config *config;
	gpd_config_tell *tell;
	void *arg;
};

static void say(const struct teller *t, int line, const char *format, ...) GP_PRINTF(3, 4);

static void
say(const struct teller *t, int line, const char *format, ...)
{
	char text[GPD_CONFIG_DOUBT_MAX];
	va_list args;
	int used = 0;

	if (line && t->config->file)
		used = snprintf(text, sizeof(text), "%.200s:%d: ", t->config->file, line);
	va_start(args, format);
	(void)vsnprintf(text + used, sizeof(text) - (size_t)used, format, args);
	va_end(args);
	t->tell(t->arg, text);
}

/* By itself. */

static bool
is_amount(const struct gpd_config_amount *amount)
{
	return amount->share || (amount->number && amount->number != GPD_NO_LIMIT);
}

/* Of all devices that it has. */
static bool
is_limited(const struct gpd_config_tenant *tenant)
{
	if (tenant->sessions_max == 0)
		return true;
	for (int d = 0; d < GPD_LEDGER_DEVICES; d++) {
		const struct gpd_config_quota *quota = &tenant->devices[d];

		if (quota->allowed && !is_amount(&quota->memory) && !is_amount(&quota->sm) &&
		    !is_amount(&quota->session_memory) && !is_amount(&quota->session_sm) &&
		    quota->limit == 100)
			return false;
	}
	return true;
}

void
gpd_config_doubt(const struct gpd_config *config, gpd_config_tell *tell, void *arg)
{
	const struct teller t = { config, tell, arg };
	const struct gpd_config_tenant *others = &config->tenants[GPD_TENANT_DEFAULT];
	int limited = 0;

	for (int i = 1; i < config->tenant_count; i++)
		limited += is_limited(&config->tenants[i]);
	if (limited && !is_limited(others))
		say(&t, others->line,
		    "[tenant default] is not limited, while others are: who names no tenant may "
		    "use everything (memory, sm, limit, or sessions = 0)");
}

/* Tokens. */

bool
gpd_config_doubt_tenant(const struct gpd_config *config, const char *tenant,
			char text[GPD_CONFIG_DOUBT_MAX])
{
	const struct gpd_config_tenant *others = &config->tenants[GPD_TENANT_DEFAULT];
	struct gp_likely similar = { .word = tenant };

	/* Where no tenant is named, tokens alone say whose clients are, and none is misspelt. */
	if (!config->file || gpd_config_tenant_find(config, tenant) >= 0 ||
	    (config->tenant_count == 1 && others->sessions_max))
		return false;
	for (int i = 0; i < config->tenant_count; i++)
		gp_likely_try(&similar, config->tenants[i].name);
	(void)snprintf(text, GPD_CONFIG_DOUBT_MAX,
		       "%.160s has no [tenant %s]%s%s%s: clients with its tokens have what [tenant "
		       "default] says, which is %s",
		       config->file, tenant, similar.best ? " (did you mean " : "",
		       similar.best ? similar.best : "", similar.best ? "?)" : "",
		       others->sessions_max == 0 ? "no session"
		       : is_limited(others)      ? "a quota"
						 : "everything");
	return true;
}

static bool
is_good(const struct gpd_token *token, int64_t now_s)
{
	return token->revoked_s == INT64_MAX && token->expires_s > now_s;
}

void
gpd_config_doubt_tokens(const struct gpd_config *config, const struct gpd_tokens *tokens,
			int64_t now_s, gpd_config_tell *tell, void *arg)
{
	char text[GPD_CONFIG_DOUBT_MAX];

	for (size_t i = 0; i < tokens->count; i++) {
		const struct gpd_token *token = &tokens->list[i];
		size_t k = 0;

		while (k < i && (strcmp(tokens->list[k].tenant, token->tenant) != 0 ||
				 !is_good(&tokens->list[k], now_s)))
			k++;
		if (k == i && is_good(token, now_s) &&
		    gpd_config_doubt_tenant(config, token->tenant, text))
			tell(arg, text);
	}
}

/* Devices. */

static int
line_of(const struct gpd_config_tenant *tenant, const char *key, int device)
{
	int index = gpd_config_key_index(GPD_CONFIG_SECTION_TENANT, key, strlen(key));
	const struct gpd_config_lines *lines = tenant->lines ? &tenant->lines[index] : NULL;

	if (!lines)
		return 0;
	return device >= 0 && lines->single[device] ? lines->single[device] : lines->all;
}

static void
doubt_rules(const struct teller *t, const struct gpd_config_device_facts *devices, int count)
{
	for (int i = 0; i < t->config->device_rule_count; i++) {
		const struct gpd_config_device_rule *rule = &t->config->device_rules[i];
		int d = 0;

		while (rule->uuid[0] && d < count && strcmp(devices[d].uuid, rule->uuid) != 0)
			d++;
		if (rule->uuid[0] && d == count)
			say(t, rule->line, "[device %s]: the daemon has no such device",
			    rule->uuid);
		else if (!rule->uuid[0] && rule->ordinal >= count)
			say(t, rule->line,
			    "[device %d]: the daemon has %d device%s, counted from 0",
			    rule->ordinal, count, count == 1 ? "" : "s");
	}
}

static void
doubt_list(const struct teller *t, const struct gpd_config_tenant *tenant, int count)
{
	int line = line_of(tenant, "devices", -1), any = 0;
	bool all = true;

	for (int d = 0; d < GPD_LEDGER_DEVICES; d++)
		all = all && tenant->devices[d].allowed;
	for (int d = 0; line && !all && d < GPD_LEDGER_DEVICES; d++) {
		any += d < count && tenant->devices[d].allowed;
		if (d >= count && tenant->devices[d].allowed)
			say(t, line,
			    "[tenant %s] devices: there is no device %d: the daemon has %d, "
			    "counted from 0",
			    tenant->name, d, count);
	}
	if (line && !all && !any)
		say(t, line, "[tenant %s] devices: none of them is there", tenant->name);
}

static void
doubt_memory(const struct teller *t, const struct gpd_config_tenant *tenant, int device,
	     const struct gpd_config_device_facts *facts, const char *key,
	     const struct gpd_config_amount *amount)
{
	char wanted[GPD_SIZE_TEXT_MAX], all[GPD_SIZE_TEXT_MAX];

	if (amount->share || amount->number == GPD_NO_LIMIT || amount->number <= facts->memory)
		return;
	say(t, line_of(tenant, key, device),
	    "[tenant %s] %s = %s: device %d has %s, so it has all of that", tenant->name, key,
	    gpd_size_text(amount->number, wanted), device, gpd_size_text(facts->memory, all));
}

static void
doubt_sm(const struct teller *t, const struct gpd_config_tenant *tenant, int device,
	 const struct gpd_config_device_facts *facts, uint32_t piece, const char *key,
	 const struct gpd_config_amount *amount)
{
	uint32_t sms = facts->multiprocessors;
	uint32_t given = gpd_config_given(gpd_config_multiprocessors(amount, sms), sms, piece);
	bool all = !is_amount(amount) || (amount->share == GPD_CONFIG_WHOLE);
	char said[32];

	if (all || !sms || (given && amount->number <= sms))
		return;
	if (amount->share)
		(void)snprintf(said, sizeof(said), "%g%%", (double)amount->share / 100);
	else
		(void)snprintf(said, sizeof(said), "%llu", (unsigned long long)amount->number);
	say(t, line_of(tenant, key, device),
	    amount->number > sms
		    ? "[tenant %s] %s = %s: device %d has %u multiprocessors, so it has all of them"
		    : "[tenant %s] %s = %s: device %d has %u multiprocessors, given out in pieces "
		      "of %u, so it has all of them",
	    tenant->name, key, said, device, sms, piece);
}

const char *
gpd_config_policy_needed(const char *key, uint32_t policy)
{
	if (strcmp(key, "time-share") == 0)
		return policy == GPD_POLICY_FIXED ? NULL : "fixed";
	if (strcmp(key, "weight") == 0)
		return policy == GPD_POLICY_BEST_EFFORT ? NULL : "best-effort";
	return policy == GPD_POLICY_NONE ? "best-effort" : NULL;
}

/* Of GPU time, which some policies do not share out. */
static const struct {
	const char *key;
	size_t offset;
	uint32_t not_given;
} time_keys[] = {
	{ "weight", offsetof(struct gpd_config_quota, weight), 100 },
	{ "limit", offsetof(struct gpd_config_quota, limit), 100 },
	{ "time-share", offsetof(struct gpd_config_quota, time_share), 0 },
};
#define TIME_KEYS (sizeof(time_keys) / sizeof(time_keys[0]))

/* What is given for the first device whose policy makes no use of it. */
static void
doubt_time(const struct teller *t, const struct gpd_config_tenant *tenant,
	   const struct gpd_config_device_facts *devices, int count, size_t at)
{
	for (int d = 0; d < count && d < GPD_LEDGER_DEVICES; d++) {
		const struct gpd_config_quota *quota = &tenant->devices[d];
		const char *needed = gpd_config_policy_needed(
			time_keys[at].key, gpd_config_device(t->config, d, devices[d].uuid).policy);

		if (!needed || !quota->allowed ||
		    *(const uint32_t *)((const char *)quota + time_keys[at].offset) ==
			    time_keys[at].not_given)
			continue;
		say(t, line_of(tenant, time_keys[at].key, d),
		    "[tenant %s] %s: the policy of device %d makes no use of it (policy = %s does)",
		    tenant->name, time_keys[at].key, d, needed);
		return;
	}
}

void
gpd_config_doubt_devices(const struct gpd_config *config,
			 const struct gpd_config_device_facts *devices, int count,
			 gpd_config_tell *tell, void *arg)
{
	const struct teller t = { config, tell, arg };

	doubt_rules(&t, devices, count);
	for (int i = 0; i < config->tenant_count; i++) {
		const struct gpd_config_tenant *tenant = &config->tenants[i];

		doubt_list(&t, tenant, count);
		for (size_t at = 0; at < TIME_KEYS; at++)
			doubt_time(&t, tenant, devices, count, at);
		for (int d = 0; d < count && d < GPD_LEDGER_DEVICES; d++) {
			const struct gpd_config_quota *quota = &tenant->devices[d];
			uint32_t piece =
				gpd_config_device(config, d, devices[d].uuid).sm_granularity;

			if (!quota->allowed)
				continue;
			doubt_memory(&t, tenant, d, &devices[d], "memory", &quota->memory);
			doubt_memory(&t, tenant, d, &devices[d], "session-memory",
				     &quota->session_memory);
			doubt_sm(&t, tenant, d, &devices[d], piece, "sm", &quota->sm);
			doubt_sm(&t, tenant, d, &devices[d], piece, "session-sm",
				 &quota->session_sm);
		}
	}
}
