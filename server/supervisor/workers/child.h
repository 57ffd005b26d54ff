/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker process, as the supervisor sees it.  Main thread only.
 *
 * A shared worker serves the sessions of many clients; a worker of its own has one session and ends
 * with it.  One in reserve becomes a session's own.
 */
#ifndef GPD_CHILD_H
#define GPD_CHILD_H

#include "protocol/control.h"
#include "server/common/ledger/channel.h"
#include "server/common/ledger/ledger.h"
#include "server/supervisor/workers/heartbeat.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct gpd_client_address;

#define GPD_WORKER_REASON_MAX 128
/* Each has a session, but for a few that start, are in reserve or about to end. */
#define GPD_WORKERS_MAX (GPD_LEDGER_SESSIONS + 64)

/*
 * Whatever the state, a worker may lose its contexts (LOST), end by itself or be killed (ENDING).
 * It is gone when its process has been waited for.
 */
enum gpd_worker_process_state {
	/* The first one.  In: the process was started.  Out: it says that it is ready, or why it
	 * cannot be.  It has
	 * no session yet and can be asked for nothing but its end. */
	GPD_WORKER_STARTING,
	/* Shared.  In: it is ready, or the work of gone clients has ended.  Out: such work goes on,
	 * or it is told to retire.  It may get new sessions. */
	GPD_WORKER_SERVING,
	/* Shared.  In: it says that work of a gone client goes on.  Out: that ends, or takes too
	 * long.  New sessions wait, or get another worker; those that it has go on. */
	GPD_WORKER_BUSY,
	/* Shared.  In: such work goes on for too long.  Out: it ends, or the worker is told to
	 * retire, or it is the oldest of too many and killed.  New sessions get another worker. */
	GPD_WORKER_WEDGED,
	/* In reserve.  In: it is ready.  Out: a session of class `process` takes it, or it is told
	 * to retire.  It has no session. */
	GPD_WORKER_SPARE,
	/* Shared, or in reserve.  In: it is told to retire.  Out: it ends with its last session. It
	 * gets no new ones. */
	GPD_WORKER_RETIRED,
	/* Of its own.  In: it is ready, or was so in reserve, and is asked to open its session and
	 * to retire.  Out: the client is gone.  It ends with its session. */
	GPD_WORKER_DEDICATED,
	/* Of its own.  In: the client has gone, which may be before it is ready.  Out: it ends.
	 * Its place is free when the process has ended. */
	GPD_WORKER_ABANDONED,
	/* In: it says that it has lost its contexts.  Its sessions are over; it tells their clients
	 * and ends. */
	GPD_WORKER_LOST,
	/* In: it cannot start, was told to stop, or was killed.  It is asked for nothing more. */
	GPD_WORKER_ENDING,
	GPD_WORKER_STATES,
};

struct gpd_worker_process {
	struct gpd_worker_process *next;
	pid_t pid;
	struct gpd_channel channel;
	enum gpd_worker_process_state state; /* changed by gpd_worker_process_set_state() only */
	int64_t state_ms;                    /* since when */
	int64_t started_ms;
	int64_t deadline_ms;     /* then it is killed; INT64_MAX: never */
	Gpupool__Welcome *facts; /* once it was ready: what every session is told */
	struct gpd_client_address
		*client_address; /* of its own: where its client comes from, counted */
	bool spare;              /* started for the reserve, and taken by no session */
	int orphaned;            /* sessions whose clients are gone and whose work goes on */
	int orphaned_by_tenant[GPD_LEDGER_TENANTS]; /* of these tenants */
	char reason[GPD_WORKER_REASON_MAX]; /* why its sessions end with it; "": it says so itself
					     */
	struct gpd_heartbeat heartbeat;
	bool channel_closed;
	int poll_index; /* the supervisor's loop: its place among those polled, or -1 */
};

/* Whether it was started for one session. */
static inline bool
gpd_worker_process_is_dedicated(const struct gpd_worker_process *child)
{
	return child->client_address != NULL;
}

/* False, and nothing has changed: the worker is in this state already, or it cannot come after the
 * one that the worker is in: news of a worker may come when it has gone on. */
bool gpd_worker_process_set_state(struct gpd_worker_process *child,
				  enum gpd_worker_process_state state);

/* A copy of this program with the same options for the driver, RDMA and the log, and the ledger.
 * NULL: no process; errno says why. */
struct gpd_worker_process *gpd_worker_process_start(const char *driver, bool software,
						    const char *rdma, bool peer_memory,
						    int ledger_fd);

/* Of an exited one. */
void gpd_worker_process_destroy(struct gpd_worker_process *child);

/* How waitpid() says that it ended: "was killed by signal 11 (Segmentation fault)". */
void gpd_worker_process_explain_exit(int status, char *text, size_t size);

#endif /* GPD_CHILD_H */
