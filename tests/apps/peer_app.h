/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers for sample programs (app.h) of two processes, which exchange bytes and file descriptors
 * over a socket. A failed call prints its line and exits with status 1.
 *
 * Threads: one thread of each process.
 */
#pragma once

#include "app.h"

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Socket to the other process, set by app_run_both(). */
static int app_peer;

/* Sends bytes to the other process. */
static inline void
app_put(const void *data, size_t size)
{
	REQUIRE(write(app_peer, data, size) == (ssize_t)size);
}

/* Waits until `size` bytes have arrived from the other process, and stores them. */
static inline void
app_get(void *data, size_t size)
{
	REQUIRE(recv(app_peer, data, size, MSG_WAITALL) == (ssize_t)size);
}

/* Wakes the other process's app_await(). */
static inline void
app_nudge()
{
	app_put("x", 1);
}

/* Waits, without a limit, for app_nudge() of the other process. */
static inline void
app_await()
{
	char byte;

	app_get(&byte, 1);
}

/* Returns a message header with one data buffer and a control buffer of `size` bytes, which are
 * borrowed. */
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

/* Sends a file descriptor and closes it in this process. */
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

/* Waits for a file descriptor and returns it; the caller closes it. Returns -1 if the other process
 * has ended or the message has no descriptor. */
static inline int
app_recv_fd()
{
	char byte, control[CMSG_SPACE(sizeof(int))] = {};
	iovec data = { &byte, 1 };
	msghdr message = app_message(&data, control, sizeof(control));
	int fd = -1;

	if (recvmsg(app_peer, &message, 0) == 1 && CMSG_FIRSTHDR(&message))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
	return fd;
}

/* Runs `first` in this process and `second` in a child process, connected by app_peer. Returns the
 * program's exit status: the result of `first` if it is not 0, otherwise 0. A child that fails
 * fails the program. In the child, returns the result of `second`. */
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
