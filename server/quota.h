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
#include "server/ledger.h"

#include <sys/types.h>

struct gpd_quota {
	struct gpd_ledger *ledger;
	int fd; /* of the ledger, for workers */
};

/* 0 or a negative errno. */
int gpd_quota_init(struct gpd_quota *quota);
void gpd_quota_fini(struct gpd_quota *quota);

/* A line for the client's session on these devices; NULL: error says why there is none. */
struct gpd_ledger_session *gpd_quota_open(struct gpd_quota *quota, uint64_t id,
					  const Gpupool__Hello *hello,
					  const Gpupool__Welcome *facts, pid_t worker,
					  const char **error);
/* Of a session that may have ended already. */
void gpd_quota_close(struct gpd_quota *quota, uint64_t id);

/*
 * What the session is told of a device: its quota for the device's size, its multiprocessors for
 * the device's.  copy gets it, with attributes of its own, which are freed by gpd_quota_forget().
 */
int gpd_quota_show(const struct gpd_quota *quota, const struct gpd_ledger_session *session,
		   const Gpupool__Device *device, uint64_t memory_free, Gpupool__Device *copy);
void gpd_quota_forget(Gpupool__Device *copy);

#endif /* GPD_QUOTA_H */
