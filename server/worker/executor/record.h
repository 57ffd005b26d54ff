/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes the records (encoded calls) of a session's messages: each record is checked and carried
 * out, or deferred until a host function, a memory value or a gate allows it (deferred_queue.h).
 *
 * Threads: executor only.
 * Errors: 0, or -EPROTO if the session must end; the reason has then been set.
 */
#ifndef GPD_RECORD_H
#define GPD_RECORD_H

struct gp_message;
struct gpd_session;

/* Processes all records of a message, in order, and receives the data that follows it. The message
 * is borrowed and may be freed on return. Blocks as the calls do, and while the deferred queue is
 * full. */
int gpd_executor_run_message(struct gpd_session *session, const struct gp_message *message);

/* Carries out the deferred records that are ready, until none is. Returns 0 if there are none. */
int gpd_executor_run_deferred(struct gpd_session *session);

/* Polls the gates (deferred_gate.h) and, if one has opened, carries out the deferred records that
 * are ready. Returns 0 if none has opened. */
int gpd_executor_poll_gates(struct gpd_session *session);

#endif /* GPD_RECORD_H */
