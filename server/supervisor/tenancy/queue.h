/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Those who wait for a place or for memory, in the order in which they came.
 *
 * A client that waits (GPUPOOL_WAIT) asks again and gives the same number each time.  Its question
 * is kept for some seconds; between two there is nothing of it but its line here.  A place that
 * becomes free is kept for those who came first: who comes later counts them as if they had theirs.
 * One that has not asked for GPD_QUEUE_EXPIRE_MS has gone.  A tenant has at most
 * GPD_QUEUE_TENANT_MAX lines. The supervisor has one; main thread only.
 */
#ifndef GPD_QUEUE_H
#define GPD_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#define GPD_QUEUE_MAX 512
#define GPD_QUEUE_TENANT_MAX 64
#define GPD_QUEUE_ALL UINT32_MAX
/* A client asks again after at most eight seconds, and may have been answered late. */
#define GPD_QUEUE_EXPIRE_MS 20000

struct gpd_waiter {
	uint64_t number;
	uint32_t tenant;
	bool for_daemon; /* it waits until the daemon has room, else until its tenant has */
	int64_t seen_ms;
};

struct gpd_queue {
	int count;
	struct gpd_waiter waiters[GPD_QUEUE_MAX];
};

/* How many wait before this one (0: one who does not wait) until the daemon has room. */
unsigned int gpd_queue_ahead(struct gpd_queue *queue, uint64_t number, int64_t now_ms);
/* The same, until the tenant has. */
unsigned int gpd_queue_ahead_of_tenant(struct gpd_queue *queue, uint64_t number, uint32_t tenant,
				       int64_t now_ms);
/* It waits, still: its place among those who wait for the same, from 1; 0: there is no line left
 * for it, so whoever asks first is first. */
unsigned int gpd_queue_add(struct gpd_queue *queue, uint64_t number, uint32_t tenant,
			   bool for_daemon, int64_t now_ms);
/* How many wait for whatever, of a tenant or (GPD_QUEUE_ALL) of all. */
unsigned int gpd_queue_length(const struct gpd_queue *queue, uint32_t tenant, int64_t now_ms);
bool gpd_queue_has(const struct gpd_queue *queue, uint64_t number);
/* It has what it waited for. */
void gpd_queue_remove(struct gpd_queue *queue, uint64_t number);

#endif /* GPD_QUEUE_H */
