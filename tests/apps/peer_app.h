/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two processes, and the socket over which they pass each other bytes and descriptors.  Each
 * function prints what is wrong, and ends.
 */
#pragma once

#include "app.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* To the other process. */
static int app_peer;

static inline void
app_put(const void *data, size_t size)
{
	REQUIRE(write(app_peer, data, size) == (ssize_t)size);
}

static inline void
app_get(void *data, size_t size)
{
	REQUIRE(recv(app_peer, data, size, MSG_WAITALL) == (ssize_t)size);
}

static inline void
app_nudge()
{
	app_put("x", 1);
}

/* Waits for a nudge. */
static inline void
app_await()
{
	char byte;

	app_get(&byte, 1);
}

static inline msghdr
app_message(iovec *data, char *control, size_t size)
{
	msghdr message = {};

	message.msg_iov = data;
	message.msg_iovlen = 1;
	message.msg_control = control;
	message.msg_controllen = size;
	return message;
}

/* The descriptor is the other process's from then on. */
static inline void
app_pass(int fd)
{
	char byte = 'x', control[CMSG_SPACE(sizeof(int))] = {};
	iovec data = { &byte, 1 };
	msghdr message = app_message(&data, control, sizeof(control));
	cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	REQUIRE(sendmsg(app_peer, &message, 0) == 1);
	close(fd);
}

/* -1: the other process has ended. */
static inline int
app_take()
{
	char byte, control[CMSG_SPACE(sizeof(int))] = {};
	iovec data = { &byte, 1 };
	msghdr message = app_message(&data, control, sizeof(control));
	int fd = -1;

	if (recvmsg(app_peer, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

/* This process is the first, and its child the second, which returns 0.  Returns the program's
 * status: the first one's, if that is not 0. */
static inline int
app_run_both(const char *name, int (*first)(), int (*second)())
{
	int pair[2], status, result;
	pid_t child;

	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	child = fork();
	REQUIRE(child >= 0);
	app_peer = pair[child == 0];
	close(pair[child != 0]);
	if (child == 0)
		return second();
	result = first();
	close(app_peer);
	REQUIRE(waitpid(child, &status, 0) == child);
	REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return result ? result : app_ok(name);
}
