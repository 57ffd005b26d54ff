/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/tenancy/queue.h"

#include <stddef.h>
#include <string.h>

static void
take_out(struct gpd_queue *queue, int i)
{
	queue->count--;
	memmove(&queue->waiters[i], &queue->waiters[i + 1],
		(size_t)(queue->count - i) * sizeof(queue->waiters[0]));
}

static void
forget_gone(struct gpd_queue *queue, int64_t now_ms)
{
	for (int i = queue->count - 1; i >= 0; i--) {
		if (now_ms - queue->waiters[i].seen_ms > GPD_QUEUE_FORGET_MS)
			take_out(queue, i);
	}
}

static struct gpd_waiter *
find(struct gpd_queue *queue, uint64_t number)
{
	for (int i = 0; number && i < queue->count; i++) {
		if (queue->waiters[i].number == number)
			return &queue->waiters[i];
	}
	return NULL;
}

/* Those before the number, or all if it is not there. */
static unsigned int
count(struct gpd_queue *queue, uint64_t number, bool for_any, uint32_t tenant, int64_t now_ms)
{
	unsigned int ahead = 0;

	forget_gone(queue, now_ms);
	for (int i = 0; i < queue->count; i++) {
		const struct gpd_waiter *w = &queue->waiters[i];

		if (w->number == number)
			break;
		ahead += w->for_any == for_any && (for_any || w->tenant == tenant);
	}
	return ahead;
}

unsigned int
gpd_queue_ahead(struct gpd_queue *queue, uint64_t number, int64_t now_ms)
{
	return count(queue, number, true, 0, now_ms);
}

unsigned int
gpd_queue_ahead_of_tenant(struct gpd_queue *queue, uint64_t number, uint32_t tenant, int64_t now_ms)
{
	return count(queue, number, false, tenant, now_ms);
}

static bool
has_line_for(const struct gpd_queue *queue, uint32_t tenant)
{
	int of_tenant = 0;

	for (int i = 0; i < queue->count; i++)
		of_tenant += queue->waiters[i].tenant == tenant;
	return queue->count < GPD_QUEUE_MAX && of_tenant < GPD_QUEUE_OF_TENANT;
}

unsigned int
gpd_queue_wait(struct gpd_queue *queue, uint64_t number, uint32_t tenant, bool for_any,
	       int64_t now_ms)
{
	struct gpd_waiter *waiter;

	forget_gone(queue, now_ms);
	waiter = find(queue, number);
	if (!waiter) {
		if (!has_line_for(queue, tenant))
			return 0;
		waiter = &queue->waiters[queue->count++];
		waiter->number = number;
	}
	waiter->tenant = tenant;
	waiter->for_any = for_any;
	waiter->seen_ms = now_ms;
	return 1 + count(queue, number, for_any, tenant, now_ms);
}

void
gpd_queue_leave(struct gpd_queue *queue, uint64_t number)
{
	struct gpd_waiter *waiter = find(queue, number);

	if (waiter)
		take_out(queue, (int)(waiter - queue->waiters));
}
