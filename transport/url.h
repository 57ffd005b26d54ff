/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address of a daemon: [scheme://]host[:port][/device], as in REMOTE_GPU and --listen, or
 * unix:///path.
 *
 * Ownership: plain values.
 * Threads: any.
 * Errors: parsing functions return 0 or GP_E_INVALID with a text that names the error; nothing but
 * the text is written then.
 */
#ifndef GP_URL_H
#define GP_URL_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define GP_URL_DEFAULT_SCHEME "tcp"
/* Client only, in addition to the transports' schemes: rdma, or tcp if the daemon has no RDMA. */
#define GP_URL_RDMA_OR_TCP "rdma+tcp"
#define GP_URL_DEFAULT_PORT 4833
#define GP_URL_ANY_DEVICE (-1)
/* Path of a local socket, including its NUL. */
#define GP_URL_PATH_MAX 108
/* Maximum length of a formatted URL, including its NUL. */
#define GP_URL_TEXT_MAX 320

struct gp_url {
	char scheme[16];
	char host[256]; /* name or numeric address without brackets; unix: the path */
	uint16_t port;  /* 0: any free port, for listening; always 0 for unix */
	int device;     /* ordinal on that daemon, or GP_URL_ANY_DEVICE for all */
};

GP_MUST_CHECK int gp_url_parse(const char *text, struct gp_url *url, char *error,
			       size_t error_size);

/* Parses a comma-separated list of at least one and at most `max` URLs. */
GP_MUST_CHECK int gp_url_list_parse(const char *text, struct gp_url *urls, int max, int *count_p,
				    char *error, size_t error_size);

/* Formats the complete form, with scheme and port; truncated if `size` is below GP_URL_TEXT_MAX. */
void gp_url_format(const struct gp_url *url, char *text, size_t size);

#endif /* GP_URL_H */
