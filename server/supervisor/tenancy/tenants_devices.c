/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a session: which it may use, which are sick, and what it may use of each. */
#include "server/supervisor/tenancy/tenants.h"
#include "transport/transport.h"

#include <stdio.h>
#include <string.h>

#define ALIGNMENT ((uint64_t)2 << 20)

static bool
is_allowed(const struct gpd_tenants *tenants, const struct gpd_assignment *assignment, int device)
{
	int config_index = tenants->config_indexes[assignment->tenant];

	return config_index < 0 || tenants->config->tenants[config_index].devices[device].allowed;
}

int
gpd_tenants_units(const struct gpd_tenants *tenants, struct gpd_unit units[GPD_UNITS_MAX])
{
	int count = 0;

	for (int i = 0; i < tenants->device_count; i++) {
		const struct gpd_config_device *rule = &tenants->devices[i].rule;
		int parts = (int)rule->virtual_number;

		for (int part = 0; rule->visible && part < parts; part++)
			units[count++] = (struct gpd_unit){ i, part, parts };
	}
	return count;
}

static bool
assignment_has_device(const struct gpd_assignment *assignment, int device)
{
	for (int i = 0; i < assignment->count; i++) {
		if (assignment->units[i].device == device)
			return true;
	}
	return false;
}

static void
unit_assign(struct gpd_tenants *tenants, uint64_t session, const struct gpd_unit *unit,
	    struct gpd_assignment *assignment)
{
	assignment->units[assignment->count++] = *unit;
	if (unit->parts > 1)
		tenants->devices[unit->device].part_sessions[unit->part] = session;
}

static bool
unit_is_free(const struct gpd_tenants *tenants, const struct gpd_unit *unit)
{
	return unit->parts == 1 || tenants->devices[unit->device].part_sessions[unit->part] == 0;
}

static bool
device_is_sick(const struct gpd_tenants *tenants, int device)
{
	return gpd_device_is_sick(&tenants->devices[device].health);
}

/* number: the client's number of the device. */
static int
refuse_sick(const struct gpd_tenants *tenants, int number, int device, char *error)
{
	(void)snprintf(error, GPD_CONFIG_ERROR_MAX,
		       "device %d is sick: %s; use another device, or after the repair: gpupoolctl "
		       "device enable %d",
		       number, tenants->devices[device].health.reason, device);
	return GP_E_INVALID;
}

static int
choose_named(struct gpd_tenants *tenants, const struct gpd_unit *units, int count, int number,
	     uint64_t session, struct gpd_assignment *assignment, char *error)
{
	const struct gpd_unit *unit = &units[number];

	if (number < 0 || number >= count) {
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX,
			       "unknown device %d: the daemon has %d, counted from 0", number,
			       count);
		return GP_E_INVALID;
	}
	if (!is_allowed(tenants, assignment, unit->device)) {
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX, "device %d is not for tenant %s",
			       number, tenants->ledger->tenants[assignment->tenant].name);
		return GP_E_INVALID;
	}
	if (device_is_sick(tenants, unit->device))
		return refuse_sick(tenants, number, unit->device, error);
	if (assignment_has_device(assignment, unit->device)) {
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX, "device %d: %s", number,
			       unit->parts > 1 ? "a program can use only one part of a device"
					       : "it is named twice");
		return GP_E_INVALID;
	}
	if (!unit_is_free(tenants, unit)) {
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX,
			       "device %d, which is part %d of %d of device %d, is in use", number,
			       unit->part + 1, unit->parts, unit->device);
		return GP_E_RESOURCE;
	}
	unit_assign(tenants, session, unit, assignment);
	return 0;
}

/* Assigns all whole devices, and one free part of each divided device. */
static int
choose_all(struct gpd_tenants *tenants, const struct gpd_unit *units, int count, uint64_t session,
	   struct gpd_assignment *assignment, char *error)
{
	const struct gpd_unit *full = NULL;

	for (int i = 0; i < count; i++) {
		const struct gpd_unit *unit = &units[i];

		if (!is_allowed(tenants, assignment, unit->device) ||
		    device_is_sick(tenants, unit->device) ||
		    assignment_has_device(assignment, unit->device))
			continue;
		if (unit_is_free(tenants, unit))
			unit_assign(tenants, session, unit, assignment);
		else
			full = unit;
	}
	if (assignment->count)
		return 0;
	if (full) {
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX,
			       "all %d virtual devices of device %d are in use", full->parts,
			       full->device);
		return GP_E_RESOURCE;
	}
	(void)snprintf(error, GPD_CONFIG_ERROR_MAX, "no device is available to tenant %s",
		       tenants->ledger->tenants[assignment->tenant].name);
	return GP_E_INVALID;
}

int
gpd_tenants_assign(struct gpd_tenants *tenants, const Gpupool__Hello *hello, uint64_t session,
		   struct gpd_assignment *assignment, char *error)
{
	static struct gpd_unit units[GPD_UNITS_MAX];
	int count = gpd_tenants_units(tenants, units), r = 0;

	assignment->count = 0;
	if (hello->n_devices == 0)
		return choose_all(tenants, units, count, session, assignment, error);
	for (size_t i = 0; r == 0 && i < hello->n_devices; i++)
		r = choose_named(tenants, units, count, hello->devices[i], session, assignment,
				 error);
	if (r)
		gpd_tenants_release(tenants, session);
	return r;
}

/* Checks that the tenant may use a device that is not sick: else no worker starts for it. */
static int
check_any(const struct gpd_tenants *tenants, const struct gpd_unit *units, int count,
	  const struct gpd_assignment *assignment, char *error)
{
	int sick = -1;

	for (int i = 0; i < count; i++) {
		if (!is_allowed(tenants, assignment, units[i].device))
			continue;
		if (!device_is_sick(tenants, units[i].device))
			return 0;
		sick = sick < 0 ? i : sick;
	}
	if (sick >= 0) {
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX,
			       "all devices are sick; device %d: %s; after the repair: gpupoolctl "
			       "device enable %d",
			       sick, tenants->devices[units[sick].device].health.reason,
			       units[sick].device);
		return GP_E_INVALID;
	}
	(void)snprintf(error, GPD_CONFIG_ERROR_MAX, "no device is available to tenant %s",
		       tenants->ledger->tenants[assignment->tenant].name);
	return GP_E_INVALID;
}

int
gpd_tenants_check_health(const struct gpd_tenants *tenants, const Gpupool__Hello *hello,
			 const struct gpd_assignment *assignment, char *error)
{
	static struct gpd_unit units[GPD_UNITS_MAX];
	int count = gpd_tenants_units(tenants, units);

	if (!tenants->device_count)
		return 0;
	for (size_t i = 0; i < hello->n_devices; i++) {
		int number = hello->devices[i];

		if (number >= 0 && number < count && device_is_sick(tenants, units[number].device))
			return refuse_sick(tenants, number, units[number].device, error);
	}
	return check_any(tenants, units, count, assignment, error);
}

int
gpd_tenants_check_assigned(const struct gpd_tenants *tenants,
			   const struct gpd_assignment *assignment, char *error)
{
	for (int i = 0; i < assignment->count; i++) {
		int device = assignment->units[i].device;

		if (device_is_sick(tenants, device))
			return refuse_sick(tenants, device, device, error);
	}
	return 0;
}

int
gpd_tenants_get_first_device(const struct gpd_tenants *tenants, const Gpupool__Hello *hello,
			     const struct gpd_assignment *assignment)
{
	static struct gpd_unit units[GPD_UNITS_MAX];
	int count = gpd_tenants_units(tenants, units);
	int number = hello->n_devices ? hello->devices[0] : -1;

	if (number >= 0 && number < count)
		return units[number].device;
	for (int i = 0; i < count; i++) {
		if (is_allowed(tenants, assignment, units[i].device) &&
		    !device_is_sick(tenants, units[i].device))
			return units[i].device;
	}
	return 0;
}

uint32_t
gpd_tenants_get_usable(const struct gpd_tenants *tenants, uint32_t group)
{
	struct gpd_assignment assignment = { .tenant = group - 1 };
	int count = tenants->device_count ? tenants->device_count : GPD_LEDGER_DEVICES;
	uint32_t usable = 0;

	for (int i = 0; i < count; i++) {
		if (device_is_sick(tenants, i))
			continue;
		if (tenants->device_count &&
		    (!tenants->devices[i].rule.visible ||
		     (group != GPD_GROUP_SHARED && !is_allowed(tenants, &assignment, i))))
			continue;
		usable |= UINT32_C(1) << i;
	}
	return usable;
}

void
gpd_tenants_list_devices(const struct gpd_tenants *tenants, uint32_t used,
			 struct gpd_device_list *list)
{
	*list = (struct gpd_device_list){ .used = used, .count = tenants->device_count };
	for (int i = 0; i < tenants->device_count; i++)
		memcpy(list->uuids[i], tenants->devices[i].uuid, sizeof(list->uuids[i]));
}

void
gpd_tenants_release(struct gpd_tenants *tenants, uint64_t session)
{
	for (int i = 0; i < GPD_LEDGER_DEVICES; i++) {
		for (int part = 0; part < GPD_VIRTUAL_MAX; part++) {
			if (tenants->devices[i].part_sessions[part] == session)
				tenants->devices[i].part_sessions[part] = 0;
		}
	}
}

uint32_t
gpd_tenants_min_sms(uint32_t a, uint32_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

static void
unit_apply_limits(const struct gpd_tenants *tenants, int config_index, const struct gpd_unit *unit,
		  struct gpd_ledger_line *line)
{
	uint64_t memory = tenants->devices[unit->device].memory, most = GPD_NO_LIMIT;
	uint32_t sms = tenants->devices[unit->device].multiprocessors, fewest = 0;

	if (config_index >= 0) {
		const struct gpd_config_quota *quota =
			&tenants->config->tenants[config_index].devices[unit->device];

		most = gpd_config_get_bytes(&quota->session_memory,
					    gpd_tenants_get_remaining(tenants, unit->device));
		fewest = gpd_tenants_round_sms(tenants, unit->device, &quota->session_sm);
	}
	if (unit->parts > 1) {
		uint64_t part = memory / (uint64_t)unit->parts / ALIGNMENT * ALIGNMENT;
		uint32_t part_sms = sms / (uint32_t)unit->parts;
		const struct gpd_config_amount sm = { .number = part_sms ? part_sms : 1 };

		most = most < part ? most : part;
		fewest = gpd_tenants_min_sms(fewest,
					     gpd_tenants_round_sms(tenants, unit->device, &sm));
	}
	atomic_store(&line->allowed, 1);
	atomic_store(&line->memory_max, most);
	atomic_store(&line->sm_wanted, fewest);
}

void
gpd_tenants_apply_limits(const struct gpd_tenants *tenants, const struct gpd_assignment *assignment,
			 struct gpd_ledger_session *entry)
{
	for (int i = 0; i < GPD_LEDGER_DEVICES; i++)
		atomic_store(&entry->devices[i].allowed, assignment_has_device(assignment, i));
	for (int i = 0; i < assignment->count; i++)
		unit_apply_limits(tenants, tenants->config_indexes[assignment->tenant],
				  &assignment->units[i],
				  &entry->devices[assignment->units[i].device]);
}
