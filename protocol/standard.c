/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/standard.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int
gp_stdio_ensure_open(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* Those below are open, so this is the number that it gets. */
		if (open("/dev/null", O_RDWR) < 0)
			return -errno;
	}
	return 0;
}
