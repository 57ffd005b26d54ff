/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Emulation of cuStreamWaitValue*(): streams that wait until a word of device memory meets a
 * condition (gpStreamWait).
 *
 * The GPU itself does not wait: the record of the wait stays in the deferred queue, before the
 * later records of its stream. When the stream's earlier work is done, the session's executor polls
 * the word, together with those of other waits, until the condition is met. It polls by copies on a
 * stream that all sessions share.
 *
 * Ownership: session->wait_values.
 * Threads: executor only.
 */
#ifndef GPD_MEM_OP_H
#define GPD_MEM_OP_H

#include <stdbool.h>

struct gpd_session;

/* Whether any wait is pending. */
bool gpd_wait_values_are_pending(const struct gpd_session *session);

/* Polls without blocking. Returns the number of waits that have ended; the records after them may
 * then be carried out (record.h). */
unsigned int gpd_wait_values_poll(struct gpd_session *session);

/* Sleeps, for microseconds, until the next poll is worthwhile. */
void gpd_wait_values_pause(struct gpd_session *session);

/* Frees all waits at the session's end, after its responder has ended. */
void gpd_wait_values_destroy(struct gpd_session *session);

#endif /* GPD_MEM_OP_H */
