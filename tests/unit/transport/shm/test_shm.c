/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What only shared memory has; the rest is the contract's.  One end is the library's, the other one
 * is the test's: a socket, and the memory that came over it.
 */
#include "tests/test.h"
#include "transport/shm/sealed_memory.h"
#include "transport/shm/shm_ring.h"
#include "transport/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define GREETING "gpupool shm 1"

/* The library's calls, which a test counts. */
static atomic_int polls, bounded_polls, wakes_sent;

int
poll(struct pollfd *fds, nfds_t count, int timeout)
{
	if (timeout > 0)
		atomic_fetch_add(&bounded_polls, 1);
	if (timeout != 0)
		atomic_fetch_add(&polls, 1);
	return (int)syscall(SYS_poll, fds, count, timeout);
}

ssize_t
send(int fd, const void *bytes, size_t size, int flags)
{
	atomic_fetch_add(&wakes_sent, 1);
	return syscall(SYS_sendto, fd, bytes, size, flags, NULL, 0);
}

struct peer {
	struct gp_conn *daemon; /* the library's end */
	int fd, memory_fd;
	struct gp_rings rings;
};

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(2 * sizeof(int))];
};

static int
take_descriptor(int fd)
{
	char text[64];
	struct iovec iov = { text, sizeof(text) };
	union control control = { 0 };
	struct msghdr message = { .msg_iov = &iov,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };
	int taken;

	assert_int_equal(recvmsg(fd, &message, 0), sizeof(GREETING));
	assert_string_equal(text, GREETING);
	assert_int_equal(control.header.cmsg_len, CMSG_LEN(sizeof(int)));
	memcpy(&taken, CMSG_DATA(&control.header), sizeof(taken));
	return taken;
}

static int
meet(void **state)
{
	struct peer *peer = calloc(1, sizeof(*peer));
	int ends[2];
	size_t size;

	assert_non_null(peer);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(gp_conn_adopt("shm", ends[0], &peer->daemon), 0);
	peer->fd = ends[1];
	peer->memory_fd = take_descriptor(peer->fd);
	assert_int_equal(gp_sealed_check(peer->memory_fd, &size), 0);
	assert_int_equal(gp_rings_map(&peer->rings, peer->memory_fd, size, false), 0);
	*state = peer;
	return 0;
}

static int
part(void **state)
{
	struct peer *peer = *state;

	gp_conn_destroy(peer->daemon);
	gp_rings_unmap(&peer->rings);
	close(peer->memory_fd);
	if (peer->fd >= 0)
		close(peer->fd);
	free(peer);
	return 0;
}

static void
put(struct peer *peer, const void *bytes, size_t size)
{
	struct iovec iov = { (void *)bytes, size };

	assert_int_equal(gp_ring_write(&peer->rings.out, &iov, 1), size);
}

static void
put_message(struct peer *peer, const char *text)
{
	uint32_t header[2] = { (uint32_t)strlen(text), 0 };

	put(peer, header, sizeof(header));
	put(peer, text, strlen(text));
}

static int
poll_for(int fd)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };

	return poll(&poller, 1, 0);
}

#define SHM_TEST(test) UNIT_TEST_WITH(test, meet, part)

SHM_TEST(nobody_can_change_the_memorys_size)
{
	struct peer *peer = *state;
	size_t size = 0;

	assert_int_equal(gp_sealed_check(peer->memory_fd, &size), 0);
	assert_int_equal(ftruncate(peer->memory_fd, 0), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(peer->memory_fd, (off_t)size * 2), -1);
	assert_int_equal(errno, EPERM);
	/* Nor can it take the right to write from the other end. */
	assert_int_equal(fcntl(peer->memory_fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	assert_int_equal(errno, EPERM);
	/* A hole is zeros. */
	assert_int_equal(fallocate(peer->memory_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
				   (off_t)size),
			 0);
	put_message(peer, "still there");
	struct gp_message message;

	assert_int_equal(gp_conn_recv(peer->daemon, &message), 0);
	assert_memory_equal(message.data, "still there", message.size);
}

SHM_TEST(a_record_is_the_receivers_own)
{
	struct peer *peer = *state;
	struct gp_message message;

	put_message(peer, "as it was checked");
	assert_int_equal(gp_conn_recv(peer->daemon, &message), 0);
	memset(peer->rings.out.bytes, 'x', peer->rings.out.size);

	assert_int_equal(message.size, 17);
	assert_memory_equal(message.data, "as it was checked", 17);
}

SHM_TEST(positions_that_cannot_be_end_the_connection)
{
	struct peer *peer = *state;
	struct gp_message message;
	struct iovec iov = { "x", 1 };

	atomic_store(&peer->rings.out.header->tail, peer->rings.out.size + 1);
	assert_int_equal(gp_conn_recv(peer->daemon, &message), -EPROTO);
	assert_int_equal(gp_conn_wait(peer->daemon, 0), -EPROTO);
	atomic_store(&peer->rings.in.header->head, GP_RING_SIZE_MAX);
	assert_int_equal(gp_conn_send(peer->daemon, &iov, 1, NULL, 0), -EPROTO);
	assert_string_not_equal(gp_conn_error(peer->daemon), "");
}

SHM_TEST(who_breaks_the_one_ring_is_not_read_from_in_the_other_one)
{
	struct peer *peer = *state;
	struct gp_message message;
	struct iovec iov = { "x", 1 };

	atomic_store(&peer->rings.in.header->head, GP_RING_SIZE_MAX);
	assert_int_equal(gp_conn_send(peer->daemon, &iov, 1, NULL, 0), -EPROTO);
	assert_int_equal(gp_conn_wait(peer->daemon, -1), -EPROTO);
	assert_int_equal(gp_conn_recv(peer->daemon, &message), -EPROTO);
}

SHM_TEST(a_tail_that_goes_back_ends_the_connection)
{
	struct peer *peer = *state;
	struct gp_message message;

	put_message(peer, "one");
	assert_int_equal(gp_conn_recv(peer->daemon, &message), 0);
	atomic_store(&peer->rings.out.header->tail, 0);
	assert_int_equal(gp_conn_recv(peer->daemon, &message), -EPROTO);
}

/* Until the socket has no room for wake-ups: the daemon goes on. */
SHM_TEST(wake_ups_that_nobody_takes_stop_nobody)
{
	struct peer *peer = *state;
	struct iovec iov = { "x", 1 };
	uint8_t bytes[9];
	struct iovec mine = { bytes, sizeof(bytes) };
	int before = atomic_load(&wakes_sent);

	for (int i = 0; i < 20000; i++) {
		gp_ring_arm(&peer->rings.in);
		assert_int_equal(gp_conn_send(peer->daemon, &iov, 1, NULL, 0), 0);
		assert_int_equal(gp_ring_read(&peer->rings.in, &mine, 1), sizeof(bytes));
	}
	assert_int_equal(atomic_load(&wakes_sent) - before, 20000);
}

SHM_TEST(wake_ups_without_bytes_make_no_wait_longer)
{
	struct peer *peer = *state;
	char bytes[1000] = { 0 };

	for (int i = 0; i < 50; i++)
		assert_int_equal(write(peer->fd, bytes, sizeof(bytes)), sizeof(bytes));
	assert_int_equal(gp_conn_wait(peer->daemon, 0), 0);
	assert_int_equal(gp_conn_wait(peer->daemon, 20), 0);
	put_message(peer, "x");
	assert_int_equal(gp_conn_wait(peer->daemon, 0), 1);
}

SHM_TEST(a_reader_in_time_is_not_woken)
{
	struct peer *peer = *state;
	struct iovec iov = { "x", 1 };
	uint8_t bytes[9];
	struct iovec mine = { bytes, sizeof(bytes) };
	int before = atomic_load(&wakes_sent);

	for (int i = 0; i < 100; i++) {
		assert_int_equal(gp_conn_send(peer->daemon, &iov, 1, NULL, 0), 0);
		assert_int_equal(gp_ring_read(&peer->rings.in, &mine, 1), sizeof(bytes));
	}
	assert_int_equal(atomic_load(&wakes_sent), before);
}

/* As a library's own thread polls while one of the program reads its answer itself. */
SHM_TEST(who_polls_is_woken_although_another_one_reads)
{
	struct peer *peer = *state;
	struct gp_message message;

	assert_int_equal(poll_for(gp_conn_fd(peer->daemon)), 0);
	put_message(peer, "one");
	assert_true(gp_ring_must_wake(&peer->rings.out));
	assert_int_equal(write(peer->fd, "", 1), 1);
	assert_int_equal(gp_conn_recv(peer->daemon, &message), 0);
	assert_int_equal(gp_conn_wait(peer->daemon, 0), 0);
	assert_false(gp_conn_pending(peer->daemon));
	put_message(peer, "two");
	assert_true(gp_ring_must_wake(&peer->rings.out));
	assert_true(gp_conn_pending(peer->daemon));
	assert_int_equal(gp_conn_recv(peer->daemon, &message), 0);
	gp_conn_fd_unwatch(peer->daemon);
	assert_int_equal(gp_conn_wait(peer->daemon, 0), 0);
	put_message(peer, "three");
	assert_false(gp_ring_must_wake(&peer->rings.out));
}

static void *
receive_one(void *arg)
{
	struct peer *peer = arg;
	struct gp_message message;

	return (void *)(intptr_t)gp_conn_recv(peer->daemon, &message);
}

static intptr_t
result_of(pthread_t thread)
{
	void *result;

	assert_int_equal(pthread_join(thread, &result), 0);
	return (intptr_t)result;
}

static void
wait_until(const atomic_uint *word)
{
	while (!atomic_load(word))
		sched_yield();
}

/* A sleeping thread sleeps until it is woken: it has no timeout. */
SHM_TEST(an_idle_reader_sleeps)
{
	struct peer *peer = *state;
	int before = atomic_load(&polls), bounded = atomic_load(&bounded_polls);
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, receive_one, peer), 0);
	wait_until(&peer->rings.out.header->reader_waits);
	while (atomic_load(&polls) == before)
		sched_yield();
	put_message(peer, "x");
	assert_true(gp_ring_must_wake(&peer->rings.out));
	assert_false(gp_ring_must_wake(&peer->rings.out));
	assert_int_equal(write(peer->fd, "", 1), 1);
	assert_int_equal(result_of(thread), 0);
	assert_int_equal(atomic_load(&polls) - before, 1);
	assert_int_equal(atomic_load(&bounded_polls), bounded);
}

SHM_TEST(what_a_peer_wrote_before_its_end_is_read)
{
	struct peer *peer = *state;
	struct gp_message message;

	put_message(peer, "last");
	close(peer->fd);
	peer->fd = -1;
	assert_int_equal(gp_conn_recv(peer->daemon, &message), 0);
	assert_memory_equal(message.data, "last", 4);
	assert_int_equal(gp_conn_recv(peer->daemon, &message), GP_E_EOF);
}

static void *
send_for_ever(void *arg)
{
	struct peer *peer = arg;
	static uint8_t bytes[100000];
	struct iovec iov = { bytes, sizeof(bytes) };
	int r;

	do
		r = gp_conn_send(peer->daemon, &iov, 1, NULL, 0);
	while (r == 0);
	return (void *)(intptr_t)r;
}

/* The process ended without a message: only the socket shows it. */
SHM_TEST(a_writer_without_room_notices_that_its_peer_is_gone)
{
	struct peer *peer = *state;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, send_for_ever, peer), 0);
	wait_until(&peer->rings.in.header->writer_waits);
	close(peer->fd);
	peer->fd = -1;
	assert_int_equal(result_of(thread), -EPIPE);
}

UNIT_TEST(a_killed_process_ends_the_connection)
{
	struct gp_message message;
	struct gp_conn *daemon;
	int ends[2], status;
	pid_t child;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(gp_conn_adopt("shm", ends[0], &daemon), 0);
	child = fork();
	if (child == 0) {
		struct peer peer = { .fd = ends[1] };
		size_t size;

		peer.memory_fd = take_descriptor(peer.fd);
		if (gp_sealed_check(peer.memory_fd, &size) ||
		    gp_rings_map(&peer.rings, peer.memory_fd, size, false))
			_exit(1);
		put(&peer, "\x10\0\0\0", 4);
		(void)kill(getpid(), SIGKILL);
	}
	close(ends[1]);
	/* In the middle of a message. */
	assert_int_equal(gp_conn_recv(daemon, &message), -ECONNRESET);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	gp_conn_destroy(daemon);
}

/* The peer of a_message_orders_what_comes_before_its_reply: replies to one message. */
static void
reply_once(int fd)
{
	struct peer peer = { .fd = fd };
	uint8_t bytes[64];
	struct iovec iov = { bytes, sizeof(bytes) };
	size_t size;

	peer.memory_fd = take_descriptor(peer.fd);
	if (gp_sealed_check(peer.memory_fd, &size) ||
	    gp_rings_map(&peer.rings, peer.memory_fd, size, false))
		_exit(1);
	while (gp_ring_read(&peer.rings.in, &iov, 1) == 0)
		sched_yield();
	put_message(&peer, "reply");
	(void)!write(peer.fd, "", 1);
	/* Until the other end has closed the connection. */
	(void)!read(peer.fd, bytes, sizeof(bytes));
	_exit(0);
}

struct ordered {
	struct gp_conn *conn;
	int value; /* not atomic: only the messages order its users */
};

static void *
send_after_change(void *arg)
{
	struct ordered *ordered = arg;
	struct iovec iov = { "message", 7 };

	ordered->value = 1;
	return (void *)(intptr_t)gp_conn_send(ordered->conn, &iov, 1, NULL, 0);
}

static void *
change_after_reply(void *arg)
{
	struct ordered *ordered = arg;
	struct gp_message message;
	int r = gp_conn_recv(ordered->conn, &message);

	ordered->value++;
	return (void *)(intptr_t)r;
}

/* ThreadSanitizer, which does not see the other process, must not report a race. */
UNIT_TEST(a_message_orders_what_comes_before_its_reply)
{
	struct ordered ordered = { 0 };
	pthread_t sender, receiver;
	int ends[2], status;
	pid_t child;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(gp_conn_adopt("shm", ends[0], &ordered.conn), 0);
	child = fork();
	if (child == 0) {
		close(ends[0]);
		reply_once(ends[1]);
	}
	close(ends[1]);
	assert_int_equal(pthread_create(&receiver, NULL, change_after_reply, &ordered), 0);
	assert_int_equal(pthread_create(&sender, NULL, send_after_change, &ordered), 0);
	assert_int_equal(result_of(receiver), 0);
	assert_int_equal(result_of(sender), 0);
	assert_int_equal(ordered.value, 2);
	gp_conn_destroy(ordered.conn);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

/* Errors at a client's socket: the number and kind of descriptors, and the resulting text. */
struct offer {
	const char *text;
	size_t text_size;
	int fd, count;
};

static void *
make_offer(void *arg)
{
	const struct offer *offer = arg;
	int fd = accept(offer->fd, NULL, NULL);
	struct iovec iov = { (void *)offer->text, offer->text_size };
	union control control = { 0 };
	struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };
	size_t size = sizeof(int) * (size_t)(offer->count < 0 ? 1 : offer->count);
	int memory_fds[2];
	char preamble[8];

	if (recv(fd, preamble, sizeof(preamble), MSG_WAITALL) != sizeof(preamble))
		return NULL;
	for (int i = 0; i < 2; i++)
		memory_fds[i] = offer->count < 0 ? memfd_create("open", MFD_ALLOW_SEALING)
						 : gp_sealed_create("odd", 5000, false);
	if (offer->count < 0 &&
	    ftruncate(memory_fds[0], (off_t)gp_rings_get_memory_size(GP_RING_SIZE_MIN)))
		return NULL;
	if (offer->count) {
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(size);
		memcpy(CMSG_DATA(&control.header), memory_fds, size);
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(size);
	}
	if (offer->text_size)
		(void)sendmsg(fd, &message, MSG_NOSIGNAL);
	close(memory_fds[0]);
	close(memory_fds[1]);
	close(fd);
	return NULL;
}

UNIT_TEST(a_client_takes_nothing_but_sealed_memory_of_a_size)
{
	static const struct offer offers[] = {
		{ GREETING, sizeof(GREETING), 0, 0 },
		{ GREETING, sizeof(GREETING), 0, 1 },
		{ GREETING, sizeof(GREETING), 0, 2 },
		{ GREETING, sizeof(GREETING), 0, -1 },
		{ "gpupool shm 2", sizeof(GREETING), 0, 1 },
		{ GREETING, 4, 0, 1 },
		{ "", 0, 0, 0 },
	};
	char folder[] = "/tmp/gpupool-shm-XXXXXX", error[400];
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct gp_url url = { .scheme = "shm", .device = GP_URL_ANY_DEVICE };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_non_null(mkdtemp(folder));
	snprintf(url.host, sizeof(url.host), "%s/socket", folder);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	for (size_t i = 0; i < sizeof(offers) / sizeof(offers[0]); i++) {
		struct offer offer = offers[i];
		struct gp_conn *conn = NULL;
		pthread_t thread;
		int r;

		offer.fd = fd;
		assert_int_equal(pthread_create(&thread, NULL, make_offer, &offer), 0);
		r = gp_connect(&url, "preamble", 8, 20000, &conn, error, sizeof(error));
		assert_int_equal(pthread_join(thread, NULL), 0);
		if (offer.text_size ? r != -EPROTO : r != -ECONNRESET)
			fail_msg("offer %zu: %d, %s", i, r, error);
	}
	close(fd);
	assert_int_equal(unlink(address.sun_path), 0);
	assert_int_equal(rmdir(folder), 0);
}

static off_t
stored(const struct peer *peer)
{
	struct stat status;

	assert_int_equal(fstat(peer->memory_fd, &status), 0);
	return status.st_blocks * 512;
}

static void
end_daemon(struct peer *peer)
{
	gp_conn_destroy(peer->daemon);
	peer->daemon = NULL;
}

SHM_TEST(memory_goes_with_the_connection_whoever_keeps_it)
{
	struct peer *peer = *state;

	assert_true(stored(peer) > 0);
	put_message(peer, "not read");
	close(peer->fd);
	peer->fd = -1;
	end_daemon(peer);
	assert_int_equal(stored(peer), 0);
}

SHM_TEST(who_breaks_a_ring_keeps_no_memory)
{
	struct peer *peer = *state;
	struct gp_message message;

	atomic_store(&peer->rings.out.header->tail, UINT32_MAX);
	assert_int_equal(gp_conn_recv(peer->daemon, &message), -EPROTO);
	end_daemon(peer);
	assert_int_equal(stored(peer), 0);
}

static void
take_some(struct peer *peer, uint8_t *bytes, size_t size)
{
	struct iovec iov = { bytes, size };

	assert_int_equal(gp_ring_read(&peer->rings.in, &iov, 1), size);
}

/* It lies around the ring's end. */
SHM_TEST(what_a_peer_has_not_read_yet_stays_for_it)
{
	static const size_t sizes[] = { 100, 30000, 61000 };
	static uint8_t bytes[61000], got[8 + 61000];
	struct peer *peer = *state;

	for (size_t i = 0; i < 18; i++) {
		struct iovec iov = { bytes, sizes[i % 3] };

		memset(bytes, (int)i + 1, sizeof(bytes));
		assert_int_equal(gp_conn_send(peer->daemon, &iov, 1, NULL, 0), 0);
		if (i < 17)
			take_some(peer, got, 8 + iov.iov_len);
	}
	gp_conn_shutdown(peer->daemon);
	end_daemon(peer);
	assert_true(stored(peer) > 61000);
	assert_true(stored(peer) < 61000 + 4 * 4096);
	take_some(peer, got, sizeof(got));
	assert_memory_equal(got + 8, bytes, sizeof(bytes));
}

SHM_TEST(a_peer_that_ends_after_a_shutdown_keeps_nothing)
{
	static uint8_t bytes[30000], got[8 + 30000];
	struct peer *peer = *state;
	struct iovec iov = { bytes, sizeof(bytes) };

	memset(bytes, 1, sizeof(bytes));
	assert_int_equal(gp_conn_send(peer->daemon, &iov, 1, NULL, 0), 0);
	gp_conn_shutdown(peer->daemon);
	assert_false(gp_conn_peer_closed(peer->daemon));
	take_some(peer, got, sizeof(got));
	assert_memory_equal(got + 8, bytes, sizeof(bytes));
	gp_rings_close(&peer->rings);
	assert_true(gp_conn_peer_closed(peer->daemon));
	end_daemon(peer);
	assert_int_equal(stored(peer), 0);
}

SHM_TEST(a_peer_that_does_not_end_keeps_nothing_after_a_discard)
{
	struct peer *peer = *state;

	put_message(peer, "not read");
	gp_conn_shutdown(peer->daemon);
	assert_false(gp_conn_peer_closed(peer->daemon));
	assert_false(gp_rings_are_discarded(&peer->rings));
	gp_conn_discard(peer->daemon);
	end_daemon(peer);
	assert_int_equal(stored(peer), 0);
	assert_true(gp_rings_are_discarded(&peer->rings));
}

UNIT_TEST_MAIN(NULL, NULL)
