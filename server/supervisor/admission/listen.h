/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses on which the supervisor listens for clients.
 *
 * Ownership: gpd_listen_open() creates the listeners, gpd_listen_close() destroys them.
 * Threads: the supervisor's main thread. Only gpd_listen_open() and gpd_listen_check() may block,
 * on the lookup of host names.
 * Units: now_ms is the time of gp_now_ms() in milliseconds.
 */
#ifndef GPD_LISTEN_H
#define GPD_LISTEN_H

#include "server/common/config/options.h"

#include <poll.h>
#include <stdint.h>

struct gp_listener;
struct gpd_admission;

/* The listeners; the first count elements of the arrays are valid. */
struct gpd_listen {
	struct gp_listener *listeners[GPD_LISTEN_MAX];
	/* The address was given as rdma://: its listener accepts control connections over TLS or
	 * TCP, and lanes over RDMA connect to the workers. */
	bool rdma[GPD_LISTEN_MAX];
	int count;
	/* Time until which no connections are accepted, after a lack of resources. */
	int64_t accept_ms;
	int64_t error_log_ms; /* time until which errors of accepting are not logged again */
};

/* Opens all addresses of the options. Called after gpd_tls_set() (tls_files.h) and
 * gp_listen_set_owner() (transport/transport.h). Logs a warning for an address that accepts any
 * client. Returns 0; or -1, after printing the reason to standard error and closing all of them. */
int gpd_listen_open(struct gpd_listen *listen, const struct gpd_options *options);
/* Closes all addresses. Accepts a struct without any. */
void gpd_listen_close(struct gpd_listen *listen);
/* Checks that the daemon could listen on the address, by opening it for a moment. For network
 * addresses only; gpd_admin_check() (admin/admin_socket.h) checks a Unix socket. Called after
 * gpd_tls_set() (tls_files.h). An address in use is not an error, as the daemon may be running.
 * insecure: allow an address without authentication. Logs the same warning as gpd_listen_open().
 * Returns 0; or GP_E_INVALID or a negative errno with a text in error. */
int gpd_listen_check(const struct gp_url *url, bool insecure, char *error, size_t error_size);
/* Formats the address with this index, less than listen->count, as clients specify it. */
void gpd_listen_text(const struct gpd_listen *listen, int index, char text[GP_URL_TEXT_MAX]);
/* Logs the addresses, and also prints them to standard output if print is set. */
void gpd_listen_announce(const struct gpd_listen *listen, bool print);

/* Returns whether only programs of this machine can connect to the listener: its address is a
 * loopback address or a Unix socket. */
bool gpd_listen_is_loopback(const struct gp_listener *listener);

/* Fills fds for poll(), one entry per address and at most GPD_LISTEN_MAX. Returns their number,
 * which is 0 while no connections are accepted. */
int gpd_listen_poll(const struct gpd_listen *listen, int64_t now_ms, struct pollfd *fds);
/* Called after poll(): accepts new connections and passes them to the admission. After a lack of
 * resources no connections are accepted for 50 ms. fds and count: from gpd_listen_poll(). */
void gpd_listen_accept(struct gpd_listen *listen, const struct pollfd *fds, int count,
		       struct gpd_admission *admission, int64_t now_ms);

#endif /* GPD_LISTEN_H */
