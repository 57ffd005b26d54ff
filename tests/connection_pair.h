/* SPDX-License-Identifier: Apache-2.0 */
/* A pair of connected ends of the transport over a UNIX socket pair, both in the calling
 * process. */
#ifndef TESTS_CONNECTION_PAIR_H
#define TESTS_CONNECTION_PAIR_H

#include "transport/transport.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

/* Creates a connection and stores its ends in *a_p and *b_p, which the caller frees with
 * gp_conn_destroy(). Returns 0, a negative errno value, or an error of gp_conn_adopt(); the caller
 * then has nothing to free. */
static inline int
connection_pair_create(struct gp_conn **a_p, struct gp_conn **b_p)
{
	int fds[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		return -errno;
	r = gp_conn_adopt("unix", fds[0], a_p);
	if (r) {
		close(fds[0]);
		close(fds[1]);
		return r;
	}
	r = gp_conn_adopt("unix", fds[1], b_p);
	if (r) {
		gp_conn_destroy(*a_p);
		close(fds[1]);
	}
	return r;
}

#endif /* TESTS_CONNECTION_PAIR_H */
