/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal interface of the admission (admission.h), between its files admission*.c. Functions are
 * grouped by the file that implements them.
 *
 * Terms: a slot is the right to one of the limited number of sessions; an entry is the session's in
 * the ledger (ledger.h). The queue is that of queue.h; the state QUEUED (connection.h) means only
 * that the client waits.
 * Ownership: connections belong to the admission. A closed or refused connection stays valid, in
 * CLOSING, until gpd_admission_handle_events() handles its receiver's last event. Texts need to be
 * valid during a call only.
 * Threads: the supervisor's main thread. No function blocks, except that
 * gpd_admission_authenticate() and gpd_admission_check_credentials() read the token file and the
 * CRL after a change.
 * Units: milliseconds.
 */
#ifndef GPD_ADMISSION_INTERNAL_H
#define GPD_ADMISSION_INTERNAL_H

#include "server/supervisor/admission/admission.h"

/* Value of wait_ms of gpd_admission_set_state() for a state without a deadline. */
#define NO_DEADLINE (-1)
/* Maximum time from Welcome, or from the reply to a WindowRequest, until lane 0 arrives; also the
 * maximum time that another lane waits for lane 0. */
#define LANE_MS 10000
/* Maximum time from accepting a connection to its Hello. */
#define GPD_HANDSHAKE_MS 10000
/* Maximum time that a client waits for a worker before it is refused. */
#define GPD_QUEUED_MS 30000
/* Maximum time that a client outside of the queue waits for a session slot, as a session may be
 * about to end. */
#define GPD_SLOT_WAIT_MS 1500
/* Maximum time that a request of a client in the queue (queue.h) waits for a session slot. The
 * client then sends another request. */
#define GPD_WAIT_MAX_MS 8000

/* admission.c: connections. */

/* Adds a started connection in HANDSHAKE, with client_address set, to the list, sets its deadline
 * and counts it as a handshake. */
void gpd_admission_add(struct gpd_admission *admission, struct gpd_connection *connection);
/* Sets the connection's state (connection.h) with a deadline in wait_ms, or NO_DEADLINE, and
 * updates the counts of handshakes. Changes nothing if the state cannot follow the current one. */
void gpd_admission_set_state(struct gpd_admission *admission, struct gpd_connection *connection,
			     enum gpd_connection_state state, int64_t wait_ms);
/* Returns the connection of the session with this ID in this worker. NULL: there is no such
 * session, or its client has disconnected. */
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

/* Shuts the connection down and sets CLOSING; if it has a session, requests the worker to end it
 * for this reason. Sends nothing to the client. Does nothing if the connection is CLOSING
 * already. */
void gpd_admission_close_conn(struct gpd_admission *admission, struct gpd_connection *connection,
			      const char *reason);
/* Logs a line about the connection's session, or its wait for one, within its log budget. */
void gpd_admission_log_session(const struct gpd_connection *connection, enum gpd_log_level level,
			       const char *text);
/* Sends Refused with this reason and text to the client, logs it, and closes the connection. With
 * the reason FULL, a client that will send another request (Hello.wait not 0; its assignment must
 * be set) gets an entry in the queue, and the text contains its position. */
void gpd_admission_refuse(struct gpd_admission *admission, struct gpd_connection *connection,
			  Gpupool__Refused__Reason reason, const char *text);
/* Ends the client's session or its wait for one by a decision of the operator, and closes the
 * connection. A client whose session a worker has or opens gets CUDA error 810; a waiting client
 * gets Refused with this reason. */
void gpd_admission_evict(struct gpd_admission *admission, struct gpd_connection *connection,
			 Gpupool__Refused__Reason reason, const char *text);

/* admission_session.c: sessions. */

/* Handles the first and only Hello of a connection in HANDSHAKE: authenticates the client, and
 * refuses it, replies to its query, or queues it for a session. The connection takes ownership of
 * the message. */
void gpd_admission_handle_hello(struct gpd_admission *admission, struct gpd_connection *connection,
				Gpupool__ControlMessage *message);
/* Handles the client's request for another address window, which stays the caller's. An unexpected
 * request ends the session. */
void gpd_admission_handle_window_request(struct gpd_admission *admission,
					 struct gpd_connection *connection,
					 const Gpupool__WindowRequest *request);
/* Returns the reason why the daemon has no slot for one more session, a static text; NULL: there is
 * a slot. more and more_of_address: numbers to add to the existing sessions, in total and of the
 * client's address; they may be negative. connection: with Hello. Removes expired entries of the
 * queue. */
const char *gpd_admission_get_full_reason(const struct gpd_admission *admission,
					  const struct gpd_connection *connection, int more,
					  int more_of_address);
/* Assigns an ID, a ticket, a ledger entry and devices to the session of a client that
 * gpd_admission_admit() has accepted. Returns the entry, borrowed from the ledger; the caller sets
 * its `worker`. Returns NULL if the client was refused or waits for a slot:
 * gpd_admission_wait_for_slot() was called with wait_ms. */
struct gpd_ledger_session *gpd_admission_acquire_slot(struct gpd_admission *admission,
						      struct gpd_connection *connection,
						      int64_t wait_ms);
/* Lets the client wait for a slot in QUEUED: for wait_ms or, if it is in the queue and that is
 * longer, for the time in its Hello (patience_ms), at most GPD_WAIT_MAX_MS. An older request with
 * the same queue number is closed. If the client waits already, its deadline stays, and it is
 * refused with this text once the deadline has passed. */
void gpd_admission_wait_for_slot(struct gpd_admission *admission, struct gpd_connection *connection,
				 const char *text, int64_t wait_ms);
/* Requests the worker to open the session, and sets worker, lanes_max, features and OPENING. entry:
 * the session's ledger entry, whose `worker` the caller has set. */
void gpd_admission_request_open(struct gpd_admission *admission, struct gpd_connection *connection,
				struct gpd_worker_process *worker,
				const struct gpd_ledger_session *entry);
/* Assigns the client to a tenant, and sets its isolation and log budget. Called again after a
 * reload. Returns false if it was refused; its connection is then closed. */
bool gpd_admission_admit(struct gpd_admission *admission, struct gpd_connection *connection);
/* Returns the number of sessions of connected clients, including clients that wait for a worker but
 * not those that wait for a slot. */
int gpd_admission_count_sessions(const struct gpd_admission *admission);

/* admission_process.c: sessions with a dedicated worker. */

/* Assigns a slot to a QUEUED connection whose session gets a dedicated worker, and sets STARTING;
 * gpd_admission_start_workers() starts the worker. Without a free slot the client waits. */
void gpd_admission_open_dedicated(struct gpd_admission *admission,
				  struct gpd_connection *connection);
/* Starts dedicated workers for clients in STARTING that have none, up to the limit of concurrent
 * starts. Tenants take turns, and the addresses of a tenant. If a worker cannot be started, the
 * client is refused. */
void gpd_admission_start_workers(struct gpd_admission *admission);
/* Called when the connection ends, before its state becomes CLOSING: kills its dedicated worker if
 * that is not ready yet, else sets ABANDONED. Frees the session slot of a connection in STARTING
 * without a worker; otherwise the slot becomes free when the worker has exited. Does nothing for
 * shared sessions. */
void gpd_admission_abandon_worker(struct gpd_admission *admission,
				  struct gpd_connection *connection);

/* admission_auth.c: credentials. */

/* Authenticates the client after Hello. Returns true if it is authenticated. Returns false if it
 * was refused; the connection is then closed, or in REFUSED until the delayed refusal is sent. */
bool gpd_admission_authenticate(struct gpd_admission *admission, struct gpd_connection *connection);
/* Loads the token file and the CRL again if they have changed, and ends sessions whose token or
 * certificate is no longer valid. */
void gpd_admission_check_credentials(struct gpd_admission *admission);
/* Ends sessions whose certificate no longer belongs to their tenant. Called after a new
 * configuration. */
void gpd_admission_check_certificates(struct gpd_admission *admission);

/* Sends the delayed refusal of a connection in REFUSED, and closes it. */
void gpd_admission_send_refusal(struct gpd_admission *admission, struct gpd_connection *connection);

/* admission_probe.c: replies to an authenticated client that queries its account and requests no
 * session, and closes the connection. full: the reason why the daemon would refuse a session; NULL:
 * it would not. */
void gpd_admission_probe(struct gpd_admission *admission, struct gpd_connection *connection,
			 const char *full);

/* admission_quarantine.c: programs in quarantine. */

/* Called when the client has its assignment: if its program is in quarantine, its session gets a
 * worker of its own and a notice about that. Returns false if the client was refused because its
 * tenant's sessions must share a worker; its connection is then closed. */
bool gpd_admission_check_quarantine(struct gpd_admission *admission,
				    struct gpd_connection *connection);

/* admission_wait.c: the list `waiting` of connections without a receiver thread. */

/* Starts the receiver threads of waiting connections within the limits of handshakes, in total and
 * per address. At a limit, each waiting connection may replace a started one: that is closed if it
 * has sent no Hello for 0.2 s, or 2 s if it has sent other data. Closes waiting connections past
 * their deadline. */
void gpd_admission_start_waiting(struct gpd_admission *admission);
/* Closes all waiting connections. */
void gpd_admission_drop_waiting(struct gpd_admission *admission);

/* admission_lane.c: lanes. */

/* Handles a connection whose preamble identifies it as a lane, after its event GPD_CONNECTION_LANE:
 * removes it from the list of connections, and passes it to the worker, closes it, or keeps it in
 * the list `early` until lane 0 arrives. Takes ownership of the connection. */
void gpd_admission_handle_lane(struct gpd_admission *admission, struct gpd_connection *lane,
			       const struct gp_preamble *preamble);
/* Called in each iteration of the loop: passes kept lanes to the worker once lane 0 has arrived,
 * and closes those past their deadline. */
void gpd_admission_poll_early(struct gpd_admission *admission);
/* Closes all kept lanes. */
void gpd_admission_drop_early(struct gpd_admission *admission);

#endif /* GPD_ADMISSION_INTERNAL_H */
