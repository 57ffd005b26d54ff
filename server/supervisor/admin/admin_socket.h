/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admin socket: a local socket for gpupoolctl, which accepts connections of root, the daemon's
 * own user and members of the readers' group, splits their data into requests and writes the
 * replies. The handler interprets the requests.
 *
 * A connection that stops within a message, is idle for too long or sends invalid data is closed
 * with a line in the log. If all connections are in use, a new one replaces the oldest unfinished
 * connection of the user with the most connections.
 *
 * Ownership: gpd_admin_init() to gpd_admin_fini(); the struct owns descriptors, buffers and pending
 * requests.
 * Threads: the supervisor's main thread; no function blocks.
 * Units: milliseconds of gp_now_ms().
 */
#ifndef GPD_ADMIN_H
#define GPD_ADMIN_H

#include "base/status.h"
#include "protocol/admin_messages.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Maximum number of connections, and of entries for poll(): one per connection and one for the
 * socket. */
#define GPD_ADMIN_CONNS_MAX 16
#define GPD_ADMIN_POLL_MAX (1 + GPD_ADMIN_CONNS_MAX)

/* Members of this group, if it exists, may query but not change anything. */
#define GPD_ADMIN_READERS "gpupool-read"

/* The process that has sent a request. */
struct gpd_admin_peer {
	pid_t pid;
	uid_t uid;
	bool read_only; /* it may query, but not change anything */
};

/*
 * Executes a request. Returns 0 with *reply_p the packed reply of *size_p bytes, which the caller
 * frees with free(); *reply_p is NULL if out of memory, and the connection is closed. Returns
 * GP_E_TIMEOUT if the request is not finished: the handler is then called again in the next
 * iteration with the same request and `again` set. request stays valid until the handler returns 0
 * or the peer disconnects.
 */
typedef int gpd_admin_handler(void *arg, const struct gpd_admin_peer *peer,
			      const Gpupool__AdminRequest *request, bool again, uint8_t **reply_p,
			      size_t *size_p);

/* A connection. */
struct gpd_admin_conn {
	int fd; /* -1: the entry is free */
	struct gpd_admin_peer peer;
	uint8_t *in, *out; /* request and reply, allocated; NULL: none */
	/* Bytes received, and size including the length header; in_size 0: not known yet. */
	size_t in_used, in_size;
	size_t out_done, out_size;      /* bytes of the reply: written, and in total */
	Gpupool__AdminRequest *pending; /* request that the handler has not finished; NULL: none */
	int64_t deadline_ms;            /* time at which the connection is closed */
};

/* The socket and its connections. */
struct gpd_admin {
	int fd;         /* -1: there is no socket */
	char path[108]; /* of the socket; valid if fd is not -1 */
	/* Device and inode of the socket file, so that another daemon's socket is not removed. */
	dev_t device;
	ino_t inode;
	gpd_admin_handler *handler;
	void *arg;
	struct gpd_admin_conn conns[GPD_ADMIN_CONNS_MAX];
};

/* Initializes without a socket. arg: first argument of the handler. */
void gpd_admin_init(struct gpd_admin *admin, gpd_admin_handler *handler, void *arg);
/* Creates the socket and its folder, replacing a socket left over from a former daemon. Returns 0;
 * or -1 with a text in error, and there is no socket. Must be called before threads exist, as it
 * changes the process's umask for a moment. */
GP_MUST_CHECK int gpd_admin_open(struct gpd_admin *admin, const char *path, char *error,
				 size_t error_size);
/* Checks that a daemon could create the socket at this path, without creating it. A socket in use
 * is not an error, as the daemon may be running. Returns 0, or -1 with a text in error. */
GP_MUST_CHECK int gpd_admin_check(const char *path, char *error, size_t error_size);
/* Closes all connections, frees their memory, and removes the socket file if it is still this
 * daemon's. */
void gpd_admin_fini(struct gpd_admin *admin);

/* Fills fds, of GPD_ADMIN_POLL_MAX entries, for poll(). Returns the number of entries: 0 without a
 * socket, else GPD_ADMIN_POLL_MAX. */
int gpd_admin_poll(struct gpd_admin *admin, struct pollfd *fds);
/* Called after poll(), at the end of an iteration: accepts connections, handles requests, replies
 * and timeouts. fds: as filled by gpd_admin_poll(). */
void gpd_admin_serve(struct gpd_admin *admin, const struct pollfd *fds, int64_t now_ms);

#endif /* GPD_ADMIN_H */
