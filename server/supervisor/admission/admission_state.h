/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of admission, for admission*.c only.  Main thread.
 */
#ifndef GPD_ADMISSION_STATE_H
#define GPD_ADMISSION_STATE_H

#include "server/supervisor/admission/admission.h"

/* No end to a state. */
#define NO_DEADLINE (-1)
#define LANE_MS 10000
/* From the first byte to Hello. */
#define GPD_HANDSHAKE_MS 10000
/* For a worker to be there. */
#define GPD_QUEUED_MS 30000
/* For a place that somebody may be about to leave. */
#define GPD_SLOT_WAIT_MS 1500
/* For a place of those who wait in the queue; then they ask again. */
#define GPD_WAIT_MAX_MS 8000

/* admission.c */
void gpd_admission_add(struct gpd_admission *admission, struct gpd_connection *peer);
void gpd_admission_set_state(struct gpd_admission *admission, struct gpd_connection *peer,
			     enum gpd_connection_state state, int64_t wait_ms);
/* NULL: there is none, or it has left. */
struct gpd_connection *gpd_admission_find_session(const struct gpd_admission *admission,
						  const struct gpd_worker_process *worker,
						  uint64_t id);
/* A message for the worker, who gets the descriptor unless it is -1. */
void gpd_admission_send(struct gpd_worker_process *worker, const struct gpd_channel_header *header,
			const void *data, size_t size, int fd);
/* The same without a descriptor, about a session. */
void gpd_admission_send_session(struct gpd_worker_process *worker, enum gpd_channel_type type,
				uint64_t session, const void *data, size_t size);

/* The peer is shut down, and its session, if it has one, ends for this reason. */
void gpd_admission_close_conn(struct gpd_admission *admission, struct gpd_connection *peer,
			      const char *reason);
/* A line of the log about its session, or its wait for one. */
void gpd_admission_log_session(const struct gpd_connection *peer, enum gpd_log_level level,
			       const char *text);
/* Instead of a session. */
void gpd_admission_refuse(struct gpd_admission *admission, struct gpd_connection *peer,
			  Gpupool__Refused__Reason reason, const char *text);
/* Its session, or its wait for one, ends: the client is told 810, or that it is refused. */
void gpd_admission_evict(struct gpd_admission *admission, struct gpd_connection *peer,
			 Gpupool__Refused__Reason reason, const char *text);
/* admission_session.c: Hello has come, and is the peer's from now on. */
void gpd_admission_handle_hello(struct gpd_admission *admission, struct gpd_connection *peer,
				Gpupool__ControlMessage *message);
void gpd_admission_handle_window_request(struct gpd_admission *admission,
					 struct gpd_connection *peer,
					 const Gpupool__WindowRequest *request);
/* Why there is no place for one more session: NULL: there is one.  more: what counts besides those
 * that there are, in all and of the peer's address. */
const char *gpd_admission_get_full_reason(const struct gpd_admission *admission,
					  const struct gpd_connection *peer, int more,
					  int more_of_address);
/* Its session has a line in the ledger; NULL: it waits for a place (for so long if it does not wait
 * yet), or was refused. */
struct gpd_ledger_session *gpd_admission_acquire_slot(struct gpd_admission *admission,
						      struct gpd_connection *peer, int64_t wait_ms);
/* It has none in this place: it waits, or has waited for long enough and is refused. */
void gpd_admission_wait_for_slot(struct gpd_admission *admission, struct gpd_connection *peer,
				 const char *text, int64_t wait_ms);
/* The worker is asked to open its session, which has a line. */
void gpd_admission_request_open(struct gpd_admission *admission, struct gpd_connection *peer,
				struct gpd_worker_process *worker,
				const struct gpd_ledger_session *line);
/* Whose the client is; false: it is refused. */
bool gpd_admission_admit(struct gpd_admission *admission, struct gpd_connection *peer);
/* With those that wait for one. */
int gpd_admission_count_sessions(const struct gpd_admission *admission);

/* admission_alone.c: a QUEUED peer gets a place for a session in a worker of its own. */
void gpd_admission_open_dedicated(struct gpd_admission *admission, struct gpd_connection *peer);
/* Starts the workers whose turn it is. */
void gpd_admission_start_workers(struct gpd_admission *admission);
/* The peer leaves its worker, or the place that it has without one. */
void gpd_admission_abandon_worker(struct gpd_admission *admission, struct gpd_connection *peer);
/* admission_gate.c: whether the peer, of whom Hello has come, is let in; else it was refused. */
bool gpd_admission_authenticate(struct gpd_admission *admission, struct gpd_connection *peer);
/* Whether the tokens and certificates of those who came by one still hold. */
void gpd_admission_check_credentials(struct gpd_admission *admission);
/* The configuration is another one: whether those who came by a certificate are still whose they
 * were. */
void gpd_admission_check_certificates(struct gpd_admission *admission);

/* The refusal of credentials is due. */
void gpd_admission_send_refusal(struct gpd_admission *admission, struct gpd_connection *peer);

/* admission_look.c: whose credentials are good and who wants no session is told what there is;
 * full: why a session would be refused, or NULL. */
void gpd_admission_probe(struct gpd_admission *admission, struct gpd_connection *peer,
			 const char *full);

/* admission_wait.c: connections for which there is room now begin. */
void gpd_admission_start_waiting(struct gpd_admission *admission);
void gpd_admission_drop_waiting(struct gpd_admission *admission);

/* admission_lane.c: the peer, which had this preamble, is a lane: it is handed to the worker,
 * closed, or kept until lane 0 is there, and nobody else's afterwards. */
void gpd_admission_handle_lane(struct gpd_admission *admission, struct gpd_connection *lane,
			       const struct gp_preamble *preamble);
/* In each turn: those that are kept go on, or are closed. */
void gpd_admission_poll_early(struct gpd_admission *admission);
void gpd_admission_drop_early(struct gpd_admission *admission);

#endif /* GPD_ADMISSION_STATE_H */
