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

#define ALIGNMENT ((uint64_t)2 << 20)

uint32_t
gpd_tenants_given(const struct gpd_tenants *tenants, int device,
		  const struct gpd_config_amount *amount)
{
	uint32_t sms = tenants->devices[device].multiprocessors;

	return gpd_config_given(gpd_config_multiprocessors(amount, sms), sms,
				tenants->devices[device].rule.sm_granularity);
}

/* Of one that is not configured any more, or never was, and has no session. */
static bool
is_left(const struct gpd_tenants *tenants, const struct gpd_ledger_tenant *line)
{
	return gpd_config_tenant_find(tenants->config, line->name) < 0 &&
	       atomic_load(&line->sessions) == 0;
}

/* The line of a tenant in the ledger, which it gets if it has none; -1: all are taken. */
static int
line_of(struct gpd_tenants *tenants, const char *name)
{
	int unused = -1, left = -1;

	for (int i = 0; i < GPD_LEDGER_TENANTS; i++) {
		struct gpd_ledger_tenant *line = &tenants->ledger->tenants[i];

		if (strcmp(line->name, name) == 0)
			return i;
		if (unused < 0 && !line->name[0])
			unused = i;
		else if (left < 0 && line->name[0] && is_left(tenants, line))
			left = i;
	}
	/* What others have used stays to be seen for as long as there is room. */
	if (unused < 0)
		unused = left;
	if (unused >= 0) {
		gpd_ledger_add_tenant(tenants->ledger, (uint32_t)unused, name);
		tenants->guests[unused] = false;
	}
	return unused;
}

static void
apply_to_device(struct gpd_tenants *tenants, int place, int device,
		struct gpd_ledger_tenant_line *line)
{
	const struct gpd_config_quota *quota = &tenants->config->tenants[place].devices[device];
	uint64_t memory = tenants->devices[device].memory;

	atomic_store(&line->memory_max, gpd_config_bytes(&quota->memory, memory));
	atomic_store(&line->sm_wanted, gpd_tenants_given(tenants, device, &quota->sm));
	atomic_store(&line->weight, quota->weight);
	atomic_store(&line->limit, quota->limit);
	atomic_store(&line->time_share, quota->time_share);
}

/* The line has what the configuration says in this place. */
static void
apply_to_line(struct gpd_tenants *tenants, int place, int index)
{
	const struct gpd_config_tenant *from = &tenants->config->tenants[place];
	struct gpd_ledger_tenant *line = &tenants->ledger->tenants[index];

	tenants->places[index] = place;
	tenants->sessions_max[index] = from->sessions_max;
	atomic_store(&line->priority, from->priority);
	gpd_ledger_set_bandwidth(line, from->bandwidth);
	for (int i = 0; i < tenants->device_count; i++)
		apply_to_device(tenants, place, i, &line->devices[i]);
}

static void
apply_to_tenant(struct gpd_tenants *tenants, int place)
{
	const struct gpd_config_tenant *from = &tenants->config->tenants[place];
	int index = line_of(tenants, from->name);

	if (index < 0) {
		gpd_error("tenant %s: not in force yet: those that it replaces still have sessions",
			  from->name);
		return;
	}
	tenants->guests[index] = false;
	apply_to_line(tenants, place, index);
}

/* What there is for device code, and for memory that kernels reach, is in equal parts for those
 * that are configured and the guests that have sessions, or (index) are about to, but for those of
 * which the configuration says something else. */
static void
share_machine(struct gpd_tenants *tenants, int index)
{
	struct gpd_ledger_tenant *lines = tenants->ledger->tenants;
	unsigned int parts = 0;

	for (int i = 0; i < GPD_LEDGER_TENANTS; i++)
		parts += tenants->places[i] >= 0 &&
			 (!tenants->guests[i] || i == index || atomic_load(&lines[i].sessions));
	for (int i = 0; i < GPD_LEDGER_TENANTS; i++) {
		if (tenants->places[i] < 0)
			continue;
		atomic_store(&lines[i].devices[GPD_LEDGER_CODE].memory_max,
			     gpd_config_code_memory(tenants->config, tenants->places[i],
						    tenants->machine_memory, parts));
		atomic_store(&lines[i].devices[GPD_LEDGER_PINNED].memory_max,
			     gpd_config_pinned_memory(tenants->config, tenants->places[i],
						      tenants->machine_memory, parts));
	}
}

static void
apply_rules(struct gpd_tenants *tenants)
{
	for (int i = 0; i < tenants->device_count; i++) {
		struct gpd_tenants_device *device = &tenants->devices[i];
		ProtobufCBinaryData uuid = { sizeof(device->uuid), device->uuid };
		char text[GP_UUID_TEXT_SIZE];

		gp_admin_uuid(&uuid, text);
		device->rule = gpd_config_device(tenants->config, i, text);
		atomic_store(&tenants->ledger->policies[i], device->rule.policy);
		atomic_store(&tenants->ledger->sm_granularity[i], device->rule.sm_granularity);
	}
}

/* The environment goes before the configuration, as the command line does. */
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

/* Puts the configuration into force: quotas are in pieces that the devices' rules give. */
static void
apply(struct gpd_tenants *tenants)
{
	tenants->machine_memory = gp_machine_memory("");
	apply_rules(tenants);
	for (int i = 0; i < GPD_LEDGER_TENANTS; i++)
		tenants->places[i] = -1;
	for (int i = 0; i < tenants->config->tenant_count; i++)
		apply_to_tenant(tenants, i);
	for (int i = 0; i < GPD_LEDGER_TENANTS; i++) {
		if (tenants->guests[i])
			apply_to_line(tenants, GPD_TENANT_DEFAULT, i);
	}
	atomic_store(&tenants->ledger->idle_timeout, tenants->config->idle_timeout);
	atomic_store(&tenants->ledger->timeout_ms, get_timeout_ms(tenants->config));
	atomic_store(&tenants->ledger->host_max,
		     gpd_config_host_memory(tenants->config, tenants->machine_memory));
	share_machine(tenants, -1);
}

void
gpd_tenants_use(struct gpd_tenants *tenants, struct gpd_config *config)
{
	gpd_config_free(tenants->config);
	tenants->config = config;
	apply(tenants);
}

uint32_t
gpd_tenants_multiprocessors(const Gpupool__Device *device)
{
	return device->n_attributes > CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
		       ? (uint32_t)device->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT]
		       : 0;
}

void
gpd_tenants_set_devices(struct gpd_tenants *tenants, const Gpupool__Welcome *facts)
{
	/* What was set since must stay. */
	if (tenants->device_count)
		return;
	tenants->software = facts->software;
	tenants->driver_version = facts->driver_version;
	for (size_t i = 0; i < facts->n_devices && i < GPD_LEDGER_DEVICES; i++) {
		const Gpupool__Device *from = facts->devices[i];
		struct gpd_tenants_device *to = &tenants->devices[tenants->device_count++];

		(void)gp_printable(to->name, sizeof(to->name), from->name);
		if (from->uuid.len == sizeof(to->uuid))
			memcpy(to->uuid, from->uuid.data, sizeof(to->uuid));
		to->memory = from->total_memory;
		to->multiprocessors = gpd_tenants_multiprocessors(from);
	}
	apply(tenants);
}

/* The line of the tenant in this place of the configuration, or -1. */
static int
line_in_place(const struct gpd_tenants *tenants, int place)
{
	for (int i = 0; i < GPD_LEDGER_TENANTS; i++) {
		if (tenants->places[i] == place && !tenants->guests[i])
			return i;
	}
	return -1;
}

static int
line_of_guest(struct gpd_tenants *tenants, const char *name)
{
	int index = line_of(tenants, name);

	if (index >= 0 && !tenants->guests[index]) {
		tenants->guests[index] = true;
		apply_to_line(tenants, GPD_TENANT_DEFAULT, index);
	}
	share_machine(tenants, index);
	return index;
}

/* To a guest it is said why [tenant default] is asked at all. */
static int
refuse_guest(const char *tenant, char *error)
{
	char why[GPD_CONFIG_ERROR_MAX];

	(void)snprintf(why, sizeof(why), "%s", error);
	(void)snprintf(
		error, GPD_CONFIG_ERROR_MAX,
		"the configuration has no tenant \"%.64s\", so [tenant default] holds: %.300s",
		tenant, why);
	return GP_E_INVALID;
}

static int
check_open(const struct gpd_tenants *tenants, int line, bool named, char *error)
{
	if (tenants->sessions_max[line])
		return 0;
	(void)snprintf(error, GPD_CONFIG_ERROR_MAX, "tenant \"%s\" may have no sessions%s",
		       tenants->ledger->tenants[line].name,
		       named ? "" : ", and the client names no other");
	return GP_E_INVALID;
}

int
gpd_tenants_admit(struct gpd_tenants *tenants, const Gpupool__Hello *hello, const char *proven,
		  const char *address, struct gpd_grant *grant, char *error)
{
	const struct gpd_config *config = tenants->config;
	bool guest = proven[0] && gpd_config_tenant_find(config, proven) < 0;
	const char *name = guest ? "default" : proven[0] ? proven : hello->tenant;
	bool wants_alone;
	uint32_t isolation;
	int place, line, r;

	*grant = (struct gpd_grant){ 0 };
	r = gpd_config_admit(config, name, hello->user, address, &place, error,
			     GPD_CONFIG_ERROR_MAX);
	if (r)
		return guest ? refuse_guest(proven, error) : r;
	line = guest ? line_of_guest(tenants, proven) : line_in_place(tenants, place);
	if (line < 0) {
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX, "tenant %s is not in force yet",
			       guest ? proven : config->tenants[place].name);
		return GP_E_INVALID;
	}
	r = check_open(tenants, line, name && name[0], error);
	if (r)
		return guest ? refuse_guest(proven, error) : r;
	grant->tenant = (uint32_t)line;
	wants_alone = hello->wish && hello->wish->isolation == GPUPOOL__ISOLATION__PROCESS;
	isolation = config->tenants[place].isolation;
	if (wants_alone && isolation == GPD_CONFIG_ISOLATION_SHARED_ONLY) {
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX,
			       "tenant %s may not have sessions of class process (isolation = "
			       "shared-only)",
			       tenants->ledger->tenants[line].name);
		return GP_E_INVALID;
	}
	grant->compression = config->tenants[place].compression;
	grant->alone = wants_alone || isolation == GPD_CONFIG_ISOLATION_PROCESS;
	return 0;
}

int
gpd_tenants_has_room(const struct gpd_tenants *tenants, const struct gpd_grant *grant,
		     unsigned int ahead, char *error)
{
	const struct gpd_ledger_tenant *line = &tenants->ledger->tenants[grant->tenant];
	uint32_t max = tenants->places[grant->tenant] < 0 ? UINT32_MAX
							  : tenants->sessions_max[grant->tenant];

	if ((uint64_t)atomic_load(&line->sessions) + ahead < max)
		return 0;
	if (atomic_load(&line->sessions) < max) {
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX,
			       "the places that tenant %s has are for those who wait for them",
			       line->name);
		return GP_E_RESOURCE;
	}
	(void)snprintf(error, GPD_CONFIG_ERROR_MAX, "tenant %s has all the %u sessions that it may",
		       line->name, max);
	return GP_E_RESOURCE;
}

static bool
is_allowed(const struct gpd_tenants *tenants, const struct gpd_grant *grant, int device)
{
	int place = tenants->places[grant->tenant];

	return place < 0 || tenants->config->tenants[place].devices[device].allowed;
}

int
gpd_tenants_units(const struct gpd_tenants *tenants, struct gpd_unit units[GPD_UNITS_MAX])
{
	int count = 0;

	for (int i = 0; i < tenants->device_count; i++) {
		const struct gpd_config_device *rule = &tenants->devices[i].rule;
		int parts = (int)rule->virtual_number;

		for (int part = 0; rule->exported && part < parts; part++)
			units[count++] = (struct gpd_unit){ i, part, parts };
	}
	return count;
}

static bool
has_device(const struct gpd_grant *grant, int device)
{
	for (int i = 0; i < grant->count; i++) {
		if (grant->units[i].device == device)
			return true;
	}
	return false;
}

static void
take(struct gpd_tenants *tenants, uint64_t session, const struct gpd_unit *unit,
     struct gpd_grant *grant)
{
	grant->units[grant->count++] = *unit;
	if (unit->parts > 1)
		tenants->devices[unit->device].holders[unit->part] = session;
}

static bool
is_free(const struct gpd_tenants *tenants, const struct gpd_unit *unit)
{
	return unit->parts == 1 || tenants->devices[unit->device].holders[unit->part] == 0;
}

static int
choose_named(struct gpd_tenants *tenants, const struct gpd_unit *units, int count, int number,
	     uint64_t session, struct gpd_grant *grant, char *error)
{
	const struct gpd_unit *unit = &units[number];

	if (number < 0 || number >= count) {
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX,
			       "there is no device %d: the daemon has %d, counted from 0", number,
			       count);
		return GP_E_INVALID;
	}
	if (!is_allowed(tenants, grant, unit->device)) {
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX, "device %d is not for tenant %s",
			       number, tenants->ledger->tenants[grant->tenant].name);
		return GP_E_INVALID;
	}
	if (has_device(grant, unit->device)) {
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX, "device %d: %s", number,
			       unit->parts > 1 ? "one program can have one part of a device"
					       : "it is named twice");
		return GP_E_INVALID;
	}
	if (!is_free(tenants, unit)) {
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX,
			       "device %d, which is part %d of %d of device %d, is taken", number,
			       unit->part + 1, unit->parts, unit->device);
		return GP_E_RESOURCE;
	}
	take(tenants, session, unit, grant);
	return 0;
}

/* Whole devices all; of one in parts, one that is free. */
static int
choose_all(struct gpd_tenants *tenants, const struct gpd_unit *units, int count, uint64_t session,
	   struct gpd_grant *grant, char *error)
{
	const struct gpd_unit *full = NULL;

	for (int i = 0; i < count; i++) {
		const struct gpd_unit *unit = &units[i];

		if (!is_allowed(tenants, grant, unit->device) || has_device(grant, unit->device))
			continue;
		if (is_free(tenants, unit))
			take(tenants, session, unit, grant);
		else
			full = unit;
	}
	if (grant->count)
		return 0;
	if (full) {
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX,
			       "all %d virtual devices of device %d are taken", full->parts,
			       full->device);
		return GP_E_RESOURCE;
	}
	(void)snprintf(error, GPD_CONFIG_ERROR_MAX, "there is no device for tenant %s",
		       tenants->ledger->tenants[grant->tenant].name);
	return GP_E_INVALID;
}

int
gpd_tenants_choose(struct gpd_tenants *tenants, const Gpupool__Hello *hello, uint64_t session,
		   struct gpd_grant *grant, char *error)
{
	static struct gpd_unit units[GPD_UNITS_MAX];
	int count = gpd_tenants_units(tenants, units), r = 0;

	grant->count = 0;
	if (hello->n_devices == 0)
		return choose_all(tenants, units, count, session, grant, error);
	for (size_t i = 0; r == 0 && i < hello->n_devices; i++)
		r = choose_named(tenants, units, count, hello->devices[i], session, grant, error);
	if (r)
		gpd_tenants_release(tenants, session);
	return r;
}

void
gpd_tenants_release(struct gpd_tenants *tenants, uint64_t session)
{
	for (int i = 0; i < GPD_LEDGER_DEVICES; i++) {
		for (int part = 0; part < GPD_VIRTUAL_MAX; part++) {
			if (tenants->devices[i].holders[part] == session)
				tenants->devices[i].holders[part] = 0;
		}
	}
}

uint32_t
gpd_tenants_fewer(uint32_t a, uint32_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

static void
limit_unit(const struct gpd_tenants *tenants, int place, const struct gpd_unit *unit,
	   struct gpd_ledger_line *line)
{
	uint64_t memory = tenants->devices[unit->device].memory, most = GPD_NO_LIMIT;
	uint32_t sms = tenants->devices[unit->device].multiprocessors, fewest = 0;

	if (place >= 0) {
		const struct gpd_config_quota *quota =
			&tenants->config->tenants[place].devices[unit->device];

		most = gpd_config_bytes(&quota->session_memory, memory);
		fewest = gpd_tenants_given(tenants, unit->device, &quota->session_sm);
	}
	if (unit->parts > 1) {
		uint64_t part = memory / (uint64_t)unit->parts / ALIGNMENT * ALIGNMENT;
		uint32_t part_sms = sms / (uint32_t)unit->parts;
		const struct gpd_config_amount sm = { .number = part_sms ? part_sms : 1 };

		most = most < part ? most : part;
		fewest = gpd_tenants_fewer(fewest, gpd_tenants_given(tenants, unit->device, &sm));
	}
	atomic_store(&line->allowed, 1);
	atomic_store(&line->memory_max, most);
	atomic_store(&line->sm_wanted, fewest);
}

void
gpd_tenants_limit(const struct gpd_tenants *tenants, const struct gpd_grant *grant,
		  struct gpd_ledger_session *line)
{
	for (int i = 0; i < GPD_LEDGER_DEVICES; i++)
		atomic_store(&line->devices[i].allowed, has_device(grant, i));
	for (int i = 0; i < grant->count; i++)
		limit_unit(tenants, tenants->places[grant->tenant], &grant->units[i],
			   &line->devices[grant->units[i].device]);
}
