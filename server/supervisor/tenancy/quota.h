/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may have how much: the supervisor's side of the ledger.
 *
 * Tenants have lines in the ledger from the beginning; a session gets a line when it is admitted,
 * with what the client asked for (which only narrows what its tenant may have).  Main thread only.
 */
#ifndef GPD_QUOTA_H
#define GPD_QUOTA_H

#include "protocol/control.h"
#include "server/common/ledger/ledger.h"
#include "server/supervisor/tenancy/queue.h"
#include "server/supervisor/tenancy/tenants.h"

#include <sys/types.h>

struct gpd_quota {
	struct gpd_ledger *ledger;
	int fd; /* of the ledger, for workers */
	struct gpd_tenants tenants;
	struct gpd_queue queue; /* of those who wait for a place or for memory */
	/* By line of the ledger: the session waited until its memory limit was free, so nobody
	 * who waits after it is promised the same memory. */
	bool committed[GPD_LEDGER_SESSIONS];
	/* Before a session's line is given up; NULL: nobody wants to know. */
	void (*ended)(void *arg, const struct gpd_ledger_session *session);
	void *ended_arg;
};

/* config: the path of the configuration, or NULL.  0 or a negative errno or GP_E_INVALID; error, of
 * GPD_CONFIG_ERROR_MAX, says why. */
int gpd_quota_init(struct gpd_quota *quota, const char *config, char *error);
void gpd_quota_fini(struct gpd_quota *quota);

/*
 * A line for the client's session, whose devices the grant gets.  NULL: there is none, for the
 * given reason, which error, of GPD_CONFIG_ERROR_MAX, puts into words.
 */
struct gpd_ledger_session *gpd_quota_open(struct gpd_quota *quota, uint64_t id,
					  const Gpupool__Hello *hello, pid_t worker,
					  struct gpd_assignment *assignment,
					  Gpupool__Refused__Reason *reason_p, char *error);
/* The configuration has changed: what it says of this session. */
void gpd_quota_apply(struct gpd_quota *quota, const Gpupool__Hello *hello,
		     const struct gpd_assignment *assignment, struct gpd_ledger_session *session);
/* Of a session that may have ended already. */
void gpd_quota_close(struct gpd_quota *quota, uint64_t id);
/* The same for all sessions of a worker that is gone. */
void gpd_quota_close_worker(struct gpd_quota *quota, pid_t worker);

/*
 * What the session is told of a device: its quota for the device's size, its multiprocessors for
 * the device's.  copy gets it, with attributes of its own to be freed.
 */
int gpd_quota_describe_device(const struct gpd_quota *quota,
			      const struct gpd_ledger_session *session,
			      const Gpupool__Device *device, uint64_t memory_free,
			      Gpupool__Device *copy);

#endif /* GPD_QUOTA_H */
