/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers Prometheus over HTTP: GET /metrics, and nothing else.
 *
 * libmicrohttpd has a thread of its own for that, which makes a report under the source's lock and
 * touches nothing else of the daemon.  Few connections at a time, each for a short while; of too
 * many the address that has most of them loses its oldest one.
 */
#ifndef GPD_METRICS_H
#define GPD_METRICS_H

#include "base/status.h"
#include "server/supervisor/admin/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GPD_METRICS_HOST_MAX 256

/* Connections at a time; while they are new, more for a moment. */
#define GPD_METRICS_CONNECTIONS 32
#define GPD_METRICS_CONNECTIONS_MAX 128

struct MHD_Connection;
struct MHD_Daemon;

/* A connection. */
struct gpd_metrics_slot {
	struct MHD_Connection *connection; /* NULL: free */
	uint8_t address[16];               /* of IPv6 the network alone */
	int64_t since_ms;
	bool closing; /* it is shut down */
};

struct gpd_metrics {
	struct MHD_Daemon *http;         /* NULL: none */
	char host[GPD_METRICS_HOST_MAX]; /* as it was asked for, as the port */
	uint16_t port;                   /* 0, too, if there is none */
	char url[GPD_METRICS_HOST_MAX + 32];
	struct gpd_metrics_slot slots[GPD_METRICS_CONNECTIONS_MAX]; /* the thread's */
};

/* port 0: any free one.  Signals must be blocked.  An address that other machines can reach must be
 * allowed by insecure. 0, or a negative errno: error says why. */
GP_MUST_CHECK int gpd_metrics_open(struct gpd_metrics *metrics, struct gpd_report_source *source,
				   const char *host, uint16_t port, bool insecure, char *error,
				   size_t error_size);
/* Whether the address could be had, which is given back at once; another process, as a daemon that
 * runs, may have it now.  As above. */
GP_MUST_CHECK int gpd_metrics_check(const char *host, uint16_t port, bool insecure, char *error,
				    size_t error_size);
/* Not under the source's lock. */
void gpd_metrics_close(struct gpd_metrics *metrics);

#endif /* GPD_METRICS_H */
