/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal interface of the admission (admission.h), between admission*.c.
 *
 * Ownership: connections belong to the admission. Texts need to be valid during a call only.
 * Threads: the supervisor's main thread; no function blocks.
 * Units: milliseconds.
 */
#ifndef GPD_ADMISSION_INTERNAL_H
#define GPD_ADMISSION_INTERNAL_H

#include "server/supervisor/admission/admission.h"

/* Value of wait_ms for a state without a deadline. */
#define NO_DEADLINE (-1)
/* Maximum time until lane 0 arrives after Welcome, and that another lane waits for lane 0. */
#define LANE_MS 10000
/* Maximum time from accepting a connection to its Hello. */
#define GPD_HANDSHAKE_MS 10000
/* Maximum time to wait for a worker before the client is refused. */
#define GPD_QUEUED_MS 30000
/* Maximum time to wait for a session slot that may be about to become free. */
#define GPD_SLOT_WAIT_MS 1500
/* Maximum time per request to wait for a session slot of clients in the queue (queue.h), which send
 * another request afterwards. */
#define GPD_WAIT_MAX_MS 8000

/* Adds a started connection to the list, in HANDSHAKE; in admission.c, as the functions up to
 * gpd_admission_evict(). */
void gpd_admission_add(struct gpd_admission *admission, struct gpd_connection *peer);
/* Sets the connection's state (connection.h) with a deadline in wait_ms, or NO_DEADLINE. The state
 * must be able to follow the current one. */
void gpd_admission_set_state(struct gpd_admission *admission, struct gpd_connection *peer,
			     enum gpd_connection_state state, int64_t wait_ms);
/* Returns the connection of the worker's session with this ID. NULL: there is no such session, or
 * its client has disconnected. */
struct gpd_connection *gpd_admission_find_session(const struct gpd_admission *admission,
						  const struct gpd_worker_process *worker,
						  uint64_t id);
/* Posts a message to the worker (channel.h) without blocking. Takes ownership of fd (-1: none). A
 * worker whose channel is full is killed; a worker that has exited is ignored. */
void gpd_admission_send(struct gpd_worker_process *worker, const struct gpd_channel_header *header,
			const void *data, size_t size, int fd);
/* Posts a message about a session to the worker, without a descriptor. */
void gpd_admission_send_session(struct gpd_worker_process *worker, enum gpd_channel_type type,
				uint64_t session, const void *data, size_t size);

/* Shuts the connection down, sets CLOSING, and ends its session for this reason if it has one. Does
 * nothing if it is CLOSING already. */
void gpd_admission_close_conn(struct gpd_admission *admission, struct gpd_connection *peer,
			      const char *reason);
/* Logs a line about the connection's session, or its wait for one, within its log budget. */
void gpd_admission_log_session(const struct gpd_connection *peer, enum gpd_log_level level,
			       const char *text);
/* Sends Refused with this reason and text to the client, logs it, and closes the connection. */
void gpd_admission_refuse(struct gpd_admission *admission, struct gpd_connection *peer,
			  Gpupool__Refused__Reason reason, const char *text);
/* Ends the client's session or its wait for one by a decision of the operator, and closes the
 * connection. A client with a session gets CUDA error 810; a waiting client gets Refused with this
 * reason. */
void gpd_admission_evict(struct gpd_admission *admission, struct gpd_connection *peer,
			 Gpupool__Refused__Reason reason, const char *text);
/* Handles Hello; the connection takes ownership of the message. In admission_session.c, as the
 * functions up to gpd_admission_count_sessions(). */
void gpd_admission_handle_hello(struct gpd_admission *admission, struct gpd_connection *peer,
				Gpupool__ControlMessage *message);
/* Handles the client's request for another address window. */
void gpd_admission_handle_window_request(struct gpd_admission *admission,
					 struct gpd_connection *peer,
					 const Gpupool__WindowRequest *request);
/* Returns why there is no slot for one more session, a static text, or NULL if there is a slot.
 * more and more_of_address: sessions to count in addition to the existing ones, in total and of the
 * client's address. */
const char *gpd_admission_get_full_reason(const struct gpd_admission *admission,
					  const struct gpd_connection *peer, int more,
					  int more_of_address);
/* Assigns a ledger entry and a ticket to the client's session. Returns the entry, borrowed from the
 * ledger. Returns NULL if the client waits for a slot (for at most wait_ms if it has not waited
 * before) or was refused. */
struct gpd_ledger_session *gpd_admission_acquire_slot(struct gpd_admission *admission,
						      struct gpd_connection *peer, int64_t wait_ms);
/* Lets the client wait for a slot for at most wait_ms, in QUEUED; refuses it with this text if it
 * has waited already and its deadline has passed. */
void gpd_admission_wait_for_slot(struct gpd_admission *admission, struct gpd_connection *peer,
				 const char *text, int64_t wait_ms);
/* Requests the worker to open the session, in OPENING. line: the session's ledger entry. */
void gpd_admission_request_open(struct gpd_admission *admission, struct gpd_connection *peer,
				struct gpd_worker_process *worker,
				const struct gpd_ledger_session *line);
/* Assigns the client to a tenant. Returns false if it was refused; its connection is then
 * closed. */
bool gpd_admission_admit(struct gpd_admission *admission, struct gpd_connection *peer);
/* Returns the number of sessions, including clients that wait for a worker. */
int gpd_admission_count_sessions(const struct gpd_admission *admission);

/* Assigns a slot to a QUEUED connection whose session gets a dedicated worker, or lets it wait; in
 * admission_process.c, as the two functions below. */
void gpd_admission_open_dedicated(struct gpd_admission *admission, struct gpd_connection *peer);
/* Starts dedicated workers for the next clients, up to the limit of concurrent starts, in fair
 * order of addresses and tenants. */
void gpd_admission_start_workers(struct gpd_admission *admission);
/* Detaches the connection from its dedicated worker, or frees the slot that it has without one. */
void gpd_admission_abandon_worker(struct gpd_admission *admission, struct gpd_connection *peer);
/* Authenticates the client after Hello. Returns true if it is authenticated. Returns false if it
 * was refused; the connection is then closed, or in REFUSED until the delayed refusal is sent. In
 * admission_auth.c, as the functions up to gpd_admission_send_refusal(). */
bool gpd_admission_authenticate(struct gpd_admission *admission, struct gpd_connection *peer);
/* Ends sessions whose token or certificate is no longer valid. */
void gpd_admission_check_credentials(struct gpd_admission *admission);
/* Ends sessions whose certificate no longer belongs to their tenant. Called after a new
 * configuration. */
void gpd_admission_check_certificates(struct gpd_admission *admission);

/* Sends the delayed refusal of a connection in REFUSED, and closes it. */
void gpd_admission_send_refusal(struct gpd_admission *admission, struct gpd_connection *peer);

/* Replies to an authenticated client that queries its account and requests no session, and closes
 * the connection; in admission_probe.c. full: why a session would be refused; NULL: it would
 * not. */
void gpd_admission_probe(struct gpd_admission *admission, struct gpd_connection *peer,
			 const char *full);

/* Starts the receiver threads of waiting connections within the limits of handshakes, and closes
 * those past their deadline; in admission_wait.c. */
void gpd_admission_start_waiting(struct gpd_admission *admission);
/* Closes all waiting connections. */
void gpd_admission_drop_waiting(struct gpd_admission *admission);

/* Handles a connection whose preamble identifies it as a lane: it is passed to the worker, closed,
 * or kept until lane 0 arrives; in admission_lane.c. Takes ownership of the connection. */
void gpd_admission_handle_lane(struct gpd_admission *admission, struct gpd_connection *lane,
			       const struct gp_preamble *preamble);
/* Called in each iteration of the loop: passes kept lanes to the worker once lane 0 has arrived,
 * and closes those past their deadline. */
void gpd_admission_poll_early(struct gpd_admission *admission);
/* Closes all kept lanes. */
void gpd_admission_drop_early(struct gpd_admission *admission);

#endif /* GPD_ADMISSION_INTERNAL_H */
