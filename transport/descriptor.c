/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define STANDARD 3

int
gp_fd_away(int fd)
{
	int away, error;

	if (fd < 0 || fd >= STANDARD)
		return fd;
	away = fcntl(fd, F_DUPFD_CLOEXEC, STANDARD);
	error = errno;
	(void)close(fd);
	errno = error;
	return away;
}

void
gp_fd_hold(struct gp_fd_hold *hold)
{
	for (int i = 0; i < STANDARD; i++)
		hold->fds[i] = -1;
	/* The lowest that is free, each time. */
	for (int i = 0; i < STANDARD; i++) {
		int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

		if (fd < 0)
			return;
		if (fd >= STANDARD) {
			(void)close(fd);
			return;
		}
		hold->fds[fd] = fd;
	}
}

void
gp_fd_release(struct gp_fd_hold *hold)
{
	for (int i = 0; i < STANDARD; i++) {
		if (hold->fds[i] >= 0)
			(void)close(hold->fds[i]);
	}
}
