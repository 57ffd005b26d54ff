/* SPDX-License-Identifier: Apache-2.0 */
/* Starts workers, and keeps some in reserve. */
#include "base/clock.h"
#include "server/common/base/log.h"
#include "server/supervisor/worker_pool_internal.h"

#include <utlist.h>

#define WORKER_START_MS 120000
/* Hardware queues of a worker's contexts (gpd_worker_process_start()): the maximum for a worker
 * that is the only one, or that runs the sessions of several tenants; else the driver's default.
 * The time to create a context increases with the number of queues of all contexts on the device:
 * by 0.25 s for each context with 32 queues, by 0.02 s for one with 8 (H200, driver 580).
 */
#define CONNECTIONS_MAX 32
#define CONNECTIONS_DEFAULT 8

static int
get_connections(const struct gpd_worker_pool *c, uint32_t group)
{
	return group == GPD_GROUP_SHARED || !gpd_tenants_are_apart(&c->quota->tenants)
		       ? CONNECTIONS_MAX
		       : CONNECTIONS_DEFAULT;
}

/* A worker has a context on its first device when it is ready, and creates others when a session
 * uses them. */
static uint32_t
get_first(uint32_t devices)
{
	return devices & -devices;
}

struct gpd_worker_need
gpd_worker_pool_get_need(const struct gpd_worker_pool *c, uint32_t group)
{
	uint32_t devices = gpd_tenants_get_usable(&c->quota->tenants, group);

	return (struct gpd_worker_need){
		.devices = devices,
		.contexts = get_first(devices),
		.exact = true,
		.connections = get_connections(c, group),
	};
}

static struct gpd_worker_process *
process_start(struct gpd_worker_pool *c, const struct gpd_worker_need *need)
{
	/* A daemon that has served GPUs must not continue with the software device. */
	bool software = gpd_options_software(c->options, c->quota->tenants.config) &&
			(!c->served || c->quota->tenants.software);
	struct gpd_worker_start start = {
		.driver = c->options->driver,
		.software = software,
		.rdma = c->options->rdma,
		.peer_memory = !c->options->no_peer_memory,
		.connections = need->connections,
		.syscall_filter = c->options->syscall_filter,
		.ledger_fd = c->quota->fd,
	};
	struct gpd_worker_process *process;
	int64_t now = gp_now_ms();

	gpd_tenants_list_devices(&c->quota->tenants, need->devices, &start.devices);
	start.devices.contexts = need->contexts;
	process = gpd_worker_process_start(&start);
	if (!process) {
		gpd_error("cannot start a worker: %m");
		return NULL;
	}
	process->deadline_ms = now + WORKER_START_MS;
	gpd_worker_cgroup_create(&c->cgroups, process->pid);
	LL_PREPEND(c->admission->workers, process);
	gpd_debug("worker %d starts", (int)process->pid);
	return process;
}

/* Returns a spare worker that meets the need, or NULL. */
struct gpd_worker_process *
gpd_worker_pool_find_spare(const struct gpd_worker_pool *c, enum gpd_worker_process_state state,
			   const struct gpd_worker_need *need)
{
	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		if (process->spare && process->state == state && !process->channel_closed &&
		    !(need->devices & ~process->devices) &&
		    (!need->exact || need->devices == process->devices) &&
		    process->connections >= need->connections)
			return process;
	}
	return NULL;
}

static uint32_t
count_spare(const struct gpd_worker_pool *c)
{
	uint32_t count = 0;

	for (const struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next)
		count += process->spare && process->state <= GPD_WORKER_SPARE;
	return count;
}

/* Returns the number of spare workers that are kept for sessions that share a worker: 1 while there
 * is no such worker, so that the first session does not wait for a start. */
static uint32_t
count_first(const struct gpd_worker_pool *c)
{
	for (const struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		if (!process->spare && !gpd_worker_process_is_dedicated(process) &&
		    process->state <= GPD_WORKER_BUSY)
			return 0;
	}
	return 1;
}

/* Returns a worker that is spare, or starting as a spare, or new. */
struct gpd_worker_process *
gpd_worker_pool_acquire(struct gpd_worker_pool *c, const struct gpd_worker_need *need)
{
	struct gpd_worker_process *process = gpd_worker_pool_find_spare(c, GPD_WORKER_SPARE, need);

	if (!process)
		process = gpd_worker_pool_find_spare(c, GPD_WORKER_STARTING, need);
	if (!process)
		return process_start(c, need);
	process->spare = false;
	return process;
}

/* Callback of the admission. A session may get a spare worker with more devices, so that it does
 * not wait for a start. */
struct gpd_worker_process *
gpd_worker_pool_acquire_for_session(void *arg, uint32_t devices)
{
	struct gpd_worker_pool *c = arg;
	const struct gpd_worker_need need = { .devices = devices,
					      .contexts = get_first(devices),
					      .connections = CONNECTIONS_DEFAULT };

	return count_spare(c) > count_first(c) ? gpd_worker_pool_acquire(c, &need)
					       : process_start(c, &need);
}

static uint32_t
spare_target(const struct gpd_worker_pool *c)
{
	return gpd_tenants_get_ready_workers(&c->quota->tenants) + count_first(c);
}

/* Returns the devices on which a new worker must try to create a context. */
static uint32_t
get_suspects(const struct gpd_worker_pool *c)
{
	uint32_t suspects = 0;

	for (int i = 0; i < c->quota->tenants.device_count; i++) {
		if (c->quota->tenants.devices[i].health.suspect)
			suspects |= UINT32_C(1) << i;
	}
	return suspects;
}

/* Spare workers are started one at a time, after workers that sessions wait for. */
static bool
wants_spare(const struct gpd_worker_pool *c)
{
	for (const struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		if (process->state == GPD_WORKER_STARTING)
			return false;
	}
	return count_spare(c) < spare_target(c) || get_suspects(c);
}

void
gpd_worker_pool_maintain_reserve(struct gpd_worker_pool *c, int64_t now)
{
	struct gpd_worker_need need = gpd_worker_pool_get_need(c, GPD_GROUP_SHARED);
	const struct gpd_worker_need any = { 0 };
	struct gpd_worker_process *process;

	need.connections = get_connections(c, gpd_tenant_group(0));
	need.contexts |= get_suspects(c) & need.devices;
	if (need.devices && wants_spare(c) && c->spare_ms <= now) {
		process = process_start(c, &need);
		if (process)
			process->spare = true;
		else
			c->spare_ms = now + BACKOFF_MS;
	}
	while (count_spare(c) > spare_target(c) &&
	       (process = gpd_worker_pool_find_spare(c, GPD_WORKER_SPARE, &any)))
		gpd_worker_pool_retire_worker(c, process);
}
