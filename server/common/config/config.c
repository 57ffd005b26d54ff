/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/config/config.h"

#include "server/common/base/shared_file.h"
#include "server/common/config/config_key.h"
#include "server/common/config/config_value.h"
#include "transport/url.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FILE_MAX (1ul << 20)
#define MEMORY_UNIT (2ul << 20)
#define PLACES_MIN 2

void
gpd_config_free(struct gpd_config *config)
{
	if (!config)
		return;
	for (int i = 0; i < config->tenant_count; i++) {
		free(config->tenants[i].lines);
		free(config->tenants[i].users);
		free(config->tenants[i].certificates);
		free(config->tenants[i].networks);
	}
	free(config->tenants);
	free(config->device_rules);
	free(config->file);
	free(config);
}

int
gpd_config_load(const char *path, struct gpd_config **config_p, char *error, size_t error_size)
{
	return gpd_config_load_all(path, NULL, NULL, config_p, error, error_size);
}

int
gpd_config_load_all(const char *path, gpd_config_report_func *report, void *arg,
		    struct gpd_config **config_p, char *error, size_t error_size)
{
	char *bytes = NULL, *text;
	size_t size = 0;
	int r;

	if (!path)
		return gpd_config_parse("", "", config_p, error, error_size);
	r = gpd_shared_file_read(path, &bytes, &size, error, error_size);
	if (r)
		return r;
	text = strndup(bytes, size);
	if (!text) {
		snprintf(error, error_size, "%s: no memory", path);
		r = -ENOMEM;
	} else if (size > FILE_MAX) {
		snprintf(error, error_size, "%s: larger than 1 MiB", path);
		r = GP_E_INVALID;
	} else if (strlen(text) < size) {
		int line = 1;

		for (const char *c = text; *c; c++)
			line += *c == '\n';
		snprintf(error, error_size, "%s:%d: not a text file: contains a zero byte", path,
			 line);
		r = GP_E_INVALID;
	} else {
		r = gpd_config_parse_all(text, path, report, arg, config_p, error, error_size);
	}
	free(text);
	free(bytes);
	return r;
}

int
gpd_config_tenant_find(const struct gpd_config *config, const char *name)
{
	for (int i = 0; i < config->tenant_count; i++)
		if (strcmp(config->tenants[i].name, name) == 0)
			return i;
	return -1;
}

int
gpd_config_certificate_find(const struct gpd_config *config, const char *name)
{
	for (int i = 0; i < config->tenant_count; i++)
		for (int k = 0; k < config->tenants[i].certificate_count; k++)
			if (strcmp(config->tenants[i].certificates[k], name) == 0)
				return i;
	return gpd_config_tenant_find(config, name);
}

/* Addresses of a client: none (count 0: not known), one, or both loopback addresses for a client of
 * this machine. */
struct client_location {
	struct gpd_config_network at[2];
	int count;
};

static bool
network_contains(const struct gpd_config_network *address, const struct gpd_config_network *network)
{
	unsigned int whole = network->bits / 8, rest = network->bits % 8;

	if (address->is_v6 != network->is_v6 ||
	    memcmp(address->address, network->address, whole) != 0)
		return false;
	return rest == 0 || (address->address[whole] ^ network->address[whole]) >> (8 - rest) == 0;
}

static bool
tenant_allows_location(const struct gpd_config_tenant *tenant,
		       const struct client_location *client_location)
{
	if (tenant->network_count == 0)
		return true;
	for (int i = 0; i < tenant->network_count; i++)
		for (int k = 0; k < client_location->count; k++)
			if (network_contains(&client_location->at[k], &tenant->networks[i]))
				return true;
	return false;
}

static struct client_location
find_client_location(const char *address)
{
	static const char *const same_machine[] = { "shm://", "unix://" };
	struct client_location here = { .count = 2 }, client_location = { .count = 1 };
	char host[256], ignored[256];
	struct gp_url url;

	(void)gpd_value_parse_address("127.0.0.1", &here.at[0]);
	(void)gpd_value_parse_address("::1", &here.at[1]);
	if (!address)
		return here;
	for (size_t i = 0; i < sizeof(same_machine) / sizeof(same_machine[0]); i++)
		if (strncmp(address, same_machine[i], strlen(same_machine[i])) == 0)
			return here;
	snprintf(host, sizeof(host), "%s", address);
	if (strstr(address, "://")) {
		if (gp_url_parse(address, &url, ignored, sizeof(ignored)))
			return (struct client_location){ .count = 0 };
		snprintf(host, sizeof(host), "%s", url.host);
	}
	host[strcspn(host, "%")] = 0; /* without the interface of a link-local address */
	if (!gpd_value_parse_address(host, &client_location.at[0]))
		client_location.count = 0;
	return client_location;
}

static bool
has_user(const struct gpd_config_tenant *tenant, const char *user)
{
	for (int i = 0; i < tenant->user_count; i++)
		if (strcmp(tenant->users[i], user) == 0)
			return true;
	return false;
}

static int
find_tenant_by_user(const struct gpd_config *config, const char *user,
		    const struct client_location *client_location)
{
	for (int i = 0; user && i < config->tenant_count; i++)
		if (has_user(&config->tenants[i], user) &&
		    tenant_allows_location(&config->tenants[i], client_location))
			return i;
	return GPD_TENANT_DEFAULT;
}

int
gpd_config_admit(const struct gpd_config *config, const char *name, const char *user,
		 const char *address, int *tenant_p, char *error, size_t error_size)
{
	struct client_location client_location = find_client_location(address);
	int found;

	if (name && *name)
		found = gpd_config_tenant_find(config, name);
	else
		found = find_tenant_by_user(config, user, &client_location);
	if (found < 0) {
		snprintf(error, error_size, "unknown tenant \"%.63s\"", name);
		return GP_E_INVALID;
	}
	if (!tenant_allows_location(&config->tenants[found], &client_location)) {
		snprintf(error, error_size, "tenant \"%s\" does not accept clients from %.128s",
			 config->tenants[found].name, address ? address : "this machine");
		return GP_E_INVALID;
	}
	*tenant_p = found;
	return 0;
}

enum rank {
	RANK_NONE,
	RANK_ANY,
	RANK_ORDINAL,
	RANK_UUID,
};

static enum rank
rule_rank(const struct gpd_config_device_rule *rule, int ordinal, const char *uuid)
{
	if (rule->uuid[0])
		return uuid && strcasecmp(rule->uuid, uuid) == 0 ? RANK_UUID : RANK_NONE;
	if (rule->ordinal < 0)
		return RANK_ANY;
	return rule->ordinal == ordinal ? RANK_ORDINAL : RANK_NONE;
}

static void
apply_rule(const struct gpd_config_device_rule *rule, struct gpd_config_device *device)
{
	int count;
	const struct gpd_config_key *keys = gpd_config_keys(GPD_CONFIG_SECTION_DEVICE, &count);

	for (int i = 0; i < count; i++)
		if (rule->set_keys >> i & 1)
			memcpy((char *)device + keys[i].offset,
			       (const char *)&rule->device + keys[i].offset, sizeof(uint32_t));
}

struct gpd_config_device
gpd_config_device(const struct gpd_config *config, int ordinal, const char *uuid)
{
	struct gpd_config_device device = {
		.policy = GPD_POLICY_NONE,
		.virtual_number = 1,
		.visible = 1,
		.sm_granularity = 2,
		.workers = config->workers_per_device,
	};

	for (enum rank rank = RANK_ANY; rank <= RANK_UUID; rank++)
		for (int i = 0; i < config->device_rule_count; i++)
			if (rule_rank(&config->device_rules[i], ordinal, uuid) == rank)
				apply_rule(&config->device_rules[i], &device);
	return device;
}

static uint64_t
amount_resolve(const struct gpd_config_amount *amount, uint64_t whole)
{
	uint64_t number = amount->number;

	if (amount->share)
		number =
			(uint64_t)((unsigned __int128)whole * amount->share / GPD_CONFIG_SHARE_MAX);
	return number < whole ? number : whole;
}

static bool
amount_is_set(const struct gpd_config_amount *amount)
{
	return amount->number || amount->share;
}

uint64_t
gpd_config_get_host_memory(const struct gpd_config *config, uint64_t machine_bytes)
{
	return amount_resolve(&config->host_memory, machine_bytes);
}

static uint64_t
amount_resolve_part(const struct gpd_config_amount *own, const struct gpd_config_amount *all,
		    uint64_t machine_bytes, unsigned int parts)
{
	if (amount_is_set(own))
		return amount_resolve(own, machine_bytes);
	return amount_resolve(all, machine_bytes) / (parts ? parts : 1);
}

uint64_t
gpd_config_get_code_memory(const struct gpd_config *config, int tenant, uint64_t machine_bytes,
			   unsigned int parts)
{
	return amount_resolve_part(&config->tenants[tenant].code_memory, &config->code_memory,
				   machine_bytes, parts);
}

uint64_t
gpd_config_get_pinned_memory(const struct gpd_config *config, int tenant, uint64_t machine_bytes,
			     unsigned int parts)
{
	return amount_resolve_part(&config->tenants[tenant].pinned_memory, &config->pinned_memory,
				   machine_bytes, parts);
}

uint32_t
gpd_config_get_places(const struct gpd_config_device *device, uint64_t memory, uint64_t context)
{
	uint64_t places = context ? memory / 10 / context : GPD_PLACES_MAX;

	if (device->workers)
		return device->workers;
	if (places < PLACES_MIN)
		return PLACES_MIN;
	return places < GPD_PLACES_MAX ? (uint32_t)places : GPD_PLACES_MAX;
}

uint64_t
gpd_config_get_remaining(uint64_t memory, uint32_t contexts, uint64_t context)
{
	unsigned __int128 taken = (unsigned __int128)contexts * context;

	return taken < memory ? memory - (uint64_t)taken : 0;
}

const char *
gpd_config_get_sharing_key(const struct gpd_config_quota *quota,
			   const struct gpd_config_device *device)
{
	if (!quota->allowed)
		return NULL;
	if (gpd_config_amount_is_set(&quota->sm))
		return "sm";
	if (gpd_config_amount_is_set(&quota->session_sm))
		return "session-sm";
	if (device->virtual_number > 1)
		return "virtual-number";
	return device->policy != GPD_POLICY_NONE ? "policy" : NULL;
}

bool
gpd_config_is_apart(const struct gpd_config_tenant *tenant)
{
	return tenant->isolation_set && (tenant->isolation == GPD_CONFIG_ISOLATION_TENANT ||
					 tenant->isolation == GPD_CONFIG_ISOLATION_SESSION);
}

static bool
tenant_is_shared(const struct gpd_config_tenant *tenant, const struct gpd_config_device *devices,
		 int count)
{
	bool shared = tenant->isolation == GPD_CONFIG_ISOLATION_SHARED ||
		      tenant->isolation == GPD_CONFIG_ISOLATION_SHARED_ONLY;

	for (int i = 0; !shared && !gpd_config_is_apart(tenant) && i < count; i++)
		shared = gpd_config_get_sharing_key(&tenant->devices[i], &devices[i]) != NULL;
	return shared;
}

bool
gpd_config_has_one_worker(const struct gpd_config *config, const struct gpd_config_device *devices,
			  int count, int device)
{
	for (int i = 0; i < config->tenant_count; i++) {
		const struct gpd_config_tenant *tenant = &config->tenants[i];

		if (tenant->sessions_max && tenant->devices[device].allowed &&
		    !tenant_is_shared(tenant, devices, count))
			return false;
	}
	return true;
}

uint32_t
gpd_config_count_apart(const struct gpd_config *config, const struct gpd_config_device *devices,
		       int count, int device)
{
	uint32_t apart = 0;

	for (int i = GPD_TENANT_DEFAULT + 1; i < config->tenant_count; i++) {
		const struct gpd_config_tenant *tenant = &config->tenants[i];

		apart += tenant->sessions_max && tenant->devices[device].allowed &&
			 !tenant_is_shared(tenant, devices, count);
	}
	return apart;
}

bool
gpd_config_amount_is_set(const struct gpd_config_amount *amount)
{
	return amount->share || (amount->number && amount->number != GPD_NO_LIMIT);
}

uint64_t
gpd_config_get_bytes(const struct gpd_config_amount *amount, uint64_t device_bytes)
{
	uint64_t bytes;

	if (amount->number == GPD_NO_LIMIT)
		return GPD_NO_LIMIT;
	bytes = amount_resolve(amount, device_bytes) / MEMORY_UNIT * MEMORY_UNIT;
	return bytes ? bytes : MEMORY_UNIT;
}

uint32_t
gpd_config_get_sms(const struct gpd_config_amount *amount, uint32_t device_sms)
{
	uint32_t count = (uint32_t)amount_resolve(amount, device_sms);

	return count || !amount_is_set(amount) ? count : 1;
}

uint32_t
gpd_config_round_sms(uint32_t wanted, uint32_t device_sms, uint32_t piece)
{
	uint32_t set_keys = piece ? wanted / piece * piece : wanted;

	if (wanted && !set_keys)
		set_keys = piece;
	return set_keys < device_sms ? set_keys : 0;
}
