/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fd_poll.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define READABLE (POLLIN | POLLRDNORM)
#define WRITABLE (POLLOUT | POLLWRNORM)

/* Descriptor sets of the C library end at descriptor 1023; sets of the system call do not. */
#define WORD_BITS (8 * sizeof(unsigned long))

static void
set_add(unsigned long *set, int fd)
{
	set[(size_t)fd / WORD_BITS] |= 1UL << (size_t)fd % WORD_BITS;
}

static bool
set_has(const unsigned long *set, int fd)
{
	return set[(size_t)fd / WORD_BITS] & 1UL << (size_t)fd % WORD_BITS;
}

/* Returns whether the peer has closed the readable socket, or it has failed, and no byte is left to
 * read. */
static bool
socket_has_ended(int fd)
{
	char byte;
	ssize_t got = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

/* select() has no limit on the number of descriptors. */
static int
fds_select(struct pollfd *pollers, nfds_t count, int timeout_ms, unsigned long *sets, size_t words,
	   int highest)
{
	unsigned long *readable = sets, *writable = sets + words, *failed = sets + 2 * words;
	struct timespec timeout = { timeout_ms / 1000, (long)(timeout_ms % 1000) * 1000000 };
	int found = 0;
	long r;

	for (nfds_t i = 0; i < count; i++) {
		if (pollers[i].fd < 0)
			continue;
		if (pollers[i].events & (READABLE | POLLRDHUP))
			set_add(readable, pollers[i].fd);
		if (pollers[i].events & WRITABLE)
			set_add(writable, pollers[i].fd);
		if (pollers[i].events & POLLPRI)
			set_add(failed, pollers[i].fd);
	}
	r = syscall(SYS_pselect6, highest + 1, readable, writable, failed,
		    timeout_ms < 0 ? NULL : &timeout, NULL);
	for (nfds_t i = 0; i < count; i++) {
		pollers[i].revents = 0;
		if (r <= 0 || pollers[i].fd < 0)
			continue;
		if (set_has(readable, pollers[i].fd))
			pollers[i].revents |= pollers[i].events & READABLE;
		if (pollers[i].events & POLLRDHUP && set_has(readable, pollers[i].fd) &&
		    socket_has_ended(pollers[i].fd))
			pollers[i].revents |= POLLRDHUP;
		if (set_has(writable, pollers[i].fd))
			pollers[i].revents |= pollers[i].events & WRITABLE;
		if (set_has(failed, pollers[i].fd))
			pollers[i].revents |= POLLPRI;
		found += pollers[i].revents != 0;
	}
	return r < 0 ? -1 : found;
}

int
gp_fd_poll(struct pollfd *pollers, nfds_t count, int timeout_ms)
{
	int r = poll(pollers, count, timeout_ms), highest = -1, error;
	unsigned long few[3 * 1024 / WORD_BITS] = { 0 }, *sets = few;
	size_t words;

	if (r >= 0 || errno != EINVAL)
		return r;
	for (nfds_t i = 0; i < count; i++)
		highest = pollers[i].fd > highest ? pollers[i].fd : highest;
	words = (size_t)(highest + 1) / WORD_BITS + 1;
	if (3 * words > sizeof(few) / sizeof(few[0]))
		sets = calloc(3 * words, sizeof(*sets));
	if (!sets)
		return -1;
	r = fds_select(pollers, count, timeout_ms, sets, words, highest);
	error = errno;
	if (sets != few)
		free(sets);
	errno = error;
	return r;
}
