/* SPDX-License-Identifier: Apache-2.0 */
#include "base/userfault.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Missing in headers of older kernels. */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif
#ifndef UFFD_FEATURE_WP_HUGETLBFS_SHMEM
#define UFFD_FEATURE_WP_HUGETLBFS_SHMEM (1 << 12)
#endif
#ifndef UFFDIO_CONTINUE_MODE_WP
#define UFFDIO_CONTINUE_MODE_WP ((__u64)1 << 1)
#endif

/* Bytes compared at once where pages cannot be mapped write-protected; a multiple of the page
 * size. */
#define COMPARE_SIZE ((uint64_t)64 << 10)

/* EVENT_REMAP: a mapping that the program moves with mremap() keeps reporting faults at its new
 * address. */
#define FEATURES                                                                                   \
	(UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MINOR_SHMEM | UFFD_FEATURE_PAGEFAULT_FLAG_WP |  \
	 UFFD_FEATURE_WP_HUGETLBFS_SHMEM | UFFD_FEATURE_THREAD_ID | UFFD_FEATURE_EVENT_REMAP)

/* Whether pages can be mapped write-protected (Linux 6.4). */
static atomic_bool maps_protected;

static int
userfault_open_device(void)
{
	int device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC), fd, error;

	if (device < 0)
		return -1;
	fd = ioctl(device, USERFAULTFD_IOC_NEW, O_CLOEXEC);
	error = errno;
	(void)close(device);
	errno = error;
	return fd;
}

/* The kernel checks the mode before the range: an unsupported mode fails with EINVAL, a supported
 * one with the error of a range that is not registered. */
static bool
userfault_maps_protected(int fd)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct uffdio_continue request = { .range = { .start = page, .len = page },
					   .mode = UFFDIO_CONTINUE_MODE_WP };

	return ioctl(fd, UFFDIO_CONTINUE, &request) == 0 || errno != EINVAL;
}

int
gp_userfault_open(bool *in_kernel_p)
{
	struct uffdio_api api = { .api = UFFD_API, .features = FEATURES };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC), r;

	if (fd < 0)
		fd = userfault_open_device();
	*in_kernel_p = fd >= 0;
	if (fd < 0)
		fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (fd < 0)
		return -errno;
	r = ioctl(fd, UFFDIO_API, &api) ? -errno : 0;
	if (r == 0) {
		atomic_store(&maps_protected, userfault_maps_protected(fd));
		return fd;
	}
	(void)close(fd);
	return r;
}

static int
userfault_register(int fd, uint64_t base, uint64_t size, uint64_t mode)
{
	struct uffdio_register request = { .range = { .start = base, .len = size }, .mode = mode };

	return ioctl(fd, UFFDIO_REGISTER, &request) ? -errno : 0;
}

int
gp_userfault_register(int fd, uint64_t base, uint64_t size)
{
	return userfault_register(fd, base, size,
				  UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR |
					  UFFDIO_REGISTER_MODE_WP);
}

int
gp_userfault_register_missing(int fd, uint64_t base, uint64_t size)
{
	return userfault_register(fd, base, size, UFFDIO_REGISTER_MODE_MISSING);
}

int
gp_userfault_unregister(int fd, uint64_t base, uint64_t size)
{
	struct uffdio_range range = { .start = base, .len = size };

	return ioctl(fd, UFFDIO_UNREGISTER, &range) ? -errno : 0;
}

static int
userfault_map(int fd, uint64_t base, uint64_t size, uint64_t mode)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), end = base + size;
	bool is_skipped = false;

	for (uint64_t at = base; at < end;) {
		struct uffdio_continue request = {
			.range = { .start = at, .len = end - at },
			.mode = mode,
		};

		if (ioctl(fd, UFFDIO_CONTINUE, &request) == 0)
			break;
		if (request.mapped > 0) {
			at += (uint64_t)request.mapped;
		} else if (errno == EEXIST) {
			is_skipped = true;
			at += page;
		} else if (errno == EAGAIN) {
			/* Another thread is moving a mapping. */
			(void)sched_yield();
		} else {
			return -errno;
		}
	}
	/* Pages that were already mapped do not wake their waiting threads. */
	return is_skipped && !(mode & UFFDIO_CONTINUE_MODE_DONTWAKE)
		       ? gp_userfault_wake(fd, base, size)
		       : 0;
}

int
gp_userfault_map(int fd, uint64_t base, uint64_t size)
{
	return userfault_map(fd, base, size, 0);
}

/* Returns 1 if a page was written after it was mapped and before it was protected. */
static int
userfault_map_then_protect(int fd, uint64_t base, uint64_t size, const void *bytes)
{
	uint8_t before[COMPARE_SIZE];
	int r;

	memcpy(before, bytes, size);
	r = userfault_map(fd, base, size, UFFDIO_CONTINUE_MODE_DONTWAKE);
	if (r == 0)
		r = gp_userfault_protect(fd, base, size, false);
	return r ? r : memcmp(before, bytes, size) != 0;
}

int
gp_userfault_map_protected(int fd, uint64_t base, uint64_t size, const void *bytes)
{
	bool is_written = false;

	if (atomic_load(&maps_protected))
		return userfault_map(fd, base, size, UFFDIO_CONTINUE_MODE_WP);
	for (uint64_t at = 0; at < size; at += COMPARE_SIZE) {
		uint64_t part = size - at < COMPARE_SIZE ? size - at : COMPARE_SIZE;
		int r = userfault_map_then_protect(fd, base + at, part,
						   (const uint8_t *)bytes + at);

		if (r < 0)
			return r;
		is_written |= r > 0;
	}
	if (is_written) {
		int r = gp_userfault_protect(fd, base, size, true);

		return r ? r : 1;
	}
	return gp_userfault_wake(fd, base, size);
}

void
gp_userfault_set_emulate_old(bool is_old)
{
	atomic_store(&maps_protected, !is_old);
}

int
gp_userfault_protect(int fd, uint64_t base, uint64_t size, bool is_writable)
{
	struct uffdio_writeprotect request = {
		.range = { .start = base, .len = size },
		.mode = is_writable ? 0 : UFFDIO_WRITEPROTECT_MODE_WP,
	};
	int r;

	while ((r = ioctl(fd, UFFDIO_WRITEPROTECT, &request)) && errno == EAGAIN)
		(void)sched_yield();
	return r ? -errno : 0;
}

int
gp_userfault_wake(int fd, uint64_t base, uint64_t size)
{
	struct uffdio_range range = { .start = base, .len = size };

	return ioctl(fd, UFFDIO_WAKE, &range) ? -errno : 0;
}

int
gp_userfault_map_zeros(int fd, uint64_t base, uint64_t size)
{
	struct uffdio_zeropage request = { .range = { .start = base, .len = size } };

	return ioctl(fd, UFFDIO_ZEROPAGE, &request) ? -errno : 0;
}

int
gp_userfault_read(int fd, struct gp_userfault_event *events)
{
	struct uffd_msg messages[GP_USERFAULT_EVENTS];
	ssize_t got = read(fd, messages, sizeof(messages));
	int count = 0;

	if (got < 0)
		return -errno;
	for (size_t i = 0; i < (size_t)got / sizeof(messages[0]); i++) {
		const struct uffd_msg *message = &messages[i];

		if (message->event != UFFD_EVENT_PAGEFAULT)
			continue;
		events[count++] = (struct gp_userfault_event){
			.address = message->arg.pagefault.address,
			.thread = (int)message->arg.pagefault.feat.ptid,
			.is_write = message->arg.pagefault.flags &
				    (UFFD_PAGEFAULT_FLAG_WRITE | UFFD_PAGEFAULT_FLAG_WP),
		};
	}
	return count;
}
