/* SPDX-License-Identifier: Apache-2.0 */
/* Managed pages and the rest of the process: its own fault handlers, and children of fork(). */
#include "tests/unit/client/pages_fixture.h"

#include <stdio.h>
#include <sys/syscall.h>

static sigjmp_buf back;
static atomic_int caught;

static void
own_handler(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	caught++;
	assert_int_equal(info->si_code > 0, 1);
	siglongjmp(back, 1);
}

static void
plain_handler(int number)
{
	(void)number;
	caught += 100;
	siglongjmp(back, 1);
}

/* Whether reading it is a fault of the program's. */
static bool
faults(const void *address)
{
	if (sigsetjmp(back, 1))
		return true;
	(void)READS(address);
	return false;
}

KNOWN(test_program_has_a_handler)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO }, before, temporary;
	const void *nowhere = (const void *)(uintptr_t)reserve(PAGE);

	begin(state);
	caught = 0;
	action.sa_sigaction = own_handler;
	assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	gpc_page_faults_reinstall();
	assert_true(faults(nowhere));
	assert_int_equal(caught, 1);
	assert_false(faults(at(BLOCK)));
	/* Another one, for a while. */
	action = (struct sigaction){ .sa_handler = plain_handler };
	assert_int_equal(sigaction(SIGSEGV, &action, &temporary), 0);
	give();
	assert_true(faults(nowhere));
	assert_int_equal(caught, 101);
	assert_false(faults(at(BLOCK)));
	assert_int_equal(sigaction(SIGSEGV, &temporary, NULL), 0);
	give();
	assert_true(faults(nowhere));
	assert_int_equal(caught, 102);
	assert_false(faults(at(BLOCK)));
	/* What cannot be had is a fault, too. */
	give();
	other.broken = true;
	assert_true(faults(at(BLOCK)));
	assert_int_equal(caught, 103);
	other.broken = false;
	give();
	assert_false(faults(at(BLOCK)));
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
}

/* What gives work must not wait for what was given: its touch is a fault, until it is done. */
KNOWN(test_forbidden)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO }, before;

	begin(state);
	caught = 0;
	action.sa_sigaction = own_handler;
	assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	gpc_pages_begin();
	assert_true(faults(at(BLOCK)));
	gpc_pages_end();
	assert_int_equal(caught, 1);
	assert_false(faults(at(BLOCK)));
	assert_int_equal(READS(at(BLOCK)), other.memory[BLOCK]);
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
}

/* Whatever the program does with the signal. */
KNOWN(test_signal_is_the_programs)
{
	sigset_t all, before;
	struct sigaction found, action = { .sa_handler = SIG_DFL };

	begin(state);
	if (!is_userfault())
		LEAVE("without userfaultfd the signal must be the library's");
	assert_int_equal(sigaction(SIGSEGV, &action, &found), 0);
	assert_int_equal(READS(at(BLOCK)), other.memory[BLOCK]);
	(void)sigfillset(&all);
	assert_int_equal(pthread_sigmask(SIG_BLOCK, &all, &before), 0);
	*at(2 * BLOCK) = 9;
	assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
	give();
	assert_int_equal(other.memory[2 * BLOCK], 9);
	/* And is not taken back. */
	assert_int_equal(sigaction(SIGSEGV, &found, &action), 0);
	assert_ptr_equal(action.sa_handler, SIG_DFL);
}

/* Memory that the program moves faults where it is moved to: other bytes are worse. */
KNOWN(test_moved)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO }, before;
	uint8_t *moved = (uint8_t *)(uintptr_t)reserve(BLOCK);

	begin(state);
	caught = 0;
	action.sa_sigaction = own_handler;
	assert_int_equal(READS(at(3 * BLOCK)), other.memory[3 * BLOCK]);
	assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	gpc_page_faults_reinstall();
	assert_ptr_equal(mremap(at(5 * BLOCK), BLOCK, BLOCK, MREMAP_MAYMOVE | MREMAP_FIXED, moved),
			 moved);
	assert_true(faults(moved + 17));
	assert_int_equal(caught, 1);
	assert_int_equal(munmap(moved, BLOCK), 0);
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
}

/* A handler that calls the one before it, which is ours: no circle. */
static struct sigaction theirs;

static void
calls_the_one_before(int number, siginfo_t *info, void *context)
{
	caught += 1000;
	theirs.sa_sigaction(number, info, context);
}

KNOWN(test_handlers_call_each_other)
{
	struct sigaction action = { .sa_flags = SA_SIGINFO }, before;
	const void *nowhere = (const void *)(uintptr_t)reserve(PAGE);

	begin(state);
	caught = 0;
	action.sa_sigaction = own_handler;
	assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	gpc_page_faults_reinstall();
	action.sa_sigaction = calls_the_one_before;
	assert_int_equal(sigaction(SIGSEGV, &action, &theirs), 0);
	gpc_page_faults_reinstall();
	assert_true(faults(nowhere));
	assert_int_equal(caught, 1001);
	assert_false(faults(at(0)));
	assert_int_equal(caught, 1001);
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
}

/* A handler of another signal touches a page while its thread waits for one. */
static volatile int seen;

static void
touches(int number)
{
	(void)number;
	seen = READS(at(50 * BLOCK));
}

KNOWN(test_nested)
{
	struct sigaction action = { .sa_handler = touches }, before;

	begin(state);
#ifdef __SANITIZE_THREAD__
	LEAVE("the thread sanitizer blocks all signals in a handler");
#endif
	seen = -1;
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	other.interrupted = pthread_self();
	assert_int_equal(READS(at(3 * BLOCK)), other.memory[3 * BLOCK]);
	assert_int_equal(seen, other.memory[50 * BLOCK]);
	assert_int_equal(other.fetches, 2);
	assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
}

static void
child_of_fork(void)
{
	gpc_pages_after_fork(true);
	if (gpc_pages_any() || *at(0) != 11 || READS(at(4 * BLOCK)) != pattern()[4 * BLOCK])
		_exit(1);
	*at(0) = 12;
	*at(4 * BLOCK) = 13;
	if (signal(SIGSEGV, SIG_DFL) == SIG_ERR || *at(0) != 12)
		_exit(2);
	/* What was on the other side. */
	if (memcmp(at(5 * BLOCK), pattern() + 5 * BLOCK, SIZE - 5 * BLOCK) != 0)
		_exit(3);
	*at(9 * BLOCK) = 15;
	_exit(0);
}

KNOWN(test_fork)
{
	pid_t child;
	int status, awaits;

	begin(state);
	*at(0) = 11;
	assert_int_equal(READS(at(4 * BLOCK)), other.memory[4 * BLOCK]);
	awaits = atomic_load(&other.awaits);
	gpc_pages_before_fork();
	child = fork();
	if (child == 0)
		child_of_fork();
	assert_true(child > 0);
	gpc_pages_after_fork(false);
	/* Work may wait for the thread that forks. */
	assert_int_equal(atomic_load(&other.awaits), awaits);
	assert_int_equal(gpc_pages_state(other.base + 9 * BLOCK), GPC_PAGE_REMOTE);
	/* Its own: whatever is written here from now on is not the child's. */
	*at(0) = 14;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(*at(0), 14);
	assert_int_equal(READS(at(4 * BLOCK)), other.memory[4 * BLOCK]);
	give();
	assert_int_equal(other.memory[0], 14);
}

/* Of a session that is over the child has what was here. */
KNOWN(test_fork_without_the_other_side)
{
	pid_t child;
	int status;

	begin(state);
	*at(0) = 11;
	other.broken = true;
	gpc_pages_before_fork();
	child = fork();
	if (child == 0) {
		gpc_pages_after_fork(true);
		if (signal(SIGSEGV, SIG_DFL) == SIG_ERR || *at(0) != 11)
			_exit(1);
		(void)READS(at(9 * BLOCK));
		_exit(2);
	}
	assert_true(child > 0);
	gpc_pages_after_fork(false);
	other.broken = false;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
	assert_int_equal(READS(at(9 * BLOCK)), other.memory[9 * BLOCK]);
}

UNUSED(test_fork_unused)
{
	pid_t child;
	int status;

	begin(state);
	*at(3 * BLOCK) = 7;
	gpc_pages_before_fork();
	child = fork();
	if (child == 0) {
		gpc_pages_after_fork(true);
		_exit(READS(at(3 * BLOCK)) == 7 && READS(at(90 * BLOCK)) == 0 ? 0 : 1);
	}
	assert_true(child > 0);
	gpc_pages_after_fork(false);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_int_equal(atomic_load(&other.fetches), 0);
}

/* A child of which the library does not learn. */
KNOWN(test_raw_fork)
{
	pid_t child;
	int status;

	begin(state);
	child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
	if (child == 0) {
		struct sigaction action = { .sa_handler = SIG_DFL };

		(void)sigaction(SIGSEGV, &action, NULL);
		(void)READS(at(9 * BLOCK));
		_exit(1);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
	assert_int_equal(READS(at(9 * BLOCK)), other.memory[9 * BLOCK]);
}

/* The number of the one userfaultfd in the program's table; -1. */
static int
find_userfaultfd(void)
{
	char name[64], target[64];

	for (int fd = 3; fd < 1024; fd++) {
		ssize_t length;

		(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		length = readlink(name, target, sizeof(target) - 1);
		if (length > 0 && (target[length] = '\0', strstr(target, "[userfaultfd]")))
			return fd;
	}
	return -1;
}

/* Once the program has closed it, all goes on.  The last case: it stays closed. */
KNOWN(test_closed_descriptor)
{
	int fd;

	begin(state);
	if (!is_userfault())
		LEAVE("userfaultfd is not used");
	fd = find_userfaultfd();
	assert_true(fd >= 0);
	*at(0) = 11;
	assert_int_equal(close(fd), 0);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(READS(at(4 * BLOCK)), other.memory[4 * BLOCK]);
		*at(4 * BLOCK + 1) = (uint8_t)(50 + i);
		give_part(4 * BLOCK, BLOCK, false);
		assert_int_equal(other.memory[4 * BLOCK + 1], 50 + i);
		*at(4 * BLOCK + 2) = (uint8_t)(70 + i);
		give();
		assert_int_equal(other.memory[4 * BLOCK + 2], 70 + i);
		gpc_pages_set_unused(other.base + 8 * BLOCK, 4 * BLOCK);
		*at(9 * BLOCK) = (uint8_t)(90 + i);
		give();
		assert_int_equal(other.memory[9 * BLOCK], 90 + i);
		other.memory[4 * BLOCK] = (uint8_t)i;
		if (i == 10)
			assert_int_equal(dup2(STDOUT_FILENO, fd), fd);
	}
	assert_int_equal(other.memory[0], 11);
	assert_int_equal(close(fd), 0);
}

UNIT_TEST_MAIN(NULL, NULL)
