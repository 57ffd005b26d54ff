/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers Prometheus over HTTP: GET /metrics, and nothing else.
 *
 * libmicrohttpd has a thread of its own for that, which makes a report under the source's lock and
 * touches nothing else of the daemon.  Few connections at a time, each for a short while.
 */
#ifndef GPD_METRICS_H
#define GPD_METRICS_H

#include "base/status.h"
#include "server/supervisor/admin/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPD_METRICS_HOST_MAX 256

struct MHD_Daemon;

struct gpd_metrics {
	struct MHD_Daemon *http;         /* NULL: none */
	char host[GPD_METRICS_HOST_MAX]; /* as it was asked for, as the port */
	uint16_t port;                   /* 0, too, if there is none */
	char url[GPD_METRICS_HOST_MAX + 32];
};

/* port 0: any free one.  Signals must be blocked.  An address that other machines can reach must be
 * allowed by insecure. 0, or a negative errno: error says why. */
GP_MUST_CHECK int gpd_metrics_open(struct gpd_metrics *metrics, struct gpd_report_source *source,
				   const char *host, uint16_t port, bool insecure, char *error,
				   size_t error_size);
/* Not under the source's lock. */
void gpd_metrics_close(struct gpd_metrics *metrics);

#endif /* GPD_METRICS_H */
