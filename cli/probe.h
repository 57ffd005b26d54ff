/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries of a pool's daemons for their state and the user's account (tenant, quotas), without
 * opening a session: a query occupies no session slot, and a full daemon replies as well.
 *
 * Ownership: the caller provides struct cli_probe, and frees its messages with cli_probe_free().
 * Threads: called by the main thread only.
 */
#ifndef CLI_PROBE_H
#define CLI_PROBE_H

#include "protocol/control.h"
#include "transport/url.h"

#include <stdint.h>

/* Maximum numbers of daemons, and of addresses in REMOTE_GPU. */
#define CLI_DAEMONS_MAX 16
#define CLI_URLS_MAX 64

/* A daemon and its reply. */
struct cli_daemon {
	struct gp_url url; /* address, as first listed in REMOTE_GPU, without a device */
	/* `url` as text, for messages. */
	char text[GP_URL_TEXT_MAX];
	/* The reply, owned; NULL: none yet, or the query failed. */
	Gpupool__ControlMessage *message;
	const Gpupool__Account *account; /* part of `message`; NULL: no reply */
	char error[768];                 /* the reason why the last query failed; valid if it did */
};

/* The daemons of a pool. */
struct cli_probe {
	struct gp_url urls[CLI_URLS_MAX]; /* addresses of devices, as listed in REMOTE_GPU */
	int url_count;
	struct cli_daemon daemons[CLI_DAEMONS_MAX];
	int daemon_count;
	uint64_t when_ns; /* time of the queries (gp_now_ns()), set by devices.c; 0: none yet */
};

/* Parses the list in REMOTE_GPU of this process's environment, without connecting, and initializes
 * *probe. Returns 0; or -1 with a text in `error` if no list is set, it is invalid, names a device
 * twice, or has more than CLI_URLS_MAX addresses or CLI_DAEMONS_MAX daemons; nothing has to be
 * freed then. */
int cli_probe_init(struct cli_probe *probe, char *error, size_t error_size);
/* Returns the index in `daemons` of the daemon with the URL's scheme, host and port, or -1. */
int cli_probe_find(const struct cli_probe *probe, const struct gp_url *url);
/* Queries one daemon of an initialized struct cli_probe. Blocks as gpc_link_probe()
 * (client/connect/connect.h): for the connection and the reply, each at most its timeout. An
 * earlier reply is freed. Returns 0 with `account` set, or -1 with a text in daemon->error. */
int cli_probe_query(struct cli_daemon *daemon);
/* Frees the replies. */
void cli_probe_free(struct cli_probe *probe);

/* Copies a daemon's text (NULL: empty) to `to` as printable ASCII, truncated to `size`. Returns
 * `to`. */
const char *cli_probe_text(const char *text, char *to, size_t size);

#endif /* CLI_PROBE_H */
