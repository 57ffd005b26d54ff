/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quotas: the supervisor's side of the ledger. Assigns ledger entries to sessions and sets their
 * limits.
 *
 * Tenants have entries from the start; a session gets one when it is admitted, with the limits of
 * its tenant, which the client's request can only lower.
 *
 * Threads: the supervisor's main thread.
 * Errors: texts are written to error, a buffer of GPD_CONFIG_ERROR_MAX bytes.
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
	int fd; /* of the ledger, inherited by workers */
	struct gpd_tenants tenants;
	struct gpd_queue queue; /* clients that wait for a slot or for memory */
	/* By ledger index: the session waited until its full memory limit was free, so the limit
	 * counts as in use for other waiting clients. */
	bool committed[GPD_LEDGER_SESSIONS];
	/* Called before a session's entry is freed; NULL: no callback. */
	void (*ended)(void *arg, const struct gpd_ledger_session *session);
	void *ended_arg;
};

/* Creates the ledger and loads the configuration. config: its path, or NULL. Returns 0, a negative
 * errno or GP_E_INVALID. */
int gpd_quota_init(struct gpd_quota *quota, const char *config, char *error);
void gpd_quota_fini(struct gpd_quota *quota);

/*
 * Assigns an entry to the client's session, and devices to *assignment. Returns NULL with *reason_p
 * and error set if that is not possible.
 */
struct gpd_ledger_session *gpd_quota_open(struct gpd_quota *quota, uint64_t id,
					  const Gpupool__Hello *hello, pid_t worker,
					  struct gpd_assignment *assignment,
					  Gpupool__Refused__Reason *reason_p, char *error);
/* Sets the session's limits according to the current configuration. */
void gpd_quota_apply(struct gpd_quota *quota, const Gpupool__Hello *hello,
		     const struct gpd_assignment *assignment, struct gpd_ledger_session *session);
/* Frees the session's entry, if it still has one. */
void gpd_quota_close(struct gpd_quota *quota, uint64_t id);
/* The same for all sessions of a worker that has exited. */
void gpd_quota_close_worker(struct gpd_quota *quota, pid_t worker);

/*
 * Fills copy with the device as the session sees it: memory and multiprocessors within its quota.
 * The caller frees copy->attributes. Returns 0 or -ENOMEM.
 */
int gpd_quota_describe_device(const struct gpd_quota *quota,
			      const struct gpd_ledger_session *session,
			      const Gpupool__Device *device, uint64_t memory_free,
			      Gpupool__Device *copy);

#endif /* GPD_QUOTA_H */
