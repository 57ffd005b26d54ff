/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places: a device has memory for a limited number of contexts (workers-per-device), and each
 * worker with a context there occupies one place, until its process has exited.
 *
 * A session whose worker needs a place and finds none gets that of a worker without sessions, which
 * ends. Otherwise it waits. Of several waiting clients those in the queue (queue.h) are first, then
 * those of the tenants with the fewest places there.
 */
#include "base/clock.h"
#include "server/common/base/log.h"
#include "server/supervisor/worker_pool_internal.h"

#include <signal.h>

/* How long a worker waits for a place that a worker without sessions has, which is about to exit;
 * less than the worker's own limit. */
#define PLACE_WAIT_MS 10000

static bool
process_has_sessions(const struct gpd_worker_pool *c, const struct gpd_worker_process *process)
{
	return gpd_ledger_next(c->quota->ledger, NULL, process->pid) != NULL;
}

/* Returns the number of occupied places, including those of dedicated workers that will be
 * started for admitted sessions. */
static uint32_t
count_occupied(const struct gpd_worker_pool *c, int device)
{
	uint32_t count = 0;

	for (const struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next)
		count += gpd_worker_process_has_place(process, device);
	for (const struct gpd_connection *p = c->admission->connection_list; p; p = p->next)
		count += p->state == GPD_CONNECTION_STARTING && !p->own_worker &&
			 p->first_device == device;
	return count;
}

static uint32_t
count_free(const struct gpd_worker_pool *c, int device)
{
	uint32_t places = gpd_tenants_get_places(&c->quota->tenants, device);
	uint32_t occupied = count_occupied(c, device);

	return occupied < places ? places - occupied : 0;
}

bool
gpd_worker_pool_has_free_place(const struct gpd_worker_pool *c, int device)
{
	return count_free(c, device) > 0;
}

/* Returns the number of places that become free soon: their workers exit. */
static uint32_t
count_leaving(const struct gpd_worker_pool *c, int device)
{
	uint32_t count = 0;

	for (const struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next)
		count += gpd_worker_process_has_place(process, device) &&
			 (process->state >= GPD_WORKER_ABANDONED ||
			  (process->state == GPD_WORKER_RETIRED &&
			   !process_has_sessions(c, process)));
	return count;
}

/* Returns the number of places that workers of the group occupy. */
static uint32_t
count_of_group(const struct gpd_worker_pool *c, uint32_t group, int device)
{
	uint32_t count = 0;

	for (const struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next)
		count += !process->spare && process->group == group &&
			 gpd_worker_process_has_place(process, device);
	return count;
}

/* Returns the group whose workers count for the client's tenant. */
static uint32_t
get_group(const struct gpd_connection *connection)
{
	return connection->assignment.dedicated ? gpd_tenant_group(connection->assignment.tenant)
						: connection->assignment.group;
}

static bool
conn_waits_for_place(const struct gpd_connection *connection, int device)
{
	return connection->state == GPD_CONNECTION_QUEUED && connection->place_order &&
	       connection->first_device == device;
}

/* Returns whether client a gets a place before client b; neither is in the queue. */
static bool
conn_is_before(const struct gpd_worker_pool *c, const struct gpd_connection *a,
	       const struct gpd_connection *b)
{
	uint32_t places_a = count_of_group(c, get_group(a), a->first_device);
	uint32_t places_b = count_of_group(c, get_group(b), b->first_device);

	if (places_a != places_b)
		return places_a < places_b;
	return !b->place_order || a->place_order < b->place_order;
}

/* Returns whether a client before this one in the list waits for the same place. */
static bool
conn_is_repeated(const struct gpd_worker_pool *c, const struct gpd_connection *connection)
{
	for (const struct gpd_connection *p = c->admission->connection_list;
	     !connection->assignment.dedicated && p != connection; p = p->next) {
		if (conn_waits_for_place(p, connection->first_device) && !p->assignment.dedicated &&
		    p->assignment.group == connection->assignment.group)
			return true;
	}
	return false;
}

/* Returns the number of places that other clients get before this one. connection NULL: that all
 * waiting clients get. */
static uint32_t
count_ahead(const struct gpd_worker_pool *c, const struct gpd_connection *connection, int device)
{
	struct gpd_queue *queue = &c->quota->queue;
	uint64_t number = connection ? connection->hello->hello->wait : 0;
	uint32_t group =
		connection ? gpd_admission_get_place_group(connection) : GPD_QUEUE_OWN_WORKER;
	uint32_t ahead = gpd_queue_count_ahead_for_place(queue, number, device, group, gp_now_ms());

	for (const struct gpd_connection *p = c->admission->connection_list;
	     p && !gpd_queue_has(queue, number); p = p->next) {
		if (p == connection || !conn_waits_for_place(p, device) ||
		    gpd_queue_has(queue, p->hello->hello->wait) ||
		    (group != GPD_QUEUE_OWN_WORKER && gpd_admission_get_place_group(p) == group) ||
		    conn_is_repeated(c, p))
			continue;
		ahead += !connection || conn_is_before(c, p, connection);
	}
	return ahead;
}

bool
gpd_worker_pool_has_unclaimed_place(const struct gpd_worker_pool *c, int device)
{
	return count_free(c, device) > count_ahead(c, NULL, device);
}

/* Returns whether a client is about to get a session in the group's worker. */
static bool
group_is_wanted(const struct gpd_worker_pool *c, uint32_t group)
{
	for (const struct gpd_connection *p = c->admission->connection_list; p; p = p->next) {
		if (p->state == GPD_CONNECTION_QUEUED && !p->full_reason[0] &&
		    !p->assignment.dedicated && p->assignment.group == group)
			return true;
	}
	return false;
}

/* Returns the worker without sessions whose place on the device is used for another one: of the
 * reserve, else the one that has had none for longest. NULL: there is none. */
static struct gpd_worker_process *
find_idle(const struct gpd_worker_pool *c, int device)
{
	struct gpd_worker_process *found = NULL;

	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		if (!gpd_worker_process_has_place(process, device) || process->channel_closed)
			continue;
		if (process->state == GPD_WORKER_SPARE)
			return process;
		if (process->state != GPD_WORKER_SERVING || process_has_sessions(c, process) ||
		    group_is_wanted(c, process->group))
			continue;
		if (!found || process->state_ms < found->state_ms)
			found = process;
	}
	return found;
}

/* Returns the worker that gets the group's new sessions, or will when it has started; or NULL. */
static const struct gpd_worker_process *
find_worker(const struct gpd_worker_pool *c, uint32_t group)
{
	const struct gpd_worker_process *process = gpd_admission_get_worker(c->admission, group);

	return process && process->state <= GPD_WORKER_BUSY
		       ? process
		       : gpd_worker_pool_find_serving(c, group);
}

/* Returns whether more places than `ahead` become free soon; if necessary, ends a worker without
 * sessions. */
static bool
make_room(struct gpd_worker_pool *c, int device, uint32_t ahead)
{
	struct gpd_worker_process *idle;

	if (count_free(c, device) + count_leaving(c, device) > ahead)
		return true;
	idle = find_idle(c, device);
	if (!idle)
		return false;
	gpd_info("worker %d ends: another worker needs its place on device %d", (int)idle->pid,
		 device);
	gpd_worker_pool_retire_worker(c, idle);
	return true;
}

enum gpd_place
gpd_worker_pool_find_place(void *arg, const struct gpd_connection *connection)
{
	struct gpd_worker_pool *c = arg;
	const struct gpd_worker_need need = gpd_worker_pool_get_need(c, connection);
	const struct gpd_worker_process *worker =
		need.dedicated ? NULL : find_worker(c, need.group);
	uint32_t ahead;

	if (!worker)
		worker = gpd_worker_pool_find_spare(c, &need);
	if (!c->served ||
	    (worker && gpd_worker_process_has_place(worker, connection->first_device)))
		return GPD_PLACE_READY;
	ahead = count_ahead(c, connection, connection->first_device);
	if (count_free(c, connection->first_device) > ahead)
		return GPD_PLACE_READY;
	return make_room(c, connection->first_device, ahead) ? GPD_PLACE_SOON : GPD_PLACE_NONE;
}

static void
place_answer(struct gpd_worker_process *process, int device, bool granted)
{
	struct gpd_channel_header header = { .type = GPD_CHANNEL_PLACE,
					     .result = device,
					     .session = granted };

	process->wanted &= ~(UINT32_C(1) << device);
	if (granted)
		process->granted |= UINT32_C(1) << device;
	if (gpd_channel_post(&process->channel, &header, NULL, 0, -1))
		(void)kill(process->pid, SIGKILL);
}

static void
place_refuse(const struct gpd_worker_pool *c, struct gpd_worker_process *process, int device)
{
	char text[GPD_CONFIG_ERROR_MAX];

	gpd_tenants_format_places(&c->quota->tenants, device, text);
	if (!(process->refused >> device & 1))
		gpd_warning("worker %d: a session gets CUDA_ERROR_OUT_OF_MEMORY: %s",
			    (int)process->pid, text);
	process->refused |= UINT32_C(1) << device;
	place_answer(process, device, false);
}

static void
place_decide(struct gpd_worker_pool *c, struct gpd_worker_process *process, int device, int64_t now)
{
	if (gpd_worker_process_has_place(process, device) || count_free(c, device) > 0)
		place_answer(process, device, true);
	else if (now - process->wanted_ms >= PLACE_WAIT_MS ||
		 !make_room(c, device, count_ahead(c, NULL, device)))
		place_refuse(c, process, device);
}

/* Returns whether the worker has a session that may use the device. */
static bool
has_session_for(const struct gpd_worker_pool *c, const struct gpd_worker_process *process,
		int device)
{
	for (const struct gpd_connection *p = c->admission->connection_list; p; p = p->next) {
		for (int i = 0; p->worker == process && i < p->assignment.count; i++) {
			if (p->assignment.units[i].device == device)
				return true;
		}
	}
	return false;
}

void
gpd_worker_pool_request_place(struct gpd_worker_pool *c, struct gpd_worker_process *process,
			      int device)
{
	if (device < 0 || device >= GPD_LEDGER_DEVICES)
		return;
	/* A worker of the reserve sees devices that its sessions may not use. */
	if (!has_session_for(c, process, device)) {
		place_answer(process, device, false);
		return;
	}
	process->wanted |= UINT32_C(1) << device;
	process->wanted_ms = gp_now_ms();
	place_decide(c, process, device, process->wanted_ms);
}

void
gpd_worker_pool_grant_places(struct gpd_worker_pool *c, int64_t now)
{
	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		for (int i = 0; process->wanted >> i && i < GPD_LEDGER_DEVICES; i++) {
			if (process->wanted >> i & 1)
				place_decide(c, process, i, now);
		}
	}
}
