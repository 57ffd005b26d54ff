/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All there is to tell of devices, tenants and sessions, summed up in one place: for the admin
 * socket and for the metrics.
 *
 * The supervisor's main thread holds the lock except while it waits, so nothing changes under
 * another thread that makes a report but what the workers count: sums over sessions that end
 * meanwhile are neither lost nor counted twice, and counters never fall.
 */
#ifndef GPD_REPORT_H
#define GPD_REPORT_H

#include "protocol/admin_messages.h"
#include "server/common/config/options.h"
#include "server/supervisor/admin/usage.h"
#include "server/supervisor/admission/admission.h"

#include <pthread.h>

/* What does not change while the daemon serves. */
struct gpd_report_facts {
	char addresses[GPD_LISTEN_MAX][GP_URL_TEXT_MAX];
	int address_count;
	char user[33];
	char metrics[GP_URL_TEXT_MAX]; /* "": none */
};

struct gpd_report_source {
	pthread_mutex_t lock;
	const struct gpd_admission *admission;
	int64_t started_s;
	const struct gpd_usage *usage; /* NULL: there are no records */
	struct gpd_report_facts facts; /* all zero until clients are served */
};

/* Under the lock, and good until it is given away: the names in it are the source's.  session: only
 * this one among the sessions; 0: all.  NULL: no memory. */
Gpupool__AdminReport *gpd_report_create(const struct gpd_report_source *source, uint64_t session);
void gpd_report_free(Gpupool__AdminReport *report);

#endif /* GPD_REPORT_H */
