/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/tenancy/queue.h"

#include <string.h>

static void
waiter_remove(struct gpd_queue *queue, int i)
{
	queue->count--;
	memmove(&queue->waiters[i], &queue->waiters[i + 1],
		(size_t)(queue->count - i) * sizeof(queue->waiters[0]));
}

static bool
waiter_is_expired(const struct gpd_waiter *waiter, int64_t now_ms)
{
	return now_ms - waiter->seen_ms > GPD_QUEUE_EXPIRE_MS;
}

static void
waiters_drop_expired(struct gpd_queue *queue, int64_t now_ms)
{
	for (int i = queue->count - 1; i >= 0; i--) {
		if (waiter_is_expired(&queue->waiters[i], now_ms))
			waiter_remove(queue, i);
	}
}

/* Returns the index of the entry, or -1. */
static int
waiter_find(const struct gpd_queue *queue, uint64_t number)
{
	for (int i = 0; number && i < queue->count; i++) {
		if (queue->waiters[i].number == number)
			return i;
	}
	return -1;
}

/* Returns the index of the entry of this number, or that after the last one. */
static int
waiters_find_end(struct gpd_queue *queue, uint64_t number, int64_t now_ms)
{
	int entry;

	waiters_drop_expired(queue, now_ms);
	entry = waiter_find(queue, number);
	return entry < 0 ? queue->count : entry;
}

unsigned int
gpd_queue_count_ahead_for_daemon(struct gpd_queue *queue, uint64_t number, int64_t now_ms)
{
	int end = waiters_find_end(queue, number, now_ms);
	unsigned int ahead = 0;

	for (int i = 0; i < end; i++)
		ahead += queue->waiters[i].limit == GPD_QUEUE_FOR_DAEMON;
	return ahead;
}

unsigned int
gpd_queue_count_ahead_in_tenant(struct gpd_queue *queue, uint64_t number, uint32_t tenant,
				int64_t now_ms)
{
	int end = waiters_find_end(queue, number, now_ms);
	unsigned int ahead = 0;

	for (int i = 0; i < end; i++)
		ahead += queue->waiters[i].limit == GPD_QUEUE_FOR_TENANT &&
			 queue->waiters[i].tenant == tenant;
	return ahead;
}

/* Returns whether an earlier entry than this one needs the same place. */
static bool
waiter_is_repeated(const struct gpd_queue *queue, int entry)
{
	const struct gpd_waiter *w = &queue->waiters[entry];

	for (int i = 0; w->group != GPD_QUEUE_OWN_WORKER && i < entry; i++) {
		if (queue->waiters[i].limit == GPD_QUEUE_FOR_PLACE &&
		    queue->waiters[i].device == w->device && queue->waiters[i].group == w->group)
			return true;
	}
	return false;
}

/* Returns the number of places that the group has on the client's device, which is counted once. */
static uint32_t
ahead_count_places(const struct gpd_queue *queue, const struct gpd_waiter *client, uint32_t group,
		   struct gpd_queue_ahead *ahead)
{
	if (!ahead->counted[group] && queue->get_places)
		ahead->places[group] = queue->get_places(queue->arg, group, client->device);
	ahead->counted[group] = true;
	return ahead->places[group];
}

void
gpd_queue_ahead_add(const struct gpd_queue *queue, const struct gpd_waiter *client, uint32_t group,
		    bool earlier, struct gpd_queue_ahead *ahead)
{
	uint32_t others, own;

	if (ahead->others[group])
		return;
	if (client->owner == GPD_QUEUE_NO_OWNER) {
		ahead->others[group] = true;
		return;
	}
	others = ahead_count_places(queue, client, group, ahead);
	own = ahead_count_places(queue, client, client->owner, ahead);
	ahead->others[group] = others < own || (others == own && earlier);
}

/* Returns whether the entry reserves a place on the device. */
static bool
waiter_reserves(const struct gpd_queue *queue, const struct gpd_waiter *w, int device)
{
	return w->limit == GPD_QUEUE_FOR_PLACE && w->device == device &&
	       !queue->reservations[w->owner][device].over;
}

/* Returns the index of the first entry that needs the client's place or is the client's, or that
 * after the last one. */
static int
waiters_find_end_for_place(const struct gpd_queue *queue, const struct gpd_waiter *client)
{
	for (int i = 0;
	     client->owner != GPD_QUEUE_NO_OWNER &&
	     !queue->reservations[client->owner][client->device].over && i < queue->count;
	     i++) {
		const struct gpd_waiter *w = &queue->waiters[i];

		/* A client can use the place for which another one of the group has waited for
		 * longer. */
		if ((client->number && w->number == client->number) ||
		    (client->group != GPD_QUEUE_OWN_WORKER && w->group == client->group &&
		     waiter_reserves(queue, w, client->device)))
			return i;
	}
	return queue->count;
}

uint64_t
gpd_queue_get_order(const struct gpd_queue *queue, const struct gpd_waiter *w, int device)
{
	uint64_t served_order = queue->reservations[w->owner][device].served_order;

	return w->order > served_order ? w->order : served_order;
}

void
gpd_queue_get_ahead(struct gpd_queue *queue, const struct gpd_waiter *client, int64_t now_ms,
		    struct gpd_queue_ahead *ahead)
{
	const struct gpd_waiter *first = client;
	int end;

	*ahead = (struct gpd_queue_ahead){ .order = UINT64_MAX };
	waiters_drop_expired(queue, now_ms);
	end = waiters_find_end_for_place(queue, client);
	ahead->queued = end < queue->count;
	if (ahead->queued)
		first = &queue->waiters[end];
	if (client->owner != GPD_QUEUE_NO_OWNER && first->order)
		ahead->order = gpd_queue_get_order(queue, first, client->device);
	for (int i = 0; i < queue->count; i++) {
		const struct gpd_waiter *w = &queue->waiters[i];

		if (!waiter_reserves(queue, w, client->device))
			continue;
		if (w->owner == client->owner)
			ahead->own += i < end && !waiter_is_repeated(queue, i);
		else
			gpd_queue_ahead_add(queue, client, w->owner,
					    gpd_queue_get_order(queue, w, client->device) <
						    ahead->order,
					    ahead);
	}
}

unsigned int
gpd_queue_count_ahead_for_place(struct gpd_queue *queue, const struct gpd_waiter *client,
				int64_t now_ms)
{
	struct gpd_queue_ahead ahead;
	unsigned int count;

	gpd_queue_get_ahead(queue, client, now_ms, &ahead);
	count = ahead.own;
	for (int i = 0; i < GPD_GROUPS; i++)
		count += ahead.others[i];
	return count;
}

bool
gpd_queue_has_for_place(const struct gpd_queue *queue, const struct gpd_waiter *client)
{
	int entry = waiter_find(queue, client->number);

	return entry >= 0 && waiter_reserves(queue, &queue->waiters[entry], client->device);
}

void
gpd_queue_note_served(struct gpd_queue *queue, const struct gpd_waiter *client)
{
	queue->reservations[client->owner][client->device].served_order = ++queue->last_order;
}

bool
gpd_queue_update_reservation(struct gpd_queue *queue, uint32_t group, int device, bool available,
			     bool reserved, int64_t now_ms)
{
	int64_t since_ms = queue->reservations[group][device].since_ms;

	if (!available) {
		queue->reservations[group][device].since_ms = 0;
		queue->reservations[group][device].over = false;
		return false;
	}
	if (!since_ms && reserved)
		queue->reservations[group][device].since_ms = now_ms;
	if (!since_ms || queue->reservations[group][device].over ||
	    now_ms - since_ms < GPD_QUEUE_RESERVE_MS)
		return false;
	queue->reservations[group][device].over = true;
	return true;
}

static bool
queue_has_room_for(const struct gpd_queue *queue, uint32_t tenant)
{
	int of_tenant = 0;

	for (int i = 0; i < queue->count; i++)
		of_tenant += queue->waiters[i].tenant == tenant;
	return queue->count < GPD_QUEUE_MAX && of_tenant < GPD_QUEUE_TENANT_MAX;
}

static unsigned int
waiter_get_position(struct gpd_queue *queue, const struct gpd_waiter *w, int64_t now_ms)
{
	switch (w->limit) {
	case GPD_QUEUE_FOR_DAEMON:
		return 1 + gpd_queue_count_ahead_for_daemon(queue, w->number, now_ms);
	case GPD_QUEUE_FOR_PLACE:
		return 1 + gpd_queue_count_ahead_for_place(queue, w, now_ms);
	default:
		return 1 + gpd_queue_count_ahead_in_tenant(queue, w->number, w->tenant, now_ms);
	}
}

unsigned int
gpd_queue_add(struct gpd_queue *queue, const struct gpd_waiter *waiter, int64_t now_ms)
{
	uint64_t order;
	int entry;

	waiters_drop_expired(queue, now_ms);
	entry = waiter_find(queue, waiter->number);
	if (entry < 0 && !queue_has_room_for(queue, waiter->tenant))
		return 0;
	if (entry >= 0)
		order = queue->waiters[entry].order;
	else
		order = waiter->order ? waiter->order : ++queue->last_order;
	if (entry < 0)
		entry = queue->count++;
	queue->waiters[entry] = *waiter;
	queue->waiters[entry].order = order;
	queue->waiters[entry].seen_ms = now_ms;
	return waiter_get_position(queue, waiter, now_ms);
}

unsigned int
gpd_queue_length(const struct gpd_queue *queue, uint32_t tenant, int64_t now_ms)
{
	unsigned int length = 0;

	for (int i = 0; i < queue->count; i++)
		length += !waiter_is_expired(&queue->waiters[i], now_ms) &&
			  (tenant == GPD_QUEUE_ALL || queue->waiters[i].tenant == tenant);
	return length;
}

bool
gpd_queue_has(const struct gpd_queue *queue, uint64_t number)
{
	return waiter_find(queue, number) >= 0;
}

void
gpd_queue_remove(struct gpd_queue *queue, uint64_t number)
{
	int entry = waiter_find(queue, number);

	if (entry >= 0)
		waiter_remove(queue, entry);
}
