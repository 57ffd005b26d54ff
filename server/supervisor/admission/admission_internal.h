/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal interface of the admission (admission.h), between admission*.c.
 *
 * Threads: the supervisor's main thread.
 * Units: milliseconds.
 */
#ifndef GPD_ADMISSION_INTERNAL_H
#define GPD_ADMISSION_INTERNAL_H

#include "server/supervisor/admission/admission.h"

/* A state without a deadline. */
#define NO_DEADLINE (-1)
#define LANE_MS 10000
/* Maximum time from accepting a connection to its Hello. */
#define GPD_HANDSHAKE_MS 10000
/* Maximum time to wait for a worker. */
#define GPD_QUEUED_MS 30000
/* Maximum time to wait for a session slot that may be about to become free. */
#define GPD_SLOT_WAIT_MS 1500
/* The same for clients in the queue (queue.h), which send another request afterwards. */
#define GPD_WAIT_MAX_MS 8000

/* admission.c: adds a started connection to the list, in HANDSHAKE. */
void gpd_admission_add(struct gpd_admission *admission, struct gpd_connection *peer);
/* Sets the connection's state with a deadline in wait_ms, or NO_DEADLINE. */
void gpd_admission_set_state(struct gpd_admission *admission, struct gpd_connection *peer,
			     enum gpd_connection_state state, int64_t wait_ms);
/* Returns the connection of the worker's session with this ID; NULL: none, or it has
 * disconnected. */
struct gpd_connection *gpd_admission_find_session(const struct gpd_admission *admission,
						  const struct gpd_worker_process *worker,
						  uint64_t id);
/* Sends a message to the worker, which gets the descriptor unless fd is -1. The descriptor is
 * closed here in any case. */
void gpd_admission_send(struct gpd_worker_process *worker, const struct gpd_channel_header *header,
			const void *data, size_t size, int fd);
/* The same without a descriptor, about a session. */
void gpd_admission_send_session(struct gpd_worker_process *worker, enum gpd_channel_type type,
				uint64_t session, const void *data, size_t size);

/* Shuts the connection down, and ends its session for this reason if it has one. */
void gpd_admission_close_conn(struct gpd_admission *admission, struct gpd_connection *peer,
			      const char *reason);
/* Logs a line about the connection's session, or its wait for one, within its log budget. */
void gpd_admission_log_session(const struct gpd_connection *peer, enum gpd_log_level level,
			       const char *text);
/* Refuses the client a session, and closes the connection. */
void gpd_admission_refuse(struct gpd_admission *admission, struct gpd_connection *peer,
			  Gpupool__Refused__Reason reason, const char *text);
/* Ends the session, or the wait for one: the client gets CUDA error 810, or Refused with this
 * reason. */
void gpd_admission_evict(struct gpd_admission *admission, struct gpd_connection *peer,
			 Gpupool__Refused__Reason reason, const char *text);
/* admission_session.c: handles Hello; the connection owns the message. */
void gpd_admission_handle_hello(struct gpd_admission *admission, struct gpd_connection *peer,
				Gpupool__ControlMessage *message);
/* Handles the client's request for another address window. */
void gpd_admission_handle_window_request(struct gpd_admission *admission,
					 struct gpd_connection *peer,
					 const Gpupool__WindowRequest *request);
/* Returns why there is no slot for one more session, or NULL if there is one. more and
 * more_of_address: sessions to count in addition to the existing ones, in total and of the client's
 * address. */
const char *gpd_admission_get_full_reason(const struct gpd_admission *admission,
					  const struct gpd_connection *peer, int more,
					  int more_of_address);
/* Assigns a ledger entry to the client's session. Returns NULL if the client waits for a slot (for
 * at most wait_ms if it has not waited before) or was refused. */
struct gpd_ledger_session *gpd_admission_acquire_slot(struct gpd_admission *admission,
						      struct gpd_connection *peer, int64_t wait_ms);
/* Lets the client wait for a slot for at most wait_ms, or refuses it with this text if its time is
 * over. */
void gpd_admission_wait_for_slot(struct gpd_admission *admission, struct gpd_connection *peer,
				 const char *text, int64_t wait_ms);
/* Requests the worker to open the session, which has a ledger entry. */
void gpd_admission_request_open(struct gpd_admission *admission, struct gpd_connection *peer,
				struct gpd_worker_process *worker,
				const struct gpd_ledger_session *line);
/* Assigns the client to a tenant. Returns false if it was refused. */
bool gpd_admission_admit(struct gpd_admission *admission, struct gpd_connection *peer);
/* Returns the number of sessions, including clients that wait for a worker. */
int gpd_admission_count_sessions(const struct gpd_admission *admission);

/* admission_process.c: assigns a slot to a QUEUED connection whose session gets a dedicated
 * worker. */
void gpd_admission_open_dedicated(struct gpd_admission *admission, struct gpd_connection *peer);
/* Starts dedicated workers for the next clients in order. */
void gpd_admission_start_workers(struct gpd_admission *admission);
/* Detaches the connection from its dedicated worker, or frees the slot that it has without one. */
void gpd_admission_abandon_worker(struct gpd_admission *admission, struct gpd_connection *peer);
/* admission_auth.c: authenticates the client after Hello. Returns false if it was refused. */
bool gpd_admission_authenticate(struct gpd_admission *admission, struct gpd_connection *peer);
/* Ends sessions whose token or certificate is no longer valid. */
void gpd_admission_check_credentials(struct gpd_admission *admission);
/* After a new configuration: ends sessions whose certificate no longer belongs to their tenant. */
void gpd_admission_check_certificates(struct gpd_admission *admission);

/* Sends the delayed refusal of invalid credentials. */
void gpd_admission_send_refusal(struct gpd_admission *admission, struct gpd_connection *peer);

/* admission_probe.c: replies to an authenticated client that queries its account and wants no
 * session. full: why a session would be refused, or NULL. */
void gpd_admission_probe(struct gpd_admission *admission, struct gpd_connection *peer,
			 const char *full);

/* admission_wait.c: starts the waiting connections for which there is room. */
void gpd_admission_start_waiting(struct gpd_admission *admission);
/* Closes all waiting connections. */
void gpd_admission_drop_waiting(struct gpd_admission *admission);

/* admission_lane.c: the connection with this preamble is a lane: it is passed to the worker,
 * closed, or kept until lane 0 arrives. The function takes ownership of it. */
void gpd_admission_handle_lane(struct gpd_admission *admission, struct gpd_connection *lane,
			       const struct gp_preamble *preamble);
/* Called in each iteration of the loop: passes on or closes kept lanes. */
void gpd_admission_poll_early(struct gpd_admission *admission);
/* Closes all kept lanes. */
void gpd_admission_drop_early(struct gpd_admission *admission);

#endif /* GPD_ADMISSION_INTERNAL_H */
