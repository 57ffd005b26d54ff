/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queries of a pool's daemons for their state and the user's account, without opening a session: a
 * query occupies no session slot, and a full daemon replies as well.
 *
 * Ownership: the caller owns the struct, and frees its messages with cli_probe_free().
 * Threads: one.
 */
#ifndef CLI_PROBE_H
#define CLI_PROBE_H

#include "protocol/control.h"
#include "transport/url.h"

#include <stdint.h>

#define CLI_DAEMONS_MAX 16
#define CLI_URLS_MAX 64

struct cli_daemon {
	struct gp_url url; /* of its first occurrence in the list */
	char text[GP_URL_TEXT_MAX];
	Gpupool__ControlMessage *message;
	const Gpupool__Account *account; /* in message; NULL: no reply */
	uint64_t round_trip_ns;
	char error[768]; /* reason if there is no reply */
};

struct cli_probe {
	struct gp_url urls[CLI_URLS_MAX]; /* as listed in REMOTE_GPU */
	int url_count;
	struct cli_daemon daemons[CLI_DAEMONS_MAX];
	int daemon_count;
	uint64_t when_ns;
};

/* Parses the list in this process's environment without connecting. Returns 0, or -1 with a text in
 * error. */
int cli_probe_init(struct cli_probe *probe, char *error, size_t error_size);
/* Returns the index of the daemon that a URL of the list refers to, or -1. */
int cli_probe_find(const struct cli_probe *probe, const struct gp_url *url);
/* Queries one daemon. Returns 0, or -1 with a text in daemon->error. */
int cli_probe_query(struct cli_daemon *daemon);
void cli_probe_free(struct cli_probe *probe);

/* Copies a daemon's text to `to` as printable ASCII, and returns it. */
const char *cli_probe_text(const char *text, char *to, size_t size);
/* Formats the UUID as "GPU-..." into `to`, 48 bytes, and returns it. */
const char *cli_probe_uuid(const Gpupool__AccountDevice *device, char *to);

#endif /* CLI_PROBE_H */
