/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admin socket: a local socket for gpupoolctl, which accepts connections of root, the daemon's
 * own user and members of the readers' group, splits their data into requests and writes the
 * replies. The handler interprets the requests.
 *
 * A connection that stops within a message, is idle for too long or sends invalid data is closed
 * with a line in the log. If all connections are in use, a new one replaces the oldest unfinished
 * connection of the user with the most of them.
 *
 * Threads: the supervisor's main thread; no function blocks.
 */
#ifndef GPD_ADMIN_H
#define GPD_ADMIN_H

#include "base/status.h"
#include "protocol/admin_messages.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define GPD_ADMIN_CONNS_MAX 16
#define GPD_ADMIN_POLL_MAX (1 + GPD_ADMIN_CONNS_MAX)

/* Members of this group, if it exists, may query but not change anything. */
#define GPD_ADMIN_READERS "gpupool-read"

/* The peer that has sent a request. */
struct gpd_admin_peer {
	pid_t pid;
	uid_t uid;
	bool read_only; /* queries only */
};

/*
 * Executes a request. Returns 0 with the packed reply, which the caller frees, or NULL without
 * memory; or GP_E_TIMEOUT if the request is not finished: the handler is then called again in the
 * next iteration with `again` set.
 */
typedef int gpd_admin_handler(void *arg, const struct gpd_admin_peer *peer,
			      const Gpupool__AdminRequest *request, bool again, uint8_t **reply_p,
			      size_t *size_p);

struct gpd_admin_conn {
	int fd; /* -1: the entry is free */
	struct gpd_admin_peer peer;
	uint8_t *in, *out;
	size_t in_used, in_size; /* including the length header; in_size 0: not known yet */
	size_t out_done, out_size;
	Gpupool__AdminRequest *pending;
	int64_t deadline_ms;
};

struct gpd_admin {
	int fd; /* -1: there is no socket */
	char path[108];
	dev_t device; /* of the socket, so that another daemon's is not removed */
	ino_t inode;
	gpd_admin_handler *handler;
	void *arg;
	struct gpd_admin_conn conns[GPD_ADMIN_CONNS_MAX];
};

/* Initializes without a socket. */
void gpd_admin_init(struct gpd_admin *admin, gpd_admin_handler *handler, void *arg);
/* Creates the socket and its folder, replacing a socket left over from a former daemon. Returns 0,
 * or -1 with a text in error. Must be called before threads exist, as it changes the process's
 * umask for a moment. */
GP_MUST_CHECK int gpd_admin_open(struct gpd_admin *admin, const char *path, char *error,
				 size_t error_size);
/* Checks that a daemon could create the socket, without creating it. A socket in use is not an
 * error. Returns 0, or -1 with a text in error. */
GP_MUST_CHECK int gpd_admin_check(const char *path, char *error, size_t error_size);
/* Closes all connections, and removes the socket if it is still this daemon's. */
void gpd_admin_fini(struct gpd_admin *admin);

/* Fills fds for poll(). Returns the number of entries, 0 or GPD_ADMIN_POLL_MAX. */
int gpd_admin_poll(struct gpd_admin *admin, struct pollfd *fds);
/* After poll(), at the end of an iteration: handles requests, replies and timeouts. */
void gpd_admin_serve(struct gpd_admin *admin, const struct pollfd *fds, int64_t now_ms);

#endif /* GPD_ADMIN_H */
