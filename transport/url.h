/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address of a daemon, as in REMOTE_GPU and --listen:
 *
 *   [scheme://]host[:port][/device]   schemes tcp (default), tls, rdma, rdma+tcp
 *   unix:///path                      Unix socket; no port and no device
 *   shm:///path                       as unix, for shared memory; internal
 *
 * An IPv6 address is written in brackets: [::1]:4833. device: a CUDA device ordinal, 0 to 1023. A
 * host has at most 255 bytes; a path has at most 107 bytes, printable ASCII without spaces and
 * commas.
 *
 * Ownership: a URL is a plain value.
 * Threads: any; pure functions.
 * Errors: parsing functions return 0; or they return GP_E_INVALID and write a text to `error`
 * (error_size bytes, truncated to fit) that quotes the input and names the problem. Output
 * parameters are undefined after an error.
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
/* Size of the path of a Unix socket, including its NUL (sun_path of unix(7)). */
#define GP_URL_PATH_MAX 108
/* Size of a formatted URL, including its NUL. */
#define GP_URL_TEXT_MAX 320

struct gp_url {
	char scheme[16];
	char host[256]; /* name or numeric address without brackets; for unix and shm the path */
	uint16_t port;  /* 0: any free port, for listening; also 0 for unix and shm */
	int device;     /* CUDA device ordinal on the daemon, or GP_URL_ANY_DEVICE for all */
};

/* Parses one URL. A missing scheme, port or device becomes GP_URL_DEFAULT_SCHEME,
 * GP_URL_DEFAULT_PORT or GP_URL_ANY_DEVICE. */
GP_MUST_CHECK int gp_url_parse(const char *text, struct gp_url *url, char *error,
			       size_t error_size);

/* Parses a comma-separated list of at least one and at most `max` URLs into `urls`, and stores
 * their number in *count_p. */
GP_MUST_CHECK int gp_url_list_parse(const char *text, struct gp_url *urls, int max, int *count_p,
				    char *error, size_t error_size);

/* Formats the complete form, with scheme and port (no port for unix and shm), and with the device
 * unless it is GP_URL_ANY_DEVICE, as a NUL-terminated text; truncated if `size` is below
 * GP_URL_TEXT_MAX. */
void gp_url_format(const struct gp_url *url, char *text, size_t size);

#endif /* GP_URL_H */
