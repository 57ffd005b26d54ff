/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshot of the daemon for reports: devices, tenants, sessions and workers with their sums, for
 * the admin socket and the metrics.
 *
 * The supervisor's main thread holds the source's lock except while it waits. While another thread
 * creates a report, only the workers' counters change: no ended session is lost or counted twice,
 * and counters never decrease.
 */
#ifndef GPD_REPORT_H
#define GPD_REPORT_H

#include "protocol/admin_messages.h"
#include "server/common/config/options.h"
#include "server/supervisor/admin/usage.h"
#include "server/supervisor/admission/admission.h"

#include <pthread.h>

/* Facts that do not change while the daemon runs. */
struct gpd_report_facts {
	char addresses[GPD_LISTEN_MAX][GP_URL_TEXT_MAX];
	int address_count;
	char user[33];
	char metrics[GP_URL_TEXT_MAX]; /* URL; "": none */
};

struct gpd_report_source {
	pthread_mutex_t lock;
	const struct gpd_admission *admission;
	int64_t started_s;
	const struct gpd_usage *usage; /* NULL: no usage records */
	struct gpd_report_facts facts; /* all zero until the daemon serves clients */
};

/* Creates a report. The caller holds the source's lock until gpd_report_free(), as names in the
 * report belong to the source. session: include only this session; 0: all. Returns NULL without
 * memory. */
Gpupool__AdminReport *gpd_report_create(const struct gpd_report_source *source, uint64_t session);
void gpd_report_free(Gpupool__AdminReport *report);

#endif /* GPD_REPORT_H */
