/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/shm/sealed_memory.h"

#include "base/file_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/memfd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

int
gp_sealed_create(const char *name, size_t size, bool now)
{
	/* memfd_create() is missing in some C libraries that the client runs with. */
	int fd = (int)syscall(SYS_memfd_create, name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct gp_sigxfsz limit;
	int r = 0;

	if (fd < 0)
		return -errno;
	gp_sigxfsz_block(&limit);
	if (ftruncate(fd, (off_t)size) || (now && fallocate(fd, 0, 0, (off_t)size)) ||
	    fcntl(fd, F_ADD_SEALS, SEALS))
		r = -errno;
	gp_sigxfsz_restore(&limit);
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

bool
gp_sealed_has_name(int fd, const char *name)
{
	char path[64], link[128], expected[128];
	ssize_t length;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	(void)snprintf(expected, sizeof(expected), "/memfd:%s ", name);
	length = fd < 0 ? -1 : readlink(path, link, sizeof(link));
	return length >= (ssize_t)strlen(expected) && memcmp(link, expected, strlen(expected)) == 0;
}

int
gp_sealed_alloc_pages(int fd, uint64_t offset, uint64_t size)
{
	struct gp_sigxfsz limit;
	int r;

	gp_sigxfsz_block(&limit);
	r = fallocate(fd, 0, (off_t)offset, (off_t)size) ? -errno : 0;
	gp_sigxfsz_restore(&limit);
	return r;
}

void
gp_sealed_free_pages(int fd, uint64_t offset, uint64_t size)
{
	(void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)size);
}
