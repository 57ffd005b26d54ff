/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of a session's messages: each is checked, carried out, or kept behind a host
 * function, a word of memory or the gate of a full stream (backlog.h) and carried out later.
 * Executor only.
 */
#ifndef GPD_RECORD_H
#define GPD_RECORD_H

struct gp_message;
struct gpd_session;

/* All records of one message; 0, or -EPROTO: the session must end. */
int gpd_executor_run_message(struct gpd_session *session, const struct gp_message *message);

/* What waited in the backlog for what is over now; 0 or -EPROTO. */
int gpd_executor_run_deferred(struct gpd_session *session);

/* The same for streams that were full (session/depth.h), and have room now. */
int gpd_executor_poll_gates(struct gpd_session *session);

#endif /* GPD_RECORD_H */
