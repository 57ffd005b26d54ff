/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/pools.h"

#include "base/edit_distance.h"
#include "cli/command.h"
#include "client/base/config.h"
#include "ctl/value.h"
#include "transport/url.h"

#include <stdio.h>
#include <string.h>

#define GPUS_MAX 64

static const char *
check_gpus(const char *text)
{
	uint64_t value;

	return ctl_parse_number(text, 1, GPUS_MAX, &value)
		       ? NULL
		       : "is not a number of devices from 1 to 64";
}

static const char *
check_memory(const char *text)
{
	uint64_t bytes;

	return ctl_parse_bytes(text, &bytes) && bytes >= 1 << 20
		       ? NULL
		       : "is not a valid size: use 10G, 1.5G or 512M";
}

static const char *
check_sm(const char *text)
{
	uint32_t hundredths;

	return ctl_parse_percent(text, &hundredths) ? NULL : "is not a valid percentage: use 50%";
}

static const char *
check_wait(const char *text)
{
	unsigned int seconds;

	return gpc_config_parse_wait(text, &seconds)
		       ? NULL
		       : "is not a valid time: use 90s, 10m or 2h, at most a week";
}

static const char *
check_tenant(const char *text)
{
	return gpc_pool_config_is_name(text) ? NULL : "is not a valid tenant name";
}

const char *
cli_pools_check(const char *key, const char *value)
{
	static const struct {
		const char *key;
		const char *(*check)(const char *text);
	} checks[] = {
		{ "tenant", check_tenant }, { "gpus", check_gpus }, { "memory", check_memory },
		{ "sm", check_sm },         { "wait", check_wait },
	};
	static char text[GPC_POOL_URL_MAX];
	const char *wrong = NULL;

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
		if (strcmp(key, checks[i].key) == 0)
			wrong = checks[i].check(value);
	if (wrong)
		(void)snprintf(text, sizeof(text), "\"%s\" %s", value, wrong);
	return wrong ? text : NULL;
}

int
cli_pools_read(struct gpc_pools_config *pools)
{
	char error[CLI_ERROR_MAX];

	*pools = (struct gpc_pools_config){ .check = cli_pools_check };
	return gpc_pools_config_read(pools, error, sizeof(error)) ? cli_fail("%s", error) : 0;
}

const struct gpc_pool_config *
cli_pools_find(const struct gpc_pools_config *pools, const char *name)
{
	for (int i = 0; i < pools->count; i++) {
		if (strcmp(pools->list[i].name, name) == 0)
			return &pools->list[i];
	}
	return NULL;
}

int
cli_pools_with_address(const struct gpc_pools_config *pools, const char *text,
		       const struct gpc_pool_config *found[2])
{
	struct gp_url given, tls;
	char error[320];
	bool parsed = gp_url_parse(text, &given, error, sizeof(error)) == 0;
	int count = 0;

	tls = given;
	/* Without a scheme the address may be tcp:// or tls://. */
	if (parsed && !strstr(text, "://"))
		(void)snprintf(tls.scheme, sizeof(tls.scheme), "tls");
	for (int i = 0; i < pools->count; i++) {
		const struct gpc_pool_config *pool = &pools->list[i];

		if (gpc_pool_config_is_hidden(pools, pool) ||
		    (strcmp(pool->url, text) != 0 &&
		     !(parsed && (gpc_pool_config_has_address(pool, &tls) ||
				  gpc_pool_config_has_address(pool, &given)))))
			continue;
		if (count < 2)
			found[count] = pool;
		count++;
	}
	return count;
}

void
cli_pools_explain(const struct gpc_pools_config *pools, const char *name, char *error,
		  size_t error_size)
{
	const char *names[GPC_POOLS_MAX], *meant;
	char known[512] = "";

	for (int i = 0; i < pools->count; i++) {
		names[i] = pools->list[i].name;
		(void)snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s",
			       i ? ", " : "", names[i]);
	}
	meant = gp_suggest(name, names, pools->count);
	if (strstr(name, "://"))
		(void)snprintf(error, error_size,
			       "no pool has the address %s: \"gpupool pools\" lists them", name);
	else if (pools->count == 0)
		(void)snprintf(error, error_size,
			       "unknown pool \"%s\": no pools.conf names any; add it with "
			       "\"gpupool login %s tls://HOST\"",
			       name, name);
	else if (meant)
		(void)snprintf(error, error_size, "unknown pool \"%s\"; did you mean %s?", name,
			       meant);
	else
		(void)snprintf(
			error, error_size,
			"unknown pool \"%s\" (%s); an address begins with its scheme: tls://%s",
			name, known, *name ? name : "HOST");
}
