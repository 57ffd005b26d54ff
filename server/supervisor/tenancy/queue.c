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

/* Counts those before the number, or all if it is not in the queue. */
static unsigned int
waiters_count(struct gpd_queue *queue, uint64_t number, bool for_daemon, uint32_t tenant,
	      int64_t now_ms)
{
	unsigned int ahead = 0;

	waiters_drop_expired(queue, now_ms);
	for (int i = 0; i < queue->count; i++) {
		const struct gpd_waiter *w = &queue->waiters[i];

		if (w->number == number)
			break;
		ahead += w->for_daemon == for_daemon && (for_daemon || w->tenant == tenant);
	}
	return ahead;
}

unsigned int
gpd_queue_count_ahead_for_daemon(struct gpd_queue *queue, uint64_t number, int64_t now_ms)
{
	return waiters_count(queue, number, true, 0, now_ms);
}

unsigned int
gpd_queue_count_ahead_in_tenant(struct gpd_queue *queue, uint64_t number, uint32_t tenant,
				int64_t now_ms)
{
	return waiters_count(queue, number, false, tenant, now_ms);
}

static bool
queue_has_room_for(const struct gpd_queue *queue, uint32_t tenant)
{
	int of_tenant = 0;

	for (int i = 0; i < queue->count; i++)
		of_tenant += queue->waiters[i].tenant == tenant;
	return queue->count < GPD_QUEUE_MAX && of_tenant < GPD_QUEUE_TENANT_MAX;
}

unsigned int
gpd_queue_add(struct gpd_queue *queue, uint64_t number, uint32_t tenant, bool for_daemon,
	      int64_t now_ms)
{
	struct gpd_waiter *waiter;
	int entry;

	waiters_drop_expired(queue, now_ms);
	entry = waiter_find(queue, number);
	if (entry < 0 && !queue_has_room_for(queue, tenant))
		return 0;
	waiter = &queue->waiters[entry < 0 ? queue->count++ : entry];
	waiter->number = number;
	waiter->tenant = tenant;
	waiter->for_daemon = for_daemon;
	waiter->seen_ms = now_ms;
	return 1 + waiters_count(queue, number, for_daemon, tenant, now_ms);
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
