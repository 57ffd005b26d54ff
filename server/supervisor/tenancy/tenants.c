/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/tenancy/tenants.h"

#include "base/machine.h"
#include "protocol/admin_messages.h"
#include "protocol/printable.h"
#include "server/common/base/log.h"
#include "transport/timeout.h"
#include "transport/transport.h"

#include <cuda.h>
#include <stdio.h>
#include <string.h>

uint32_t
gpd_tenants_round_sms(const struct gpd_tenants *tenants, int device,
		      const struct gpd_config_amount *amount)
{
	uint32_t sms = tenants->devices[device].multiprocessors;

	return gpd_config_round_sms(gpd_config_get_sms(amount, sms), sms,
				    tenants->devices[device].rule.sm_granularity);
}

/* Returns whether the tenant is not configured and has no session. */
static bool
entry_is_reusable(const struct gpd_tenants *tenants, const struct gpd_ledger_tenant *entry)
{
	return gpd_config_tenant_find(tenants->config, entry->name) < 0 &&
	       atomic_load(&entry->sessions) == 0;
}

/* Returns the ledger index of a tenant, and assigns one if necessary; -1: all are in use. */
static int
entry_get(struct gpd_tenants *tenants, const char *name)
{
	int unused = -1, left = -1;

	for (int i = 0; i < GPD_LEDGER_TENANTS; i++) {
		struct gpd_ledger_tenant *entry = &tenants->ledger->tenants[i];

		if (strcmp(entry->name, name) == 0)
			return i;
		if (unused < 0 && !entry->name[0])
			unused = i;
		else if (left < 0 && entry->name[0] && entry_is_reusable(tenants, entry))
			left = i;
	}
	/* Entries of former tenants are reused last, so that their usage stays visible. */
	if (unused < 0)
		unused = left;
	if (unused < 0)
		return -1;
	if (!gpd_ledger_add_tenant(tenants->ledger, (uint32_t)unused, name)) {
		gpd_error("no shared memory for tenant %s: %m", name);
		return -1;
	}
	tenants->guests[unused] = false;
	return unused;
}

static void
line_apply_device(struct gpd_tenants *tenants, int config_index, int device,
		  struct gpd_ledger_tenant_line *line)
{
	const struct gpd_config_quota *quota =
		&tenants->config->tenants[config_index].devices[device];
	uint64_t memory = gpd_tenants_get_remaining(tenants, device);

	atomic_store(&line->memory_max, gpd_config_get_bytes(&quota->memory, memory));
	atomic_store(&line->sm_wanted, gpd_tenants_round_sms(tenants, device, &quota->sm));
	atomic_store(&line->weight, quota->weight);
	atomic_store(&line->limit, quota->limit);
	atomic_store(&line->time_share, quota->time_share);
}

/* Sets the limits of the ledger entry as configured at this index. */
static void
entry_apply(struct gpd_tenants *tenants, int config_index, int index)
{
	const struct gpd_config_tenant *from = &tenants->config->tenants[config_index];
	struct gpd_ledger_tenant *entry = &tenants->ledger->tenants[index];

	tenants->config_indexes[index] = config_index;
	tenants->sessions_max[index] = from->sessions_max;
	atomic_store(&entry->priority, from->priority);
	gpd_ledger_set_bandwidth(entry, from->bandwidth);
	for (int i = 0; i < tenants->device_count; i++)
		line_apply_device(tenants, config_index, i, &entry->devices[i]);
}

static void
tenant_apply(struct gpd_tenants *tenants, int config_index)
{
	const struct gpd_config_tenant *from = &tenants->config->tenants[config_index];
	int index = entry_get(tenants, from->name);

	if (index < 0) {
		gpd_error("tenant %s: not active yet: replaced tenants still have sessions",
			  from->name);
		return;
	}
	tenants->guests[index] = false;
	entry_apply(tenants, config_index, index);
}

/* Divides host memory for device code and for pinned memory into equal parts for all configured
 * tenants, guests with sessions, and the one at `index` that is about to get one; tenants with a
 * limit of their own are excepted. */
static void
machine_memory_divide(struct gpd_tenants *tenants, int index)
{
	struct gpd_ledger_tenant *entries = tenants->ledger->tenants;
	unsigned int parts = 0;

	for (int i = 0; i < GPD_LEDGER_TENANTS; i++)
		parts += tenants->config_indexes[i] >= 0 &&
			 (!tenants->guests[i] || i == index || atomic_load(&entries[i].sessions));
	for (int i = 0; i < GPD_LEDGER_TENANTS; i++) {
		uint64_t code, pinned;

		if (tenants->config_indexes[i] < 0)
			continue;
		code = gpd_config_get_code_memory(tenants->config, tenants->config_indexes[i],
						  tenants->machine_memory, parts);
		pinned = gpd_config_get_pinned_memory(tenants->config, tenants->config_indexes[i],
						      tenants->machine_memory, parts);
		atomic_store(&entries[i].devices[GPD_LEDGER_CODE].memory_max, code);
		atomic_store(&entries[i].devices[GPD_LEDGER_PINNED].memory_max, pinned);
		entries[i].host_memory_max =
			code > GPD_NO_LIMIT - pinned ? GPD_NO_LIMIT : code + pinned;
	}
}

static void
apply_rules(struct gpd_tenants *tenants)
{
	for (int i = 0; i < tenants->device_count; i++) {
		struct gpd_tenants_device *device = &tenants->devices[i];
		ProtobufCBinaryData uuid = { sizeof(device->uuid), device->uuid };
		char text[GP_UUID_TEXT_SIZE];

		gp_admin_format_uuid(&uuid, text);
		device->rule = gpd_config_device(tenants->config, i, text);
		atomic_store(&tenants->ledger->policies[i], device->rule.policy);
		atomic_store(&tenants->ledger->sm_granularity[i], device->rule.sm_granularity);
	}
}

/* The environment takes precedence over the configuration. */
static unsigned int
get_timeout_ms(const struct gpd_config *config)
{
	char text[256];
	unsigned int ms;
	bool given;

	if (gp_timeout_parse(getenv(GP_TIMEOUT_NAME), getenv(GP_TIMEOUT_OLD_NAME), &ms, &given,
			     text, sizeof(text)) == 0 &&
	    given)
		return ms;
	return config->timeout ? config->timeout * 1000 : GP_CONN_TIMEOUT_MS;
}

/* Applies device rules first, as quotas are rounded to the granularity that they set. */
static void
config_apply(struct gpd_tenants *tenants)
{
	tenants->machine_memory = gp_machine_memory("");
	apply_rules(tenants);
	for (int i = 0; i < GPD_LEDGER_TENANTS; i++)
		tenants->config_indexes[i] = -1;
	for (int i = 0; i < tenants->config->tenant_count; i++)
		tenant_apply(tenants, i);
	for (int i = 0; i < GPD_LEDGER_TENANTS; i++) {
		if (tenants->guests[i])
			entry_apply(tenants, GPD_TENANT_DEFAULT, i);
	}
	atomic_store(&tenants->ledger->idle_timeout, tenants->config->idle_timeout);
	atomic_store(&tenants->ledger->timeout_ms, get_timeout_ms(tenants->config));
	gpd_ledger_set_host_max(tenants->ledger, gpd_config_get_host_memory(
							 tenants->config, tenants->machine_memory));
	machine_memory_divide(tenants, -1);
}

void
gpd_tenants_set_config(struct gpd_tenants *tenants, struct gpd_config *config)
{
	gpd_config_free(tenants->config);
	tenants->config = config;
	config_apply(tenants);
}

uint32_t
gpd_tenants_get_sms(const Gpupool__Device *device)
{
	return device->n_attributes > CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
		       ? (uint32_t)device->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT]
		       : 0;
}

void
gpd_tenants_set_devices(struct gpd_tenants *tenants, const Gpupool__Welcome *facts)
{
	/* Values set at run time must stay. */
	if (tenants->device_count)
		return;
	tenants->software = facts->software;
	tenants->driver_version = facts->driver_version;
	for (size_t i = 0; i < facts->n_devices && i < GPD_LEDGER_DEVICES; i++) {
		const Gpupool__Device *from = facts->devices[i];
		struct gpd_tenants_device *to = &tenants->devices[tenants->device_count++];

		(void)gp_printable_text(to->name, sizeof(to->name), from->name);
		if (from->uuid.len == sizeof(to->uuid))
			memcpy(to->uuid, from->uuid.data, sizeof(to->uuid));
		to->memory = from->total_memory;
		atomic_store(&tenants->ledger->device_memory[i], from->total_memory);
		to->multiprocessors = gpd_tenants_get_sms(from);
	}
	config_apply(tenants);
}

/* Returns the ledger index of the tenant at this index of the configuration, or -1. */
static int
entry_find_by_config(const struct gpd_tenants *tenants, int config_index)
{
	for (int i = 0; i < GPD_LEDGER_TENANTS; i++) {
		if (tenants->config_indexes[i] == config_index && !tenants->guests[i])
			return i;
	}
	return -1;
}

static int
entry_get_for_guest(struct gpd_tenants *tenants, const char *name)
{
	int index = entry_get(tenants, name);

	if (index >= 0 && !tenants->guests[index]) {
		tenants->guests[index] = true;
		entry_apply(tenants, GPD_TENANT_DEFAULT, index);
	}
	machine_memory_divide(tenants, index);
	return index;
}

/* Adds why [tenant default] applies to the client. */
static int
refuse_guest(const char *tenant, char *error)
{
	char why[GPD_CONFIG_ERROR_MAX];

	(void)snprintf(why, sizeof(why), "%s", error);
	(void)snprintf(
		error, GPD_CONFIG_ERROR_MAX,
		"the configuration has no tenant \"%.64s\", so [tenant default] applies: %.300s",
		tenant, why);
	return GP_E_INVALID;
}

static int
check_open(const struct gpd_tenants *tenants, int entry, bool named, char *error)
{
	if (tenants->sessions_max[entry])
		return 0;
	(void)snprintf(error, GPD_CONFIG_ERROR_MAX, "tenant \"%s\" may have no sessions%s",
		       tenants->ledger->tenants[entry].name,
		       named ? "" : ", and the client names no other");
	return GP_E_INVALID;
}

const char *
gpd_tenants_sharing_key(const struct gpd_tenants *tenants, int config_index)
{
	const struct gpd_config_tenant *tenant = &tenants->config->tenants[config_index];
	const char *key = NULL;

	for (int i = 0; !key && i < tenants->device_count; i++)
		key = gpd_config_get_sharing_key(&tenant->devices[i], &tenants->devices[i].rule);
	return gpd_config_is_apart(tenant) ? NULL : key;
}

/* Returns the class of the tenant's sessions, other than those of which the client requests a
 * stricter one. */
static uint32_t
get_class(const struct gpd_tenants *tenants, int config_index)
{
	uint32_t class = tenants->config->tenants[config_index].isolation;

	return class == GPD_CONFIG_ISOLATION_SHARED_ONLY ||
			       gpd_tenants_sharing_key(tenants, config_index)
		       ? GPD_CONFIG_ISOLATION_SHARED
		       : class;
}

/* Returns whether it is a tenant besides "default", a guest included, whose sessions do not run in
 * the worker of class "shared". */
static bool
entry_is_apart(const struct gpd_tenants *tenants, uint32_t index)
{
	int config_index = tenants->config_indexes[index];

	return (config_index > GPD_TENANT_DEFAULT || tenants->guests[index]) && config_index >= 0 &&
	       get_class(tenants, config_index) != GPD_CONFIG_ISOLATION_SHARED;
}

bool
gpd_tenants_are_apart(const struct gpd_tenants *tenants)
{
	for (uint32_t i = 0; i < GPD_LEDGER_TENANTS; i++) {
		if (entry_is_apart(tenants, i))
			return true;
	}
	return false;
}

bool
gpd_tenants_needs_place(const struct gpd_tenants *tenants, uint32_t tenant, int device)
{
	return entry_is_apart(tenants, tenant) && tenants->sessions_max[tenant] &&
	       gpd_tenants_get_usable(tenants, gpd_tenant_group(tenant)) >> device & 1;
}

uint32_t
gpd_tenants_get_ready_workers(const struct gpd_tenants *tenants)
{
	if (tenants->config->ready_workers != GPD_READY_WORKERS_DEFAULT)
		return tenants->config->ready_workers;
	return gpd_tenants_are_apart(tenants) ? 1 : 0;
}

/* Returns the class that the client requests; GPD_CONFIG_ISOLATION_SHARED: none; -1: unknown. */
static int
get_requested_class(const Gpupool__Hello *hello)
{
	switch (hello->wish ? hello->wish->isolation : GPUPOOL__ISOLATION__ANY) {
	case GPUPOOL__ISOLATION__ANY:
	case GPUPOOL__ISOLATION__SHARED:
		return GPD_CONFIG_ISOLATION_SHARED;
	case GPUPOOL__ISOLATION__TENANT:
		return GPD_CONFIG_ISOLATION_TENANT;
	case GPUPOOL__ISOLATION__PROCESS:
		return GPD_CONFIG_ISOLATION_SESSION;
	default:
		return -1;
	}
}

/* Sets `dedicated` and `group`: the stricter of the configured and the requested class. */
static int
assign_class(const struct gpd_tenants *tenants, int config_index, const Gpupool__Hello *hello,
	     struct gpd_assignment *assignment, char *error)
{
	const char *name = tenants->ledger->tenants[assignment->tenant].name;
	const char *key = gpd_tenants_sharing_key(tenants, config_index);
	bool shared_only = tenants->config->tenants[config_index].isolation ==
			   GPD_CONFIG_ISOLATION_SHARED_ONLY;
	uint32_t class = get_class(tenants, config_index);
	int requested = get_requested_class(hello);

	if (requested < 0) {
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX,
			       "this daemon does not know the isolation that the client requests "
			       "(number %d): update it",
			       (int)hello->wish->isolation);
		return GP_E_INVALID;
	}
	if ((uint32_t)requested > class && (key || shared_only)) {
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX,
			       "tenant %s may not have sessions with isolation = %s (%s%s)", name,
			       requested == GPD_CONFIG_ISOLATION_TENANT ? "tenant" : "session",
			       shared_only ? "isolation = shared-only"
					   : "they would escape its quota, the key ",
			       shared_only ? "" : key);
		return GP_E_INVALID;
	}
	if ((uint32_t)requested > class)
		class = (uint32_t)requested;
	assignment->dedicated = class == GPD_CONFIG_ISOLATION_SESSION;
	assignment->group = class == GPD_CONFIG_ISOLATION_TENANT
				    ? gpd_tenant_group(assignment->tenant)
				    : GPD_GROUP_SHARED;
	return 0;
}

int
gpd_tenants_admit(struct gpd_tenants *tenants, const Gpupool__Hello *hello, const char *proven,
		  const char *address, struct gpd_assignment *assignment, char *error)
{
	const struct gpd_config *config = tenants->config;
	bool guest = proven[0] && gpd_config_tenant_find(config, proven) < 0;
	const char *name = guest ? "default" : proven[0] ? proven : hello->tenant;
	int config_index, entry, r;

	*assignment = (struct gpd_assignment){ 0 };
	r = gpd_config_admit(config, name, hello->user, address, &config_index, error,
			     GPD_CONFIG_ERROR_MAX);
	if (r)
		return guest ? refuse_guest(proven, error) : r;
	entry = guest ? entry_get_for_guest(tenants, proven)
		      : entry_find_by_config(tenants, config_index);
	if (entry < 0) {
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX, "tenant %s is not active yet",
			       guest ? proven : config->tenants[config_index].name);
		return GP_E_INVALID;
	}
	r = check_open(tenants, entry, name && name[0], error);
	if (r)
		return guest ? refuse_guest(proven, error) : r;
	assignment->tenant = (uint32_t)entry;
	assignment->compression = config->tenants[config_index].compression;
	return assign_class(tenants, config_index, hello, assignment, error);
}

int
gpd_tenants_has_room(const struct gpd_tenants *tenants, const struct gpd_assignment *assignment,
		     unsigned int ahead, char *error)
{
	const struct gpd_ledger_tenant *entry = &tenants->ledger->tenants[assignment->tenant];
	uint32_t max = tenants->config_indexes[assignment->tenant] < 0
			       ? UINT32_MAX
			       : tenants->sessions_max[assignment->tenant];

	if ((uint64_t)atomic_load(&entry->sessions) + ahead < max)
		return 0;
	if (atomic_load(&entry->sessions) < max) {
		(void)snprintf(
			error, GPD_CONFIG_ERROR_MAX,
			"the free session slots of tenant %s are reserved for queued clients",
			entry->name);
		return GP_E_RESOURCE;
	}
	(void)snprintf(error, GPD_CONFIG_ERROR_MAX,
		       "tenant %s has reached its limit of %u sessions", entry->name, max);
	return GP_E_RESOURCE;
}
