/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission of clients: accepts connections, authenticates them, assigns them to tenants, and takes
 * each through its states (connection.h) to a session in a worker.
 *
 * Files: admission_wait.c has connections without a receiver thread yet; admission_auth.c the
 * credentials; admission_session.c the way from Hello to the end of the session;
 * admission_process.c sessions with a dedicated worker; admission_lane.c the data connections
 * (lanes); admission_probe.c the queries without a session; admission.c the list of connections,
 * their states and their end.
 *
 * Threads: the supervisor's main thread.
 */
#ifndef GPD_ADMISSION_H
#define GPD_ADMISSION_H

#include "server/supervisor/admission/session_owners.h"
#include "server/supervisor/auth/authentication.h"
#include "server/supervisor/auth/connection.h"
#include "server/supervisor/tenancy/quota.h"
#include "server/supervisor/workers/worker_process.h"

#include <stdbool.h>
#include <stdint.h>

struct gpd_admission {
	struct gpd_connection *connection_list;
	/* Connections without a receiver thread yet, in order of arrival. */
	struct gpd_connection *waiting;
	unsigned int waiting_count;
	int64_t no_room_ms; /* when the limit was last reached without any connection to close */
	struct gpd_connection *early; /* lanes of sessions without lane 0 so far, oldest first */
	struct gpd_authentication authentication;
	int64_t recheck_ms; /* time of the next check of credentials of running sessions */
	int64_t expire_ms;  /* time of the next cleanup of unused entries */
	struct gpd_quota *quota;
	struct gpd_session_owners session_owners; /* clients of the sessions in the ledger */
	/* Worker for new shared sessions; NULL: none at the moment. */
	struct gpd_worker_process *worker;
	/* Returns a new or spare worker for one session; NULL: none can be started. */
	struct gpd_worker_process *(*start_dedicated)(void *arg);
	void *arg;
	struct gpd_worker_process *workers; /* all workers */
	/* Number of workers that exited unexpectedly or lost their contexts. */
	uint64_t workers_lost;
	uint64_t starts;                            /* number of dedicated workers started */
	uint64_t tenant_starts[GPD_LEDGER_TENANTS]; /* by tenant: number of its last start */
	int sessions_max;                           /* 0: as configured */
	int lanes_max;                              /* per session; 0: as configured */
	int handshakes;
	uint64_t last_session;
	bool stopping;
	bool draining; /* no new sessions are admitted */
};

/* Returns 0 or -ENOMEM. */
GP_MUST_CHECK int gpd_admission_init(struct gpd_admission *admission, struct gpd_quota *quota,
				     int sessions_max, int lanes_max);
/* Shuts all connections down and joins their threads. */
void gpd_admission_fini(struct gpd_admission *admission);

/* Returns the maximum number of concurrent sessions. */
int gpd_admission_sessions_max(const struct gpd_admission *admission);
/*
 * Accepts a connection of gp_listener_accept_fd(), and owns its descriptor. Returns 0; GP_E_EOF if
 * it was closed at once because of its address; or GP_E_RESOURCE.
 */
int gpd_admission_accept(struct gpd_admission *admission, int fd, const char *peer_name,
			 const char *scheme);
/* Sets the worker for new shared sessions, and opens the queued ones. NULL: none. */
void gpd_admission_set_worker(struct gpd_admission *admission, struct gpd_worker_process *worker);
/* Retries queued connections, after a worker has exited or is ready, or a session slot has become
 * free. */
void gpd_admission_retry_queued(struct gpd_admission *admission);
/* Handles a dedicated worker that is ready. Returns false if its client has disconnected. */
bool gpd_admission_dedicated_ready(struct gpd_admission *admission,
				   struct gpd_worker_process *worker);
/* Sets whether the worker responds; its clients get this in replies to their pings. */
void gpd_admission_set_hanging(struct gpd_admission *admission,
			       const struct gpd_worker_process *worker, bool hangs);
/* After the process has exited: logs the end of each session that the worker has not logged. */
void gpd_admission_report_ended(const struct gpd_admission *admission,
				const struct gpd_worker_process *worker, const char *reason);
/* Ends all sessions of the worker with this CUresult. Connections that it was opening are queued
 * again. */
void gpd_admission_worker_exited(struct gpd_admission *admission, struct gpd_worker_process *worker,
				 int result, const char *text);
/* The same for a worker that has lost its GPU contexts: all names go to the log, and each client
 * gets those of its own tenant's sessions. */
void gpd_admission_worker_lost(struct gpd_admission *admission, struct gpd_worker_process *worker,
			       int result, const struct gpd_channel_lost *lost);
/* Handles the worker's reply to OPEN and MOVE_WINDOW. */
void gpd_admission_opened(struct gpd_admission *admission, struct gpd_worker_process *worker,
			  const struct gpd_channel_message *message);
/* Handles the worker's report that a session has ended. */
void gpd_admission_closed(struct gpd_admission *admission, struct gpd_worker_process *worker,
			  const struct gpd_channel_message *message);
/* The worker has a lane that it has checked itself: it arrived at the worker, or passed the TLS key
 * check. */
void gpd_admission_lane_opened(struct gpd_admission *admission, struct gpd_worker_process *worker,
			       const struct gpd_channel_message *message);
/* Handles all events posted by the connections' receiver threads. */
void gpd_admission_handle_events(struct gpd_admission *admission);
/* Called in each iteration of the loop: handles all deadlines that have passed. */
void gpd_admission_check_deadlines(struct gpd_admission *admission);
/* Applies another configuration to all sessions, and owns it. */
void gpd_admission_reload(struct gpd_admission *admission, struct gpd_config *config,
			  struct gpd_reload_report *reloaded);
/* Ends the session; its client gets CUDA_ERROR_MPS_CLIENT_TERMINATED (810). The session is over
 * when its ledger entry is free. */
void gpd_admission_terminate(struct gpd_admission *admission, uint64_t session);
/* Returns the connection of the session, also while its dedicated worker starts; NULL: there is
 * none, or the client has disconnected. */
struct gpd_connection *gpd_admission_find(const struct gpd_admission *admission, uint64_t session);
/* Requests the workers to read the limits of their sessions from the ledger again. */
void gpd_admission_quotas_changed(struct gpd_admission *admission);
/* Returns whether there is no session and no client that waits for one. */
bool gpd_admission_is_empty(const struct gpd_admission *admission);
/* Sends Bye to all clients and closes their connections. */
void gpd_admission_stop(struct gpd_admission *admission);

#endif /* GPD_ADMISSION_H */
