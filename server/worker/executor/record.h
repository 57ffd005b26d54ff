/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes the records (encoded calls) of a session's messages. Each record is checked and carried
 * out, or deferred until a host function has run, a memory value has arrived or a gate has opened
 * (deferred_queue.h). A gate is another condition that a record waits for, such as free staging
 * memory (stream_ops/deferred_gate.h).
 *
 * The executor's loop (executor.c) calls gpd_executor_run_message() for each message. Until the
 * next one arrives, it calls the other two functions.
 *
 * Threads: executor only.
 * Errors: every function returns 0, also if there was nothing to do and if calls have failed, which
 * only the client is notified of; or -EPROTO if the session must end. The reason has then been
 * stored in the session, unless its connection has failed: gpd_session_close() then stores it.
 */
#ifndef GPD_RECORD_H
#define GPD_RECORD_H

struct gp_message;
struct gpd_session;

/* Processes all records of a message, in order, and receives the data (bulk) that follows the
 * message. The message, from the client and unchecked, is borrowed and may be freed on return. Ends
 * the session's batches of launches (schedule/schedule.h). Blocks as the calls do, and while the
 * deferred queue is full. If the GPU contexts are lost, only replies to the calls with the
 * error. */
int gpd_executor_run_message(struct gpd_session *session, const struct gp_message *message);

/* Carries out deferred records until no remaining one is ready, the session is closing or the GPU
 * contexts are lost. */
int gpd_executor_run_deferred(struct gpd_session *session);

/* Polls the gates and, if one has opened, carries out the deferred records that are ready. Does not
 * wait for gates. */
int gpd_executor_poll_gates(struct gpd_session *session);

#endif /* GPD_RECORD_H */
