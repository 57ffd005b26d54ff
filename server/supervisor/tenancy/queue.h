/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue of clients that wait for a session slot or for memory, in order of arrival.
 *
 * A waiting client (GPUPOOL_WAIT) sends its request repeatedly with the same number. A request is
 * kept open for some seconds; between two requests only the entry here remains. Later clients count
 * the earlier ones as if they had their slots already, so a free slot is reserved for the first. A
 * client that has sent no request for GPD_QUEUE_EXPIRE_MS is removed. A tenant has at most
 * GPD_QUEUE_TENANT_MAX entries.
 *
 * Threads: the supervisor's main thread.
 * Units: milliseconds of gp_now_ms().
 */
#ifndef GPD_QUEUE_H
#define GPD_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#define GPD_QUEUE_MAX 512
#define GPD_QUEUE_TENANT_MAX 64
#define GPD_QUEUE_ALL UINT32_MAX
/* A client repeats its request after at most eight seconds, and the reply may have been late. */
#define GPD_QUEUE_EXPIRE_MS 20000

struct gpd_waiter {
	uint64_t number;
	uint32_t tenant;
	bool for_daemon; /* waits for a limit of the daemon, else for one of its tenant */
	int64_t seen_ms;
};

struct gpd_queue {
	int count;
	struct gpd_waiter waiters[GPD_QUEUE_MAX];
};

/* Returns the number of clients before this one (0: not in the queue, so all) that wait for the
 * daemon's limits. */
unsigned int gpd_queue_ahead(struct gpd_queue *queue, uint64_t number, int64_t now_ms);
/* The same for those that wait for limits of this tenant. */
unsigned int gpd_queue_ahead_of_tenant(struct gpd_queue *queue, uint64_t number, uint32_t tenant,
				       int64_t now_ms);
/* Adds or refreshes an entry. Returns its position among those that wait for the same, from 1; 0 if
 * the queue is full, in which case the order is that of the requests. */
unsigned int gpd_queue_add(struct gpd_queue *queue, uint64_t number, uint32_t tenant,
			   bool for_daemon, int64_t now_ms);
/* Returns the number of waiting clients of a tenant, or of all (GPD_QUEUE_ALL). */
unsigned int gpd_queue_length(const struct gpd_queue *queue, uint32_t tenant, int64_t now_ms);
bool gpd_queue_has(const struct gpd_queue *queue, uint64_t number);
/* Removes the entry, if there is one. */
void gpd_queue_remove(struct gpd_queue *queue, uint64_t number);

#endif /* GPD_QUEUE_H */
