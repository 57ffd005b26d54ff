/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes the records of a session's messages: each record is checked and carried out, or
 * deferred until a host function, a memory word or a gate allows it (deferred_queue.h).
 *
 * Threads: executor only.
 * Errors: 0, or -EPROTO if the session must end.
 */
#ifndef GPD_RECORD_H
#define GPD_RECORD_H

struct gp_message;
struct gpd_session;

/* Processes all records of a message. */
int gpd_executor_run_message(struct gpd_session *session, const struct gp_message *message);

/* Carries out the deferred records that no longer have to wait. */
int gpd_executor_run_deferred(struct gpd_session *session);

/* Polls the gates (deferred_gate.h) and, if one has opened, carries out the deferred records. */
int gpd_executor_poll_gates(struct gpd_session *session);

#endif /* GPD_RECORD_H */
