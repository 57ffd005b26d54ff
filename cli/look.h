/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemons of a pool say of themselves and of the user's tenant, without a session:
 * nobody's place is taken, and a full daemon answers, too.  Owned by whoever declares it; one
 * thread.
 */
#ifndef CLI_LOOK_H
#define CLI_LOOK_H

#include "protocol/control.h"
#include "transport/url.h"

#include <stdint.h>

#define CLI_DAEMONS_MAX 16
#define CLI_URLS_MAX 64

struct cli_daemon {
	struct gp_url url; /* of the first that the list names */
	char text[GP_URL_TEXT_MAX];
	Gpupool__ControlMessage *message;
	const Gpupool__Account *account; /* in it; NULL: it did not answer */
	uint64_t round_trip_ns;
	char error[768]; /* why not */
};

struct cli_probe {
	struct gp_url urls[CLI_URLS_MAX]; /* as REMOTE_GPU lists them */
	int url_count;
	struct cli_daemon daemons[CLI_DAEMONS_MAX];
	int daemon_count;
	uint64_t when_ns;
};

/* The list of this process's environment, without asking anybody.  0, or -1: error says why. */
int cli_probe_init(struct cli_probe *probe, char *error, size_t error_size);
/* Which of its daemons a URL of the list is of, or -1. */
int cli_probe_find(const struct cli_probe *probe, const struct gp_url *url);
/* Asks one of the daemons.  0, or -1: its error says why. */
int cli_probe_query(struct cli_daemon *daemon);
void cli_probe_free(struct cli_probe *probe);

/* The daemon's text as printable ASCII, in memory of `size`, which is returned. */
const char *cli_probe_text(const char *text, char *to, size_t size);
/* "GPU-..."; to: 48 bytes. */
const char *cli_probe_uuid(const Gpupool__AccountDevice *device, char *to);

#endif /* CLI_LOOK_H */
