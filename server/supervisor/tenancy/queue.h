/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue of clients that wait for a session slot or for memory, in order of arrival.
 *
 * A waiting client (environment variable GPUPOOL_WAIT) sends its request (Hello) repeatedly with
 * the same number. The admission keeps each request open for some seconds; between two requests
 * only the client's entry here remains. The admission counts the clients before another one as if
 * they had their slots already, so a free slot is reserved for the first. A client that has sent no
 * request for GPD_QUEUE_EXPIRE_MS is removed.
 *
 * Initialized to zeros: empty. Nothing has to be freed.
 *
 * Threads: the supervisor's main thread.
 * Units: now_ms is the time of gp_now_ms() in milliseconds.
 */
#ifndef GPD_QUEUE_H
#define GPD_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

/* Maximum number of entries: in total, and of one tenant. */
#define GPD_QUEUE_MAX 512
#define GPD_QUEUE_TENANT_MAX 64
/* Value of tenant for gpd_queue_length() that selects all tenants. */
#define GPD_QUEUE_ALL UINT32_MAX
/* Milliseconds without a request after which a client is removed. A client repeats its request
 * after at most eight seconds, and the reply may have been late. */
#define GPD_QUEUE_EXPIRE_MS 20000

/* The limit for which a client waits. */
enum gpd_queue_limit {
	GPD_QUEUE_FOR_TENANT, /* a limit of its tenant, or memory */
	GPD_QUEUE_FOR_DAEMON, /* a limit of the daemon */
	GPD_QUEUE_FOR_PLACE,  /* a place for a worker on a device (tenants.h) */
};

/* An entry. */
struct gpd_waiter {
	uint64_t number; /* random number that the client has chosen, Hello.wait; not 0 */
	uint32_t tenant; /* index in the ledger */
	enum gpd_queue_limit limit;
	/* GPD_QUEUE_FOR_PLACE: ordinal of the device, and the worker group of the client's session,
	 * of which all clients need one place together; GPD_QUEUE_OWN_WORKER: one of its own. */
	int device;
	uint32_t group;
	int64_t seen_ms; /* time of its last request */
};
#define GPD_QUEUE_OWN_WORKER UINT32_MAX

/* The queue; the first count elements of waiters are valid, oldest first. */
struct gpd_queue {
	int count;
	struct gpd_waiter waiters[GPD_QUEUE_MAX];
};

/* Returns the number of clients that wait for the daemon's limits before the client with this
 * number; the number of all of them if it is not in the queue. Removes expired entries. */
unsigned int gpd_queue_count_ahead_for_daemon(struct gpd_queue *queue, uint64_t number,
					      int64_t now_ms);
/* Returns the number of clients of this tenant that wait for its limits or for memory, before the
 * client with this number; the number of all of them if it is not in the queue. Removes expired
 * entries. */
unsigned int gpd_queue_count_ahead_in_tenant(struct gpd_queue *queue, uint64_t number,
					     uint32_t tenant, int64_t now_ms);
/* Returns the number of places on the device for which clients wait before the client with this
 * number, or all clients if it is not in the queue, other than those of its worker group. Removes
 * expired entries. */
unsigned int gpd_queue_count_ahead_for_place(struct gpd_queue *queue, uint64_t number, int device,
					     uint32_t group, int64_t now_ms);
/* Adds the client's entry at the end, with seen_ms set to now_ms; if it has one, updates that at
 * its position. waiter->number: not 0. Returns the client's position among the clients that wait
 * for the same limits, from 1. Returns 0 if the queue is full or the tenant has its maximum of
 * entries; clients without an entry get slots in the order of their requests. */
unsigned int gpd_queue_add(struct gpd_queue *queue, const struct gpd_waiter *waiter,
			   int64_t now_ms);
/* Returns the number of waiting clients of this tenant, or of all tenants (GPD_QUEUE_ALL), for all
 * limits; without expired entries, which it does not remove. */
unsigned int gpd_queue_length(const struct gpd_queue *queue, uint32_t tenant, int64_t now_ms);
/* Returns whether the client with this number has an entry, even an expired one. number 0, a client
 * without a queue number: false. */
bool gpd_queue_has(const struct gpd_queue *queue, uint64_t number);
/* Removes the entry of the client with this number, if there is one. */
void gpd_queue_remove(struct gpd_queue *queue, uint64_t number);

#endif /* GPD_QUEUE_H */
