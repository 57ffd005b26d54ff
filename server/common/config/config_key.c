/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/config/config_key.h"

#include "protocol/frame.h"
#include "server/common/config/config_value.h"

#include <stdlib.h>
#include <string.h>

const char gpd_config_no_memory[] = "finds no memory";

static const char *
read_number(const struct gpd_config_key *key, const char *text, void *value)
{
	uint64_t number;

	if (!gpd_value_number(text, key->min, key->max, &number))
		return key->wrong;
	*(uint32_t *)value = (uint32_t)number;
	return NULL;
}

static const char *
read_number_or_unlimited(const struct gpd_config_key *key, const char *text, void *value)
{
	if (strcmp(text, "unlimited") != 0)
		return read_number(key, text, value);
	*(uint32_t *)value = UINT32_MAX;
	return NULL;
}

static const char *
read_number_or_never(const struct gpd_config_key *key, const char *text, void *value)
{
	if (strcmp(text, "never") != 0)
		return read_number(key, text, value);
	*(uint32_t *)value = 0;
	return NULL;
}

static const char *
read_percent(const struct gpd_config_key *key, const char *text, void *value)
{
	uint64_t number;

	if (!gpd_value_percent(text, key->min, key->max, &number))
		return key->wrong;
	*(uint32_t *)value = (uint32_t)number;
	return NULL;
}

static const char *
read_word(const struct gpd_config_key *key, const char *text, void *value)
{
	for (uint32_t i = 0; key->words[i]; i++) {
		if (strcmp(key->words[i], text) == 0) {
			*(uint32_t *)value = i;
			return NULL;
		}
	}
	return key->wrong;
}

static const char *
read_granularity(const struct gpd_config_key *key, const char *text, void *value)
{
	uint64_t number;

	if (!gpd_value_number(text, 2, 8, &number) || (number != 2 && number != 8))
		return key->wrong;
	*(uint32_t *)value = (uint32_t)number;
	return NULL;
}

static const char *
read_memory(const struct gpd_config_key *key, const char *text, void *value)
{
	return gpd_value_memory(text, value);
}

static const char *
read_sm(const struct gpd_config_key *key, const char *text, void *value)
{
	return gpd_value_sm(text, value);
}

static const char *
read_bandwidth(const struct gpd_config_key *key, const char *text, void *value)
{
	return gpd_value_bandwidth(text, value);
}

static const char *
read_metrics(const struct gpd_config_key *key, const char *text, void *value)
{
	struct gpd_config *config = value;

	return gpd_value_metrics(text, config->metrics_host, sizeof(config->metrics_host),
				 &config->metrics_port);
}

static const char *
read_socket(const struct gpd_config_key *key, const char *text, void *value)
{
	struct gpd_config *config = value;
	size_t length = strlen(text);

	if (*text != '/' || length >= sizeof(config->admin_socket))
		return "is no absolute path of at most 107 bytes (/run/gpupool/admin)";
	memcpy(config->admin_socket, text, length + 1);
	return NULL;
}

static const char *
read_path(const struct gpd_config_key *key, const char *text, void *value)
{
	size_t length = strlen(text);

	if (*text != '/' || length >= GPD_CONFIG_PATH_MAX)
		return "is no absolute path of at most 255 bytes (/etc/gpupool/tokens)";
	memcpy(value, text, length + 1);
	return NULL;
}

static const char *
read_device(const struct gpd_config_key *key, const char *text, void *value)
{
	struct gpd_config_tenant *tenant = value;
	uint64_t first = 0, last = GPD_LEDGER_DEVICES - 1;

	if (strcmp(text, "all") != 0) {
		if (!gpd_value_number(text, first, last, &first))
			return "is no device from 0 to 31 (a list is 0,1; or all)";
		last = first;
	}
	for (uint64_t i = first; i <= last; i++)
		tenant->devices[i].allowed = 1;
	return NULL;
}

static const char *
read_user(const struct gpd_config_key *key, const char *text, void *value)
{
	struct gpd_config_tenant *tenant = value;
	char name[GPD_TENANT_NAME_MAX];
	const char *wrong = gpd_value_user(text, name);
	void *grown;

	if (wrong)
		return wrong;
	grown = realloc(tenant->users, (size_t)(tenant->user_count + 1) * sizeof(*tenant->users));
	if (!grown)
		return gpd_config_no_memory;
	tenant->users = grown;
	memcpy(tenant->users[tenant->user_count++], name, sizeof(name));
	return NULL;
}

static const char *
read_certificate(const struct gpd_config_key *key, const char *text, void *value)
{
	struct gpd_config_tenant *tenant = value;
	char name[GPD_CONFIG_CERTIFICATE_MAX];
	const char *wrong = gpd_value_certificate(text, name);
	void *grown;

	if (wrong)
		return wrong;
	grown = realloc(tenant->certificates,
			(size_t)(tenant->certificate_count + 1) * sizeof(*tenant->certificates));
	if (!grown)
		return gpd_config_no_memory;
	tenant->certificates = grown;
	memcpy(tenant->certificates[tenant->certificate_count++], name, sizeof(name));
	return NULL;
}

static const char *
read_network(const struct gpd_config_key *key, const char *text, void *value)
{
	struct gpd_config_tenant *tenant = value;
	struct gpd_config_network network;
	const char *wrong = gpd_value_network(text, &network);
	void *grown;

	if (wrong)
		return wrong;
	grown = realloc(tenant->networks,
			(size_t)(tenant->network_count + 1) * sizeof(*tenant->networks));
	if (!grown)
		return gpd_config_no_memory;
	tenant->networks = grown;
	tenant->networks[tenant->network_count++] = network;
	return NULL;
}

static const char *const isolations[] = { "shared", "process", "shared-only", NULL };
static const char *const priorities[] = { "normal", "low", "high", NULL };
static const char *const policies[] = { "none", "best-effort", "equal", "fixed", NULL };
static const char *const answers[] = { "no", "yes", NULL };

/* The texts below name these numbers. */
static_assert(GPD_LEDGER_DEVICES == 32 && GPD_LEDGER_SESSIONS == 4096, "0 to 31, 1 to 4096");
static_assert(GP_LANES_MAX == 16, "1 to 16");

#define ISOLATION_WRONG "is none of shared, process, shared-only"

static const struct gpd_config_key daemon_keys[] = {
	{ .name = "sessions",
	  .read = read_number,
	  .offset = offsetof(struct gpd_config, sessions_max),
	  .min = 1,
	  .max = GPD_LEDGER_SESSIONS,
	  .wrong = "is no number from 1 to 4096" },
	{ .name = "isolation",
	  .read = read_word,
	  .offset = offsetof(struct gpd_config, isolation),
	  .words = isolations,
	  .wrong = ISOLATION_WRONG },
	{ .name = "host-memory",
	  .read = read_memory,
	  .offset = offsetof(struct gpd_config, host_memory) },
	{ .name = "code-memory",
	  .read = read_memory,
	  .offset = offsetof(struct gpd_config, code_memory) },
	{ .name = "lanes",
	  .read = read_number,
	  .offset = offsetof(struct gpd_config, lanes_max),
	  .min = 1,
	  .max = GP_LANES_MAX,
	  .wrong = "is no number from 1 to 16" },
	{ .name = "sessions-per-address",
	  .read = read_number_or_unlimited,
	  .offset = offsetof(struct gpd_config, sessions_per_address),
	  .min = 1,
	  .max = GPD_LEDGER_SESSIONS,
	  .wrong = "is neither a number from 1 to 4096 nor unlimited" },
	{ .name = "idle-timeout",
	  .read = read_number_or_never,
	  .offset = offsetof(struct gpd_config, idle_timeout),
	  .min = 1,
	  .max = 10000000,
	  .wrong = "is neither a number of seconds nor never" },
	{ .name = "metrics", .read = read_metrics },
	{ .name = "admin-socket", .read = read_socket },
	{ .name = "tokens", .read = read_path, .offset = offsetof(struct gpd_config, tokens) },
	{ .name = "certificate",
	  .read = read_path,
	  .offset = offsetof(struct gpd_config, certificate) },
	{ .name = "key", .read = read_path, .offset = offsetof(struct gpd_config, key) },
	{ .name = "client-authority",
	  .read = read_path,
	  .offset = offsetof(struct gpd_config, client_authority) },
	{ .name = "crl", .read = read_path, .offset = offsetof(struct gpd_config, crl) },
};

/* In the order of enum gpd_config_given. */
static const struct gpd_config_key device_keys[] = {
	{ .name = "policy",
	  .read = read_word,
	  .offset = offsetof(struct gpd_config_device, policy),
	  .words = policies,
	  .wrong = "is none of none, best-effort, equal, fixed" },
	{ .name = "virtual-number",
	  .read = read_number,
	  .offset = offsetof(struct gpd_config_device, virtual_number),
	  .min = 1,
	  .max = 64,
	  .wrong = "is no number from 1 to 64" },
	{ .name = "export",
	  .read = read_word,
	  .offset = offsetof(struct gpd_config_device, exported),
	  .words = answers,
	  .wrong = "is neither yes nor no" },
	{ .name = "sm-granularity",
	  .read = read_granularity,
	  .offset = offsetof(struct gpd_config_device, sm_granularity),
	  .wrong = "is neither 2 nor 8" },
};

static const struct gpd_config_key tenant_keys[] = {
	{ .name = "devices", .read = read_device, .shape = GPD_CONFIG_LIST },
	{ .name = "memory",
	  .read = read_memory,
	  .shape = GPD_CONFIG_PER_DEVICE,
	  .offset = offsetof(struct gpd_config_quota, memory) },
	{ .name = "sm",
	  .read = read_sm,
	  .shape = GPD_CONFIG_PER_DEVICE,
	  .offset = offsetof(struct gpd_config_quota, sm) },
	{ .name = "weight",
	  .read = read_number,
	  .shape = GPD_CONFIG_PER_DEVICE,
	  .offset = offsetof(struct gpd_config_quota, weight),
	  .min = 1,
	  .max = 1000,
	  .wrong = "is no number from 1 to 1000" },
	{ .name = "limit",
	  .read = read_percent,
	  .shape = GPD_CONFIG_PER_DEVICE,
	  .offset = offsetof(struct gpd_config_quota, limit),
	  .min = 1,
	  .max = 100,
	  .wrong = "is no whole per cent from 1 to 100" },
	{ .name = "time-share",
	  .read = read_percent,
	  .shape = GPD_CONFIG_PER_DEVICE,
	  .offset = offsetof(struct gpd_config_quota, time_share),
	  .min = 0,
	  .max = 100,
	  .wrong = "is no whole per cent from 0 to 100" },
	{ .name = "session-memory",
	  .read = read_memory,
	  .shape = GPD_CONFIG_PER_DEVICE,
	  .offset = offsetof(struct gpd_config_quota, session_memory) },
	{ .name = "session-sm",
	  .read = read_sm,
	  .shape = GPD_CONFIG_PER_DEVICE,
	  .offset = offsetof(struct gpd_config_quota, session_sm) },
	{ .name = "priority",
	  .read = read_word,
	  .offset = offsetof(struct gpd_config_tenant, priority),
	  .words = priorities,
	  .wrong = "is none of normal, low, high" },
	{ .name = "bandwidth",
	  .read = read_bandwidth,
	  .offset = offsetof(struct gpd_config_tenant, bandwidth) },
	{ .name = "sessions",
	  .read = read_number_or_unlimited,
	  .offset = offsetof(struct gpd_config_tenant, sessions_max),
	  .min = 0,
	  .max = GPD_LEDGER_SESSIONS,
	  .wrong = "is neither a number from 0 to 4096 nor unlimited" },
	{ .name = "isolation",
	  .read = read_word,
	  .offset = offsetof(struct gpd_config_tenant, isolation),
	  .words = isolations,
	  .wrong = ISOLATION_WRONG },
	{ .name = "code-memory",
	  .read = read_memory,
	  .offset = offsetof(struct gpd_config_tenant, code_memory) },
	{ .name = "users", .read = read_user, .shape = GPD_CONFIG_LIST },
	{ .name = "certificate", .read = read_certificate, .shape = GPD_CONFIG_LIST },
	{ .name = "addresses", .read = read_network, .shape = GPD_CONFIG_LIST },
};

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))

const struct gpd_config_key *
gpd_config_keys(enum gpd_config_section section, int *count_p)
{
	static_assert(COUNT(tenant_keys) <= GPD_CONFIG_KEYS_MAX, "room for all");
	switch (section) {
	case GPD_CONFIG_SECTION_DAEMON:
		*count_p = COUNT(daemon_keys);
		return daemon_keys;
	case GPD_CONFIG_SECTION_DEVICE:
		*count_p = COUNT(device_keys);
		return device_keys;
	case GPD_CONFIG_SECTION_TENANT:
		*count_p = COUNT(tenant_keys);
		return tenant_keys;
	case GPD_CONFIG_SECTION_NONE:
		break;
	}
	*count_p = 0;
	return NULL;
}
