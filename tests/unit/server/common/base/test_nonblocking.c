/* SPDX-License-Identifier: Apache-2.0 */
/* In a section that must not block, calls that can block end the process, and others do not. */
#include "server/common/base/nonblocking.h"
#include "tests/test.h"

#include <fcntl.h>
#include <netdb.h>
#include <openssl/bio.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int blocking[2], other[2];

static void
send_waiting(void)
{
	(void)!send(blocking[0], "", 1, MSG_NOSIGNAL);
}

static void
send_now(void)
{
	(void)!send(blocking[0], "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)!send(other[0], "", 1, MSG_NOSIGNAL);
}

static void
write_waiting(void)
{
	(void)!write(blocking[0], "", 1);
}

/* A call from a shared library. */
static void
write_by_openssl(void)
{
	BIO *bio = BIO_new_socket(blocking[0], BIO_NOCLOSE);

	(void)BIO_write(bio, "", 1);
}

static void
recv_waiting(void)
{
	char byte;

	(void)!recv(blocking[0], &byte, 1, 0);
}

static void
recv_now(void)
{
	char byte;

	(void)!recv(blocking[0], &byte, 1, MSG_DONTWAIT);
	(void)!recv(other[0], &byte, 1, 0);
}

static void
poll_waiting(void)
{
	(void)poll(NULL, 0, 1);
}

static void
poll_now(void)
{
	(void)poll(NULL, 0, 0);
}

static void
look_up(void)
{
	struct addrinfo *list;

	if (getaddrinfo("localhost", NULL, NULL, &list) == 0)
		freeaddrinfo(list);
}

static void
sync_file(void)
{
	(void)fsync(blocking[0]);
}

static void
wait_for_child(void)
{
	(void)waitpid(-1, NULL, 0);
}

static void
look_for_child(void)
{
	(void)waitpid(-1, NULL, WNOHANG);
}

static void
suspended(void)
{
	unsigned int depth = gpd_nonblocking_leave();

	poll_waiting();
	gpd_nonblocking_reenter(depth);
}

static void
resumed(void)
{
	suspended();
	poll_waiting();
}

static void
nested(void)
{
	gpd_nonblocking_begin();
	gpd_nonblocking_end();
	poll_waiting();
}

static void
ended(void)
{
	gpd_nonblocking_end();
	poll_waiting();
	gpd_nonblocking_begin();
}

static void *
poll_elsewhere(void *arg)
{
	poll_waiting();
	return arg;
}

static void
another_thread(void)
{
	unsigned int depth;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, poll_elsewhere, NULL), 0);
	depth = gpd_nonblocking_leave();
	(void)pthread_join(thread, NULL);
	gpd_nonblocking_reenter(depth);
}

UNIT_TEST(calls_that_can_block_end_the_process)
{
	static const struct {
		const char *name;
		void (*call)(void);
		bool ends;
	} cases[] = {
		{ "send", send_waiting, true },
		{ "send, not waiting", send_now, false },
		{ "write", write_waiting, true },
		{ "write of OpenSSL", write_by_openssl, true },
		{ "recv", recv_waiting, true },
		{ "recv, not waiting", recv_now, false },
		{ "poll", poll_waiting, true },
		{ "poll, not waiting", poll_now, false },
		{ "getaddrinfo", look_up, true },
		{ "fsync", sync_file, true },
		{ "waitpid", wait_for_child, true },
		{ "waitpid, not waiting", look_for_child, false },
		{ "suspended", suspended, false },
		{ "resumed", resumed, true },
		{ "nested", nested, true },
		{ "ended", ended, false },
		{ "another thread", another_thread, false },
	};

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, blocking), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, other), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			(void)dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
			(void)signal(SIGABRT, SIG_DFL);
			/* A byte is there for those that wait for one. */
			(void)!write(blocking[1], "", 1);
			gpd_nonblocking_begin();
			cases[i].call();
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		if (cases[i].ends != (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT))
			fail_msg("%s: status %d", cases[i].name, status);
	}
}

UNIT_TEST_MAIN(NULL, NULL)
