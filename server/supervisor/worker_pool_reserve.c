/* SPDX-License-Identifier: Apache-2.0 */
/* Starts workers, and keeps some in reserve. */
#include "base/clock.h"
#include "server/common/base/log.h"
#include "server/supervisor/worker_pool_internal.h"

#include <strings.h>
#include <utlist.h>

#define WORKER_START_MS 120000
/* Maximum number of workers of sessions and tenants that start at the same time: they occupy the
 * driver and the CPUs, at the cost of running sessions. The last start is for a group that has no
 * other. */
#define STARTING_MAX 4
/* A group that has got a worker does not take the last spare one on a device for this time, starts
 * one at a time, and none while one is started for the reserve. It is longer than a start, so that
 * sessions that are opened and ended in a loop leave a spare worker to others: the driver creates
 * one context at a time. */
#define ACQUIRE_AGAIN_MS 750
/* Time after which the start of a spare worker no longer delays those of other devices. */
#define SLOW_START_MS 5000
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

struct gpd_worker_need
gpd_worker_pool_get_need(const struct gpd_worker_pool *c, const struct gpd_connection *connection)
{
	const struct gpd_assignment *assignment = &connection->assignment;
	struct gpd_worker_need need = {
		.device = connection->first_device,
		.group = assignment->group,
		.dedicated = assignment->dedicated,
		.connections = CONNECTIONS_DEFAULT,
	};

	if (!need.dedicated) {
		need.devices = gpd_tenants_get_usable(&c->quota->tenants, need.group);
		need.connections = get_connections(c, need.group);
		return need;
	}
	need.group = gpd_tenant_group(assignment->tenant);
	for (int i = 0; i < assignment->count; i++)
		need.devices |= UINT32_C(1) << assignment->units[i].device;
	/* Of divided devices a session gets the first one with a free part. */
	if (assignment->count)
		need.device = assignment->units[0].device;
	return need;
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
	start.devices.contexts = UINT32_C(1) << need->device;
	process = gpd_worker_process_start(&start);
	if (!process) {
		gpd_error("cannot start a worker: %m");
		return NULL;
	}
	process->started_ms = now;
	process->deadline_ms = now + WORKER_START_MS;
	gpd_worker_cgroup_create(&c->cgroups, process->pid);
	LL_PREPEND(c->admission->workers, process);
	gpd_debug("worker %d starts", (int)process->pid);
	return process;
}

/* Returns a spare worker in this state that meets the need, or NULL. here: it has a context on the
 * device. */
static struct gpd_worker_process *
find_spare(const struct gpd_worker_pool *c, enum gpd_worker_process_state state,
	   const struct gpd_worker_need *need, bool here)
{
	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		if (process->spare && process->state == state && !process->channel_closed &&
		    !(need->devices & ~process->devices) &&
		    (!here || gpd_worker_process_has_place(process, need->device)) &&
		    process->connections >= need->connections)
			return process;
	}
	return NULL;
}

/* Returns the number of spare workers with a context on the device, including those that start. */
static uint32_t
count_spare(const struct gpd_worker_pool *c, int device)
{
	uint32_t count = 0;

	for (const struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next)
		count += process->spare && process->state <= GPD_WORKER_SPARE &&
			 gpd_worker_process_has_place(process, device);
	return count;
}

/* Returns the number of spare workers that are kept for sessions that share a worker: 1 on the
 * first usable device while there is no such worker, so that the first session does not wait for a
 * start. */
static uint32_t
count_first(const struct gpd_worker_pool *c, int device)
{
	uint32_t usable = gpd_tenants_get_usable(&c->quota->tenants, GPD_GROUP_SHARED);

	for (const struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		if (!process->spare && !gpd_worker_process_is_dedicated(process) &&
		    process->state <= GPD_WORKER_BUSY)
			return 0;
	}
	return device == ffs((int)usable) - 1;
}

/* Returns whether the tenant's group has got a worker recently, and there are others that may need
 * one. That of class shared is one for all its tenants. */
static bool
group_is_recent(const struct gpd_worker_pool *c, uint32_t group)
{
	int64_t acquired_ms = c->groups[group].acquired_ms;

	return group != GPD_GROUP_SHARED && gpd_tenants_are_apart(&c->quota->tenants) &&
	       acquired_ms && gp_now_ms() - acquired_ms < ACQUIRE_AGAIN_MS;
}

/* Returns whether a worker of the group may be a spare one: the last one on a device is left to
 * groups that have taken none recently. */
static bool
group_may_acquire_spare(const struct gpd_worker_pool *c, const struct gpd_worker_need *need)
{
	uint32_t kept = need->dedicated ? count_first(c, need->device) : 0;
	uint32_t count = count_spare(c, need->device);

	return count > kept + 1 || (count > kept && !group_is_recent(c, need->group));
}

struct gpd_worker_process *
gpd_worker_pool_find_spare(const struct gpd_worker_pool *c, const struct gpd_worker_need *need)
{
	struct gpd_worker_process *process = find_spare(c, GPD_WORKER_SPARE, need, true);

	if (!process)
		process = find_spare(c, GPD_WORKER_STARTING, need, true);
	/* The only worker, or that of several tenants, will probably use all devices. */
	if (!process && need->connections == CONNECTIONS_MAX)
		return find_spare(c, GPD_WORKER_SPARE, need, false);
	/* If there is no place for another worker, the spare one would be ended for this one. */
	return process && (group_may_acquire_spare(c, need) ||
			   !gpd_worker_pool_has_free_place(c, need->device))
		       ? process
		       : NULL;
}

bool
gpd_worker_pool_may_acquire(const struct gpd_worker_pool *c, const struct gpd_worker_need *need)
{
	bool recent = group_is_recent(c, need->group);
	int all = 0, own = 0;

	if (gpd_worker_pool_find_spare(c, need))
		return true;
	/* Includes those that fail before they are ready. */
	for (const struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		if (process->facts)
			continue;
		if (recent && (process->spare || process->group == need->group))
			return false;
		if (process->spare)
			continue;
		all++;
		own += process->group == need->group;
	}
	return all < STARTING_MAX - (own > 0);
}

struct gpd_worker_process *
gpd_worker_pool_acquire(struct gpd_worker_pool *c, const struct gpd_worker_need *need)
{
	struct gpd_worker_process *process = gpd_worker_pool_find_spare(c, need);

	if (!process)
		process = process_start(c, need);
	if (!process)
		return NULL;
	c->groups[need->group].acquired_ms = gp_now_ms();
	process->spare = false;
	process->group = need->group;
	return process;
}

bool
gpd_worker_pool_may_start_dedicated(void *arg, const struct gpd_connection *connection)
{
	const struct gpd_worker_pool *c = arg;
	const struct gpd_worker_need need = gpd_worker_pool_get_need(c, connection);

	return gpd_worker_pool_may_acquire(c, &need);
}

/* A session may get a spare worker with more devices, so that it does not wait for a start. */
struct gpd_worker_process *
gpd_worker_pool_start_dedicated(void *arg, const struct gpd_connection *connection)
{
	struct gpd_worker_pool *c = arg;
	const struct gpd_worker_need need = gpd_worker_pool_get_need(c, connection);

	return gpd_worker_pool_acquire(c, &need);
}

/* Returns the number of devices for which there are spare workers: before the first worker has
 * reported the devices, those that a sick one may come after. */
static int
get_device_count(const struct gpd_worker_pool *c)
{
	return c->quota->tenants.device_count ? c->quota->tenants.device_count : GPD_LEDGER_DEVICES;
}

static uint32_t
get_target(const struct gpd_worker_pool *c, int device)
{
	if (!(gpd_tenants_get_usable(&c->quota->tenants, GPD_GROUP_SHARED) >> device & 1))
		return 0;
	return gpd_tenants_get_ready_workers(&c->quota->tenants) + count_first(c, device);
}

/* Returns whether another spare worker is needed on the device: also to find out whether a context
 * can be created on a suspect one, after a while again: workers that run sessions report it. */
static bool
device_needs_spare(const struct gpd_worker_pool *c, int device, int64_t now)
{
	return count_spare(c, device) < get_target(c, device) ||
	       (c->quota->tenants.devices[device].health.suspect && c->probe_ms[device] <= now);
}

/* Returns a device that needs another spare worker; -1: there is none, or one is starting. They
 * start one at a time, unless one is slow, and only in places for which no client waits. */
static int
find_device_for_spare(const struct gpd_worker_pool *c, int64_t now)
{
	uint32_t usable = gpd_tenants_get_usable(&c->quota->tenants, GPD_GROUP_SHARED);

	for (const struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		if (!process->spare || process->state != GPD_WORKER_STARTING)
			continue;
		if (!c->served || now - process->started_ms < SLOW_START_MS)
			return -1;
		usable &= ~process->contexts;
	}
	for (int i = 0; i < get_device_count(c); i++) {
		if ((usable >> i & 1) && device_needs_spare(c, i, now) &&
		    gpd_worker_pool_has_unclaimed_place(c, i))
			return i;
	}
	return -1;
}

static void
spare_start(struct gpd_worker_pool *c, int device, int64_t now)
{
	const struct gpd_worker_need need = {
		.devices = gpd_tenants_get_usable(&c->quota->tenants, GPD_GROUP_SHARED),
		.device = device,
		.connections = get_connections(c, gpd_tenant_group(0)),
	};
	struct gpd_worker_process *process = process_start(c, &need);

	if (c->quota->tenants.devices[device].health.suspect)
		c->probe_ms[device] = now + BACKOFF_MS;
	if (process)
		process->spare = true;
	else
		c->spare_ms = now + BACKOFF_MS;
}

void
gpd_worker_pool_maintain_reserve(struct gpd_worker_pool *c, int64_t now)
{
	int device = c->spare_ms <= now ? find_device_for_spare(c, now) : -1;

	if (device >= 0)
		spare_start(c, device, now);
	for (int i = 0; i < get_device_count(c); i++) {
		const struct gpd_worker_need any = { .device = i };
		struct gpd_worker_process *process;

		while (count_spare(c, i) > get_target(c, i) &&
		       (process = find_spare(c, GPD_WORKER_SPARE, &any, true)))
			gpd_worker_pool_retire_worker(c, process);
	}
}
