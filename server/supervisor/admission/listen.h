/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses on which the supervisor listens for clients.
 *
 * Ownership: gpd_listen_open() creates the listeners, gpd_listen_close() destroys them.
 * Threads: the supervisor's main thread.
 */
#ifndef GPD_LISTEN_H
#define GPD_LISTEN_H

#include "server/common/config/options.h"

#include <poll.h>
#include <stdint.h>

struct gp_listener;
struct gpd_admission;

struct gpd_listen {
	struct gp_listener *listeners[GPD_LISTEN_MAX];
	bool rdma[GPD_LISTEN_MAX]; /* the address was given as rdma:// */
	int count;
	int64_t accept_ms; /* accept no connections before this time */
	int64_t error_log_ms;
};

/* Opens all addresses of the options. Returns 0, or -1 after printing the reason to standard
 * error. */
int gpd_listen_open(struct gpd_listen *listen, const struct gpd_options *options);
void gpd_listen_close(struct gpd_listen *listen);
/* Checks that the daemon could listen on the address, by opening it for a moment. An address in use
 * is not an error, as the daemon may be running. Returns 0, or GP_E_INVALID or a negative errno
 * with a text in error. */
int gpd_listen_check(const struct gp_url *url, bool insecure, char *error, size_t error_size);
/* Formats an address as clients specify it. */
void gpd_listen_text(const struct gpd_listen *listen, int index, char text[GP_URL_TEXT_MAX]);
/* Logs the addresses, and prints them to standard output if print is set. */
void gpd_listen_announce(const struct gpd_listen *listen, bool print);

/* Returns whether only this machine can connect to it. */
bool gpd_listen_is_loopback(const struct gp_listener *listener);

/* Fills fds for poll(), one entry per address, or none while no connections are accepted. Returns
 * their number. */
int gpd_listen_poll(const struct gpd_listen *listen, int64_t now_ms, struct pollfd *fds);
/* After poll(): accepts new connections and passes them to the admission. */
void gpd_listen_accept(struct gpd_listen *listen, const struct pollfd *fds, int count,
		       struct gpd_admission *admission, int64_t now_ms);

#endif /* GPD_LISTEN_H */
