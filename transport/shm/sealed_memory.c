/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/shm/sealed_memory.h"

#include "base/file_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

int
gp_sealed_create(const char *name, size_t size, bool now)
{
	/* Not every C library that the client meets has the function. */
	int fd = (int)syscall(SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct gp_file_limit limit;
	int r = 0;

	if (fd < 0)
		return -errno;
	gp_file_limit_begin(&limit);
	if (ftruncate(fd, (off_t)size) || (now && fallocate(fd, 0, 0, (off_t)size)) ||
	    fcntl(fd, F_ADD_SEALS, SEALS))
		r = -errno;
	gp_file_limit_end(&limit);
	if (r == 0)
		return fd;
	(void)close(fd);
	return r;
}

int
gp_sealed_check(int fd, size_t *size_p)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat status;

	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &status) || status.st_size <= 0)
		return GP_E_INVALID;
	*size_p = (size_t)status.st_size;
	return 0;
}
