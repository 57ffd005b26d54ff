/* SPDX-License-Identifier: Apache-2.0 */
/* A file that grows past the process's limit. */
#include "base/file_limit.h"
#include "tests/test.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static volatile int signals;

static void
count(int number)
{
	(void)number;
	signals++;
}

UNIT_TEST(test_limit)
{
	struct sigaction action = { .sa_handler = count }, before;
	struct gp_sigxfsz limit;
	struct rlimit files, none;
	int fd = memfd_create("limited", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(sigaction(SIGXFSZ, &action, &before), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &files), 0);
	none = (struct rlimit){ 0, files.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	gp_sigxfsz_block(&limit);
	errno = 0;
	assert_int_equal(ftruncate(fd, 4096), -1);
	gp_sigxfsz_restore(&limit);
	assert_int_equal(errno, EFBIG);
	assert_int_equal(signals, 0);
	gp_sigxfsz_block(&limit);
	assert_int_equal(write(fd, "x", 1), -1);
	gp_sigxfsz_restore(&limit);
	assert_int_equal(signals, 0);
	/* The program's own is the program's. */
	assert_int_equal(ftruncate(fd, 4096), -1);
	/* The thread sanitizer delivers a signal at a call that it knows. */
	(void)usleep(1);
	assert_int_equal(signals, 1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &files), 0);
	assert_int_equal(sigaction(SIGXFSZ, &before, NULL), 0);
	assert_int_equal(close(fd), 0);
}

UNIT_TEST(test_pending_stays)
{
	struct sigaction action = { .sa_handler = count }, before;
	struct gp_sigxfsz limit;
	sigset_t set, mask;

	signals = 0;
	assert_int_equal(sigaction(SIGXFSZ, &action, &before), 0);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGXFSZ);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, &set, &mask), 0);
	assert_int_equal(raise(SIGXFSZ), 0);
	gp_sigxfsz_block(&limit);
	gp_sigxfsz_restore(&limit);
	assert_int_equal(signals, 0);
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &mask, NULL), 0);
	assert_int_equal(signals, 1);
	assert_int_equal(sigaction(SIGXFSZ, &before, NULL), 0);
}

UNIT_TEST_MAIN(NULL, NULL)
