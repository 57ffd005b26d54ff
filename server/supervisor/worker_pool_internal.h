/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal interface of the pool of workers (worker_pool.h), between its files worker_pool*.c.
 * Functions are grouped by the file that implements them.
 *
 * Ownership: workers belong to the pool's list, admission->workers.
 * Threads: the supervisor's main thread. No function blocks.
 * Units: milliseconds.
 */
#ifndef GPD_WORKER_POOL_INTERNAL_H
#define GPD_WORKER_POOL_INTERNAL_H

#include "server/supervisor/worker_pool.h"

/* Time from a failed start of a worker to the next start. */
#define BACKOFF_MS 5000

/* Requirements of a worker. */
struct gpd_worker_need {
	uint32_t devices; /* bit n: it may use device n */
	int device;       /* it has a context on this device */
	uint32_t group;   /* as gpd_worker_process.group */
	bool dedicated;
	int connections; /* as many hardware queues, or more */
};

/* worker_pool_reserve.c: starts of workers, and the reserve. */

/* Returns the requirements of the worker for the client's session. */
struct gpd_worker_need gpd_worker_pool_get_need(const struct gpd_worker_pool *pool,
						const struct gpd_connection *connection);
/* Returns a spare worker that meets the need, ready or else starting; if it is for several tenants,
 * it may have its context on another device. NULL: there is none, or the group may not take it,
 * because it has taken one just before. */
struct gpd_worker_process *gpd_worker_pool_find_spare(const struct gpd_worker_pool *pool,
						      const struct gpd_worker_need *need);
/* Returns whether there is such a spare worker, or another worker may be started: the number of
 * workers that start at the same time is limited. */
bool gpd_worker_pool_may_acquire(const struct gpd_worker_pool *pool,
				 const struct gpd_worker_need *need);
/* Returns that spare worker, or a new one; it is no longer spare, and its group is set. NULL: none
 * can be started; the reason has been logged. */
struct gpd_worker_process *gpd_worker_pool_acquire(struct gpd_worker_pool *pool,
						   const struct gpd_worker_need *need);
/* Callbacks of the admission (may_start, start_dedicated). */
bool gpd_worker_pool_may_start_dedicated(void *pool, const struct gpd_connection *connection);
struct gpd_worker_process *gpd_worker_pool_start_dedicated(void *pool,
							   const struct gpd_connection *connection);
/* Starts and retires spare workers, so that the reserve has its size. */
void gpd_worker_pool_maintain_reserve(struct gpd_worker_pool *pool, int64_t now);

/* worker_pool_places.c: places of devices. */

/* Callback of the admission (find_place). */
enum gpd_place gpd_worker_pool_find_place(void *pool, const struct gpd_connection *connection,
					  enum gpd_places_reason *reason);
/* Callback of the queue (get_places). */
uint32_t gpd_worker_pool_count_places(const void *pool, uint32_t group, int device);
/* Returns whether a further place on the device is not for the group, because the places that are
 * left are held back for tenants that have none. */
bool gpd_worker_pool_holds_back(const struct gpd_worker_pool *pool, uint32_t group, int device);
/* Returns whether the device has a place for another worker. */
bool gpd_worker_pool_has_free_place(const struct gpd_worker_pool *pool, int device);
/* Returns whether it has more of them than clients wait for. */
bool gpd_worker_pool_has_unclaimed_place(const struct gpd_worker_pool *pool, int device);

/* Handles GPD_CHANNEL_PLACE (channel.h): grants a place on the device, also before clients that
 * wait for one; or gpd_worker_pool_grant_places() does so later, or refuses it. */
void gpd_worker_pool_request_place(struct gpd_worker_pool *pool, struct gpd_worker_process *process,
				   int device);
/* Called in each iteration of the loop. */
void gpd_worker_pool_grant_places(struct gpd_worker_pool *pool, int64_t now);

/* worker_pool_select.c: the workers for new sessions. */

/* Callback of the admission (select_worker). */
void gpd_worker_pool_select(void *pool, const struct gpd_connection *connection);
/* Returns the group's oldest worker that can get new sessions, or NULL. */
struct gpd_worker_process *gpd_worker_pool_find_serving(const struct gpd_worker_pool *pool,
							uint32_t group);
/* Selects the workers for new sessions, and retires those that are not needed. */
void gpd_worker_pool_select_all(struct gpd_worker_pool *pool, int64_t now);
/* Stops assigning new sessions to the worker, and sets its state; if it was the selected one,
 * another may be started at start_ms. */
void gpd_worker_pool_stop_serving(struct gpd_worker_pool *pool, struct gpd_worker_process *process,
				  enum gpd_worker_process_state state, int64_t start_ms);
/* Requests the worker to exit after its last session. */
void gpd_worker_pool_retire_worker(struct gpd_worker_pool *pool,
				   struct gpd_worker_process *process);
/* Handles GPD_CHANNEL_BUSY (channel.h). */
void gpd_worker_pool_handle_busy(struct gpd_worker_pool *pool, struct gpd_worker_process *process,
				 const struct gpd_channel_message *message);

#endif /* GPD_WORKER_POOL_INTERNAL_H */
