/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may have a session, and how far each connection has come on its way to one: the part of the
 * supervisor that deals with clients.  Main thread only.
 *
 * admission_wait.c has the connections that have not begun, admission_gate.c the credentials,
 * admission_session.c all from Hello to the end of the session, admission_alone.c those that have a
 * worker of their own, and admission_lane.c their lanes; admission.c keeps the list of peers and
 * their states, and ends them.
 */
#ifndef GPD_ADMISSION_H
#define GPD_ADMISSION_H

#include "server/supervisor/admission/roster.h"
#include "server/supervisor/door/gate.h"
#include "server/supervisor/door/peer.h"
#include "server/supervisor/tenancy/quota.h"
#include "server/supervisor/workers/child.h"

#include <stdbool.h>
#include <stdint.h>

struct gpd_admission {
	struct gpd_connection *connection_list;
	struct gpd_connection
		*waiting; /* connections that have not begun, in the order of coming */
	unsigned int waiting_count;
	int64_t no_room_ms; /* when there was no place, and nobody made room */
	struct gpd_connection
		*early; /* data lanes whose lane 0 is not there yet, the oldest first */
	struct gpd_authentication authentication;
	int64_t recheck_ms; /* when to look again whether the tokens still hold */
	int64_t expire_ms;  /* when to forget what nobody needs any more */
	struct gpd_quota *quota;
	struct gpd_session_owners session_owners; /* of those that have a session */
	struct gpd_worker_process
		*worker; /* that new sessions are given to; NULL: none at the moment */
	/* Starts a worker for one session, or gives one from the reserve; NULL: it cannot. */
	struct gpd_worker_process *(*start_dedicated)(void *arg);
	void *arg;
	struct gpd_worker_process *workers; /* all that there are */
	uint64_t workers_lost; /* that ended without being told to, or lost their contexts */
	uint64_t starts;       /* workers for one session that were started */
	uint64_t tenant_starts[GPD_LEDGER_TENANTS]; /* the number of the last one */
	int sessions_max;                           /* 0: as the configuration says */
	int lanes_max;                              /* of a session; 0: as the configuration says */
	int handshakes;
	uint64_t last_session;
	bool stopping;
	bool draining; /* nobody new is admitted */
};

/* 0 or -ENOMEM. */
GP_MUST_CHECK int gpd_admission_init(struct gpd_admission *admission, struct gpd_quota *quota,
				     int sessions_max, int lanes_max);
/* Shuts all connections down and waits for their threads. */
void gpd_admission_fini(struct gpd_admission *admission);

/* So many at a time. */
int gpd_admission_sessions_max(const struct gpd_admission *admission);
/*
 * A connection of gp_listener_accept_fd(), whose descriptor belongs to the admission from now on.
 * 0; GP_E_EOF: it was closed at once, for its address; or GP_E_RESOURCE.
 */
int gpd_admission_accept(struct gpd_admission *admission, int fd, const char *peer_name,
			 const char *scheme);
/* Those who waited for a worker go on. */
void gpd_admission_set_worker(struct gpd_admission *admission, struct gpd_worker_process *worker);
/* A worker has ended, or is ready: who waits for what it had may go on. */
void gpd_admission_retry_queued(struct gpd_admission *admission);
/* A worker for one session is ready: false if nobody wants it any more. */
bool gpd_admission_dedicated_ready(struct gpd_admission *admission,
				   struct gpd_worker_process *worker);
/* The worker does not answer, or answers again: its clients learn it when they ask. */
void gpd_admission_set_hanging(struct gpd_admission *admission,
			       const struct gpd_worker_process *worker, bool hangs);
/* The process has ended: the log says it of each session that it has not told the end of. */
void gpd_admission_report_ended(const struct gpd_admission *admission,
				const struct gpd_worker_process *worker, const char *reason);
/* All its sessions are over, with this CUresult. */
void gpd_admission_worker_exited(struct gpd_admission *admission, struct gpd_worker_process *worker,
				 int result, const char *text);
/* The same, of a worker that has lost its CUDA: the log has all names, and each client those of its
 * own tenant. */
void gpd_admission_worker_lost(struct gpd_admission *admission, struct gpd_worker_process *worker,
			       int result, const struct gpd_channel_lost *lost);
void gpd_admission_opened(struct gpd_admission *admission, struct gpd_worker_process *worker,
			  const struct gpd_channel_message *message);
void gpd_admission_closed(struct gpd_admission *admission, struct gpd_worker_process *worker,
			  const struct gpd_channel_message *message);
/* The worker has a lane that it has checked itself: that came to it, or whose key it has seen. */
void gpd_admission_lane_opened(struct gpd_admission *admission, struct gpd_worker_process *worker,
			       const struct gpd_channel_message *message);
void gpd_admission_handle_events(struct gpd_admission *admission);
/* In each turn: sees to all that is due. */
void gpd_admission_check_deadlines(struct gpd_admission *admission);
/* Puts another configuration, which is taken over, into force for all sessions. */
void gpd_admission_reload(struct gpd_admission *admission, struct gpd_config *config,
			  struct gpd_reload_report *reloaded);
/* The session ends, and its client is told 810; it is over when the ledger has it no more. */
void gpd_admission_terminate(struct gpd_admission *admission, uint64_t session);
/* Whose session it is, also while its own worker starts; NULL: nobody's, or he has left. */
struct gpd_connection *gpd_admission_find(const struct gpd_admission *admission, uint64_t session);
/* The workers read their sessions' lines in the ledger again. */
void gpd_admission_quotas_changed(struct gpd_admission *admission);
/* No session, and nobody waits for one. */
bool gpd_admission_is_empty(const struct gpd_admission *admission);
/* Says goodbye to everybody. */
void gpd_admission_stop(struct gpd_admission *admission);

#endif /* GPD_ADMISSION_H */
