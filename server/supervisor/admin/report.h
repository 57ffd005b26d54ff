/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Report of the daemon's state: devices, tenants, sessions and workers with their sums, for the
 * admin socket and the metrics.
 *
 * Ownership: a report is freed with gpd_report_free(); strings in it are borrowed from the source.
 * Threads: any thread that holds the source's lock. The supervisor's main thread holds the lock
 * except while it waits for events. While another thread creates a report, only the workers'
 * counters change: no ended session is lost or counted twice, and counters never decrease.
 */
#ifndef GPD_REPORT_H
#define GPD_REPORT_H

#include "protocol/admin_messages.h"
#include "server/common/config/options.h"
#include "server/supervisor/admin/usage.h"
#include "server/supervisor/admission/admission.h"
#include "server/supervisor/workers/worker_cgroup.h"

#include <pthread.h>

/* Facts that do not change while the daemon serves clients; filled in by supervisor.c. */
struct gpd_report_facts {
	/* URLs on which the daemon listens; the first address_count elements are valid. */
	char addresses[GPD_LISTEN_MAX][GP_URL_TEXT_MAX];
	int address_count;
	char user[33];                 /* name of the daemon's user */
	char metrics[GP_URL_TEXT_MAX]; /* URL of the metrics server; "": none */
	/* Why workers have no control groups of their own; "": they have. */
	char no_cgroups[GPD_CGROUP_REASON_MAX];
};

/* The objects that a report describes. The lock protects all of them; manage.h initializes it. */
struct gpd_report_source {
	pthread_mutex_t lock;
	const struct gpd_admission *admission;
	int64_t started_s;             /* start of the daemon in seconds since 1970-01-01 UTC */
	const struct gpd_usage *usage; /* NULL: no usage records */
	struct gpd_report_facts facts; /* without URLs until the daemon serves clients */
};

/* Creates a report. The caller holds the source's lock until gpd_report_free(), because strings in
 * the report belong to the source. session: ID of the only session to list, none if it is unknown;
 * 0: all sessions, sorted by ID. Sums include all sessions in both cases. Returns NULL if out of
 * memory. */
Gpupool__AdminReport *gpd_report_create(const struct gpd_report_source *source, uint64_t session);
/* Frees a report of gpd_report_create(). Accepts NULL. */
void gpd_report_free(Gpupool__AdminReport *report);

#endif /* GPD_REPORT_H */
