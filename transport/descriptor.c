/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/descriptor.h"

#include "base/lock.h"
#include "transport/private_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define STDIO_COUNT 3
#define PLACEHOLDER "/dev/null"

/* The last user closes the placeholders, because another thread may still be resolving a name. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int users GP_GUARDED_BY(lock);
static bool is_open[STDIO_COUNT] GP_GUARDED_BY(lock);

int
gp_fd_move_above_stdio(int fd)
{
	int away, error;

	if (fd < 0 || fd >= STDIO_COUNT)
		return fd;
	away = fcntl(fd, F_DUPFD_CLOEXEC, STDIO_COUNT);
	error = errno;
	(void)close(fd);
	errno = error;
	return away;
}

void
gp_stdio_placeholders_open(void)
{
	int error = errno;

	(void)pthread_mutex_lock(&lock);
	users++;
	/* open() returns the lowest free descriptor. */
	for (int i = 0; i < STDIO_COUNT; i++) {
		int fd = open(PLACEHOLDER, O_RDWR | O_CLOEXEC);

		if (fd >= STDIO_COUNT)
			(void)close(fd);
		if (fd < 0 || fd >= STDIO_COUNT)
			break;
		gp_fd_guard_mark(fd);
		is_open[fd] = true;
	}
	(void)pthread_mutex_unlock(&lock);
	errno = error;
}

/* The mark alone is not sufficient in a sandbox that does not support marks. */
static bool
placeholder_is_open(int fd)
{
	struct stat here, there;

	return gp_fd_guard_is_marked(fd) && fstat(fd, &here) == 0 &&
	       stat(PLACEHOLDER, &there) == 0 && here.st_dev == there.st_dev &&
	       here.st_ino == there.st_ino;
}

void
gp_stdio_placeholders_close(void)
{
	int error = errno;

	(void)pthread_mutex_lock(&lock);
	users--;
	for (int fd = 0; users == 0 && fd < STDIO_COUNT; fd++) {
		if (is_open[fd] && placeholder_is_open(fd))
			(void)close(fd);
		is_open[fd] = false;
	}
	(void)pthread_mutex_unlock(&lock);
	errno = error;
}

int
gp_fd_open_socket(int family, int type)
{
	int fd;

	gp_stdio_placeholders_open();
	/* In case the placeholders could not be opened. */
	fd = gp_fd_move_above_stdio(socket(family, type | SOCK_CLOEXEC, 0));
	gp_stdio_placeholders_close();
	return fd;
}
