/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker process, as the supervisor sees it.  Main thread only.
 */
#ifndef GPD_CHILD_H
#define GPD_CHILD_H

#include "protocol/control.h"
#include "server/common/ledger/channel.h"
#include "server/common/ledger/ledger.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct gpd_source;

#define GPD_CHILD_REASON_MAX 128

enum gpd_child_state {
	GPD_CHILD_STARTING,
	GPD_CHILD_READY,
	GPD_CHILD_ENDING, /* lost its context, was told to stop, or closed its channel */
};

struct gpd_child {
	struct gpd_child *next;
	pid_t pid;
	struct gpd_channel channel;
	enum gpd_child_state state;
	int64_t started_ms;
	int64_t deadline_ms;          /* then it is killed; INT64_MAX: never */
	Gpupool__Welcome *facts;      /* once READY: what every session is told */
	bool alone;                   /* serves one session, and ends with it */
	bool abandoned;               /* the same, but the client has gone */
	struct gpd_source *source;    /* that it was started for, held; NULL: it is not alone */
	int busy;                     /* sessions whose clients are gone and whose work goes on */
	int left[GPD_LEDGER_TENANTS]; /* of these tenants */
	int64_t busy_ms;              /* since when there is one */
	int64_t left_ms;              /* since when others serve because of that; 0: not so */
	bool stale;                   /* its device heap is not as it was */
	bool may_return;              /* nothing else is wrong with it */
	bool returned;                /* it serves again, unless it has ended by itself meanwhile */
	char reason[GPD_CHILD_REASON_MAX]; /* why its sessions end with it; "": it says so itself */
	bool channel_closed;
	int polled; /* the supervisor's loop: its place among those polled, or -1 */
};

/* A copy of this program with the same options for the driver, RDMA and the log, and the ledger.
 * NULL: no process; errno says why. */
struct gpd_child *gpd_child_start(const char *driver, const char *rdma, bool peer_memory,
				  int ledger_fd);

/* Of an exited one. */
void gpd_child_destroy(struct gpd_child *child);

/* How waitpid() says that it ended: "was killed by signal 11 (Segmentation fault)". */
void gpd_child_explain(int status, char *text, size_t size);

#endif /* GPD_CHILD_H */
