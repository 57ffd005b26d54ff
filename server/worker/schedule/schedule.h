/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduling of a session's launches, and measurement of its GPU time.
 *
 * Without a policy nothing is delayed, and GPU time is measured by sampling. With a policy, the
 * sessions of a device take turns (turn.h): the executor of a session that does not have
 * the turn waits in gpd_schedule_launch(). Sessions with multiprocessors of their own, and copies
 * to and from the device, need no turn.
 *
 * Ownership: the runs belong to their session.
 * Threads: executor only.
 */
#ifndef GPD_SCHEDULE_H
#define GPD_SCHEDULE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_account;
struct gpd_schedule_run;

/* To be called before a launch: whether the launch belongs to the batch that the stream is in and
 * may be carried out now; it is then counted. */
bool gpd_schedule_continue_batch(const struct gpd_account *account, int device, uint64_t batch);
/* To be called if not: waits until the launch may be carried out. *batch is stored per stream, 0 at
 * first. others: the latest batch of the session's other streams of the device, or
 * GPD_SCHEDULE_BUSY if they may have work. */
void gpd_schedule_launch(struct gpd_account *account, int device, CUstream stream, uint64_t *batch,
			 uint64_t others);
#define GPD_SCHEDULE_BUSY UINT64_MAX

/*
 * Ends the current batches, because no launch follows at once: at the end of a message, before a
 * copy, an event or a wait. Measurements are enqueued before these, so that a stream which the
 * client knows to be done has nothing left. runs NULL: nothing was ever launched.
 */
void gpd_schedule_end_batches(struct gpd_schedule_run *runs);

/* The same, before a stream is destroyed or replaced: afterwards the meter does not query the
 * driver for it. */
void gpd_schedule_mark(struct gpd_schedule_run *runs);

/* Returns the driver's priority for a stream that the client wants with priority `wanted`: a
 * low-priority session gets the least, a high-priority one a step more. */
int gpd_schedule_priority(const struct gpd_account *account, int device, int wanted);

/* stop: the session is closing and launches nothing more. free: to be called when its work is done;
 * frees its runs. */
void gpd_schedule_stop(struct gpd_account *account);
void gpd_schedule_free(struct gpd_account *account);

#endif /* GPD_SCHEDULE_H */
