/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies to the host that do not fit into the session's staging memory at once.  The executor goes
 * on with other calls and gives their streams the remaining parts as staging comes free; what has
 * to come behind such a copy waits until it has all its parts.  Executor only.
 */
#ifndef GPD_COPY_H
#define GPD_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpd_session;
struct gpd_stream;

/* How long the executor may wait for the client before it calls gpd_copy_continue() again. */
#define GPD_COPY_CONTINUE_MS 1

/* Gives out what parts can be; whether some copy has parts left. */
bool gpd_copy_continue(struct gpd_session *session);

/* Before a call is carried out: waits for the copies that it must come behind, unless it is one
 * that begins with gpd_stream_begin(). */
void gpd_copy_before(struct gpd_session *session, uint16_t call, const void *fields, size_t size);

/* Waits until what the stream must come behind has all its parts; NULL: every copy. */
void gpd_copy_settle(struct gpd_session *session, const struct gpd_stream *stream);

/* At the session's end, when its wait queue is gone. */
void gpd_copy_forget(struct gpd_session *session);

#endif /* GPD_COPY_H */
