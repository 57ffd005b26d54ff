/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/admin/admin_socket.h"

#include "server/common/base/client_address_name.h"
#include "server/common/base/log.h"
#include "server/common/ledger/log_budget.h"
#include "server/supervisor/workers/worker_process.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Maximum time from a reply to the last byte of the next request, or to write a reply. */
#define REQUEST_TIMEOUT_MS 10000
/* An unfinished connection older than this can be replaced by a new one. */
#define NEW_MS 200
#define GROUPS_MAX 1024
#define PATH_SIZE sizeof(((struct sockaddr_un *)0)->sun_path)
/* Limit for read-only users; the remaining connections are reserved for administrators. */
#define READ_ONLY_MAX (GPD_ADMIN_CONNS_MAX - 4)

void
gpd_admin_init(struct gpd_admin *admin, gpd_admin_handler *handler, void *arg)
{
	*admin = (struct gpd_admin){ .fd = -1, .handler = handler, .arg = arg };
	for (int i = 0; i < GPD_ADMIN_CONNS_MAX; i++)
		admin->conns[i].fd = -1;
}

/* The socket. */

/* Writes the folder of a path. Returns false if it is the current one or the root. */
static bool
get_folder(const char *path, char folder[PATH_SIZE])
{
	const char *slash = strrchr(path, '/');

	snprintf(folder, PATH_SIZE, "%.*s", slash ? (int)(slash - path) : 0, path);
	return folder[0];
}

static int
refuse_folder(const char *folder, char *error, size_t size)
{
	snprintf(error, size, "cannot create directory %s: %s", folder, strerror(errno));
	return -1;
}

static int
make_folder(const char *path, char *error, size_t size)
{
	char folder[PATH_SIZE];

	if (!get_folder(path, folder))
		return 0;
	if (mkdir(folder, geteuid() == 0 ? 0755 : 0700) == 0 || errno == EEXIST)
		return 0;
	return refuse_folder(folder, error, size);
}

static int
refuse_length(const char *path, char *error, size_t size)
{
	snprintf(error, size, "%s: a socket's path has 1 to %zu characters", path, PATH_SIZE - 1);
	return -1;
}

static int
refuse_file(const char *path, char *error, size_t size)
{
	snprintf(error, size, "%s exists and is not a socket", path);
	return -1;
}

/* Removes a socket left over from a former daemon; any other file stays. */
static int
clear_path(const struct sockaddr_un *address, char *error, size_t size)
{
	struct stat status;
	int fd, r;

	if (lstat(address->sun_path, &status) != 0)
		return 0;
	if (!S_ISSOCK(status.st_mode))
		return refuse_file(address->sun_path, error, size);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	r = connect(fd, (const struct sockaddr *)address, sizeof(*address)) ? errno : 0;
	if (fd >= 0)
		close(fd);
	if (r != ECONNREFUSED) {
		snprintf(error, size, "%s belongs to another daemon that is running",
			 address->sun_path);
		return -1;
	}
	(void)unlink(address->sun_path);
	return 0;
}

static int
bind_socket(int fd, const struct sockaddr_un *address)
{
	mode_t before = umask(0177);
	int r = bind(fd, (const struct sockaddr *)address, sizeof(*address));

	(void)umask(before);
	return r == 0 ? listen(fd, GPD_ADMIN_CONNS_MAX) : r;
}

/* Gives the socket to the readers' group, if the daemon is permitted to. */
static void
socket_allow_readers(const char *path)
{
	const struct group *readers = getgrnam(GPD_ADMIN_READERS);

	if (readers && lchown(path, (uid_t)-1, readers->gr_gid) == 0)
		(void)chmod(path, 0660);
}

int
gpd_admin_open(struct gpd_admin *admin, const char *path, char *error, size_t error_size)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct stat status;
	int fd;

	if (*path == 0 || strlen(path) >= sizeof(address.sun_path))
		return refuse_length(path, error, error_size);
	memcpy(address.sun_path, path, strlen(path) + 1);
	if (make_folder(path, error, error_size) || clear_path(&address, error, error_size))
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind_socket(fd, &address) || lstat(path, &status)) {
		snprintf(error, error_size, "%s: %s", path, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	socket_allow_readers(path);
	admin->fd = fd;
	admin->device = status.st_dev;
	admin->inode = status.st_ino;
	memcpy(admin->path, address.sun_path, sizeof(admin->path));
	return 0;
}

int
gpd_admin_check(const char *path, char *error, size_t error_size)
{
	char folder[PATH_SIZE], parent[PATH_SIZE];
	struct stat status;

	if (*path == 0 || strlen(path) >= PATH_SIZE)
		return refuse_length(path, error, error_size);
	if (lstat(path, &status) == 0)
		return S_ISSOCK(status.st_mode) ? 0 : refuse_file(path, error, error_size);
	if (!get_folder(path, folder))
		snprintf(folder, sizeof(folder), "%s", *path == '/' ? "/" : ".");
	if (access(folder, W_OK | X_OK) == 0)
		return 0;
	if (errno != ENOENT) {
		snprintf(error, error_size, "%s: %s", path, strerror(errno));
		return -1;
	}
	if (!get_folder(folder, parent))
		snprintf(parent, sizeof(parent), "%s", *path == '/' ? "/" : ".");
	if (access(parent, W_OK | X_OK) == 0)
		return 0;
	return refuse_folder(folder, error, error_size);
}

/* Connections. */

static void
conn_close(struct gpd_admin_conn *conn)
{
	close(conn->fd);
	free(conn->in);
	free(conn->out);
	gp_admin_free_request(conn->pending);
	*conn = (struct gpd_admin_conn){ .fd = -1 };
}

/* A user has the same log budget as an address. */
static uint32_t
get_log_budget(uid_t user)
{
	char name[GPD_CLIENT_ADDRESS_NAME_MAX];

	gpd_client_address_name("", &user, name);
	return gpd_log_budget_get(GPD_LOG_BUDGET_ADDRESS, name);
}

static void
conn_reject(struct gpd_admin_conn *conn, const char *why)
{
	gpd_log_budget_log(get_log_budget(conn->peer.uid), GPD_LOG_WARNING,
			   "admin socket: process %d: %s", (int)conn->peer.pid, why);
	conn_close(conn);
}

void
gpd_admin_fini(struct gpd_admin *admin)
{
	struct stat status;

	for (int i = 0; i < GPD_ADMIN_CONNS_MAX; i++) {
		if (admin->conns[i].fd >= 0)
			conn_close(&admin->conns[i]);
	}
	if (admin->fd < 0)
		return;
	close(admin->fd);
	admin->fd = -1;
	if (lstat(admin->path, &status) == 0 && status.st_dev == admin->device &&
	    status.st_ino == admin->inode)
		(void)unlink(admin->path);
}

/* Returns whether the peer's process has the group of the socket, which was set by
 * socket_allow_readers() or by the service manager, as its primary or a supplementary group. The
 * group's name is not looked up, as the lookup could wait for a name server. */
static bool
user_is_reader(const struct gpd_admin *admin, int fd, gid_t own)
{
	gid_t groups[GROUPS_MAX];
	socklen_t size = sizeof(groups);
	struct stat status;

	if (lstat(admin->path, &status) || status.st_dev != admin->device ||
	    status.st_ino != admin->inode || !(status.st_mode & S_IWGRP))
		return false;
	if (own == status.st_gid)
		return true;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) != 0)
		return false;
	for (size_t i = 0; i < size / sizeof(groups[0]); i++)
		if (groups[i] == status.st_gid)
			return true;
	return false;
}

static struct gpd_admin_conn *
conn_find_free(struct gpd_admin *admin)
{
	for (int i = 0; i < GPD_ADMIN_CONNS_MAX; i++) {
		if (admin->conns[i].fd < 0)
			return &admin->conns[i];
	}
	return NULL;
}

static int
count_read_only(const struct gpd_admin *admin)
{
	int count = 0;

	for (int i = 0; i < GPD_ADMIN_CONNS_MAX; i++)
		count += admin->conns[i].fd >= 0 && admin->conns[i].peer.read_only;
	return count;
}

/* Returns whether the connection waits for its user: for a request, for the rest of one, or for the
 * reply to be read. */
static bool
conn_is_unfinished(const struct gpd_admin_conn *conn)
{
	return conn->fd >= 0 && !conn->pending;
}

static int
count_unfinished(const struct gpd_admin *admin, uid_t user)
{
	int count = 0;

	for (int i = 0; i < GPD_ADMIN_CONNS_MAX; i++)
		count += conn_is_unfinished(&admin->conns[i]) && admin->conns[i].peer.uid == user;
	return count;
}

/* Closes the oldest unfinished connection of the user with the most of them. Returns false if all
 * are new, or their requests are being executed. */
static bool
conn_evict(struct gpd_admin *admin, bool of_readers, int64_t now_ms)
{
	struct gpd_admin_conn *victim = NULL;
	int most = 0;

	for (int i = 0; i < GPD_ADMIN_CONNS_MAX; i++) {
		struct gpd_admin_conn *conn = &admin->conns[i];
		int count;

		if (!conn_is_unfinished(conn) || (of_readers && !conn->peer.read_only) ||
		    conn->deadline_ms - REQUEST_TIMEOUT_MS + NEW_MS > now_ms)
			continue;
		count = count_unfinished(admin, conn->peer.uid);
		if (count < most || (count == most && victim->deadline_ms <= conn->deadline_ms))
			continue;
		victim = conn;
		most = count;
	}
	if (victim)
		conn_reject(victim, "closed to admit another connection");
	return victim != NULL;
}

/* Returns why the peer is rejected, or NULL. *all_p: it may change everything. */
static const char *
get_refusal_reason(struct gpd_admin *admin, int fd, const struct ucred *peer, bool *all_p,
		   int64_t now_ms)
{
	*all_p = peer->uid == 0 || peer->uid == geteuid();
	if (*all_p)
		return gpd_worker_process_is_own(peer->pid)
			       ? "a worker of this daemon, or a process that has ended"
			       : NULL;
	if (peer->uid == (uid_t)-1 || !user_is_reader(admin, fd, peer->gid))
		return "not allowed";
	return count_read_only(admin) < READ_ONLY_MAX || conn_evict(admin, true, now_ms)
		       ? NULL
		       : "too many connections of read-only users";
}

/* Returns whether a pending connection may be accepted. */
static bool
conn_has_room(struct gpd_admin *admin, int64_t now_ms)
{
	struct pollfd waiting = { .fd = admin->fd, .events = POLLIN };

	return conn_find_free(admin) ||
	       (poll(&waiting, 1, 0) > 0 && conn_evict(admin, false, now_ms));
}

static void
accept_conns(struct gpd_admin *admin, int64_t now_ms)
{
	for (int i = 0; i < GPD_ADMIN_CONNS_MAX && conn_has_room(admin, now_ms); i++) {
		struct ucred peer = { .uid = (uid_t)-1 };
		socklen_t size = sizeof(peer);
		int fd = accept4(admin->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

		const char *why;
		bool all;

		if (fd < 0)
			return;
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
			peer.uid = (uid_t)-1;
		why = get_refusal_reason(admin, fd, &peer, &all, now_ms);
		if (why) {
			gpd_log_budget_log(get_log_budget(peer.uid), GPD_LOG_WARNING,
					   "admin socket: process %d of user %u: %s", (int)peer.pid,
					   (unsigned int)peer.uid, why);
			close(fd);
			continue;
		}
		*conn_find_free(admin) = (struct gpd_admin_conn){
			.fd = fd,
			.peer = { .pid = peer.pid, .uid = peer.uid, .read_only = !all },
			.deadline_ms = now_ms + REQUEST_TIMEOUT_MS,
		};
	}
}

/* Returns 0; GP_E_TIMEOUT if there is no more data for now; GP_E_EOF; or a negative errno. */
static int
conn_read(struct gpd_admin_conn *conn, size_t wanted)
{
	while (conn->in_used < wanted) {
		ssize_t got = recv(conn->fd, conn->in + conn->in_used, wanted - conn->in_used, 0);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return errno == EAGAIN ? GP_E_TIMEOUT : -errno;
		if (got == 0)
			return conn->in_used ? -EPIPE : GP_E_EOF;
		conn->in_used += (size_t)got;
	}
	return 0;
}

/* Reads available data: the request's length, then the request. */
static int
read_request(struct gpd_admin_conn *conn)
{
	int r;

	if (!conn->in)
		conn->in = malloc(GP_ADMIN_HEADER_SIZE + GP_ADMIN_REQUEST_MAX);
	if (!conn->in)
		return -ENOMEM;
	if (conn->in_size == 0) {
		r = conn_read(conn, GP_ADMIN_HEADER_SIZE);
		if (r)
			return r;
		if (gp_admin_get_size(conn->in) > GP_ADMIN_REQUEST_MAX)
			return -EMSGSIZE;
		conn->in_size = GP_ADMIN_HEADER_SIZE + gp_admin_get_size(conn->in);
	}
	r = conn_read(conn, conn->in_size);
	if (r)
		return r;
	conn->pending = gp_admin_decode_request(conn->in + GP_ADMIN_HEADER_SIZE,
						conn->in_size - GP_ADMIN_HEADER_SIZE);
	conn->in_used = conn->in_size = 0;
	return conn->pending ? 0 : -EPROTO;
}

static void
write_reply(struct gpd_admin_conn *conn, int64_t now_ms)
{
	while (conn->out && conn->out_done < conn->out_size) {
		ssize_t done = send(conn->fd, conn->out + conn->out_done,
				    conn->out_size - conn->out_done, MSG_NOSIGNAL);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0 && errno == EAGAIN)
			return;
		if (done < 0) {
			conn_close(conn);
			return;
		}
		conn->out_done += (size_t)done;
	}
	free(conn->out);
	conn->out = NULL;
	conn->deadline_ms = now_ms + REQUEST_TIMEOUT_MS;
}

static void
request_execute(struct gpd_admin *admin, struct gpd_admin_conn *conn, bool again, int64_t now_ms)
{
	int r = admin->handler(admin->arg, &conn->peer, conn->pending, again, &conn->out,
			       &conn->out_size);

	/* A request may take as long as work on the GPU. */
	conn->deadline_ms = r ? INT64_MAX : now_ms + REQUEST_TIMEOUT_MS;
	if (r)
		return;
	gp_admin_free_request(conn->pending);
	conn->pending = NULL;
	conn->out_done = 0;
	if (conn->out)
		write_reply(conn, now_ms);
	else
		conn_reject(conn, "no memory for a reply");
}

static void
request_receive(struct gpd_admin *admin, struct gpd_admin_conn *conn, int64_t now_ms)
{
	int r = read_request(conn);

	if (r == 0)
		request_execute(admin, conn, false, now_ms);
	else if (r == GP_E_EOF)
		conn_close(conn);
	else if (r == -EMSGSIZE)
		conn_reject(conn, "request too long");
	else if (r == -EPROTO)
		conn_reject(conn, "invalid request");
	else if (r == -EPIPE)
		conn_reject(conn, "incomplete request");
	else if (r < 0)
		conn_reject(conn, strerror(-r));
}

int
gpd_admin_poll(struct gpd_admin *admin, struct pollfd *fds)
{
	if (admin->fd < 0)
		return 0;
	/* Without a free entry new connections wait in the kernel; gpd_admin_serve() makes room. */
	fds[0] = (struct pollfd){ .fd = conn_find_free(admin) ? admin->fd : -1, .events = POLLIN };
	for (int i = 0; i < GPD_ADMIN_CONNS_MAX; i++) {
		const struct gpd_admin_conn *conn = &admin->conns[i];
		short events = conn->out ? POLLOUT : POLLIN;

		fds[1 + i] = (struct pollfd){ .fd = conn->fd,
					      .events = conn->pending ? POLLRDHUP : events };
	}
	return GPD_ADMIN_POLL_MAX;
}

void
gpd_admin_serve(struct gpd_admin *admin, const struct pollfd *fds, int64_t now_ms)
{
	if (admin->fd < 0)
		return;
	for (int i = 0; i < GPD_ADMIN_CONNS_MAX; i++) {
		struct gpd_admin_conn *conn = &admin->conns[i];
		short events = conn->fd < 0 ? 0 : fds[1 + i].revents;

		if (conn->fd >= 0 && conn->pending && events)
			conn_close(conn);
		else if (conn->fd >= 0 && conn->pending)
			request_execute(admin, conn, true, now_ms);
		else if (events && conn->out)
			write_reply(conn, now_ms);
		else if (events)
			request_receive(admin, conn, now_ms);
		if (conn->fd >= 0 && conn->deadline_ms <= now_ms)
			conn_reject(conn, conn->in_used ? "incomplete request"
					  : conn->out   ? "reply not read"
							: "no request received");
	}
	if (fds[0].revents || !conn_find_free(admin))
		accept_conns(admin, now_ms);
}
