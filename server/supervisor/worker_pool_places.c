/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places: a device has memory for a limited number of contexts (workers-per-device), and each
 * worker with a context there occupies one place, until its process has exited.
 *
 * A session whose worker needs a place and finds none gets that of a worker without sessions, which
 * ends. Otherwise it waits. Of several waiting clients those of the tenants with the fewest places
 * there are first, then the order of arrival counts (queue.h).
 *
 * Sessions cannot be taken away. So a tenant that has a place gets a further one only if enough are
 * left for tenants that have none: one for each of them, at most half of all.
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

/* Returns whether a dedicated worker will be started for the client, in a place on the device. */
static bool
conn_starts_worker(const struct gpd_connection *connection, int device)
{
	return connection->state == GPD_CONNECTION_STARTING && !connection->own_worker &&
	       connection->first_device == device;
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
		count += conn_starts_worker(p, device);
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

/* Returns whether the worker is about to exit. */
static bool
process_is_leaving(const struct gpd_worker_pool *c, const struct gpd_worker_process *process)
{
	return process->state >= GPD_WORKER_ABANDONED ||
	       (process->state == GPD_WORKER_RETIRED && !process_has_sessions(c, process));
}

/* Returns the number of places that become free soon: their workers exit. */
static uint32_t
count_leaving(const struct gpd_worker_pool *c, int device)
{
	uint32_t count = 0;

	for (const struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next)
		count += gpd_worker_process_has_place(process, device) &&
			 process_is_leaving(c, process);
	return count;
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

/* Returns whether the worker would end if another one needed its place. */
static bool
process_is_idle(const struct gpd_worker_pool *c, const struct gpd_worker_process *process)
{
	return process->state == GPD_WORKER_SPARE ||
	       (process->state == GPD_WORKER_SERVING && !process_has_sessions(c, process) &&
		!group_is_wanted(c, process->group));
}

/* Returns whether the worker's place on the device is one of its group: not those of idle workers,
 * which end if another one needs their places. later: nor those of workers that are about to exit.
 */
static bool
process_uses_place(const struct gpd_worker_pool *c, const struct gpd_worker_process *process,
		   int device, bool later)
{
	return gpd_worker_process_has_place(process, device) && !process->spare &&
	       !process_is_idle(c, process) && !(later && process_is_leaving(c, process));
}

uint32_t
gpd_worker_pool_count_places(const void *arg, uint32_t group, int device)
{
	const struct gpd_worker_pool *c = arg;
	uint32_t count = 0;

	for (const struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next)
		count += process->group == group && process_uses_place(c, process, device, false);
	for (const struct gpd_connection *p = c->admission->connection_list; p; p = p->next)
		count += conn_starts_worker(p, device) &&
			 gpd_tenant_group(p->assignment.tenant) == group;
	return count;
}

/* Returns the number of places that are used on the device, and sets has_place of their groups. */
static uint32_t
count_used(const struct gpd_worker_pool *c, int device, bool later, bool has_place[GPD_GROUPS])
{
	uint32_t used = 0;

	for (const struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		if (!process_uses_place(c, process, device, later))
			continue;
		has_place[process->group] = true;
		used++;
	}
	for (const struct gpd_connection *p = c->admission->connection_list; p; p = p->next) {
		if (!conn_starts_worker(p, device))
			continue;
		has_place[gpd_tenant_group(p->assignment.tenant)] = true;
		used++;
	}
	return used;
}

/* Returns whether another place of the group would be one of those that are held back for tenants
 * that have none. later: also when the workers that are about to exit have exited. *left: the
 * number of places that are not used. */
static bool
count_held_back(const struct gpd_worker_pool *c, uint32_t group, int device, bool later,
		uint32_t *left)
{
	const struct gpd_tenants *tenants = &c->quota->tenants;
	uint32_t places = gpd_tenants_get_places(tenants, device), held = 0, used;
	bool has_place[GPD_GROUPS] = { false };

	used = count_used(c, device, later, has_place);
	*left = used < places ? places - used : 0;
	for (uint32_t i = 0; has_place[group] && i < GPD_LEDGER_TENANTS && held < places / 2; i++)
		held += !has_place[gpd_tenant_group(i)] &&
			gpd_tenants_needs_place(tenants, i, device);
	return held && *left <= held;
}

bool
gpd_worker_pool_holds_back(const struct gpd_worker_pool *c, uint32_t group, int device)
{
	uint32_t left;

	return count_held_back(c, group, device, false, &left);
}

static bool
conn_waits_for_place(const struct gpd_connection *connection, int device)
{
	return gpd_admission_waits_for_place(connection) && connection->first_device == device;
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

/* Adds the place that client `other` gets, which is not in the queue, if it does before this
 * client. */
static void
ahead_add_conn(const struct gpd_worker_pool *c, const struct gpd_waiter *client,
	       const struct gpd_connection *other, struct gpd_queue_ahead *ahead)
{
	const struct gpd_queue *queue = &c->quota->queue;
	const struct gpd_waiter waiter = gpd_admission_get_waiter(other);

	if (waiter.owner != client->owner) {
		gpd_queue_ahead_add(
			queue, client, waiter.owner,
			gpd_queue_get_order(queue, &waiter, client->device) < ahead->order, ahead);
		return;
	}
	/* Clients of a worker of several sessions need one place together. */
	if (client->group == GPD_QUEUE_OWN_WORKER || waiter.group != client->group)
		ahead->own += !ahead->queued && (!client->order || waiter.order < client->order) &&
			      !conn_is_repeated(c, other);
}

/* Returns the number of places that other clients get before this one. Groups for which the free
 * places are held back do not count. connection: the client; NULL: one after all others. */
static uint32_t
count_before(const struct gpd_worker_pool *c, const struct gpd_waiter *client,
	     const struct gpd_connection *connection)
{
	struct gpd_queue *queue = &c->quota->queue;
	struct gpd_queue_ahead ahead;
	uint32_t count;

	gpd_queue_get_ahead(queue, client, gp_now_ms(), &ahead);
	for (const struct gpd_connection *p = c->admission->connection_list; p; p = p->next) {
		const struct gpd_waiter waiter = gpd_admission_get_waiter(p);

		if (p != connection && conn_waits_for_place(p, client->device) &&
		    !gpd_queue_has_for_place(queue, &waiter))
			ahead_add_conn(c, client, p, &ahead);
	}
	count = ahead.own;
	for (uint32_t i = 0; i < GPD_GROUPS; i++)
		count += ahead.others[i] && !gpd_worker_pool_holds_back(c, i, client->device);
	return count;
}

static uint32_t
count_before_conn(const struct gpd_worker_pool *c, const struct gpd_connection *connection)
{
	const struct gpd_waiter client = gpd_admission_get_waiter(connection);

	return count_before(c, &client, connection);
}

/* Returns the number of groups with clients that wait for a place on the device. */
static uint32_t
count_waiting(const struct gpd_worker_pool *c, int device)
{
	const struct gpd_waiter last = { .device = device,
					 .group = GPD_QUEUE_OWN_WORKER,
					 .owner = GPD_QUEUE_NO_OWNER };

	return count_before(c, &last, NULL);
}

bool
gpd_worker_pool_has_unclaimed_place(const struct gpd_worker_pool *c, int device)
{
	return count_free(c, device) > count_waiting(c, device);
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
		if (!process_is_idle(c, process))
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

/* Returns whether a place that is held back is available to the group soon. */
static enum gpd_place
find_held_back(const struct gpd_worker_pool *c, uint32_t group, int device,
	       enum gpd_places_reason *reason)
{
	uint32_t left, later;
	bool held = count_held_back(c, group, device, true, &later);

	(void)count_held_back(c, group, device, false, &left);
	*reason = left ? GPD_PLACES_HELD_BACK : GPD_PLACES_IN_USE;
	return held ? GPD_PLACE_NONE : GPD_PLACE_SOON;
}

enum gpd_place
gpd_worker_pool_find_place(void *arg, const struct gpd_connection *connection,
			   enum gpd_places_reason *reason)
{
	struct gpd_worker_pool *c = arg;
	const struct gpd_worker_need need = gpd_worker_pool_get_need(c, connection);
	const struct gpd_worker_process *worker =
		need.dedicated ? NULL : find_worker(c, need.group);
	int device = connection->first_device;
	uint32_t ahead;

	if (!c->served || (worker && gpd_worker_process_has_place(worker, device)))
		return GPD_PLACE_READY;
	if (gpd_worker_pool_holds_back(c, need.group, device))
		return find_held_back(c, need.group, device, reason);
	if (!worker)
		worker = gpd_worker_pool_find_spare(c, &need);
	if (worker && gpd_worker_process_has_place(worker, device))
		return GPD_PLACE_READY;
	ahead = count_before_conn(c, connection);
	if (count_free(c, device) > ahead)
		return GPD_PLACE_READY;
	*reason = count_free(c, device) ? GPD_PLACES_RESERVED : GPD_PLACES_IN_USE;
	return make_room(c, device, ahead) ? GPD_PLACE_SOON : GPD_PLACE_NONE;
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
place_refuse(const struct gpd_worker_pool *c, struct gpd_worker_process *process, int device,
	     enum gpd_places_reason reason)
{
	char text[GPD_CONFIG_ERROR_MAX];

	gpd_tenants_format_places(&c->quota->tenants, device, reason, text);
	if (!(process->refused >> device & 1))
		gpd_warning("worker %d: a session gets CUDA_ERROR_OUT_OF_MEMORY: %s",
			    (int)process->pid, text);
	process->refused |= UINT32_C(1) << device;
	place_answer(process, device, false);
}

static void
place_decide(struct gpd_worker_pool *c, struct gpd_worker_process *process, int device, int64_t now)
{
	enum gpd_places_reason reason = GPD_PLACES_IN_USE;
	enum gpd_place place;

	if (gpd_worker_process_has_place(process, device))
		place = GPD_PLACE_READY;
	else if (gpd_worker_pool_holds_back(c, process->group, device))
		place = find_held_back(c, process->group, device, &reason);
	else if (count_free(c, device) > 0)
		place = GPD_PLACE_READY;
	else
		place = make_room(c, device, count_waiting(c, device)) ? GPD_PLACE_SOON
								       : GPD_PLACE_NONE;
	if (place == GPD_PLACE_READY)
		place_answer(process, device, true);
	else if (place == GPD_PLACE_NONE || now - process->wanted_ms >= PLACE_WAIT_MS)
		place_refuse(c, process, device, reason);
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

/* Returns whether the entry is the first of its group that waits for a place on its device. */
static bool
waiter_is_first(const struct gpd_queue *queue, int entry)
{
	const struct gpd_waiter *w = &queue->waiters[entry];

	for (int i = 0; i < entry; i++) {
		if (queue->waiters[i].limit == GPD_QUEUE_FOR_PLACE &&
		    queue->waiters[i].device == w->device && queue->waiters[i].owner == w->owner)
			return false;
	}
	return w->limit == GPD_QUEUE_FOR_PLACE;
}

/* Ends reservations of groups whose clients do not return. Waiting clients may get the places. */
static void
reservations_update(struct gpd_worker_pool *c, int64_t now)
{
	struct gpd_queue *queue = &c->quota->queue;
	bool over = false;

	for (int i = 0; i < queue->count; i++) {
		/* Expired entries may be removed meanwhile. */
		const struct gpd_waiter first = queue->waiters[i];
		uint32_t free_places;
		bool available;

		if (!waiter_is_first(queue, i))
			continue;
		free_places = count_free(c, first.device);
		available =
			free_places && !gpd_worker_pool_holds_back(c, first.owner, first.device);
		over |= gpd_queue_update_reservation(
			queue, first.owner, first.device, available,
			available &&
				free_places > gpd_queue_count_ahead_for_place(queue, &first, now),
			now);
	}
	if (over)
		gpd_admission_retry_queued(c->admission);
}

void
gpd_worker_pool_grant_places(struct gpd_worker_pool *c, int64_t now)
{
	reservations_update(c, now);
	for (struct gpd_worker_process *process = c->admission->workers; process;
	     process = process->next) {
		for (int i = 0; process->wanted >> i && i < GPD_LEDGER_DEVICES; i++) {
			if (process->wanted >> i & 1)
				place_decide(c, process, i, now);
		}
	}
}
