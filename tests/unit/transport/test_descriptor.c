/* SPDX-License-Identifier: Apache-2.0 */
/* What the library opens in a program without standard descriptors.  Each test is a child, whose
 * own may go: it leaves the line of the check that failed, or 0. */
#include "tests/test.h"
#include "transport/descriptor.h"
#include "transport/private_fd.h"
#include "transport/transport.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition))                                                                  \
			return __LINE__;                                                           \
	} while (0)

/* Of a child, besides a line's number. */
#define CANNOT (-1)

/* The lowest number that a socket had, before anybody could put it elsewhere. */
static int lowest = 1000;

int
socket(int family, int type, int protocol)
{
	int (*next)(int, int, int) = (int (*)(int, int, int))dlsym(RTLD_NEXT, "socket");
	int fd = next(family, type, protocol);

	if (fd >= 0 && fd < lowest)
		lowest = fd;
	return fd;
}

/* As one that asks a name server does. */
int
getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
	    struct addrinfo **list)
{
	int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
		(int (*)(const char *, const char *, const struct addrinfo *,
			 struct addrinfo **))dlsym(RTLD_NEXT, "getaddrinfo");

	close(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	return next(name, service, hints, list);
}

static bool
is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static void
close_standard(void)
{
	for (int fd = 0; fd < 3; fd++)
		close(fd);
}

static void
in_child(int (*run)(void))
{
	/* An exit status has eight bits. */
	int *result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int line, status;
	pid_t child;

	assert_ptr_not_equal(result, MAP_FAILED);
	child = fork();
	if (child == 0) {
		*result = run();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	line = *result;
	assert_int_equal(munmap(result, sizeof(*result)), 0);
	assert_int_equal(status, 0);
	if (line == CANNOT)
		LEAVE("this process may not put a filter on itself");
	if (line)
		fail_msg("line %d", line);
}

static int
hold_and_release(void)
{
	close(0);
	close(2);
	errno = EXDEV;
	gp_stdio_placeholders_open();
	REQUIRE(errno == EXDEV);
	for (int fd = 0; fd < 3; fd++)
		REQUIRE(is_open(fd));
	REQUIRE(fcntl(0, F_GETFD) == FD_CLOEXEC && fcntl(2, F_GETFD) == FD_CLOEXEC);
	errno = EXDEV;
	gp_stdio_placeholders_close();
	REQUIRE(errno == EXDEV);
	REQUIRE(!is_open(0) && is_open(1) && !is_open(2));
	return 0;
}

UNIT_TEST(what_is_held_is_given_back)
{
	in_child(hold_and_release);
}

/* Another thread's steps, in between. */
static int
replace_while_held(void)
{
	struct stat before, after;
	int log;

	close_standard();
	gp_stdio_placeholders_open();
	log = memfd_create("log", MFD_CLOEXEC);
	REQUIRE(log == 3 && fstat(log, &before) == 0);
	REQUIRE(dup2(log, 1) == 1 && close(log) == 0);
	/* Of the same kind, but not ours. */
	REQUIRE(close(2) == 0 && open("/dev/null", O_RDWR) == 2);
	gp_stdio_placeholders_close();
	REQUIRE(!is_open(0));
	REQUIRE(fstat(1, &after) == 0 && before.st_ino == after.st_ino);
	REQUIRE(write(1, "x", 1) == 1);
	REQUIRE(is_open(2));
	return 0;
}

UNIT_TEST(what_the_program_put_there_meanwhile_stays)
{
	in_child(replace_while_held);
}

static int
hold_twice(void)
{
	close_standard();
	gp_stdio_placeholders_open();
	gp_stdio_placeholders_open();
	gp_stdio_placeholders_close();
	for (int fd = 0; fd < 3; fd++)
		REQUIRE(is_open(fd));
	/* What has become free meanwhile. */
	close(1);
	gp_stdio_placeholders_open();
	REQUIRE(is_open(1));
	gp_stdio_placeholders_close();
	gp_stdio_placeholders_close();
	for (int fd = 0; fd < 3; fd++)
		REQUIRE(!is_open(fd));
	return 0;
}

UNIT_TEST(the_last_release_gives_them_back)
{
	in_child(hold_twice);
}

static int
without_a_placeholder(void)
{
	int fd;

	close_standard();
	if (chroot("/proc/self/fdinfo"))
		return 0;
	fd = gp_fd_open_socket(AF_UNIX, SOCK_STREAM);
	REQUIRE(fd == 3 && lowest == 0 && !is_open(0));
	REQUIRE(fcntl(fd, F_GETFD) == FD_CLOEXEC);
	return 0;
}

UNIT_TEST(without_a_placeholder_a_socket_goes_elsewhere_at_once)
{
	in_child(without_a_placeholder);
}

static int
connect_to_nobody(void)
{
	struct gp_url url = { .scheme = "tcp", .host = "localhost", .port = 1 };
	struct gp_conn *conn;
	char error[256];

	close_standard();
	REQUIRE(gp_connect(&url, NULL, 0, 1000, &conn, error, sizeof(error)) < 0);
	REQUIRE(lowest >= 3 && lowest < 1000);
	url = (struct gp_url){ .scheme = "unix", .host = "/nowhere/socket" };
	lowest = 1000;
	REQUIRE(gp_connect(&url, NULL, 0, 1000, &conn, error, sizeof(error)) < 0);
	REQUIRE(lowest >= 3 && lowest < 1000);
	for (int fd = 0; fd < 3; fd++)
		REQUIRE(!is_open(fd));
	return 0;
}

UNIT_TEST(no_socket_has_one_of_the_numbers_even_for_a_moment)
{
	in_child(connect_to_nobody);
}

/* From now on this command of fcntl(), below 0: each one, is refused to this process; false: that
 * cannot be had here. */
static bool
refuse_fcntl(int command)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fcntl, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)command, 0, command < 0 ? 0 : 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* A program that shuts itself in behind cuInit(). */
static int
shut_in(int command)
{
	int marked = eventfd(0, EFD_CLOEXEC), other = eventfd(0, EFD_CLOEXEC);

	gp_fd_guard_mark(marked);
	REQUIRE(gp_fd_guard_is_marked(marked) && !gp_fd_guard_is_marked(other));
	if (!refuse_fcntl(command))
		return CANNOT;
	REQUIRE(fcntl(marked, F_GETSIG) == -1 && errno == EPERM);
	REQUIRE(gp_fd_guard_is_marked(marked));
	REQUIRE(!gp_fd_guard_is_marked(-1));
	gp_fd_guard_close(marked);
	/* Where closed ones can be told at all. */
	REQUIRE(command < 0 || !gp_fd_guard_is_marked(marked));
	return 0;
}

static int
without_the_mark(void)
{
	return shut_in(F_GETSIG);
}

static int
without_any_question(void)
{
	return shut_in(-1);
}

UNIT_TEST(who_may_not_look_for_the_mark_keeps_what_is_open)
{
	in_child(without_the_mark);
	in_child(without_any_question);
}

UNIT_TEST_MAIN(NULL, NULL)
