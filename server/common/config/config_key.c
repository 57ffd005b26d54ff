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

/* A row of the tables below: how the text is read, into which field of which struct. */
#define SECTION(key, how)                                                                          \
	{                                                                                          \
		.name = (key), .read = read_##how                                                  \
	}
#define LIST(key, how)                                                                             \
	{                                                                                          \
		.name = (key), .read = read_##how, .shape = GPD_CONFIG_LIST                        \
	}
#define VALUE(key, how, in, field)                                                                 \
	{                                                                                          \
		.name = (key), .read = read_##how, .offset = offsetof(struct in, field)            \
	}
#define WORD(key, in, field, list, text)                                                           \
	{                                                                                          \
		.name = (key), .read = read_word, .offset = offsetof(struct in, field),            \
		.words = (list), .wrong = (text)                                                   \
	}
#define NUMBER(key, how, in, field, from, to, text)                                                \
	{                                                                                          \
		.name = (key), .read = read_##how, .offset = offsetof(struct in, field),           \
		.min = (from), .max = (to), .wrong = (text)                                        \
	}
#define PER_DEVICE(key, how, field)                                                                \
	{                                                                                          \
		.name = (key), .read = read_##how, .shape = GPD_CONFIG_PER_DEVICE,                 \
		.offset = offsetof(struct gpd_config_quota, field)                                 \
	}
#define NUMBER_PER_DEVICE(key, how, field, from, to, text)                                         \
	{                                                                                          \
		.name = (key), .read = read_##how, .shape = GPD_CONFIG_PER_DEVICE,                 \
		.offset = offsetof(struct gpd_config_quota, field), .min = (from), .max = (to),    \
		.wrong = (text)                                                                    \
	}

static const struct gpd_config_key daemon_keys[] = {
	NUMBER("sessions", number, gpd_config, sessions_max, 1, GPD_LEDGER_SESSIONS,
	       "is no number from 1 to 4096"),
	WORD("isolation", gpd_config, isolation, isolations, ISOLATION_WRONG),
	NUMBER("ready-workers", number, gpd_config, ready_workers, 0, 16,
	       "is no number from 0 to 16"),
	VALUE("host-memory", memory, gpd_config, host_memory),
	VALUE("code-memory", memory, gpd_config, code_memory),
	NUMBER("lanes", number, gpd_config, lanes_max, 1, GP_LANES_MAX,
	       "is no number from 1 to 16"),
	NUMBER("sessions-per-address", number_or_unlimited, gpd_config, sessions_per_address, 1,
	       GPD_LEDGER_SESSIONS, "is neither a number from 1 to 4096 nor unlimited"),
	NUMBER("idle-timeout", number_or_never, gpd_config, idle_timeout, 1, 10000000,
	       "is neither a number of seconds nor never"),
	SECTION("metrics", metrics),
	SECTION("admin-socket", socket),
	VALUE("tokens", path, gpd_config, tokens),
	VALUE("certificate", path, gpd_config, certificate),
	VALUE("key", path, gpd_config, key),
	VALUE("client-authority", path, gpd_config, client_authority),
	VALUE("crl", path, gpd_config, crl),
};

/* In the order of enum gpd_config_given. */
static const struct gpd_config_key device_keys[] = {
	WORD("policy", gpd_config_device, policy, policies,
	     "is none of none, best-effort, equal, fixed"),
	NUMBER("virtual-number", number, gpd_config_device, virtual_number, 1, 64,
	       "is no number from 1 to 64"),
	WORD("export", gpd_config_device, exported, answers, "is neither yes nor no"),
	NUMBER("sm-granularity", granularity, gpd_config_device, sm_granularity, 2, 8,
	       "is neither 2 nor 8"),
};

static const struct gpd_config_key tenant_keys[] = {
	LIST("devices", device),
	PER_DEVICE("memory", memory, memory),
	PER_DEVICE("sm", sm, sm),
	NUMBER_PER_DEVICE("weight", number, weight, 1, 1000, "is no number from 1 to 1000"),
	NUMBER_PER_DEVICE("limit", percent, limit, 1, 100, "is no whole per cent from 1 to 100"),
	NUMBER_PER_DEVICE("time-share", percent, time_share, 0, 100,
			  "is no whole per cent from 0 to 100"),
	PER_DEVICE("session-memory", memory, session_memory),
	PER_DEVICE("session-sm", sm, session_sm),
	WORD("priority", gpd_config_tenant, priority, priorities, "is none of normal, low, high"),
	VALUE("bandwidth", bandwidth, gpd_config_tenant, bandwidth),
	NUMBER("sessions", number_or_unlimited, gpd_config_tenant, sessions_max, 0,
	       GPD_LEDGER_SESSIONS, "is neither a number from 0 to 4096 nor unlimited"),
	WORD("isolation", gpd_config_tenant, isolation, isolations, ISOLATION_WRONG),
	WORD("compression", gpd_config_tenant, compression, compressions,
	     "is none of auto, on, off"),
	VALUE("code-memory", memory, gpd_config_tenant, code_memory),
	LIST("users", user),
	LIST("certificate", certificate),
	LIST("addresses", network),
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
