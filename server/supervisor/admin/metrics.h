/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP server for Prometheus: serves /metrics (GET and HEAD) and nothing else.
 *
 * libmicrohttpd runs it in a thread of its own, which creates a report with the source's lock held
 * (report.h) and accesses nothing else of the daemon. An idle connection is closed after 5 s.
 *
 * Ownership: gpd_metrics_open() to gpd_metrics_close(). The struct and the source must not move and
 * must outlive the server.
 * Threads: the supervisor's main thread calls all functions.
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

/* With GPD_METRICS_CONNECTIONS connections, each new one closes the oldest of the address with the
 * most connections, if it is at least 100 ms old. While all are newer, none is closed, up to
 * GPD_METRICS_CONNECTIONS_MAX connections. */
#define GPD_METRICS_CONNECTIONS 32
#define GPD_METRICS_CONNECTIONS_MAX 128

struct MHD_Connection;
struct MHD_Daemon;

/* An entry of the table of connections. */
struct gpd_metrics_slot {
	struct MHD_Connection *connection; /* NULL: free */
	/* IPv4 address in the first four bytes, or the first 64 bits of an IPv6 address; then
	 * zeros. */
	uint8_t address[16];
	int64_t since_ms; /* time of gp_now_ms() at which it was accepted */
	bool closing;     /* it has been shut down, and libmicrohttpd will remove it */
};

/* The server. Initialized to zeros: no server. */
struct gpd_metrics {
	struct MHD_Daemon *http;         /* NULL: no server */
	char host[GPD_METRICS_HOST_MAX]; /* address to listen on, as configured */
	/* Port as configured; 0: any free port, or no server. */
	uint16_t port;
	char url[GPD_METRICS_HOST_MAX + 32]; /* URL with the actual port */
	/* Table of connections; used by the server's thread only. */
	struct gpd_metrics_slot slots[GPD_METRICS_CONNECTIONS_MAX];
};

/* Starts the server; the previous content of *metrics is overwritten. May block on the lookup of
 * the host name. source: its lock is initialized (manage.h). host: a name or address of this
 * machine. port 0: any free port. insecure: permit an address that other machines can reach.
 * Signals must be blocked in the caller, as the server's thread inherits its mask. Returns 0; or a
 * negative number, not always an errno, with a text in error, and there is no server. */
GP_MUST_CHECK int gpd_metrics_open(struct gpd_metrics *metrics, struct gpd_report_source *source,
				   const char *host, uint16_t port, bool insecure, char *error,
				   size_t error_size);
/* Checks that the server could listen on the address, by opening it for a moment. An address in use
 * is not an error, as the daemon may be running. Returns 0; or a negative number with a text in
 * error. */
GP_MUST_CHECK int gpd_metrics_check(const char *host, uint16_t port, bool insecure, char *error,
				    size_t error_size);
/* Stops the server and joins its thread; does nothing if there is no server. The source's lock must
 * not be held, because the thread may wait for it. */
void gpd_metrics_close(struct gpd_metrics *metrics);

#endif /* GPD_METRICS_H */
