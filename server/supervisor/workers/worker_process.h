/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker process, as seen by the supervisor.
 *
 * A shared worker runs the sessions of many clients; a dedicated worker runs one session and exits
 * after it. A spare worker has started in advance and becomes dedicated.
 *
 * Threads: the supervisor's main thread.
 */
#ifndef GPD_WORKER_PROCESS_H
#define GPD_WORKER_PROCESS_H

#include "protocol/control.h"
#include "server/common/ledger/channel.h"
#include "server/common/ledger/ledger.h"
#include "server/supervisor/workers/heartbeat.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct gpd_client_address;

#define GPD_WORKER_REASON_MAX 128
/* Every worker has a session, except for a few that are starting, spare or about to exit. */
#define GPD_WORKERS_MAX (GPD_LEDGER_SESSIONS + 64)

/*
 * In any state a worker may lose its GPU contexts (LOST), exit or be killed (ENDING). It is removed
 * when the process has been reaped.
 */
enum gpd_worker_process_state {
	/* Initial state: the process has been started. Left when the worker reports that it is
	 * ready or why it failed. It has no session and can only be stopped. */
	GPD_WORKER_STARTING,
	/* Shared. Entered when the worker is ready, or orphaned work (of disconnected clients) has
	 * ended; left when orphaned work continues, or the worker is retired. It can get new
	 * sessions. */
	GPD_WORKER_SERVING,
	/* Shared. Entered when the worker reports orphaned work; left when the work ends or takes
	 * too long. New sessions wait or get another worker; existing ones continue. */
	GPD_WORKER_BUSY,
	/* Shared. Entered when orphaned work has run for too long; left when it ends, when the
	 * worker is retired, or when the worker is killed as the oldest of too many. New sessions
	 * get another worker. */
	GPD_WORKER_WEDGED,
	/* Spare. Entered when the worker is ready; left when a session with isolation "process"
	 * uses it, or it is retired. It has no session. */
	GPD_WORKER_SPARE,
	/* Shared or spare. Entered when the worker is requested to retire; it exits after its last
	 * session and gets no new ones. */
	GPD_WORKER_RETIRED,
	/* Dedicated. Entered when the worker, started for the session or spare, is requested to
	 * open it and to retire afterwards; left when the client disconnects. It exits after the
	 * session. */
	GPD_WORKER_DEDICATED,
	/* Dedicated. Entered when the client has disconnected, possibly before the worker was
	 * ready; left when the worker exits. Its session slot becomes free when the process has
	 * exited. */
	GPD_WORKER_ABANDONED,
	/* Entered when the worker reports that it has lost its GPU contexts. Its sessions are over;
	 * it notifies their clients and exits. */
	GPD_WORKER_LOST,
	/* Entered when the worker has failed to start, was requested to stop, or was killed. No
	 * more requests are sent. */
	GPD_WORKER_ENDING,
	GPD_WORKER_STATES,
};

struct gpd_worker_process {
	struct gpd_worker_process *next;
	pid_t pid;
	struct gpd_channel channel;
	enum gpd_worker_process_state state; /* changed by gpd_worker_process_set_state() only */
	int64_t state_ms;                    /* time of the last change of state */
	int64_t started_ms;
	int64_t deadline_ms;     /* time at which it is killed; INT64_MAX: never */
	Gpupool__Welcome *facts; /* once ready: the part of Welcome common to all sessions */
	/* Dedicated: address of its client, a counted reference. */
	struct gpd_client_address *client_address;
	bool spare;   /* started as a spare, and not used by a session yet */
	int orphaned; /* number of disconnected sessions whose work still runs */
	int orphaned_by_tenant[GPD_LEDGER_TENANTS]; /* the same by tenant */
	/* Why its sessions end with it; "": the worker reports it itself. */
	char reason[GPD_WORKER_REASON_MAX];
	struct gpd_heartbeat heartbeat;
	bool channel_closed;
	int poll_index; /* supervisor's loop: index in the poll array, or -1 */
};

/* Returns whether the worker was started for a single session. */
static inline bool
gpd_worker_process_is_dedicated(const struct gpd_worker_process *child)
{
	return child->client_address != NULL;
}

/* Sets the state. Returns false, and changes nothing, if the worker is already in this state or it
 * cannot follow the current one: messages of a worker may arrive after its state has changed. */
bool gpd_worker_process_set_state(struct gpd_worker_process *child,
				  enum gpd_worker_process_state state);

/* Starts a process of this program with the same options for the driver, RDMA and the log, and the
 * ledger. The caller owns it. Returns NULL with errno set on failure. */
struct gpd_worker_process *gpd_worker_process_start(const char *driver, bool software,
						    const char *rdma, bool peer_memory,
						    int ledger_fd);

/* Frees a worker that has been reaped. */
void gpd_worker_process_destroy(struct gpd_worker_process *child);

/* Formats a status of waitpid(): "was killed by signal 11 (Segmentation fault)". */
void gpd_worker_process_explain_exit(int status, char *text, size_t size);

#endif /* GPD_WORKER_PROCESS_H */
