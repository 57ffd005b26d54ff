/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/config/config_key.h"

#include "protocol/frame.h"
#include "server/common/config/config_value.h"
#include "transport/timeout.h"
#include "transport/url.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MILLION 1000000ul
#define BYTES_MAX (1ul << 60)
#define SM_MAX 65535

const char gpd_config_no_memory[] = "finds no memory";

static const char *
read_number(const struct gpd_config_key *key, const char *text, void *value)
{
	uint64_t number = key->keyword_value;

	if (!(key->keyword && strcmp(text, key->keyword) == 0) &&
	    !gpd_value_parse_number(text, key->min, key->max, &number))
		return key->wrong;
	*(uint32_t *)value = (uint32_t)number;
	return NULL;
}

/* Accepts 33 or 33%. */
static const char *
read_percent(const struct gpd_config_key *key, const char *text, void *value)
{
	char digits[8] = "";
	size_t length = strlen(text);
	uint64_t number;

	if (length > 0 && text[length - 1] == '%')
		length--;
	if (length >= sizeof(digits))
		return key->wrong;
	memcpy(digits, text, length);
	if (!gpd_value_parse_number(digits, key->min, key->max, &number))
		return key->wrong;
	*(uint32_t *)value = (uint32_t)number;
	return NULL;
}

static const char *
read_keyword(const struct gpd_config_key *key, const char *text, void *value)
{
	for (uint32_t i = 0; key->keywords[i]; i++) {
		if (strcmp(key->keywords[i], text) == 0) {
			*(uint32_t *)value = i;
			return NULL;
		}
	}
	return key->wrong;
}

/* "process" is the former name of "session". */
static const char *
read_isolation(const struct gpd_config_key *key, const char *text, void *value)
{
	return read_keyword(key, strcmp(text, "process") == 0 ? "session" : text, value);
}

static const char *
read_granularity(const struct gpd_config_key *key, const char *text, void *value)
{
	uint64_t number;

	if (!gpd_value_parse_number(text, 2, 8, &number) || (number != 2 && number != 8))
		return key->wrong;
	*(uint32_t *)value = (uint32_t)number;
	return NULL;
}

/* Parses an integer or decimal number into millionths; *end_p: the rest of the text. */
static bool
parse_decimal(const char *text, uint64_t *millionths_p, const char **end_p)
{
	uint64_t value = 0, unit = MILLION;

	if (!isdigit((unsigned char)*text))
		return false;
	for (; isdigit((unsigned char)*text); text++) {
		value = value * 10 + (uint64_t)(*text - '0');
		if (value >= UINT64_MAX / MILLION)
			return false;
	}
	value *= MILLION;
	if (*text == '.') {
		text++;
		if (!isdigit((unsigned char)*text))
			return false;
		for (; isdigit((unsigned char)*text); text++) {
			unit /= 10;
			if (unit == 0)
				return false;
			value += unit * (uint64_t)(*text - '0');
		}
	}
	*millionths_p = value;
	*end_p = text;
	return true;
}

static bool
parse_bytes(const char *text, uint64_t *bytes_p)
{
	static const char units[] = "KMGT";
	uint64_t millionths;
	unsigned int shift = 0;

	if (!parse_decimal(text, &millionths, &text))
		return false;
	if (*text) {
		const char *unit = strchr(units, toupper((unsigned char)*text));

		if (!unit)
			return false;
		shift = 10 * (unsigned int)(unit - units + 1);
		text++;
		if (*text == 'i')
			text++;
		if (*text == 'B' || *text == 'b')
			text++;
		if (*text)
			return false;
	}

	unsigned __int128 value = ((unsigned __int128)millionths << shift) / MILLION;

	if (value > BYTES_MAX)
		return false;
	*bytes_p = (uint64_t)value;
	return true;
}

/* Parses "12.5%" into 1250: at most two decimals, more than 0 and at most 100. */
static bool
parse_share(const char *text, uint64_t *share_p)
{
	uint64_t millionths;

	if (!parse_decimal(text, &millionths, &text) || strcmp(text, "%") != 0 ||
	    millionths % (MILLION / 100) || millionths == 0 || millionths > 100 * MILLION)
		return false;
	*share_p = millionths / (MILLION / 100);
	return true;
}

static const char *
read_memory(const struct gpd_config_key *key, const char *text, void *value)
{
	struct gpd_config_amount amount = { 0 };

	if (strcmp(text, "all") == 0)
		amount.number = GPD_NO_LIMIT;
	else if (!parse_share(text, &amount.share) &&
		 (!parse_bytes(text, &amount.number) || amount.number < GPD_MEMORY_MIN))
		return "is not a valid size: use 2M or more (16G), a percentage (40%) or all";
	*(struct gpd_config_amount *)value = amount;
	return NULL;
}

static const char *
read_sm(const struct gpd_config_key *key, const char *text, void *value)
{
	struct gpd_config_amount amount = { 0 };

	if (strcmp(text, "all") != 0 && !parse_share(text, &amount.share) &&
	    !gpd_value_parse_number(text, 1, SM_MAX, &amount.number))
		return "is not a valid number of multiprocessors: use 1 or more (33), a percentage "
		       "(25%) or all";
	*(struct gpd_config_amount *)value = amount;
	return NULL;
}

static const char *
read_bandwidth(const struct gpd_config_key *key, const char *text, void *value)
{
	uint64_t number = GPD_NO_LIMIT;

	if (strcmp(text, "unlimited") != 0 &&
	    (!parse_bytes(text, &number) || number < GPD_BANDWIDTH_MIN))
		return "is not a valid bandwidth: use bytes per second from 64K (500M), or "
		       "unlimited";
	*(uint64_t *)value = number;
	return NULL;
}

const char *
gpd_value_parse_metrics(const char *text, uint16_t port_min, char *host, size_t host_size,
			uint16_t *port_p)
{
	bool off = strcmp(text, "off") == 0;
	size_t length = strlen(text);
	char address[GP_URL_TEXT_MAX], ignored[GP_URL_TEXT_MAX];
	struct gp_url url = { .host = "" };

	(void)snprintf(address, sizeof(address), "tcp://%s%s",
		       strchr(text, ':') ? "" : "127.0.0.1:", text);
	/* The text must end with the port. */
	if (!off &&
	    (length == 0 || !isdigit((unsigned char)text[length - 1]) || strchr(text, '/') ||
	     gp_url_parse(address, &url, ignored, sizeof(ignored)) || url.port < port_min))
		return "is not an address to listen on (9400, 127.0.0.1:9400, [::1]:9400 or off)";
	(void)snprintf(host, host_size, "%s", url.host);
	*port_p = url.port;
	return NULL;
}

static const char *
read_metrics(const struct gpd_config_key *key, const char *text, void *value)
{
	struct gpd_config *config = value;

	return gpd_value_parse_metrics(text, 1, config->metrics_host, sizeof(config->metrics_host),
				       &config->metrics_port);
}

static const char *
read_path(const struct gpd_config_key *key, const char *text, void *value)
{
	size_t length = strlen(text);

	if (*text != '/' || length > key->max)
		return key->wrong;
	memcpy(value, text, length + 1);
	return NULL;
}

static const char *
read_device(const struct gpd_config_key *key, const char *text, void *value)
{
	struct gpd_config_tenant *tenant = value;
	uint64_t first = 0, last = GPD_LEDGER_DEVICES - 1;

	if (strcmp(text, "all") != 0) {
		if (!gpd_value_parse_number(text, first, last, &first))
			return "is not a device from 0 to 31 (a list is 0,1; or all)";
		last = first;
	}
	for (uint64_t i = first; i <= last; i++)
		tenant->devices[i].allowed = 1;
	return NULL;
}

/* Appends one element of this size to a list. */
static const char *
list_append(void *list_p, int *count_p, const void *element, size_t size)
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
	size_t length = strlen(text);

	/* "*" would be taken for a pattern, but would match no user. */
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c <= ' ' || *c == 0x7f || strchr("*,;=\"", *c))
			length = 0;
	if (length == 0 || length >= sizeof(name))
		return "is not a valid user name (1 to 63 characters, no blanks; a list is "
		       "alice,bob)";
	memcpy(name, text, length);
	return list_append(&tenant->users, &tenant->user_count, name, sizeof(name));
}

static const char *
read_certificate(const struct gpd_config_key *key, const char *text, void *value)
{
	struct gpd_config_tenant *tenant = value;
	char name[GPD_CONFIG_CERTIFICATE_MAX] = "";
	const char *wrong = gpd_value_parse_certificate(text, name);

	return wrong ? wrong
		     : list_append(&tenant->certificates, &tenant->certificate_count, name,
				   sizeof(name));
}

static bool
network_is_aligned(const struct gpd_config_network *network, unsigned int bits)
{
	for (unsigned int i = bits; i < (network->is_v6 ? 128u : 32u); i++)
		if (network->address[i / 8] & (0x80 >> i % 8))
			return false;
	return true;
}

static const char *
read_network(const struct gpd_config_key *key, const char *text, void *into)
{
	static const char form[] =
		"is not a valid address (127.0.0.1, 10.0.0.0/8, ::1 or fd00::/8)";
	struct gpd_config_tenant *tenant = into;
	struct gpd_config_network value;
	char address[INET6_ADDRSTRLEN];
	const char *slash = strchr(text, '/');
	size_t length = slash ? (size_t)(slash - text) : strlen(text);

	if (length >= sizeof(address))
		return form;
	memcpy(address, text, length);
	address[length] = 0;
	if (!gpd_value_parse_address(address, &value))
		return form;
	if (slash) {
		uint64_t bits;

		if (strchr(address, ':') && !value.is_v6)
			return "is an IPv4 address in the form of IPv6 (as IPv4: 10.0.0.0/8)";
		if (!gpd_value_parse_number(slash + 1, 0, value.bits, &bits))
			return form;
		if (!network_is_aligned(&value, (unsigned int)bits))
			return "has bits set beyond its prefix length (10.0.0.0/8, not 10.0.0.1/8)";
		value.bits = (uint8_t)bits;
	}
	return list_append(&tenant->networks, &tenant->network_count, &value, sizeof(value));
}

/* In the order of enum gpd_config_isolation. */
static const char *const isolations[] = { "shared", "tenant", "session", "shared-only", NULL };
/* In the order of enum gp_pack_mode. */
static const char *const compressions[] = { "auto", "on", "off", NULL };
static const char *const priorities[] = { "normal", "low", "high", NULL };
static const char *const policies[] = { "none", "best-effort", "equal", "fixed", NULL };
static const char *const on_hang_actions[] = { "report", "restart", NULL };
/* In the order of enum gpd_config_software. */
static const char *const software_devices[] = { "off", "on", NULL };
static const char *const yes_no[] = { "no", "yes", NULL };

/* The error texts below contain these numbers. */
static_assert(GPD_LEDGER_DEVICES == 32 && GPD_LEDGER_SESSIONS == 4096, "0 to 31, 1 to 4096");
static_assert(GP_LANES_MAX == 16, "1 to 16");
static_assert(GP_TIMEOUT_MAX == 86400, "1 to 86400");

static_assert(GPD_PLACES_MAX == 4096, "1 to 4096");
#define WORKERS_WRONG "is not a number from 1 to 4096"
#define ISOLATION_WRONG "is not one of shared, tenant, session, shared-only"

/* Initializers for the struct and field that receive a value. */
#define KEY_FIELD(in, field) .offset = offsetof(struct in, field)
#define KEY_PATH(field)                                                                            \
	KEY_FIELD(gpd_config, field),                                                              \
		.max = GPD_CONFIG_PATH_MAX - 1,                                                    \
		.wrong = "is not an absolute path of at most 255 bytes (/etc/gpupool/tokens)"
#define KEY_QUOTA(field) KEY_FIELD(gpd_config_quota, field), .shape = GPD_CONFIG_PER_DEVICE

static const struct gpd_config_key daemon_keys[] = {
	{ "sessions", read_number, KEY_FIELD(gpd_config, sessions_max), .min = 1,
	  .max = GPD_LEDGER_SESSIONS, .wrong = "is not a number from 1 to 4096" },
	{ "isolation", read_isolation, KEY_FIELD(gpd_config, isolation), .keywords = isolations,
	  .wrong = ISOLATION_WRONG },
	{ "ready-workers", read_number, KEY_FIELD(gpd_config, ready_workers), .min = 0, .max = 16,
	  .wrong = "is not a number from 0 to 16" },
	{ "workers-per-device", read_number, KEY_FIELD(gpd_config, workers_per_device), .min = 1,
	  .max = GPD_PLACES_MAX, .wrong = WORKERS_WRONG },
	{ "host-memory", read_memory, KEY_FIELD(gpd_config, host_memory) },
	{ "code-memory", read_memory, KEY_FIELD(gpd_config, code_memory) },
	{ "pinned-memory", read_memory, KEY_FIELD(gpd_config, pinned_memory) },
	{ "lanes", read_number, KEY_FIELD(gpd_config, lanes_max), .min = 1, .max = GP_LANES_MAX,
	  .wrong = "is not a number from 1 to 16" },
	{ "sessions-per-address", read_number, KEY_FIELD(gpd_config, sessions_per_address),
	  .min = 1, .max = GPD_LEDGER_SESSIONS, .keyword = "unlimited", .keyword_value = UINT32_MAX,
	  .wrong = "is neither a number from 1 to 4096 nor unlimited" },
	{ "worker-idle-timeout", read_number, KEY_FIELD(gpd_config, worker_idle_timeout), .min = 0,
	  .max = 86400, .wrong = "is not a number of seconds from 0 to 86400" },
	{ "quarantine", read_number, KEY_FIELD(gpd_config, quarantine), .min = 0, .max = 86400,
	  .wrong = "is not a number of seconds from 0 to 86400" },
	{ "idle-timeout", read_number, KEY_FIELD(gpd_config, idle_timeout), .min = 1,
	  .max = 10000000, .keyword = "never", .keyword_value = 0,
	  .wrong = "is neither a number of seconds from 1 to 10000000 nor never" },
	{ "on-hang", read_keyword, KEY_FIELD(gpd_config, on_hang), .keywords = on_hang_actions,
	  .wrong = "is neither report nor restart" },
	{ "timeout", read_number, KEY_FIELD(gpd_config, timeout), .min = 1, .max = GP_TIMEOUT_MAX,
	  .wrong = "is not a whole number of seconds from 1 to 86400" },
	{ "software-device", read_keyword, KEY_FIELD(gpd_config, software_device),
	  .keywords = software_devices, .wrong = "is neither on nor off" },
	{ "metrics", read_metrics, .offset = 0 },
	{ "admin-socket", read_path, KEY_FIELD(gpd_config, admin_socket), .max = 107,
	  .wrong = "is not an absolute path of at most 107 bytes (/run/gpupool/admin)" },
	{ "tokens", read_path, KEY_PATH(tokens) },
	{ "certificate", read_path, KEY_PATH(certificate) },
	{ "key", read_path, KEY_PATH(key) },
	{ "client-authority", read_path, KEY_PATH(client_authority) },
	{ "crl", read_path, KEY_PATH(crl) },
	{ "usage", read_path, KEY_PATH(usage) },
};

/* All values are 32 bits wide: apply_rule() relies on it. */
static const struct gpd_config_key device_keys[] = {
	{ "policy", read_keyword, KEY_FIELD(gpd_config_device, policy), .keywords = policies,
	  .wrong = "is not one of none, best-effort, equal, fixed" },
	{ "virtual-number", read_number, KEY_FIELD(gpd_config_device, virtual_number), .min = 1,
	  .max = 64, .wrong = "is not a number from 1 to 64" },
	{ "visible", read_keyword, KEY_FIELD(gpd_config_device, visible), .old_name = "export",
	  .keywords = yes_no, .wrong = "is neither yes nor no" },
	{ "sm-granularity", read_granularity, KEY_FIELD(gpd_config_device, sm_granularity),
	  .min = 2, .max = 8, .wrong = "is neither 2 nor 8" },
	{ "workers-per-device", read_number, KEY_FIELD(gpd_config_device, workers), .min = 1,
	  .max = GPD_PLACES_MAX, .wrong = WORKERS_WRONG },
};

static const struct gpd_config_key tenant_keys[] = {
	{ "devices", read_device, .shape = GPD_CONFIG_LIST },
	{ "memory", read_memory, KEY_QUOTA(memory) },
	{ "sm", read_sm, KEY_QUOTA(sm) },
	{ "weight", read_number, KEY_QUOTA(weight), .min = 1, .max = 1000,
	  .wrong = "is not a number from 1 to 1000" },
	{ "limit", read_percent, KEY_QUOTA(limit), .min = 1, .max = 100,
	  .wrong = "is not a whole percentage from 1 to 100" },
	{ "time-share", read_percent, KEY_QUOTA(time_share), .min = 0, .max = 100,
	  .wrong = "is not a whole percentage from 0 to 100" },
	{ "session-memory", read_memory, KEY_QUOTA(session_memory) },
	{ "session-sm", read_sm, KEY_QUOTA(session_sm) },
	{ "priority", read_keyword, KEY_FIELD(gpd_config_tenant, priority), .keywords = priorities,
	  .wrong = "is not one of normal, low, high" },
	{ "bandwidth", read_bandwidth, KEY_FIELD(gpd_config_tenant, bandwidth) },
	{ "sessions", read_number, KEY_FIELD(gpd_config_tenant, sessions_max), .min = 0,
	  .max = GPD_LEDGER_SESSIONS, .keyword = "unlimited", .keyword_value = UINT32_MAX,
	  .wrong = "is neither a number from 0 to 4096 nor unlimited" },
	{ "isolation", read_isolation, KEY_FIELD(gpd_config_tenant, isolation),
	  .keywords = isolations, .wrong = ISOLATION_WRONG },
	{ "compression", read_keyword, KEY_FIELD(gpd_config_tenant, compression),
	  .keywords = compressions, .wrong = "is not one of auto, on, off" },
	{ "code-memory", read_memory, KEY_FIELD(gpd_config_tenant, code_memory) },
	{ "pinned-memory", read_memory, KEY_FIELD(gpd_config_tenant, pinned_memory) },
	{ "users", read_user, .shape = GPD_CONFIG_LIST },
	{ "certificate", read_certificate, .shape = GPD_CONFIG_LIST },
	{ "addresses", read_network, .shape = GPD_CONFIG_LIST },
};

#define COUNT(table) ((int)(sizeof(table) / sizeof((table)[0])))
static_assert(COUNT(daemon_keys) <= GPD_CONFIG_KEYS_MAX &&
		      COUNT(tenant_keys) <= GPD_CONFIG_KEYS_MAX,
	      "GPD_CONFIG_KEYS_MAX");

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

static bool
name_equals(const char *key_name, const char *name, size_t length)
{
	return strlen(key_name) == length && memcmp(key_name, name, length) == 0;
}

int
gpd_config_key_index(enum gpd_config_section section, const char *name, size_t length)
{
	int count;
	const struct gpd_config_key *keys = gpd_config_keys(section, &count);

	for (int i = 0; i < count; i++)
		if (name_equals(keys[i].name, name, length) ||
		    (keys[i].old_name && name_equals(keys[i].old_name, name, length)))
			return i;
	return -1;
}
