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
	uint32_t devices;  /* bit n: it may use device n */
	uint32_t contexts; /* bit n: one that is started creates a context on device n */
	bool exact;        /* it may use no other devices */
	int connections;   /* as many hardware queues, or more */
};

/* worker_pool_reserve.c: starts of workers, and the reserve. */

/* Returns the requirements of a worker of this group (tenants.h). */
struct gpd_worker_need gpd_worker_pool_get_need(const struct gpd_worker_pool *pool, uint32_t group);
/* Returns a spare worker in this state that meets the need, or NULL. */
struct gpd_worker_process *gpd_worker_pool_find_spare(const struct gpd_worker_pool *pool,
						      enum gpd_worker_process_state state,
						      const struct gpd_worker_need *need);
/* Returns a worker that is spare, or starting as a spare, or new; it is no longer spare. NULL: none
 * can be started; the reason has been logged. */
struct gpd_worker_process *gpd_worker_pool_acquire(struct gpd_worker_pool *pool,
						   const struct gpd_worker_need *need);
/* Callback of the admission (start_dedicated). */
struct gpd_worker_process *gpd_worker_pool_acquire_for_session(void *pool, uint32_t devices);
/* Starts and retires spare workers, so that the reserve has its size. */
void gpd_worker_pool_maintain_reserve(struct gpd_worker_pool *pool, int64_t now);

/* worker_pool_select.c: the workers for new sessions. */

/* Callback of the admission (select_worker). */
void gpd_worker_pool_select(void *pool, uint32_t group);
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
