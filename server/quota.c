/* SPDX-License-Identifier: Apache-2.0 */
#include "server/quota.h"

#include <cuda.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int
gpd_quota_init(struct gpd_quota *quota)
{
	quota->ledger = gpd_ledger_create(&quota->fd);
	return quota->ledger ? 0 : -errno;
}

void
gpd_quota_fini(struct gpd_quota *quota)
{
	if (!quota->ledger)
		return;
	gpd_ledger_destroy(quota->ledger);
	close(quota->fd);
}

static uint32_t
multiprocessors_of(const Gpupool__Device *device)
{
	return device->n_attributes > CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
		       ? (uint32_t)device->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT]
		       : 0;
}

/* The wish narrows what there is; 0: all. */
static uint32_t
narrow(uint32_t have, uint32_t all, uint32_t percentage)
{
	uint32_t wanted = (uint32_t)((uint64_t)all * percentage / 100);

	if (percentage == 0 || percentage >= 100)
		return have;
	if (wanted == 0)
		wanted = 1;
	return have == 0 || wanted < have ? wanted : have;
}

static void
grant(struct gpd_ledger *ledger, struct gpd_ledger_session *session, const Gpupool__Hello *hello,
      const Gpupool__Welcome *facts)
{
	const struct gpd_ledger_tenant *tenant = &ledger->tenants[session->tenant];
	const Gpupool__SessionWish *wish = hello->wish;

	atomic_store(&session->priority, atomic_load(&tenant->priority));
	/* 0 normal, 1 low, 2 high: a client can only lower itself. */
	if (wish && wish->priority > 0)
		atomic_store(&session->priority, 1);
	for (size_t i = 0; i < facts->n_devices && i < GPD_LEDGER_DEVICES; i++) {
		struct gpd_ledger_line *line = &session->devices[i];
		uint32_t sm = atomic_load(&tenant->devices[i].sm_wanted);

		if (wish && i < wish->n_memory && wish->memory[i])
			atomic_store(&line->memory_max, wish->memory[i]);
		if (wish)
			sm = narrow(sm, multiprocessors_of(facts->devices[i]),
				    wish->thread_percentage);
		atomic_store(&line->sm_wanted, sm);
	}
}

struct gpd_ledger_session *
gpd_quota_open(struct gpd_quota *quota, uint64_t id, const Gpupool__Hello *hello,
	       const Gpupool__Welcome *facts, pid_t worker, const char **error)
{
	struct gpd_ledger_session *session =
		gpd_ledger_open(quota->ledger, id, GPD_TENANT_DEFAULT, worker);

	if (!session) {
		*error = "all sessions are taken";
		return NULL;
	}
	grant(quota->ledger, session, hello, facts);
	return session;
}

void
gpd_quota_close(struct gpd_quota *quota, uint64_t id)
{
	struct gpd_ledger_session *session = gpd_ledger_find(quota->ledger, id);

	if (session)
		gpd_ledger_close(quota->ledger, session);
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
