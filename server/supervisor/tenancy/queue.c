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

unsigned int
gpd_queue_count_ahead_for_place(struct gpd_queue *queue, uint64_t number, int device,
				uint32_t group, int64_t now_ms)
{
	int end = waiters_find_end(queue, number, now_ms);
	unsigned int ahead = 0;

	for (int i = 0; i < end; i++) {
		const struct gpd_waiter *w = &queue->waiters[i];

		if (w->limit != GPD_QUEUE_FOR_PLACE || w->device != device)
			continue;
		/* It can use the place for which another client of the group has waited for
		 * longer. */
		if (w->group == group && group != GPD_QUEUE_OWN_WORKER)
			break;
		ahead += !waiter_is_repeated(queue, i);
	}
	return ahead;
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
		return 1 + gpd_queue_count_ahead_for_place(queue, w->number, w->device, w->group,
							   now_ms);
	default:
		return 1 + gpd_queue_count_ahead_in_tenant(queue, w->number, w->tenant, now_ms);
	}
}

unsigned int
gpd_queue_add(struct gpd_queue *queue, const struct gpd_waiter *waiter, int64_t now_ms)
{
	int entry;

	waiters_drop_expired(queue, now_ms);
	entry = waiter_find(queue, waiter->number);
	if (entry < 0 && !queue_has_room_for(queue, waiter->tenant))
		return 0;
	if (entry < 0)
		entry = queue->count++;
	queue->waiters[entry] = *waiter;
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
