/* SPDX-License-Identifier: Apache-2.0 */
/* An RDMA connection on a fake device: timing that in a virtual machine would need a peer that
 * falls silent at the right moment. */
#include "base/clock.h"
#include "tests/fake_rdma.h"
#include "tests/test.h"
#include "transport/transport.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COMPLETIONS_MAX 512

static struct {
	pthread_mutex_t lock;
	struct ibv_wc completions[COMPLETIONS_MAX];
	unsigned int first, count;
	struct ibv_recv_wr receives[GP_RDMA_RX];
	uint64_t memory[GP_RDMA_RX]; /* of each */
	unsigned int receive_first, receive_count;
	bool silent;                /* it completes nothing */
	bool armed;                 /* the next completion is told of */
	atomic_bool flood;          /* there are always completions */
	unsigned int posts, writes; /* requests, and those of them that write */
	unsigned int events;        /* that were taken */
} side = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct ibv_mr region = { .lkey = 1, .rkey = 1 };

/* The library's functions. */

static void
complete(const struct ibv_wc *wc)
{
	uint64_t one = 1;

	assert_true(side.count < COMPLETIONS_MAX);
	side.completions[(side.first + side.count++) % COMPLETIONS_MAX] = *wc;
	if (side.armed)
		assert_int_equal(write(fake_rdma.channel.fd, &one, sizeof(one)), sizeof(one));
	side.armed = false;
}

static int
post_send(struct ibv_qp *of, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	pthread_mutex_lock(&side.lock);
	side.posts++;
	side.writes += wr->opcode == IBV_WR_RDMA_WRITE;
	if (!side.silent && wr->send_flags & IBV_SEND_SIGNALED)
		complete(&(struct ibv_wc){ .wr_id = wr->wr_id });
	pthread_mutex_unlock(&side.lock);
	return 0;
}

static int
post_recv(struct ibv_qp *of, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	unsigned int at;

	pthread_mutex_lock(&side.lock);
	at = (side.receive_first + side.receive_count++) % GP_RDMA_RX;
	side.receives[at] = *wr;
	side.memory[at] = wr->sg_list->addr;
	pthread_mutex_unlock(&side.lock);
	return 0;
}

static int
poll_cq(struct ibv_cq *of, int room, struct ibv_wc *wc)
{
	int count = 0;

	for (; side.flood && count < room; count++)
		wc[count] = (struct ibv_wc){ .wr_id = 0 };
	pthread_mutex_lock(&side.lock);
	for (; count < room && side.count > 0; side.count--) {
		wc[count++] = side.completions[side.first];
		side.first = (side.first + 1) % COMPLETIONS_MAX;
	}
	pthread_mutex_unlock(&side.lock);
	return count;
}

static int
req_notify_cq(struct ibv_cq *of, int solicited)
{
	pthread_mutex_lock(&side.lock);
	side.armed = true;
	pthread_mutex_unlock(&side.lock);
	return 0;
}

static int
get_cq_event(struct ibv_comp_channel *of, struct ibv_cq **cq_p, void **context_p)
{
	uint64_t count;

	if (read(fake_rdma.channel.fd, &count, sizeof(count)) != sizeof(count))
		return -1;
	pthread_mutex_lock(&side.lock);
	side.events++;
	pthread_mutex_unlock(&side.lock);
	return 0;
}

static struct ibv_mr *
reg_mr(struct ibv_pd *of, void *address, size_t length, int access)
{
	return &region;
}

static int
dereg_mr(struct ibv_mr *mr)
{
	return 0;
}

static int
set_up(void **state)
{
	struct ibv_context_ops *ops = &fake_rdma.verbs.ops;

	fake_rdma_set_up();
	ops->post_send = post_send;
	ops->post_recv = post_recv;
	ops->poll_cq = poll_cq;
	ops->req_notify_cq = req_notify_cq;
	gp_rdma_lib.ibv_reg_mr = reg_mr;
	gp_rdma_lib.ibv_dereg_mr = dereg_mr;
	gp_rdma_lib.ibv_get_cq_event = get_cq_event;
	return 0;
}

static struct gp_rdma_conn *
create(void)
{
	struct gp_rdma_conn *conn;

	side.first = side.count = side.receive_first = side.receive_count = 0;
	side.posts = side.writes = side.events = 0;
	side.silent = side.armed = false;
	fake_rdma.device.posts_by_kernel = false;
	conn = fake_rdma_create(false);
	assert_non_null(conn);
	return conn;
}

/* The peer's message: without bulk, with this size. */
static void
deliver_message(uint32_t size)
{
	uint32_t length = htole32(8 + size), data = htole32(size);
	uint8_t *segment;

	pthread_mutex_lock(&side.lock);
	assert_true(side.receive_count > 0);
	segment = (uint8_t *)(uintptr_t)side.memory[side.receive_first];
	memset(segment, 0, GP_RDMA_SEGMENT_HEADER + 8 + size);
	segment[0] = GP_RDMA_BYTES;
	memcpy(segment + 4, &length, sizeof(length));
	memcpy(segment + GP_RDMA_SEGMENT_HEADER, &data, sizeof(data));
	complete(&(struct ibv_wc){ .wr_id = side.receives[side.receive_first].wr_id,
				   .byte_len = GP_RDMA_SEGMENT_HEADER + 8 + size });
	side.receive_first = (side.receive_first + 1) % GP_RDMA_RX;
	side.receive_count--;
	pthread_mutex_unlock(&side.lock);
}

static unsigned int
events_taken(void)
{
	unsigned int count;

	pthread_mutex_lock(&side.lock);
	count = side.events;
	pthread_mutex_unlock(&side.lock);
	return count;
}

/* Nothing waits for a peer that there is not. */
static void
destroy(struct gp_rdma_conn *conn)
{
	pthread_mutex_lock(&side.lock);
	complete(&(struct ibv_wc){ .wr_id = (uint64_t)1 << 63, .status = IBV_WC_WR_FLUSH_ERR });
	pthread_mutex_unlock(&side.lock);
	gp_conn_destroy(&conn->stream.conn);
}

static void
send_bytes(struct gp_rdma_conn *conn, size_t size)
{
	uint8_t *bytes = calloc(1, size);
	struct iovec data = { bytes, size };

	assert_non_null(bytes);
	assert_int_equal(gp_conn_send(&conn->stream.conn, &data, 1, NULL, 0), 0);
	free(bytes);
}

/* Nothing has been heard for so long that the peer's device is asked. */
static void
let_time_pass(struct gp_rdma_conn *conn)
{
	pthread_mutex_lock(&conn->lock);
	conn->heard_ms = gp_now_ms() - GP_RDMA_HEARTBEAT_MS;
	pthread_mutex_unlock(&conn->lock);
	assert_int_equal(gp_conn_wait(&conn->stream.conn, 0), 0);
}

UNIT_TEST(a_silent_peer_is_asked_behind_short_messages)
{
	struct gp_rdma_conn *conn = create();

	/* Of short ones not each is told of when it is done. */
	for (int i = 0; i < 3; i++)
		send_bytes(conn, 20);
	side.silent = true;
	let_time_pass(conn);
	assert_int_equal(side.writes, 1);
	/* Its device has still to answer that. */
	let_time_pass(conn);
	assert_int_equal(side.writes, 1);
	destroy(conn);
}

UNIT_TEST(an_event_is_left_to_who_sleeps_for_it)
{
	struct gp_rdma_conn *conn = create();

	(void)gp_conn_fd(&conn->stream.conn);
	deliver_message(1);
	pthread_mutex_lock(&conn->lock);
	conn->asleep = true;
	pthread_mutex_unlock(&conn->lock);
	(void)gp_conn_fd(&conn->stream.conn);
	assert_int_equal(events_taken(), 0);
	pthread_mutex_lock(&conn->lock);
	conn->asleep = false;
	pthread_mutex_unlock(&conn->lock);
	(void)gp_conn_fd(&conn->stream.conn);
	assert_int_equal(events_taken(), 1);
	destroy(conn);
}

static void *
receive_one(void *arg)
{
	struct gp_message message;

	assert_int_equal(gp_conn_recv(arg, &message), 0);
	return NULL;
}

static void
wait_until_someone_sleeps(struct gp_rdma_conn *conn)
{
	bool asleep = false;

	while (!asleep) {
		(void)usleep(1000);
		pthread_mutex_lock(&conn->lock);
		asleep = conn->asleep;
		pthread_mutex_unlock(&conn->lock);
	}
}

UNIT_TEST(who_watches_is_told_of_what_comes_when_another_reader_has_left)
{
	struct gp_rdma_conn *conn = create();
	struct pollfd poller = { .events = POLLIN };
	struct gp_message message;
	pthread_t reader;

	poller.fd = gp_conn_fd(&conn->stream.conn);
	assert_int_equal(pthread_create(&reader, NULL, receive_one, conn), 0);
	wait_until_someone_sleeps(conn);
	deliver_message(1);
	assert_int_equal(pthread_join(reader, NULL), 0);
	deliver_message(2);
	assert_int_equal(poll(&poller, 1, 5000), 1);
	assert_int_equal(gp_conn_recv(&conn->stream.conn, &message), 0);
	assert_int_equal(message.size, 2);
	destroy(conn);
}

/* Until the peer gives credits, which it does not. */
static void *
send_without_end(void *arg)
{
	struct gp_rdma_conn *conn = arg;
	static uint8_t bytes[200 << 10];
	struct iovec data = { bytes, sizeof(bytes) };
	int r;

	do
		r = gp_conn_send(&conn->stream.conn, &data, 1, NULL, 0);
	while (r == 0);
	return NULL;
}

static void
wait_until_asleep(struct gp_rdma_conn *conn)
{
	bool asleep = false, full = false;

	while (!asleep || !full) {
		pthread_mutex_lock(&conn->lock);
		asleep = conn->asleep;
		full = conn->credits == 0 && conn->tx_fill - conn->tx_free == GP_RDMA_TX;
		pthread_mutex_unlock(&conn->lock);
		(void)usleep(1000);
	}
}

UNIT_TEST(who_watches_the_descriptor_is_told_of_what_a_sender_has_taken)
{
	struct gp_rdma_conn *conn = create();
	struct pollfd poller = { .events = POLLIN };
	struct gp_message message;
	unsigned int taken;
	pthread_t sender;

	assert_int_equal(pthread_create(&sender, NULL, send_without_end, conn), 0);
	wait_until_asleep(conn);
	for (int i = 0; i < 3; i++) {
		poller.fd = gp_conn_fd(&conn->stream.conn);
		taken = events_taken();
		deliver_message(1);
		while (events_taken() == taken)
			(void)usleep(1000);
		assert_int_equal(poll(&poller, 1, 5000), 1);
		assert_int_equal(gp_conn_recv(&conn->stream.conn, &message), 0);
		assert_int_equal(message.size, 1);
	}
	gp_conn_shutdown(&conn->stream.conn);
	assert_int_equal(pthread_join(sender, NULL), 0);
	destroy(conn);
}

UNIT_TEST(a_peer_that_sends_without_end_holds_nobody_up)
{
	struct gp_rdma_conn *conn = create();
	int64_t begin = gp_now_ms();
	struct gp_message message;
	pthread_t sender;

	side.flood = true;
	(void)gp_conn_fd(&conn->stream.conn);
	assert_int_equal(gp_conn_wait(&conn->stream.conn, 100), 0);
	assert_true(gp_now_ms() - begin < 5000);
	/* One that waits for credits all the time, and leaves the lock to who ends it. */
	side.flood = false;
	assert_int_equal(pthread_create(&sender, NULL, send_without_end, conn), 0);
	wait_until_asleep(conn);
	side.flood = true;
	deliver_message(1);
	gp_conn_shutdown(&conn->stream.conn);
	assert_int_equal(pthread_join(sender, NULL), 0);
	side.flood = false;
	assert_int_not_equal(gp_conn_recv(&conn->stream.conn, &message), 0);
	destroy(conn);
}

UNIT_TEST(who_polls_outside_is_told_of_completions_that_were_left)
{
	struct gp_rdma_conn *conn = create();
	struct pollfd poller = { .events = POLLIN };

	side.flood = true;
	poller.fd = gp_conn_fd(&conn->stream.conn);
	assert_int_equal(poll(&poller, 1, 0), 1);
	side.flood = false;
	poller.fd = gp_conn_fd(&conn->stream.conn);
	assert_int_equal(poll(&poller, 1, 0), 0);
	destroy(conn);
}

/* A file of the program's, in the place of what it has closed. */
static void
replace(int fd)
{
	char path[] = "/tmp/gpupool-rdma-XXXXXX";
	int file = mkstemp(path);

	assert_true(file >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(ftruncate(file, 100), 0);
	assert_int_equal(dup2(file, fd), fd);
	assert_int_equal(close(file), 0);
}

static void
expect_untouched(int fd)
{
	struct stat status;

	assert_int_equal(fstat(fd, &status), 0);
	assert_true(S_ISREG(status.st_mode));
	assert_int_equal(status.st_size, 100);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 0);
	for (int i = 0; i < 100; i++) {
		char byte = 1;

		assert_int_equal(pread(fd, &byte, 1, i), 1);
		assert_int_equal(byte, 0);
	}
}

static void
expect_lost(struct gp_rdma_conn *conn, int fd)
{
	struct gp_message message;

	assert_int_equal(gp_conn_recv(&conn->stream.conn, &message),
			 atomic_load(&conn->stream.stopped) ? -ESHUTDOWN : -EBADF);
	assert_non_null(strstr(gp_conn_error(&conn->stream.conn), "has closed descriptors"));
	(void)gp_conn_fd(&conn->stream.conn);
	gp_conn_shutdown(&conn->stream.conn);
	expect_untouched(fd);
	gp_conn_destroy(&conn->stream.conn);
	/* It is closed by whose it is. */
	expect_untouched(fd);
	(void)close(fd);
}

static int
descriptor(struct gp_rdma_conn *conn, unsigned int which)
{
	const int all[] = { conn->poll_fd,  conn->events->fd, conn->channel->fd,
			    conn->watch_fd, conn->wake_fd,    conn->notify_fd };

	return which < sizeof(all) / sizeof(all[0]) ? all[which] : -1;
}

UNIT_TEST(a_descriptor_that_is_the_programs_now_ends_the_connection)
{
	struct gp_rdma_conn *conn = create();
	unsigned int which = 0;

	do {
		int fd;

		/* The completion queue must be armed, and a thread must be notified. */
		(void)gp_conn_fd(&conn->stream.conn);
		fd = descriptor(conn, which);
		replace(fd);
		(void)gp_conn_fd(&conn->stream.conn);
		/* These two are looked at when there is something to say. */
		if (fd == conn->wake_fd || fd == conn->notify_fd)
			gp_conn_shutdown(&conn->stream.conn);
		else
			assert_int_equal(gp_conn_wait(&conn->stream.conn, 5000), 1);
		assert_true(conn->lost);
		assert_int_equal(events_taken(), 0);
		expect_lost(conn, fd);
		conn = create();
		(void)gp_conn_fd(&conn->stream.conn);
	} while (descriptor(conn, ++which) >= 0);
	destroy(conn);
}

UNIT_TEST(a_device_that_posts_by_a_descriptor_posts_nothing_to_the_programs)
{
	struct gp_rdma_conn *conn = create();
	struct iovec data = { (uint8_t[20]){ 0 }, 20 };
	int fd = dup(fake_rdma.verbs.cmd_fd);

	fake_rdma.device.posts_by_kernel = true;
	send_bytes(conn, 20);
	assert_int_equal(side.posts, 1);
	replace(fake_rdma.verbs.cmd_fd);
	/* What it has taken so far it has not sent. */
	send_bytes(conn, 20);
	assert_int_equal(gp_conn_send(&conn->stream.conn, &data, 1, NULL, 0), -EBADF);
	assert_int_equal(side.posts, 1);
	expect_untouched(fake_rdma.verbs.cmd_fd);
	assert_int_equal(dup2(fd, fake_rdma.verbs.cmd_fd), fake_rdma.verbs.cmd_fd);
	assert_int_equal(close(fd), 0);
	gp_conn_destroy(&conn->stream.conn);
}

UNIT_TEST_MAIN(set_up, NULL)
