/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/standard_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int
gp_stdio_ensure_open(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* Lower descriptors are open, so open() returns this number. */
		if (open("/dev/null", O_RDWR) < 0)
			return -errno;
	}
	return 0;
}
