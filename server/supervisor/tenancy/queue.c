/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/tenancy/queue.h"

#include <string.h>

static void
take_out(struct gpd_queue *queue, int i)
{
	queue->count--;
	memmove(&queue->waiters[i], &queue->waiters[i + 1],
		(size_t)(queue->count - i) * sizeof(queue->waiters[0]));
}

static bool
is_gone(const struct gpd_waiter *waiter, int64_t now_ms)
{
	return now_ms - waiter->seen_ms > GPD_QUEUE_FORGET_MS;
}

static void
forget_gone(struct gpd_queue *queue, int64_t now_ms)
{
	for (int i = queue->count - 1; i >= 0; i--) {
		if (is_gone(&queue->waiters[i], now_ms))
			take_out(queue, i);
	}
}

/* Its line, or -1. */
static int
find(const struct gpd_queue *queue, uint64_t number)
{
	for (int i = 0; number && i < queue->count; i++) {
		if (queue->waiters[i].number == number)
			return i;
	}
	return -1;
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
	int line;

	forget_gone(queue, now_ms);
	line = find(queue, number);
	if (line < 0 && !has_line_for(queue, tenant))
		return 0;
	waiter = &queue->waiters[line < 0 ? queue->count++ : line];
	waiter->number = number;
	waiter->tenant = tenant;
	waiter->for_any = for_any;
	waiter->seen_ms = now_ms;
	return 1 + count(queue, number, for_any, tenant, now_ms);
}

unsigned int
gpd_queue_length(const struct gpd_queue *queue, uint32_t tenant, int64_t now_ms)
{
	unsigned int length = 0;

	for (int i = 0; i < queue->count; i++)
		length += !is_gone(&queue->waiters[i], now_ms) &&
			  (tenant == GPD_QUEUE_ALL || queue->waiters[i].tenant == tenant);
	return length;
}

bool
gpd_queue_has(const struct gpd_queue *queue, uint64_t number)
{
	return find(queue, number) >= 0;
}

void
gpd_queue_leave(struct gpd_queue *queue, uint64_t number)
{
	int line = find(queue, number);

	if (line >= 0)
		take_out(queue, line);
}
