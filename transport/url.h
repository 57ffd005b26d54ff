/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The address of a daemon: [scheme://]host[:port][/device], as in REMOTE_GPU and --listen, or
 * unix:///path.
 *
 * Plain values, owned by whoever declares them.  Functions that parse return 0 or GP_E_INVALID
 * with a text that names what is wrong; on GP_E_INVALID no output is written but the text.
 */
#ifndef GP_URL_H
#define GP_URL_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

#define GP_URL_DEFAULT_SCHEME "tcp"
/* Besides those of the transports: rdma, or tcp where there is none; for the client only. */
#define GP_URL_RDMA_OR_TCP "rdma+tcp"
#define GP_URL_DEFAULT_PORT 4833
#define GP_URL_ANY_DEVICE (-1)
/* Of a socket in the file system, its closing zero included. */
#define GP_URL_PATH_MAX 108
/* Room for the text of any URL, its closing zero included. */
#define GP_URL_TEXT_MAX 320

struct gp_url {
	char scheme[16];
	char host[256]; /* name or numeric address, without brackets; loop: the name; unix: the path
			 */
	uint16_t port;  /* 0: any free one, to listen on; of loop and unix: always 0 */
	int device;     /* ordinal on that daemon, or GP_URL_ANY_DEVICE for all of them */
};

GP_MUST_CHECK int gp_url_parse(const char *text, struct gp_url *url, char *error,
			       size_t error_size);

/* Comma-separated; at least one, at most `max` of them. */
GP_MUST_CHECK int gp_url_list_parse(const char *text, struct gp_url *urls, int max, int *count_p,
				    char *error, size_t error_size);

/* The complete form, with scheme and port; cut short if `size` is below GP_URL_TEXT_MAX. */
void gp_url_format(const struct gp_url *url, char *text, size_t size);

#endif /* GP_URL_H */
