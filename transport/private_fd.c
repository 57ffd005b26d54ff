/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/private_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

/* The mark is the signal that the open file would send instead of SIGIO (F_SETSIG). The kernel
 * stores the number for each open file, and the library does not use it otherwise. */
#define MARK_SIGNAL (_NSIG - 1)

static atomic_bool is_unsupported;

void
gp_fd_guard_mark(int fd)
{
	if (fcntl(fd, F_SETSIG, MARK_SIGNAL) && errno != EBADF)
		atomic_store(&is_unsupported, true);
}

bool
gp_fd_guard_is_marked(int fd)
{
	int signal = fcntl(fd, F_GETSIG);

	if (signal == MARK_SIGNAL)
		return true;
	/* Only these results mean that the file is not marked. Any other comes from a seccomp
	 * filter that the program has installed since, which need not allow the following call
	 * either. */
	if (fd < 0 || (signal < 0 && errno == EBADF) ||
	    (signal >= 0 && !atomic_load(&is_unsupported)))
		return false;
	return fcntl(fd, F_GETFD) >= 0 || errno != EBADF;
}

void
gp_fd_guard_close(int fd)
{
	if (gp_fd_guard_is_marked(fd))
		(void)close(fd);
}
