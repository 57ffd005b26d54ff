/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a session's launches go to the GPU, and how long they keep it busy.
 *
 * Without a policy nothing is held back, and the session's GPU time is measured by sampling.  With
 * one, the sessions of a device take turns (schedule_turns.h): the executor of one that is not
 * served waits inside gpd_schedule_launch().  Sessions with multiprocessors of their own, and
 * copies to and from the device, need no turn.  Executor only; the runs belong to their session.
 */
#ifndef GPD_SCHEDULE_H
#define GPD_SCHEDULE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_account;
struct gpd_schedule_run;

/* Before a launch on a stream of the device: whether it is of the batch that the stream is in, and
 * may be carried out; then it is counted. */
bool gpd_schedule_continue_batch(const struct gpd_account *account, int device, uint64_t batch);
/* If not: returns when it may.  *batch is the stream's own, 0 at first; others: the last one of the
 * session's other streams of the device, or GPD_SCHEDULE_BUSY: there may be work in them. */
void gpd_schedule_launch(struct gpd_account *account, int device, CUstream stream, uint64_t *batch,
			 uint64_t others);
#define GPD_SCHEDULE_BUSY UINT64_MAX

/*
 * No launch follows at once: the end of a message, a copy, an event, something that waits.  What
 * measures goes in front of those, so that a stream that the client knows to be done is.  NULL:
 * nothing was ever launched.
 */
void gpd_schedule_end_batches(struct gpd_schedule_run *runs);

/* The same, before a stream is dropped or exchanged: from now on the driver is not asked for it. */
void gpd_schedule_mark(struct gpd_schedule_run *runs);

/* The driver's priority for a stream that the client wants with this one: a session of low priority
 * gets the least, one of high priority a step more. */
int gpd_schedule_priority(const struct gpd_account *account, int device, int wanted);

/* The session closes: it launches no more.  Then, when its work is done: frees. */
void gpd_schedule_stop(struct gpd_account *account);
void gpd_schedule_free(struct gpd_account *account);

#endif /* GPD_SCHEDULE_H */
