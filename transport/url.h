/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address of a daemon: [scheme://]host[:port][/device], as in REMOTE_GPU and --listen, or
 * unix:///path.
 *
 * Ownership: a URL is a plain value.
 * Threads: any; pure functions.
 * Errors: parsing functions return 0, or GP_E_INVALID and write a text to `error` (error_size
 * bytes, truncated to fit) that quotes the input and names the problem. Output parameters are
 * undefined after an error.
 */
#ifndef GP_URL_H
#define GP_URL_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define GP_URL_DEFAULT_SCHEME "tcp"
/* Scheme for clients only, in addition to the transports' schemes: rdma, or tcp if the daemon does
 * not offer RDMA. */
#define GP_URL_RDMA_OR_TCP "rdma+tcp"
#define GP_URL_DEFAULT_PORT 4833
/* Value of `device`: all devices of the daemon. */
#define GP_URL_ANY_DEVICE (-1)
/* Size of the path of a local socket, including its NUL. */
#define GP_URL_PATH_MAX 108
/* Size of a formatted URL, including its NUL. */
#define GP_URL_TEXT_MAX 320

struct gp_url {
	char scheme[16];
	char host[256]; /* name or numeric address without brackets; for unix and shm the path */
	uint16_t port;  /* 0: any free port, for listening; also 0 for unix and shm */
	int device;     /* CUDA device ordinal on the daemon, or GP_URL_ANY_DEVICE for all */
};

/* Parses one URL; a missing scheme, port or device gets its default. */
GP_MUST_CHECK int gp_url_parse(const char *text, struct gp_url *url, char *error,
			       size_t error_size);

/* Parses a comma-separated list of at least one and at most `max` URLs into `urls`, and stores
 * their number in *count_p. */
GP_MUST_CHECK int gp_url_list_parse(const char *text, struct gp_url *urls, int max, int *count_p,
				    char *error, size_t error_size);

/* Formats the complete form, with scheme and port, as a NUL-terminated text; truncated if `size` is
 * below GP_URL_TEXT_MAX. */
void gp_url_format(const struct gp_url *url, char *text, size_t size);

#endif /* GP_URL_H */
