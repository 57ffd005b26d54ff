/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP server for Prometheus: serves GET /metrics and nothing else.
 *
 * libmicrohttpd runs it in a thread of its own, which creates a report with the source's lock held
 * (report.h) and accesses nothing else of the daemon. The number and duration of connections are
 * limited; above the limit the address with the most connections loses its oldest one.
 *
 * Ownership: gpd_metrics_open() to gpd_metrics_close(). The struct and the source must not move and
 * must outlive the server.
 * Threads: the supervisor's main thread for the functions below.
 */
#ifndef GPD_METRICS_H
#define GPD_METRICS_H

#include "base/status.h"
#include "server/supervisor/admin/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Size of a host name in bytes, including the terminating zero. */
#define GPD_METRICS_HOST_MAX 256

/* Limit of connections, and the temporary limit while all of them are new. */
#define GPD_METRICS_CONNECTIONS 32
#define GPD_METRICS_CONNECTIONS_MAX 128

struct MHD_Connection;
struct MHD_Daemon;

/* An entry of the table of connections. */
struct gpd_metrics_slot {
	struct MHD_Connection *connection; /* NULL: free */
	/* IPv4 address in the first four bytes, or the network part of an IPv6 address. */
	uint8_t address[16];
	int64_t since_ms; /* time of gp_now_ms() at which it was accepted */
	bool closing;     /* it has been shut down, and libmicrohttpd will remove it */
};

/* The server. Initialized to zeros: no server. */
struct gpd_metrics {
	struct MHD_Daemon *http;         /* NULL: no server */
	char host[GPD_METRICS_HOST_MAX]; /* address as requested */
	/* port as requested; 0: any free port */
	uint16_t port;
	char url[GPD_METRICS_HOST_MAX + 32]; /* URL with the actual port */
	/* Table of connections; used by the server's thread only. */
	struct gpd_metrics_slot slots[GPD_METRICS_CONNECTIONS_MAX];
};

/* Starts the server. port 0: any free port. insecure: permit an address that other machines can
 * reach. Signals must be blocked in the caller, as the server's thread inherits its mask. Returns
 * 0; or a negative errno with a text in error, and there is no server. */
GP_MUST_CHECK int gpd_metrics_open(struct gpd_metrics *metrics, struct gpd_report_source *source,
				   const char *host, uint16_t port, bool insecure, char *error,
				   size_t error_size);
/* Checks that the server could listen on the address, by opening it for a moment. An address in use
 * is not an error, as the daemon may be running. Returns 0; or a negative errno with a text in
 * error. */
GP_MUST_CHECK int gpd_metrics_check(const char *host, uint16_t port, bool insecure, char *error,
				    size_t error_size);
/* Stops the server and joins its thread; does nothing if there is no server. The source's lock must
 * not be held, because the thread may wait for it. */
void gpd_metrics_close(struct gpd_metrics *metrics);

#endif /* GPD_METRICS_H */
