/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library that a daemon preloads, so that a worker acts as if a client had taken it over. In each
 * worker, a thread connects to the local socket that GP_CONFEDERATE names (SOCK_SEQPACKET). For
 * each path that it receives there it connects to the socket of this path, and replies with the
 * connected descriptor, or with a byte alone if it cannot connect.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int
connect_to(const char *path, int type)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	(void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address))) {
		(void)close(fd);
		fd = -1;
	}
	return fd;
}

/* Consumes fd. */
static void
reply_send(int confederate, int fd)
{
	char byte = 0, control[CMSG_SPACE(sizeof(fd))] = { 0 };
	struct iovec data = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };
	struct cmsghdr *header = (struct cmsghdr *)control;

	if (fd >= 0) {
		header->cmsg_len = CMSG_LEN(sizeof(fd));
		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		memcpy(CMSG_DATA(header), &fd, sizeof(fd));
		message.msg_control = control;
		message.msg_controllen = sizeof(control);
	}
	(void)!sendmsg(confederate, &message, MSG_NOSIGNAL);
	if (fd >= 0)
		(void)close(fd);
}

static void *
requests_serve(void *arg)
{
	int confederate = connect_to(getenv("GP_CONFEDERATE"), SOCK_SEQPACKET);
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
	ssize_t size;

	while (confederate >= 0 && (size = recv(confederate, path, sizeof(path) - 1, 0)) > 0) {
		path[size] = '\0';
		reply_send(confederate, connect_to(path, SOCK_STREAM));
	}
	return arg;
}

__attribute__((constructor)) static void
start(int argc, char **argv)
{
	pthread_t thread;

	if (argc > 1 && strcmp(argv[1], "--worker-fd") == 0 && getenv("GP_CONFEDERATE") &&
	    pthread_create(&thread, NULL, requests_serve, NULL) == 0)
		(void)pthread_detach(thread);
}
