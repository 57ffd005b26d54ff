/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admin socket: a local socket for gpupoolctl. It accepts connections of root, the daemon's own
 * user and members of the readers' group, splits their data into requests and writes the replies.
 * The handler executes the requests. The daemon's own workers, which have its user ID, are refused
 * (gpd_worker_process_is_own() of worker_process.h).
 *
 * A connection is closed with a line in the log if it sends invalid data, or if for 10 s it sends
 * no complete request or does not read a reply. A pending request has no time limit.
 *
 * A connection is unfinished while it waits for its user: for a request, or for the reply to be
 * read. If all connections are in use, a new connection replaces an unfinished one that is at least
 * 200 ms old: the oldest of the user with the most unfinished connections. Read-only users get at
 * most 12 of the 16 connections; the rest are reserved for root and the daemon's user.
 *
 * Order: gpd_admin_init(), gpd_admin_open(); then in each iteration of the loop gpd_admin_poll()
 * and gpd_admin_serve(); gpd_admin_fini().
 * Ownership: the struct owns descriptors, buffers and pending requests.
 * Threads: the supervisor's main thread. Only gpd_admin_open() may block, on the lookup of the
 * readers' group.
 * Units: milliseconds of gp_now_ms().
 */
#ifndef GPD_ADMIN_SOCKET_H
#define GPD_ADMIN_SOCKET_H

#include "base/status.h"
#include "protocol/admin_messages.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Maximum number of connections, and number of entries for poll(): one per connection and one for
 * the socket. */
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
 * Executes a request. arg: as passed to gpd_admin_init().
 *
 * Returns 0 with *reply_p the packed reply of *size_p bytes, allocated by malloc(), which the
 * socket frees. *reply_p NULL: out of memory; the connection is closed.
 * Returns GP_E_TIMEOUT if the request is not finished. The handler is then called again in the next
 * iteration, with the same request and `again` true, until it returns 0. If the peer disconnects
 * before that, the request is freed and the handler is not called again.
 */
typedef int gpd_admin_handler(void *arg, const struct gpd_admin_peer *peer,
			      const Gpupool__AdminRequest *request, bool again, uint8_t **reply_p,
			      size_t *size_p);

/* A connection. */
struct gpd_admin_conn {
	int fd; /* -1: the entry is free */
	struct gpd_admin_peer peer;
	uint8_t *in, *out; /* request and reply, allocated; NULL: none */
	/* in_used: bytes of the request received. in_size: its size with the length header; 0: not
	 * known yet. */
	size_t in_used, in_size;
	size_t out_done, out_size;      /* bytes of the reply: sent, and in total */
	Gpupool__AdminRequest *pending; /* request that the handler has not finished; NULL: none */
	int64_t deadline_ms; /* time at which the connection is closed; INT64_MAX: never */
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
/* Creates the socket, with mode 0600 or, if the readers' group exists, 0660 with this group; and
 * its folder if necessary, but not the folder's parents. Called at most once after
 * gpd_admin_init(). A socket that no process listens on is replaced; it is left over from a former
 * daemon. Returns 0; or -1 with a text in error, and there is no socket. Must be called before
 * other threads exist, as it changes the process's umask for a moment. */
GP_MUST_CHECK int gpd_admin_open(struct gpd_admin *admin, const char *path, char *error,
				 size_t error_size);
/* Checks that the daemon could create a socket at this path, without creating it. An existing
 * socket is not an error, as the daemon may be running. Returns 0, or -1 with a text in error. */
GP_MUST_CHECK int gpd_admin_check(const char *path, char *error, size_t error_size);
/* Closes all connections, also with pending requests, frees their memory, and removes the socket
 * file if it is still this daemon's. Accepts a struct without a socket. */
void gpd_admin_fini(struct gpd_admin *admin);

/* Fills fds, of GPD_ADMIN_POLL_MAX entries, for poll(). Returns the number of entries: 0 without a
 * socket, else GPD_ADMIN_POLL_MAX. */
int gpd_admin_poll(struct gpd_admin *admin, struct pollfd *fds);
/* Called after poll(), at the end of an iteration: accepts connections, receives and executes
 * requests, sends replies, and closes connections that have timed out. fds: as filled by
 * gpd_admin_poll() in the same iteration. */
void gpd_admin_serve(struct gpd_admin *admin, const struct pollfd *fds, int64_t now_ms);

#endif /* GPD_ADMIN_SOCKET_H */
