/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses on which the supervisor listens.  Main thread only.
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
	bool rdma[GPD_LISTEN_MAX]; /* the address is one for RDMA, too */
	int count;
	int64_t accept_ms; /* not before this */
	int64_t error_log_ms;
};

/* 0, or -1: standard error says why. */
int gpd_listen_open(struct gpd_listen *listen, const struct gpd_options *options);
void gpd_listen_close(struct gpd_listen *listen);
/* Whether one address could be had, which is given back at once; another process, as a daemon that
 * runs, may have it now.  0, or error says why not. */
int gpd_listen_check(const struct gp_url *url, bool insecure, char *error, size_t error_size);
/* An address, as clients name it. */
void gpd_listen_text(const struct gpd_listen *listen, int index, char text[GP_URL_TEXT_MAX]);
/* Says where: in the log and, if asked for, on standard output. */
void gpd_listen_announce(const struct gpd_listen *listen, bool print);

/* Whether nobody on another machine can reach it. */
bool gpd_listen_is_loopback(const struct gp_listener *listener);

/* What to poll for, one for each address, or none while nothing is taken; how many. */
int gpd_listen_poll(const struct gpd_listen *listen, int64_t now_ms, struct pollfd *fds);
/* After the poll: new connections go to the admission. */
void gpd_listen_accept(struct gpd_listen *listen, const struct pollfd *fds, int count,
		       struct gpd_admission *admission, int64_t now_ms);

#endif /* GPD_LISTEN_H */
