/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/tenancy/quota.h"

#include <cuda.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int
gpd_quota_init(struct gpd_quota *quota, const char *config, char *error)
{
	int r;

	quota->defaults = (struct gpd_defaults){ .thread_share = 10000 };
	for (int d = 0; d < GPD_LEDGER_DEVICES; d++)
		quota->defaults.memory[d] = GPD_NO_LIMIT;
	quota->ledger = gpd_ledger_create(&quota->fd);
	if (!quota->ledger) {
		r = -errno;
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX, "no shared memory for the ledger: %s",
			       strerror(-r));
		return r;
	}
	gpd_log_budget_use(quota->ledger);
	r = gpd_tenants_init(&quota->tenants, quota->ledger, config, error);
	if (r)
		gpd_quota_fini(quota);
	return r;
}

void
gpd_quota_fini(struct gpd_quota *quota)
{
	if (!quota->ledger)
		return;
	gpd_tenants_fini(&quota->tenants);
	gpd_log_budget_use(NULL);
	gpd_ledger_destroy(quota->ledger);
	close(quota->fd);
	quota->ledger = NULL;
}

static uint32_t
multiprocessors_of(const Gpupool__Device *device)
{
	return device->n_attributes > CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
		       ? (uint32_t)device->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT]
		       : 0;
}

/* The share, in hundredths of a per cent, narrows what there is; 0: all. */
static uint32_t
narrow(uint32_t have, uint32_t all, uint32_t share)
{
	uint32_t wanted = (uint32_t)((uint64_t)all * share / 10000);

	if (share == 0 || share >= 10000)
		return have;
	if (wanted == 0)
		wanted = 1;
	return have == 0 || wanted < have ? wanted : have;
}

/* Those who name no tenant have less, if that was so when they came. */
static void
limit_by_default(const struct gpd_tenants *tenants, const struct gpd_defaults *defaults,
		 struct gpd_ledger_session *session)
{
	if (defaults->priority)
		atomic_store(&session->priority, defaults->priority);
	for (int d = 0; d < tenants->device_count; d++) {
		struct gpd_ledger_line *line = &session->devices[d];

		if (defaults->memory[d] < atomic_load(&line->memory_max))
			atomic_store(&line->memory_max, defaults->memory[d]);
		atomic_store(&line->sm_wanted,
			     narrow(atomic_load(&line->sm_wanted),
				    tenants->devices[d].multiprocessors, defaults->thread_share));
	}
}

static void
narrow_unit(const struct gpd_tenants *tenants, const Gpupool__SessionWish *wish, int index,
	    const struct gpd_unit *unit, struct gpd_ledger_line *line)
{
	uint64_t memory = (size_t)index < wish->n_memory ? wish->memory[index] : 0;

	if (memory && memory < atomic_load(&line->memory_max))
		atomic_store(&line->memory_max, memory);
	atomic_store(&line->sm_wanted, narrow(atomic_load(&line->sm_wanted),
					      tenants->devices[unit->device].multiprocessors,
					      100 * wish->thread_percentage));
}

void
gpd_quota_limit(struct gpd_quota *quota, const Gpupool__Hello *hello, const struct gpd_grant *grant,
		struct gpd_ledger_session *session)
{
	const struct gpd_ledger_tenant *tenant = &quota->ledger->tenants[grant->tenant];
	const Gpupool__SessionWish *wish = hello->wish;

	gpd_tenants_limit(&quota->tenants, grant, session);
	/* 0 normal, 1 low, 2 high: a client can only lower itself. */
	atomic_store(&session->priority,
		     wish && wish->priority > 0 ? 1 : atomic_load(&tenant->priority));
	if (grant->tenant == GPD_TENANT_DEFAULT)
		limit_by_default(&quota->tenants, &grant->defaults, session);
	for (int i = 0; wish && i < grant->count; i++)
		narrow_unit(&quota->tenants, wish, i, &grant->units[i],
			    &session->devices[grant->units[i].device]);
}

struct gpd_ledger_session *
gpd_quota_open(struct gpd_quota *quota, uint64_t id, const Gpupool__Hello *hello, pid_t worker,
	       struct gpd_grant *grant, Gpupool__Refused__Reason *reason_p, char *error)
{
	struct gpd_ledger_session *session;
	int r = gpd_tenants_has_room(&quota->tenants, grant, error);

	if (r == 0)
		r = gpd_tenants_choose(&quota->tenants, hello, id, grant, error);
	*reason_p = r == GP_E_INVALID ? GPUPOOL__REFUSED__REASON__DEVICE
				      : GPUPOOL__REFUSED__REASON__FULL;
	if (r)
		return NULL;
	session = gpd_ledger_open(quota->ledger, id, grant->tenant, worker);
	if (!session) {
		gpd_tenants_release(&quota->tenants, id);
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX, "all sessions are taken");
		return NULL;
	}
	grant->defaults = quota->defaults;
	gpd_quota_limit(quota, hello, grant, session);
	return session;
}

void
gpd_quota_close(struct gpd_quota *quota, uint64_t id)
{
	struct gpd_ledger_session *session = gpd_ledger_find(quota->ledger, id);

	gpd_tenants_release(&quota->tenants, id);
	if (session)
		gpd_ledger_close(quota->ledger, session);
}

void
gpd_quota_close_worker(struct gpd_quota *quota, pid_t worker)
{
	for (int i = 0; i < GPD_LEDGER_SESSIONS; i++) {
		struct gpd_ledger_session *session = &quota->ledger->sessions[i];

		if (atomic_load(&session->id) && session->worker == worker)
			gpd_tenants_release(&quota->tenants, atomic_load(&session->id));
	}
	gpd_ledger_close_worker(quota->ledger, worker);
}

int
gpd_quota_show(const struct gpd_quota *quota, const struct gpd_ledger_session *session,
	       const Gpupool__Device *device, uint64_t memory_free, Gpupool__Device *copy)
{
	struct gpd_ledger_room room = gpd_ledger_room(quota->ledger, session, device->ordinal);
	uint32_t sm = atomic_load(&session->devices[device->ordinal].sm_assigned);
	size_t size = device->n_attributes * sizeof(*device->attributes);

	*copy = *device;
	copy->attributes = malloc(size);
	if (!copy->attributes)
		return -ENOMEM;
	memcpy(copy->attributes, device->attributes, size);
	if (sm && multiprocessors_of(device) > sm)
		copy->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = (int32_t)sm;
	if (room.max < copy->total_memory)
		copy->total_memory = room.max;
	copy->memory_free = room.left < memory_free ? room.left : memory_free;
	return 0;
}

void
gpd_quota_forget(Gpupool__Device *copy)
{
	free(copy->attributes);
	copy->attributes = NULL;
}
