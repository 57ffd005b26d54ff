/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts of workers on a device: how many there may be, what they take of the memory, and what is
 * left for the quotas of tenants. */
#include "server/supervisor/tenancy/tenants.h"

#include <stdio.h>

/* A larger context has not been measured alone: other processes have allocated memory meanwhile. */
#define CONTEXT_MEMORY_MAX (4 * GPD_CONTEXT_MEMORY)

uint64_t
gpd_tenants_get_context_memory(const struct gpd_tenants *tenants, int device)
{
	uint64_t most = 0;

	if (tenants->devices[device].context_memory)
		return tenants->devices[device].context_memory;
	for (int i = 0; i < GPD_LEDGER_DEVICES; i++) {
		if (tenants->devices[i].context_memory > most)
			most = tenants->devices[i].context_memory;
	}
	if (most || tenants->software)
		return most;
	return GPD_CONTEXT_MEMORY;
}

uint32_t
gpd_tenants_get_places(const struct gpd_tenants *tenants, int device)
{
	if (!tenants->device_count)
		return GPD_PLACES_MAX;
	return gpd_config_get_places(&tenants->devices[device].rule,
				     tenants->devices[device].memory,
				     gpd_tenants_get_context_memory(tenants, device));
}

void
gpd_tenants_format_places(const struct gpd_tenants *tenants, int device,
			  enum gpd_places_reason reason, char text[GPD_CONFIG_ERROR_MAX])
{
	static const char *const reasons[] = {
		[GPD_PLACES_IN_USE] = "all in use",
		[GPD_PLACES_RESERVED] = "the free ones reserved for waiting clients",
		[GPD_PLACES_HELD_BACK] = "the free ones held back for tenants that have none",
	};

	(void)snprintf(text, GPD_CONFIG_ERROR_MAX,
		       "device %d has no place for another worker%s: workers-per-device = %u%s, %s",
		       device, reason == GPD_PLACES_HELD_BACK ? " of this tenant" : "",
		       gpd_tenants_get_places(tenants, device),
		       tenants->devices[device].rule.workers ? "" : " (a tenth of its memory)",
		       reasons[reason]);
}

uint64_t
gpd_tenants_get_remaining(const struct gpd_tenants *tenants, int device)
{
	struct gpd_config_device rules[GPD_LEDGER_DEVICES];
	uint32_t contexts = 1;

	for (int i = 0; i < tenants->device_count; i++)
		rules[i] = tenants->devices[i].rule;
	if (!gpd_config_has_one_worker(tenants->config, rules, tenants->device_count, device))
		contexts = gpd_tenants_get_places(tenants, device);
	return gpd_config_get_remaining(tenants->devices[device].memory, contexts,
					gpd_tenants_get_context_memory(tenants, device));
}

/* Applies the shares of the device's memory anew, except of tenants whose limit gpupoolctl has
 * changed. before: as gpd_tenants_get_remaining(), when they were applied last. */
static void
shares_apply(struct gpd_tenants *tenants, int device, uint64_t before)
{
	uint64_t now = gpd_tenants_get_remaining(tenants, device);

	for (int i = 0; now != before && i < GPD_LEDGER_TENANTS; i++) {
		_Atomic uint64_t *max = &tenants->ledger->tenants[i].devices[device].memory_max;
		const struct gpd_config_amount *memory;

		if (tenants->config_indexes[i] < 0)
			continue;
		memory = &tenants->config->tenants[tenants->config_indexes[i]]
				  .devices[device]
				  .memory;
		if (memory->share && atomic_load(max) == gpd_config_get_bytes(memory, before))
			atomic_store(max, gpd_config_get_bytes(memory, now));
	}
}

void
gpd_tenants_measure_context(struct gpd_tenants *tenants, int device, uint64_t bytes)
{
	uint64_t before[GPD_LEDGER_DEVICES];

	if (bytes <= tenants->devices[device].context_memory || bytes > CONTEXT_MEMORY_MAX)
		return;
	for (int i = 0; i < tenants->device_count; i++)
		before[i] = gpd_tenants_get_remaining(tenants, i);
	tenants->devices[device].context_memory = bytes;
	for (int i = 0; i < tenants->device_count; i++)
		shares_apply(tenants, i, before[i]);
}
