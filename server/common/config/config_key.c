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
	uint64_t number = key->word_value;

	if (!(key->word && strcmp(text, key->word) == 0) &&
	    !gpd_value_number(text, key->min, key->max, &number))
		return key->wrong;
	*(uint32_t *)value = (uint32_t)number;
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

	return gpd_value_metrics(text, 1, config->metrics_host, sizeof(config->metrics_host),
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

/* One more element of this size at the end of a list. */
static const char *
add(void *list_p, int *count_p, const void *element, size_t size)
{
	void **list = list_p;
	char *grown = realloc(*list, (size_t)(*count_p + 1) * size);

	if (!grown)
		return gpd_config_no_memory;
	*list = grown;
	memcpy(grown + (size_t)(*count_p)++ * size, element, size);
	return NULL;
}

static const char *
read_user(const struct gpd_config_key *key, const char *text, void *value)
{
	struct gpd_config_tenant *tenant = value;
	char name[GPD_TENANT_NAME_MAX] = "";
	const char *wrong = gpd_value_user(text, name);

	return wrong ? wrong : add(&tenant->users, &tenant->user_count, name, sizeof(name));
}

static const char *
read_certificate(const struct gpd_config_key *key, const char *text, void *value)
{
	struct gpd_config_tenant *tenant = value;
	char name[GPD_CONFIG_CERTIFICATE_MAX] = "";
	const char *wrong = gpd_value_certificate(text, name);

	return wrong ? wrong
		     : add(&tenant->certificates, &tenant->certificate_count, name, sizeof(name));
}

static const char *
read_network(const struct gpd_config_key *key, const char *text, void *value)
{
	struct gpd_config_tenant *tenant = value;
	struct gpd_config_network network;
	const char *wrong = gpd_value_network(text, &network);

	return wrong ? wrong
		     : add(&tenant->networks, &tenant->network_count, &network, sizeof(network));
}

static const char *const isolations[] = { "shared", "process", "shared-only", NULL };
/* In the order of enum gp_pack_mode. */
static const char *const compressions[] = { "auto", "on", "off", NULL };
static const char *const priorities[] = { "normal", "low", "high", NULL };
static const char *const policies[] = { "none", "best-effort", "equal", "fixed", NULL };
static const char *const answers[] = { "no", "yes", NULL };

/* The texts below name these numbers. */
static_assert(GPD_LEDGER_DEVICES == 32 && GPD_LEDGER_SESSIONS == 4096, "0 to 31, 1 to 4096");
static_assert(GP_LANES_MAX == 16, "1 to 16");

#define ISOLATION_WRONG "is none of shared, process, shared-only"

/* Into which field of which struct a value goes. */
#define AT(in, field) .offset = offsetof(struct in, field)
#define OF_QUOTA(field) AT(gpd_config_quota, field), .shape = GPD_CONFIG_PER_DEVICE

static const struct gpd_config_key daemon_keys[] = {
	{ "sessions", read_number, AT(gpd_config, sessions_max), .min = 1,
	  .max = GPD_LEDGER_SESSIONS, .wrong = "is no number from 1 to 4096" },
	{ "isolation", read_word, AT(gpd_config, isolation), .words = isolations,
	  .wrong = ISOLATION_WRONG },
	{ "ready-workers", read_number, AT(gpd_config, ready_workers), .min = 0, .max = 16,
	  .wrong = "is no number from 0 to 16" },
	{ "host-memory", read_memory, AT(gpd_config, host_memory) },
	{ "code-memory", read_memory, AT(gpd_config, code_memory) },
	{ "lanes", read_number, AT(gpd_config, lanes_max), .min = 1, .max = GP_LANES_MAX,
	  .wrong = "is no number from 1 to 16" },
	{ "sessions-per-address", read_number, AT(gpd_config, sessions_per_address), .min = 1,
	  .max = GPD_LEDGER_SESSIONS, .word = "unlimited", .word_value = UINT32_MAX,
	  .wrong = "is neither a number from 1 to 4096 nor unlimited" },
	{ "idle-timeout", read_number, AT(gpd_config, idle_timeout), .min = 1, .max = 10000000,
	  .word = "never", .word_value = 0, .wrong = "is neither a number of seconds nor never" },
	{ "metrics", read_metrics, .offset = 0 },
	{ "admin-socket", read_socket, .offset = 0 },
	{ "tokens", read_path, AT(gpd_config, tokens) },
	{ "certificate", read_path, AT(gpd_config, certificate) },
	{ "key", read_path, AT(gpd_config, key) },
	{ "client-authority", read_path, AT(gpd_config, client_authority) },
	{ "crl", read_path, AT(gpd_config, crl) },
};

/* In the order of enum gpd_config_given. */
static const struct gpd_config_key device_keys[] = {
	{ "policy", read_word, AT(gpd_config_device, policy), .words = policies,
	  .wrong = "is none of none, best-effort, equal, fixed" },
	{ "virtual-number", read_number, AT(gpd_config_device, virtual_number), .min = 1, .max = 64,
	  .wrong = "is no number from 1 to 64" },
	{ "export", read_word, AT(gpd_config_device, exported), .words = answers,
	  .wrong = "is neither yes nor no" },
	{ "sm-granularity", read_granularity, AT(gpd_config_device, sm_granularity), .min = 2,
	  .max = 8, .wrong = "is neither 2 nor 8" },
};

static const struct gpd_config_key tenant_keys[] = {
	{ "devices", read_device, .shape = GPD_CONFIG_LIST },
	{ "memory", read_memory, OF_QUOTA(memory) },
	{ "sm", read_sm, OF_QUOTA(sm) },
	{ "weight", read_number, OF_QUOTA(weight), .min = 1, .max = 1000,
	  .wrong = "is no number from 1 to 1000" },
	{ "limit", read_percent, OF_QUOTA(limit), .min = 1, .max = 100,
	  .wrong = "is no whole per cent from 1 to 100" },
	{ "time-share", read_percent, OF_QUOTA(time_share), .min = 0, .max = 100,
	  .wrong = "is no whole per cent from 0 to 100" },
	{ "session-memory", read_memory, OF_QUOTA(session_memory) },
	{ "session-sm", read_sm, OF_QUOTA(session_sm) },
	{ "priority", read_word, AT(gpd_config_tenant, priority), .words = priorities,
	  .wrong = "is none of normal, low, high" },
	{ "bandwidth", read_bandwidth, AT(gpd_config_tenant, bandwidth) },
	{ "sessions", read_number, AT(gpd_config_tenant, sessions_max), .min = 0,
	  .max = GPD_LEDGER_SESSIONS, .word = "unlimited", .word_value = UINT32_MAX,
	  .wrong = "is neither a number from 0 to 4096 nor unlimited" },
	{ "isolation", read_word, AT(gpd_config_tenant, isolation), .words = isolations,
	  .wrong = ISOLATION_WRONG },
	{ "compression", read_word, AT(gpd_config_tenant, compression), .words = compressions,
	  .wrong = "is none of auto, on, off" },
	{ "code-memory", read_memory, AT(gpd_config_tenant, code_memory) },
	{ "users", read_user, .shape = GPD_CONFIG_LIST },
	{ "certificate", read_certificate, .shape = GPD_CONFIG_LIST },
	{ "addresses", read_network, .shape = GPD_CONFIG_LIST },
};

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))
static_assert(COUNT(tenant_keys) <= GPD_CONFIG_KEYS_MAX, "room for all");

const struct gpd_config_key *
gpd_config_keys(enum gpd_config_section section, int *count_p)
{
	static const struct {
		const struct gpd_config_key *keys;
		int count;
	} sections[] = {
		[GPD_CONFIG_SECTION_NONE] = { NULL, 0 },
		[GPD_CONFIG_SECTION_DAEMON] = { daemon_keys, COUNT(daemon_keys) },
		[GPD_CONFIG_SECTION_DEVICE] = { device_keys, COUNT(device_keys) },
		[GPD_CONFIG_SECTION_TENANT] = { tenant_keys, COUNT(tenant_keys) },
	};

	*count_p = sections[section].count;
	return sections[section].keys;
}
