/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/own_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <unistd.h>

/* The signal that an open file would send instead of SIGIO, if it were asked to send any: a number
 * that the kernel keeps for each and uses for none of ours. */
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
	/* Only these say that it is not marked.  Anything else comes from a filter that the program
	 * has put on itself since, which need not let the other question pass either. */
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
