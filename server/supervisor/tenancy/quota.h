/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quotas: the supervisor's side of the ledger (ledger.h). Assigns ledger entries to sessions and
 * sets their limits.
 *
 * Tenants have entries from the start; a session gets one when it is admitted, with the limits of
 * its tenant, which the client's request can only lower.
 *
 * Ownership: gpd_quota_init() to gpd_quota_fini(). Returned ledger entries are borrowed, and valid
 * until the session is closed.
 * Threads: the supervisor's main thread. Only gpd_quota_init() blocks, on the configuration file.
 * Errors: texts are written to error, a buffer of GPD_CONFIG_ERROR_MAX bytes.
 */
#ifndef GPD_QUOTA_H
#define GPD_QUOTA_H

#include "protocol/control.h"
#include "server/common/ledger/ledger.h"
#include "server/supervisor/tenancy/queue.h"
#include "server/supervisor/tenancy/tenants.h"

#include <sys/types.h>

/* State of all quotas. Initialized to zeros before gpd_quota_init(). */
struct gpd_quota {
	struct gpd_ledger *ledger; /* owned; NULL: not initialized */
	/* Descriptor of the ledger, owned, valid with it; inherited by workers. */
	int fd;
	struct gpd_tenants tenants;
	/* Clients that wait for a slot or for memory; entries are added by the admission. */
	struct gpd_queue queue;
	/* Indexed as the ledger's sessions. true: the session waited until its full memory limit
	 * was free, so the whole limit counts as in use for other waiting clients. */
	bool committed[GPD_LEDGER_SESSIONS];
	/* Called before a session's entry is freed, while the entry is still valid; NULL: no
	 * callback. Set by manage.c. */
	void (*ended)(void *arg, const struct gpd_ledger_session *session);
	void *ended_arg; /* first argument of ended() */
};

/* Loads the configuration, creates the ledger with the configured tenants, and sets the ledger for
 * the log budgets of this process (log_budget.h). config: path of the configuration; NULL: no file.
 * Returns 0; or an error of gpd_config_load() (config.h) or of creating the ledger, a negative
 * errno, with a text in error, and nothing has to be freed. */
int gpd_quota_init(struct gpd_quota *quota, const char *config, char *error);
/* Frees the ledger and the configuration. Does nothing if the struct is zero. */
void gpd_quota_fini(struct gpd_quota *quota);

/*
 * Assigns an entry to the client's session, and devices to *assignment, whose tenant
 * gpd_tenants_admit() has set. For a client with a number of the queue (Hello.wait), the memory
 * that it requests must be free as well, and its entry in the queue is removed. id: of the session,
 * unused until now and not 0. worker: process ID of its worker; 0: not known yet, the caller sets
 * it in the entry later. Undone by gpd_quota_close().
 *
 * Returns the entry; or NULL with *reason_p and error set, and no entry or device is assigned.
 * *reason_p is DEVICE if a device does not exist, is not allowed or is selected twice, or the
 * tenant may use none; FULL if a slot, a part of a device or memory is not free.
 */
struct gpd_ledger_session *gpd_quota_open(struct gpd_quota *quota, uint64_t id,
					  const Gpupool__Hello *hello, pid_t worker,
					  struct gpd_assignment *assignment,
					  Gpupool__Refused__Reason *reason_p, char *error);
/* Sets the session's limits and priority according to the current configuration and the client's
 * request in hello. Its worker notices the limits of multiprocessors after
 * gpd_admission_quotas_changed() (admission.h). */
void gpd_quota_apply(struct gpd_quota *quota, const Gpupool__Hello *hello,
		     const struct gpd_assignment *assignment, struct gpd_ledger_session *session);
/* Ends the session with this ID in the ledger: releases its device parts, calls ended() and frees
 * its entry. Does nothing if the ID is unknown. */
void gpd_quota_close(struct gpd_quota *quota, uint64_t id);
/* Ends all sessions of the worker with this process ID, which has exited, as gpd_quota_close()
 * does. */
void gpd_quota_close_worker(struct gpd_quota *quota, pid_t worker);

/*
 * Fills copy with the device as the session sees it: memory and multiprocessors within its quota.
 * device: from the worker's part of Welcome, with an ordinal less than GPD_LEDGER_DEVICES, which is
 * not checked here. memory_free: free bytes of the device, as the worker has reported. copy shares
 * strings with device, which must outlive it; the caller frees copy->attributes with free().
 * Returns 0; or -ENOMEM, and nothing has to be freed.
 */
int gpd_quota_describe_device(const struct gpd_quota *quota,
			      const struct gpd_ledger_session *session,
			      const Gpupool__Device *device, uint64_t memory_free,
			      Gpupool__Device *copy);

#endif /* GPD_QUOTA_H */
