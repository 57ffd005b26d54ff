/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admin socket: takes connections of the daemon's own user, of root and of those who may read,
 * cuts what they send into requests and writes the replies.  It knows nothing of what a request
 * means.
 *
 * Main thread only, and it never blocks: the supervisor polls.  Who stops in the middle of a
 * message, sends none for long, or sends what is no request, is dropped with a line in the log.
 * Where all places are taken, the oldest unfinished connection of the user that has most is dropped
 * for the next one.
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

/* Whoever is in this group may ask and change nothing, if there is a group of this name. */
#define GPD_ADMIN_READERS "gpupool-read"

/* Whose a request is. */
struct gpd_admin_peer {
	pid_t pid;
	uid_t uid;
	bool read_only; /* and no more */
};

/*
 * Carries a request out: 0, and the packed reply is the caller's to free, or NULL when there is no
 * memory for one; GP_E_TIMEOUT: not done yet, to be called again (with `again`) at the next turn.
 */
typedef int gpd_admin_handler(void *arg, const struct gpd_admin_peer *peer,
			      const Gpupool__AdminRequest *request, bool again, uint8_t **reply_p,
			      size_t *size_p);

struct gpd_admin_conn {
	int fd; /* -1: the place is free */
	struct gpd_admin_peer peer;
	uint8_t *in, *out;
	size_t in_used, in_size; /* with the length in front; in_size 0: that is not known yet */
	size_t out_done, out_size;
	Gpupool__AdminRequest *pending;
	int64_t deadline_ms;
};

struct gpd_admin {
	int fd; /* -1: there is no socket */
	char path[108];
	dev_t device; /* of the socket, so that nobody else's is removed */
	ino_t inode;
	gpd_admin_handler *handler;
	void *arg;
	struct gpd_admin_conn conns[GPD_ADMIN_CONNS_MAX];
};

void gpd_admin_init(struct gpd_admin *admin, gpd_admin_handler *handler, void *arg);
/* Makes the socket, and its folder, where a daemon that is gone may have left one.  0, or -1: error
 * says why.  Before there are threads: the mode of the socket is the process's for a moment. */
GP_MUST_CHECK int gpd_admin_open(struct gpd_admin *admin, const char *path, char *error,
				 size_t error_size);
/* Whether a daemon could make the socket, which this does not; another daemon may have it now.  As
 * above. */
GP_MUST_CHECK int gpd_admin_check(const char *path, char *error, size_t error_size);
void gpd_admin_fini(struct gpd_admin *admin);

/* What to poll for; how many, 0 or GPD_ADMIN_POLL_MAX. */
int gpd_admin_poll(struct gpd_admin *admin, struct pollfd *fds);
/* After the poll, and after everything else of this turn; whose time is over is dropped. */
void gpd_admin_serve(struct gpd_admin *admin, const struct pollfd *fds, int64_t now_ms);

#endif /* GPD_ADMIN_H */
