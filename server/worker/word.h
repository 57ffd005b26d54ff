/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams that wait until a word of device memory is as they want it (gpStreamWait).
 *
 * The GPU waits for nothing: the record of the wait stays in the backlog, in front of what comes
 * behind it in its stream.  When the stream's earlier work is done the session's executor looks at
 * the word, with those of other waits, until it is as it should be.  It looks by copies on a stream
 * that all sessions share.  Executor only.
 */
#ifndef GPD_WORD_H
#define GPD_WORD_H

#include <stdbool.h>

struct gpd_session;

/* Whether any wait is not over. */
bool gpd_wait_values_are_pending(const struct gpd_session *session);

/* Looks, without blocking: how many waits are over now.  What was behind them may be carried out
 * (record.h). */
unsigned int gpd_wait_values_poll(struct gpd_session *session);

/* Lets time pass until it is worth while to look again; microseconds. */
void gpd_wait_values_pause(struct gpd_session *session);

/* At the session's end, when its responder has ended. */
void gpd_wait_values_destroy(struct gpd_session *session);

#endif /* GPD_WORD_H */
