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
 * Places are shared by tenants, and a tenant may have more entries than a device has places. So for
 * places the order is: the worker group with the fewest places on the device, then arrival. Of each
 * other group at most one entry is before a client: when the group has got a place, its other
 * entries count as if they had arrived then.
 *
 * Initialized to zeros: empty, and no group has a place. Nothing has to be freed.
 *
 * Threads: the supervisor's main thread.
 * Units: now_ms is the time of gp_now_ms() in milliseconds.
 */
#ifndef GPD_QUEUE_H
#define GPD_QUEUE_H

#include "server/supervisor/tenancy/tenants.h"

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
/* Milliseconds for which a free place is reserved for a group whose clients send no request. A
 * client pauses for at most half a second between two of them. */
#define GPD_QUEUE_RESERVE_MS 5000

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
	/* GPD_QUEUE_FOR_PLACE: the worker group that gets the place: `group`, or that of the tenant
	 * (gpd_tenant_group()). GPD_QUEUE_NO_OWNER: a client after all others. */
	uint32_t owner;
	int64_t seen_ms; /* time of its last request */
	/* Order of arrival, from last_order; 0: gpd_queue_add() sets it. */
	uint64_t order;
};
#define GPD_QUEUE_OWN_WORKER UINT32_MAX
#define GPD_QUEUE_NO_OWNER UINT32_MAX

/* Returns the number of places that workers of the group have on the device. */
typedef uint32_t gpd_queue_get_places(const void *arg, uint32_t group, int device);

/* The queue; the first count elements of waiters are valid, oldest first. */
struct gpd_queue {
	int count;
	struct gpd_waiter waiters[GPD_QUEUE_MAX];
	gpd_queue_get_places *get_places; /* set by gpd_worker_pool_init(); NULL: 0 places */
	const void *arg;                  /* first argument of get_places() */
	uint64_t last_order;              /* the last value of order */
	/* By group and device. */
	struct {
		uint64_t served_order; /* when a client of the group has got a place, as order */
		int64_t since_ms;      /* since when a free place has been reserved; 0: none is */
		bool over;             /* for too long: the group's entries do not count */
	} reservations[GPD_GROUPS][GPD_LEDGER_DEVICES];
};

/* The places that clients get before another client. */
struct gpd_queue_ahead {
	unsigned int own;        /* number of those that clients of its own group get */
	bool others[GPD_GROUPS]; /* whether a client of the group gets one */
	bool queued;             /* the client, or one that needs the same place, is in the queue */
	uint64_t order; /* the client's gpd_queue_get_order(); UINT64_MAX: it is the last */
	/* Places that the groups have, where counted. */
	uint32_t places[GPD_GROUPS];
	bool counted[GPD_GROUPS];
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
/* Fills *ahead with the places that clients in the queue get before this client, which may be one
 * of them. client: number, device, group and owner are valid. Removes expired entries. */
void gpd_queue_get_ahead(struct gpd_queue *queue, const struct gpd_waiter *client, int64_t now_ms,
			 struct gpd_queue_ahead *ahead);
/* Returns the number of these places. */
unsigned int gpd_queue_count_ahead_for_place(struct gpd_queue *queue,
					     const struct gpd_waiter *client, int64_t now_ms);
/* Adds the place that a client of another group gets, if it does before this client. earlier: it
 * has come before it. */
void gpd_queue_ahead_add(const struct gpd_queue *queue, const struct gpd_waiter *client,
			 uint32_t group, bool earlier, struct gpd_queue_ahead *ahead);
/* Returns whether the client has an entry that reserves a place on the device. */
bool gpd_queue_has_for_place(const struct gpd_queue *queue, const struct gpd_waiter *client);
/* Returns the client's order among the clients of several groups: of its arrival, or of the last
 * place that its group has got since. */
uint64_t gpd_queue_get_order(const struct gpd_queue *queue, const struct gpd_waiter *client,
			     int device);
/* Called when a client that has waited gets its place. */
void gpd_queue_note_served(struct gpd_queue *queue, const struct gpd_waiter *client);
/* Called regularly for a group that has entries. available: the device has a free place that the
 * group may take. reserved: it is for the group's first client. After GPD_QUEUE_RESERVE_MS the
 * group's entries reserve no place on the device, until none is available to the group; clients
 * with an open request count as if they were not in the queue. Returns whether that time is over
 * now. */
bool gpd_queue_update_reservation(struct gpd_queue *queue, uint32_t group, int device,
				  bool available, bool reserved, int64_t now_ms);
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
