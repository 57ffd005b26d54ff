/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/tenancy/quota.h"

#include "base/clock.h"
#include "server/common/base/integers.h"
#include "server/common/base/size_text.h"

#include <cuda.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int
gpd_quota_init(struct gpd_quota *quota, const char *config, char *error)
{
	struct gpd_config *loaded;
	int r = gpd_config_load(config, &loaded, error, GPD_CONFIG_ERROR_MAX);

	if (r)
		return r;
	quota->ledger = gpd_ledger_create(&quota->fd);
	if (!quota->ledger) {
		r = -errno;
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX, "no shared memory for the ledger: %s",
			       strerror(-r));
		gpd_config_free(loaded);
		return r;
	}
	gpd_log_budget_set_ledger(quota->ledger);
	quota->tenants = (struct gpd_tenants){ .ledger = quota->ledger };
	gpd_tenants_set_config(&quota->tenants, loaded);
	return 0;
}

void
gpd_quota_fini(struct gpd_quota *quota)
{
	if (!quota->ledger)
		return;
	gpd_config_free(quota->tenants.config);
	gpd_log_budget_set_ledger(NULL);
	gpd_ledger_destroy(quota->ledger);
	close(quota->fd);
	quota->ledger = NULL;
}

/* Lowers the session's limits on a device to this memory and this share of its multiprocessors, in
 * hundredths of a percent (0: all). */
static void
session_lower_limits(const struct gpd_tenants *tenants, int device, uint64_t memory, uint32_t share,
		     struct gpd_ledger_session *session)
{
	struct gpd_ledger_line *line = &session->devices[device];
	const struct gpd_config_amount amount = { .share = share };
	uint32_t wanted = gpd_tenants_round_sms(tenants, device, &amount);

	if (memory < atomic_load(&line->memory_max))
		atomic_store(&line->memory_max, memory);
	if (share < GPD_CONFIG_SHARE_MAX)
		atomic_store(&line->sm_wanted,
			     gpd_tenants_min_sms(atomic_load(&line->sm_wanted), wanted));
}

void
gpd_quota_apply(struct gpd_quota *quota, const Gpupool__Hello *hello,
		const struct gpd_assignment *assignment, struct gpd_ledger_session *session)
{
	const struct gpd_ledger_tenant *tenant = &quota->ledger->tenants[assignment->tenant];
	const Gpupool__SessionWish *wish = hello->wish;

	gpd_tenants_apply_limits(&quota->tenants, assignment, session);
	/* 0 normal, 1 low, 2 high: a client can only lower its own priority. */
	atomic_store(&session->priority,
		     wish && wish->priority > 0 ? 1 : atomic_load(&tenant->priority));
	for (size_t i = 0; wish && i < (size_t)assignment->count; i++)
		session_lower_limits(&quota->tenants, assignment->units[i].device,
				     i < wish->n_memory && wish->memory[i] ? wish->memory[i]
									   : GPD_NO_LIMIT,
				     100 * wish->thread_percentage, session);
}

/* FNV-1a: a collision of two names reveals only process IDs. */
static uint64_t
hash_host_name(const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
	return hash;
}

/* Returns the memory of a device that is in use or committed by sessions of one tenant, or of all
 * (NULL), except for one session. */
static uint64_t
memory_in_use(const struct gpd_quota *quota, int device, const struct gpd_ledger_session *but,
	      const uint32_t *tenant)
{
	uint64_t in_use = 0;

	for (const struct gpd_ledger_session *s = NULL;
	     (s = gpd_ledger_next(quota->ledger, s, GPD_LEDGER_ANY_WORKER));) {
		uint64_t used = GPD_LEDGER_IN_USE(&s->devices[device]);
		uint64_t max = atomic_load(&s->devices[device].memory_max);

		if (s == but || (tenant && s->tenant != *tenant))
			continue;
		if (quota->committed[gpd_ledger_index(quota->ledger, s)] && max > used &&
		    max != GPD_NO_LIMIT)
			used = max;
		in_use += used;
	}
	return in_use;
}

static uint64_t
u64_sub_saturating(uint64_t all, uint64_t in_use)
{
	return in_use < all ? all - in_use : 0;
}

/* Returns 0 if the memory limit of the waiting client's session is free. The limit is capped by the
 * device's size and the tenant's quota, as more can never become free. */
static int
memory_is_free(struct gpd_quota *quota, const Gpupool__Hello *hello,
	       const struct gpd_assignment *assignment, const struct gpd_ledger_session *session,
	       char *error)
{
	const Gpupool__SessionWish *wish = hello->wish;
	char text[2][GPD_SIZE_TEXT_MAX];

	if (wish && wish->n_memory &&
	    gpd_queue_count_ahead_in_tenant(&quota->queue, hello->wait, assignment->tenant,
					    gp_now_ms())) {
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX,
			       "free memory is reserved for queued clients of the tenant");
		return GP_E_RESOURCE;
	}
	for (int i = 0; wish && i < assignment->count && (size_t)i < wish->n_memory; i++) {
		int device = assignment->units[i].device;
		uint64_t size = quota->tenants.devices[device].memory;
		uint64_t most = gpd_ledger_headroom(quota->ledger, session, device, 0).max;
		uint64_t of_tenant = atomic_load(
			&quota->ledger->tenants[session->tenant].devices[device].memory_max);
		uint64_t wanted = gpd_u64_min(most, size), left;

		if (!wish->memory[i])
			continue;
		left = gpd_u64_min(
			u64_sub_saturating(size, memory_in_use(quota, device, session, NULL)),
			u64_sub_saturating(of_tenant, memory_in_use(quota, device, session,
								    &session->tenant)));
		if (left >= wanted)
			continue;
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX,
			       "device %d has %s of memory free, %s requested", device,
			       gpd_size_format(left, text[0]), gpd_size_format(wanted, text[1]));
		return GP_E_RESOURCE;
	}
	return 0;
}

/* Called once the session has its entry: a waiting client also waits for its memory. */
static int
memory_commit(struct gpd_quota *quota, const Gpupool__Hello *hello,
	      const struct gpd_assignment *assignment, const struct gpd_ledger_session *session,
	      char *error)
{
	bool *committed = &quota->committed[gpd_ledger_index(quota->ledger, session)];
	int r;

	*committed = false;
	if (!hello->wait)
		return 0;
	r = memory_is_free(quota, hello, assignment, session, error);
	*committed = r == 0 && hello->wish && hello->wish->n_memory;
	if (r)
		atomic_fetch_sub(&quota->ledger->tenants[assignment->tenant].sessions_total, 1);
	return r;
}

struct gpd_ledger_session *
gpd_quota_open(struct gpd_quota *quota, uint64_t id, const Gpupool__Hello *hello, pid_t worker,
	       struct gpd_assignment *assignment, Gpupool__Refused__Reason *reason_p, char *error)
{
	struct gpd_ledger_session *session;
	int r = gpd_tenants_has_room(&quota->tenants, assignment,
				     gpd_queue_count_ahead_in_tenant(&quota->queue, hello->wait,
								     assignment->tenant,
								     gp_now_ms()),
				     error);

	if (r == 0)
		r = gpd_tenants_assign(&quota->tenants, hello, id, assignment, error);
	*reason_p = r == GP_E_INVALID ? GPUPOOL__REFUSED__REASON__DEVICE
				      : GPUPOOL__REFUSED__REASON__FULL;
	if (r)
		return NULL;
	session = gpd_ledger_open(quota->ledger, id, assignment->tenant, worker);
	if (!session) {
		gpd_tenants_release(&quota->tenants, id);
		(void)snprintf(error, GPD_CONFIG_ERROR_MAX, "no free session slot");
		return NULL;
	}
	atomic_store(&session->pid, hello->pid);
	atomic_store(&session->machine, hash_host_name(hello->host));
	gpd_quota_apply(quota, hello, assignment, session);
	if (memory_commit(quota, hello, assignment, session, error)) {
		gpd_tenants_release(&quota->tenants, id);
		gpd_ledger_close(quota->ledger, session);
		return NULL;
	}
	gpd_queue_remove(&quota->queue, hello->wait);
	return session;
}

static void
session_notify_end(const struct gpd_quota *quota, const struct gpd_ledger_session *session)
{
	if (quota->ended)
		quota->ended(quota->ended_arg, session);
}

void
gpd_quota_close(struct gpd_quota *quota, uint64_t id)
{
	struct gpd_ledger_session *session = gpd_ledger_find(quota->ledger, id);

	gpd_tenants_release(&quota->tenants, id);
	if (!session)
		return;
	session_notify_end(quota, session);
	gpd_ledger_close(quota->ledger, session);
}

void
gpd_quota_close_worker(struct gpd_quota *quota, pid_t worker)
{
	for (const struct gpd_ledger_session *s = NULL;
	     (s = gpd_ledger_next(quota->ledger, s, worker));) {
		gpd_tenants_release(&quota->tenants, atomic_load(&s->id));
		session_notify_end(quota, s);
	}
	gpd_ledger_close_worker(quota->ledger, worker);
}

int
gpd_quota_describe_device(const struct gpd_quota *quota, const struct gpd_ledger_session *session,
			  const Gpupool__Device *device, uint64_t memory_free,
			  Gpupool__Device *copy)
{
	struct gpd_ledger_headroom room =
		gpd_ledger_headroom(quota->ledger, session, device->ordinal, 0);
	uint32_t sm = atomic_load(&session->devices[device->ordinal].sm_assigned);
	size_t size = device->n_attributes * sizeof(*device->attributes);

	*copy = *device;
	copy->attributes = malloc(size);
	if (!copy->attributes)
		return -ENOMEM;
	memcpy(copy->attributes, device->attributes, size);
	if (sm && gpd_tenants_get_sms(device) > sm)
		copy->attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT] = (int32_t)sm;
	if (room.max < copy->total_memory)
		copy->total_memory = room.max;
	copy->memory_free = room.left < memory_free ? room.left : memory_free;
	return 0;
}
