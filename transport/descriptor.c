/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/descriptor.h"

#include "base/lock.h"
#include "transport/own_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define STANDARD 3
#define PLACEHOLDER "/dev/null"

/* Who is last gives the numbers back: another thread may be at a look-up still. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int holds GP_GUARDED_BY(lock);
static bool held[STANDARD] GP_GUARDED_BY(lock);

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
gp_fd_hold(void)
{
	int error = errno;

	(void)pthread_mutex_lock(&lock);
	holds++;
	/* The lowest that is free, each time. */
	for (int i = 0; i < STANDARD; i++) {
		int fd = open(PLACEHOLDER, O_RDWR | O_CLOEXEC);

		if (fd >= STANDARD)
			(void)close(fd);
		if (fd < 0 || fd >= STANDARD)
			break;
		gp_own_fd_mark(fd);
		held[fd] = true;
	}
	(void)pthread_mutex_unlock(&lock);
	errno = error;
}

/* The mark alone does not tell where a sandbox knows none. */
static bool
is_placeholder(int fd)
{
	struct stat here, there;

	return gp_own_fd_is(fd) && fstat(fd, &here) == 0 && stat(PLACEHOLDER, &there) == 0 &&
	       here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

void
gp_fd_release(void)
{
	int error = errno;

	(void)pthread_mutex_lock(&lock);
	holds--;
	for (int fd = 0; holds == 0 && fd < STANDARD; fd++) {
		if (held[fd] && is_placeholder(fd))
			(void)close(fd);
		held[fd] = false;
	}
	(void)pthread_mutex_unlock(&lock);
	errno = error;
}

int
gp_fd_socket(int family, int type)
{
	int fd;

	gp_fd_hold();
	/* Where there was nothing to hold the numbers with. */
	fd = gp_fd_away(socket(family, type | SOCK_CLOEXEC, 0));
	gp_fd_release();
	return fd;
}
