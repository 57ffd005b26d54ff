/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission of clients: accepts connections, authenticates them, assigns them to tenants, and takes
 * each through its states (connection.h) to a session in a worker.
 *
 * The files:
 * - admission_wait.c: accepted connections without a receiver thread yet
 * - admission.c: the list of connections, their states and their end
 * - admission_auth.c: credentials
 * - admission_session.c: sessions, from Hello to their end
 * - admission_process.c: sessions with a dedicated worker
 * - admission_lane.c: data connections (lanes)
 * - admission_probe.c: queries without a session
 * - admission_quarantine.c: programs in quarantine
 *
 * Ownership: gpd_admission_init() to gpd_admission_fini(). The struct owns the connections and the
 * table of session owners; quota and workers are borrowed. supervisor.c opens and closes
 * `authentication` by the functions of authentication.h. Texts need to be valid during a call only.
 * Threads: the supervisor's main thread; only gpd_admission_fini() blocks. Functions that check
 * credentials read the token file and the CRL synchronously after a change.
 * Units: times are milliseconds of gp_now_ms().
 */
#ifndef GPD_ADMISSION_H
#define GPD_ADMISSION_H

#include "server/supervisor/admission/session_owners.h"
#include "server/supervisor/auth/authentication.h"
#include "server/supervisor/auth/connection.h"
#include "server/supervisor/tenancy/quota.h"
#include "server/supervisor/workers/quarantine.h"
#include "server/supervisor/workers/worker_process.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether a device has a place (tenants.h) for a client's session. */
enum gpd_place {
	GPD_PLACE_READY, /* its worker has one, or can get one now */
	GPD_PLACE_SOON,  /* a worker without sessions is about to exit */
	GPD_PLACE_NONE,  /* all workers there have sessions, or the free places are for others */
};

/* State of the admission. */
struct gpd_admission {
	struct gpd_connection *connection_list; /* connections with a receiver thread */
	/* Connections without a receiver thread yet: of root and the daemon's user first, then in
	 * order of arrival. */
	struct gpd_connection *waiting;
	unsigned int waiting_count;
	/* Time of the last search for a connection to close because the limit of handshakes was
	 * reached, if none was found; 0: one was found. */
	int64_t no_room_ms;
	/* Lanes of sessions whose lane 0 has not arrived yet, oldest first. */
	struct gpd_connection *early;
	/* Tokens and CRL; opened by supervisor.c before the first connection. */
	struct gpd_authentication authentication;
	int64_t recheck_ms; /* time of the next check of the credentials of running sessions */
	int64_t expire_ms;  /* time of the next cleanup of unused entries of client_address.h */
	struct gpd_quota *quota;
	struct gpd_session_owners session_owners; /* clients of the sessions in the ledger */
	struct gpd_quarantine quarantine;
	/* By worker group (tenants.h): the worker for new sessions of the group, which get it while
	 * it is SERVING, and wait while it is STARTING or BUSY; NULL: none. Maintained by
	 * worker_pool.c; read by gpd_admission_get_worker(). */
	struct gpd_worker_process *selected[GPD_GROUPS];
	/* The pool of workers (worker_pool.h); set with arg by gpd_worker_pool_init(). They do not
	 * wait, and open no session. connection: of a client without a session, with
	 * first_device. */
	/* Returns whether there is a place for the session's worker on first_device; if not, with
	 * *reason set. Ends a worker without sessions if that is necessary. */
	enum gpd_place (*find_place)(void *arg, const struct gpd_connection *connection,
				     enum gpd_places_reason *reason);
	/* Returns whether the client's dedicated worker may be started now. */
	bool (*may_start)(void *arg, const struct gpd_connection *connection);
	/* Returns a spare or new worker for the client's session, which needs a dedicated one;
	 * NULL: none can be started. */
	struct gpd_worker_process *(*start_dedicated)(void *arg,
						      const struct gpd_connection *connection);
	/* Selects a worker for the client's worker group, or starts one, if none is selected that
	 * is SERVING. */
	void (*select_worker)(void *arg, const struct gpd_connection *connection);
	void *arg;                          /* first argument of these */
	struct gpd_worker_process *workers; /* list of all workers, maintained by worker_pool.c */
	/* Number of workers that exited unexpectedly, lost their contexts or were killed because
	 * they hung; counted by worker_pool.c. */
	uint64_t workers_lost;
	uint64_t starts; /* number of dedicated workers assigned to sessions */
	/* By the tenant's index in the ledger: value of `starts` at its last start, for fair
	 * order. */
	uint64_t tenant_starts[GPD_LEDGER_TENANTS];
	int sessions_max;      /* command-line limit of sessions; 0: as configured */
	int lanes_max;         /* command-line limit of lanes per session; 0: as configured */
	int handshakes;        /* number of started connections in HANDSHAKE or REFUSED */
	uint64_t last_session; /* ID of the newest session; 0: none yet */
	bool stopping;         /* the daemon is stopping */
	bool draining;         /* no new sessions are admitted; set by gpupoolctl drain */
};

/* Initializes the admission. quota: after gpd_quota_init(); it must outlive the admission.
 * sessions_max and lanes_max: command-line limits, 0: as configured. Returns 0; or -ENOMEM, and
 * nothing has to be freed. */
GP_MUST_CHECK int gpd_admission_init(struct gpd_admission *admission, struct gpd_quota *quota,
				     int sessions_max, int lanes_max);
/* Shuts all connections down, joins their threads and frees everything except `authentication`.
 * Called after gpd_worker_pool_fini() (worker_pool.h) and before gpd_quota_fini(). */
void gpd_admission_fini(struct gpd_admission *admission);

/* Returns the maximum number of concurrent sessions: the command line's, else the configured
 * one. */
int gpd_admission_sessions_max(const struct gpd_admission *admission);
/*
 * Accepts a connection of gp_listener_accept_fd(), and takes ownership of fd also on failure. The
 * connection waits until it is started within the limits of handshakes; if too many wait, one of
 * the address with the most waiting connections is closed. peer_name: address of the peer. scheme:
 * of the URL of the listener. Returns 0; GP_E_EOF if the connection was closed at once, because its
 * address has wasted too many connections (client_address.h), descriptors are running out or the
 * transport cannot use fd; or GP_E_RESOURCE if out of memory.
 */
int gpd_admission_accept(struct gpd_admission *admission, int fd, const char *peer_name,
			 const char *scheme);
/* Returns the selected worker of the group; NULL: there is none, or it has served another tenant
 * that had the same index in the ledger. */
struct gpd_worker_process *gpd_admission_get_worker(const struct gpd_admission *admission,
						    uint32_t group);
/* Returns whether the client waits for a place on its first device. */
bool gpd_admission_waits_for_place(const struct gpd_connection *connection);
/* Returns the client as the queue describes one that waits for a place on its first device. */
struct gpd_waiter gpd_admission_get_waiter(const struct gpd_connection *connection);
/* Tries to open the sessions of queued connections, and starts dedicated workers for those that
 * have a slot. Called after a worker has exited or is ready, or a session slot has become free. */
void gpd_admission_retry_queued(struct gpd_admission *admission);
/* Handles a dedicated worker that is ready: requests it to open its session and to exit afterwards.
 * Returns false if its client has disconnected; the caller then retires the worker. */
bool gpd_admission_dedicated_ready(struct gpd_admission *admission,
				   struct gpd_worker_process *worker);
/* Sets whether the worker does not respond. Its clients are notified by the replies to their
 * pings. */
void gpd_admission_set_hanging(struct gpd_admission *admission,
			       const struct gpd_worker_process *worker, bool hangs);
/* Logs the end, with this reason, of each session of the worker whose end the worker has not logged
 * itself. Called after the process has exited, before gpd_admission_worker_exited(). */
void gpd_admission_report_ended(const struct gpd_admission *admission,
				const struct gpd_worker_process *worker, const char *reason);
/* Ends the sessions of a worker that has exited, cannot start or is killed: their clients get the
 * CUresult `result` and the text. A client whose session was not open yet is queued again; with a
 * dedicated worker it is refused. The ledger entries stay until gpd_quota_close_worker()
 * (quota.h). */
void gpd_admission_worker_exited(struct gpd_admission *admission, struct gpd_worker_process *worker,
				 int result, const char *text);
/* Ends the sessions of a worker that has lost its GPU contexts, as gpd_admission_worker_exited().
 * Each client gets the text of *lost (channel.h) for its tenant, which contains names of that
 * tenant's sessions only. */
void gpd_admission_worker_lost(struct gpd_admission *admission, struct gpd_worker_process *worker,
			       int result, const struct gpd_channel_lost *lost);
/* Reports to the quarantine that a fault with this CUresult has ended the worker. *lost: as
 * received from the worker, not checked. Does nothing for results that are not the fault of a
 * kernel. Called before the sessions' ledger entries are closed. */
void gpd_admission_report_fault(struct gpd_admission *admission,
				const struct gpd_worker_process *worker, int result,
				const struct gpd_channel_lost *lost);
/* Reports to the quarantine that the worker has become WEDGED. */
void gpd_admission_report_wedged(struct gpd_admission *admission,
				 const struct gpd_worker_process *worker);
/* Handles GPD_CHANNEL_OPENED, the worker's reply to OPEN and MOVE_WINDOW (channel.h): sends Welcome
 * or the new window. If the worker has no window for a new session, the client is refused and the
 * ledger entry freed. Ignored if the client has disconnected or the message is too short. */
void gpd_admission_opened(struct gpd_admission *admission, struct gpd_worker_process *worker,
			  const struct gpd_channel_message *message);
/* Handles GPD_CHANNEL_CLOSED, the worker's report that a session has ended: frees its ledger entry,
 * notifies and closes its connection if the client is still connected, and retries queued
 * clients. */
void gpd_admission_closed(struct gpd_admission *admission, struct gpd_worker_process *worker,
			  const struct gpd_channel_message *message);
/* Handles GPD_CHANNEL_LANE_OPENED: the worker has a lane that it has checked itself, because the
 * lane arrived over RDMA or uses TLS. */
void gpd_admission_lane_opened(struct gpd_admission *admission, struct gpd_worker_process *worker,
			       const struct gpd_channel_message *message);
/* Handles and frees all events posted by the connections' receiver threads. Called when
 * gpd_connection_events_fd() (connection.h) is readable. */
void gpd_admission_handle_events(struct gpd_admission *admission);
/* Called in each iteration of the loop: handles all deadlines that have passed, starts waiting
 * connections, and checks the credentials of sessions once a second. Every 30 s it frees unused
 * addresses (client_address.h) and reports dropped log lines (log_budget.h). */
void gpd_admission_check_deadlines(struct gpd_admission *admission);
/* Applies another configuration to the tenants, the tokens, and all sessions and waiting clients.
 * Takes ownership of it and frees the previous one. *reloaded receives failures. */
void gpd_admission_reload(struct gpd_admission *admission, struct gpd_config *config,
			  struct gpd_reload_report *reloaded);
/* Ends the session with this ID, if there is one: its client gets CUDA_ERROR_MPS_CLIENT_TERMINATED
 * (810), or is refused if its dedicated worker is still starting. The session has ended when its
 * ledger entry is free. */
void gpd_admission_terminate(struct gpd_admission *admission, uint64_t session);
/* Returns the connection of the session with this ID, also while its dedicated worker starts; valid
 * until gpd_admission_handle_events(). NULL: there is no such session, or the client has
 * disconnected. */
struct gpd_connection *gpd_admission_find(const struct gpd_admission *admission, uint64_t session);
/* Requests the workers to read the limits of their sessions from the ledger again, after limits
 * have changed. Does not wait for them. */
void gpd_admission_quotas_changed(struct gpd_admission *admission);
/* Returns whether there is no session, and no client that waits for a worker. Clients that wait for
 * a session slot do not count. */
bool gpd_admission_is_empty(const struct gpd_admission *admission);
/* Sends Bye to all authenticated clients and closes all connections. No client is admitted
 * afterwards. Called when the daemon stops, before gpd_worker_pool_stop() (worker_pool.h). */
void gpd_admission_stop(struct gpd_admission *admission);

#endif /* GPD_ADMISSION_H */
