/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Backend for local sockets in the file system. All users may connect; the daemon authorizes the
 * peer by its user ID, which the kernel provides.
 */
#include "transport/descriptor.h"
#include "transport/socket/path_trust.h"
#include "transport/socket/tcp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 1024
/* Applied to 0777: removes the execute permission. */
#define SOCKET_UMASK 0111
#define DIRECTORY_MODE 0755
/* The default buffer holds a few hundred small messages, which a batch of launches can fill. */
#define BUFFER_SIZE (1 << 20)

/* User who, besides root and this process's user, may own the socket's directory and its
 * ancestors. */
static uid_t trusted_owner;

void
gp_listen_set_owner(uid_t uid)
{
	trusted_owner = uid;
}

struct unix_listener {
	struct gp_tcp_listener tcp;
	struct stat status; /* of the socket, so that another process's socket is never removed */
};

static int
address_init(const struct gp_url *url, struct sockaddr_un *address, char *detail,
	     size_t detail_size)
{
	size_t length = strlen(url->host);

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (length >= sizeof(address->sun_path)) {
		snprintf(detail, detail_size, "a socket's path has at most %zu characters",
			 sizeof(address->sun_path) - 1);
		return -ENAMETOOLONG;
	}
	memcpy(address->sun_path, url->host, length + 1);
	return 0;
}

/* connect() waits only while the listener's queue is full. */
static int
socket_connect(int fd, const struct sockaddr_un *address, int timeout_ms)
{
	struct timeval time = { .tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000 };
	int r;

	if (timeout_ms == 0)
		time.tv_usec = 1;
	if (timeout_ms >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
	do
		r = connect(fd, (const struct sockaddr *)address, sizeof(*address)) ? -errno : 0;
	while (r == -EINTR);
	time = (struct timeval){ 0 };
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof(time));
	return r == -EAGAIN ? -ETIMEDOUT : r;
}

static int
unix_adopt(const struct gp_transport_ops *ops, int fd, struct gp_conn **conn_p)
{
	int size = BUFFER_SIZE;

	/* Limited by the system's maximum. */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	return gp_tcp_adopt(ops, fd, conn_p);
}

static int
unix_connect(const struct gp_transport_ops *ops, const struct gp_url *url, int timeout_ms,
	     struct gp_conn **conn_p, char *detail, size_t detail_size)
{
	struct sockaddr_un address;
	int fd, r = address_init(url, &address, detail, detail_size);

	if (r)
		return r;
	fd = gp_fd_open_socket(AF_UNIX, SOCK_STREAM);
	if (fd < 0)
		return -errno;
	r = socket_connect(fd, &address, timeout_ms);
	if (r == 0)
		r = unix_adopt(ops, fd, conn_p);
	if (r == 0) {
		((struct gp_tcp_conn *)*conn_p)->client = true;
		return 0;
	}
	close(fd);
	/* As with a TCP port without a listener. */
	if (r == -ENOENT) {
		snprintf(detail, detail_size, "%s", strerror(ENOENT));
		return -ECONNREFUSED;
	}
	return r > 0 ? -ECONNRESET : r;
}

void
gp_unix_listener_destroy(struct gp_listener *listener)
{
	struct unix_listener *local = (struct unix_listener *)listener;
	struct stat status;

	if (lstat(listener->url.host, &status) == 0 && status.st_dev == local->status.st_dev &&
	    status.st_ino == local->status.st_ino)
		(void)unlink(listener->url.host);
	close(local->tcp.fd);
	free(local);
}

/* Removes a socket left by a daemon that has ended; any other file stays. */
static int
socket_remove_stale(const struct sockaddr_un *address, char *detail, size_t detail_size)
{
	struct stat status;
	int fd, r;

	if (lstat(address->sun_path, &status) != 0)
		return 0;
	if (!S_ISSOCK(status.st_mode)) {
		snprintf(detail, detail_size, "the path exists and is not a socket");
		return -EEXIST;
	}
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	r = connect(fd, (const struct sockaddr *)address, sizeof(*address)) ? -errno : 0;
	close(fd);
	if (r != -ECONNREFUSED)
		return -EADDRINUSE;
	(void)unlink(address->sun_path);
	return 0;
}

/* Creates the directory, such as /run/gpupool, which does not survive a reboot. A user who could
 * replace the socket could impersonate the daemon. */
static int
directory_create(const char *path, char *detail, size_t detail_size)
{
	const char *slash = strrchr(path, '/');
	char folder[sizeof(((struct sockaddr_un *)0)->sun_path)];
	int made, r;

	snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path) + (slash == path), path);
	/* Checked before creation too: nothing must be created in a directory of another user. */
	r = gp_path_check_trust(folder, trusted_owner, detail, detail_size);
	if (r != -ENOENT)
		return r;
	made = mkdir(folder, DIRECTORY_MODE) ? -errno : 0;
	/* Checked again, because in a directory with the sticky bit any user may have created it
	 * since the first check. A directory that still does not exist must not be used either, for
	 * the same reason. */
	r = gp_path_check_trust(folder, trusted_owner, detail, detail_size);
	return r == -ENOENT && made && made != -EEXIST ? made : r;
}

/* Creates the socket with its final mode: chmod() by name could change another file. */
static int
socket_bind_public(int fd, const struct sockaddr_un *address)
{
	mode_t before = umask(SOCKET_UMASK);
	int r = bind(fd, (const struct sockaddr *)address, sizeof(*address)) ? -errno : 0;

	(void)umask(before);
	return r;
}

/* Returns a descriptor or a negative errno. */
static int
socket_listen(const struct sockaddr_un *address, struct stat *status)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (fd < 0)
		return -errno;
	r = socket_bind_public(fd, address);
	if (r) {
		close(fd);
		return r;
	}
	if (lstat(address->sun_path, status) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	r = -errno;
	close(fd);
	return r;
}

int
gp_unix_listen(const struct gp_transport_ops *ops, const struct gp_url *url,
	       struct gp_listener **listener_p, char *detail, size_t detail_size)
{
	struct unix_listener *local;
	struct sockaddr_un address;
	int r = address_init(url, &address, detail, detail_size);

	if (r == 0)
		r = directory_create(address.sun_path, detail, detail_size);
	if (r == 0)
		r = socket_remove_stale(&address, detail, detail_size);
	if (r)
		return r;
	local = calloc(1, sizeof(*local));
	if (!local)
		return -ENOMEM;
	r = socket_listen(&address, &local->status);
	if (r < 0) {
		free(local);
		return r;
	}
	local->tcp.fd = r;
	local->tcp.listener.ops = ops;
	local->tcp.listener.url = *url;
	*listener_p = &local->tcp.listener;
	return 0;
}

const struct gp_transport_ops gp_unix_ops = {
	GP_TCP_OPS,
	.scheme = "unix",
	.connect = unix_connect,
	.listen = gp_unix_listen,
	.listener_destroy = gp_unix_listener_destroy,
	.adopt = unix_adopt,
	.release_fd = gp_tcp_release_fd,
	.send = gp_stream_send,
	.recv = gp_stream_recv,
	.pending = gp_stream_pending,
	.destroy = gp_tcp_destroy,
};
