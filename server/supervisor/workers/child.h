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

struct gpd_source;

#define GPD_CHILD_REASON_MAX 128
/* Each has a session, but for a few that start, are in reserve or about to end. */
#define GPD_CHILDREN_MAX (GPD_LEDGER_SESSIONS + 64)

/*
 * Whatever the state, a worker may lose its contexts (LOST), end by itself or be killed (ENDING).
 * It is gone when its process has been waited for.
 */
enum gpd_child_state {
	/* The first one.  In: the process was started.  Out: it says that it is ready, or why it
	 * cannot be.  It has
	 * no session yet and can be asked for nothing but its end. */
	GPD_CHILD_STARTING,
	/* Shared.  In: it is ready, or the work of gone clients has ended.  Out: such work goes on,
	 * or it is told to retire.  It may get new sessions. */
	GPD_CHILD_SERVING,
	/* Shared.  In: it says that work of a gone client goes on.  Out: that ends, or takes too
	 * long.  New sessions wait, or get another worker; those that it has go on. */
	GPD_CHILD_BUSY,
	/* Shared.  In: such work goes on for too long.  Out: it ends, or the worker is told to
	 * retire, or it is the oldest of too many and killed.  New sessions get another worker. */
	GPD_CHILD_STUCK,
	/* In reserve.  In: it is ready.  Out: a session of class `process` takes it, or it is told
	 * to retire.  It has no session. */
	GPD_CHILD_SPARE,
	/* Shared, or in reserve.  In: it is told to retire.  Out: it ends with its last session. It
	 * gets no new ones. */
	GPD_CHILD_RETIRED,
	/* Of its own.  In: it is ready, or was so in reserve, and is asked to open its session and
	 * to retire.  Out: the client is gone.  It ends with its session. */
	GPD_CHILD_OWN,
	/* Of its own.  In: the client has gone, which may be before it is ready.  Out: it ends.
	 * Its place is free when the process has ended. */
	GPD_CHILD_ABANDONED,
	/* In: it says that it has lost its contexts.  Its sessions are over; it tells their clients
	 * and ends. */
	GPD_CHILD_LOST,
	/* In: it cannot start, was told to stop, or was killed.  It is asked for nothing more. */
	GPD_CHILD_ENDING,
	GPD_CHILD_STATES,
};

struct gpd_child {
	struct gpd_child *next;
	pid_t pid;
	struct gpd_channel channel;
	enum gpd_child_state state; /* changed by gpd_child_set_state() only */
	int64_t state_ms;           /* since when */
	int64_t started_ms;
	int64_t deadline_ms;       /* then it is killed; INT64_MAX: never */
	Gpupool__Welcome *facts;   /* once it was ready: what every session is told */
	struct gpd_source *source; /* of its own: where its client comes from, counted */
	bool spare;                /* started for the reserve, and taken by no session */
	int orphans;               /* sessions whose clients are gone and whose work goes on */
	int orphans_of[GPD_LEDGER_TENANTS]; /* of these tenants */
	char reason[GPD_CHILD_REASON_MAX]; /* why its sessions end with it; "": it says so itself */
	struct gpd_heartbeat heartbeat;
	bool channel_closed;
	int polled; /* the supervisor's loop: its place among those polled, or -1 */
};

/* Whether it was started for one session. */
static inline bool
gpd_child_is_own(const struct gpd_child *child)
{
	return child->source != NULL;
}

/* False, and nothing has changed: the worker is in this state already, or it cannot come after the
 * one that the worker is in: news of a worker may come when it has gone on. */
bool gpd_child_set_state(struct gpd_child *child, enum gpd_child_state state);

/* A copy of this program with the same options for the driver, RDMA and the log, and the ledger.
 * NULL: no process; errno says why. */
struct gpd_child *gpd_child_start(const char *driver, bool software, const char *rdma,
				  bool peer_memory, int ledger_fd);

/* Of an exited one. */
void gpd_child_destroy(struct gpd_child *child);

/* How waitpid() says that it ended: "was killed by signal 11 (Segmentation fault)". */
void gpd_child_explain(int status, char *text, size_t size);

#endif /* GPD_CHILD_H */
