/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scheduling of a session's launches, and measurement of its GPU time.
 *
 * A run is a session on a device. A batch is a sequence of launches of a run that is measured as a
 * whole; the batches of a run are numbered from 1. The usage meter (usage_meter.h) measures batches
 * by GPU timestamps.
 *
 * Without a policy nothing is delayed, and GPU time is measured by sampling: only some batches are
 * measured. With a policy, the sessions of a device take turns (turn.h): the executor of a session
 * that does not have the turn waits in gpd_schedule_launch(). Sessions with multiprocessors of
 * their own, and copies to and from the device, need no turn.
 *
 * Sequence of calls: before each launch gpd_schedule_continue_batch() and, if it returns false,
 * gpd_schedule_launch(); gpd_schedule_end_batches() when no launch follows at once. At the
 * session's end gpd_schedule_stop(), and when its work is done, gpd_schedule_free().
 *
 * Ownership: account->schedule is the list of the session's runs, which the first launch on a
 * device extends and gpd_schedule_free() frees.
 * Threads: executor only. Functions that enqueue measurements may change the current device to that
 * of a run.
 * Errors: if memory is exhausted, launches are neither delayed nor measured.
 */
#ifndef GPD_SCHEDULE_H
#define GPD_SCHEDULE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_account;
struct gpd_schedule_run;

/* Called before a launch. device: its ordinal (device/device.h). batch: number of the batch that
 * contains the stream's last launch; 0: none. Returns true if the launch belongs to the same batch
 * and may be carried out now; the launch is then counted. Returns false if the caller has to call
 * gpd_schedule_launch(). Does not wait. */
bool gpd_schedule_continue_batch(const struct gpd_account *account, int device, uint64_t batch);
/* Blocks, without a limit, until the launch may be carried out or the session is closing, and
 * counts the launch. stream: the driver's stream of the launch. *batch: number of the batch of the
 * stream's last launch, stored by the caller with the stream, initially 0; set to the current
 * batch. others: number of the latest batch of the session's other streams of the device; 0: they
 * were never used; GPD_SCHEDULE_BUSY: they may have work. */
void gpd_schedule_launch(struct gpd_account *account, int device, CUstream stream, uint64_t *batch,
			 uint64_t others);
/* Value of `others`: the other streams may have work. */
#define GPD_SCHEDULE_BUSY UINT64_MAX

/*
 * Ends the current batches of these runs, because no launch follows at once: at the end of a
 * message, before a copy, an event or a wait. Because the measurements are enqueued before that
 * copy, event or wait, no stream that the client has found done has a measurement left. Does not
 * wait. runs: account->schedule; NULL: nothing was ever launched.
 */
void gpd_schedule_end_batches(struct gpd_schedule_run *runs);

/* Ends the current batches before a stream is destroyed or replaced. The usage meter does not query
 * the driver for the stream afterwards. Does not wait. runs: account->schedule; NULL: nothing was
 * ever launched. */
void gpd_schedule_mark(struct gpd_schedule_run *runs);

/* Returns the driver's priority for a stream that the client creates with priority `wanted`. A
 * session of low priority gets the device's least priority; a session of high priority gets one
 * step more than wanted, within the device's range; others get wanted, unchecked. Any thread. */
int gpd_schedule_priority(const struct gpd_account *account, int device, int wanted);

/* Ends the session's batches and turns when it is closing and launches nothing more. Does not
 * wait. */
void gpd_schedule_stop(struct gpd_account *account);
/* Frees the session's runs after all its work is done, and records their remaining GPU time in the
 * ledger. Blocks while the thread of a device (turn.h) uses a run. */
void gpd_schedule_free(struct gpd_account *account);

#endif /* GPD_SCHEDULE_H */
