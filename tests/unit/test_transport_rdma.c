/* SPDX-License-Identifier: Apache-2.0 */
/* A connection over RDMA on a device that is the test's: what it does when, which in a virtual
 * machine would need a peer that falls silent at the right moment. */
#include "tests/test.h"
#include "transport/own_fd.h"
#include "transport/rdma.h"
#include "transport/transport.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

static struct ibv_context verbs;
static struct ibv_pd pd = { .context = &verbs };
static struct ibv_cq cq = { .context = &verbs };
static struct ibv_qp qp = { .context = &verbs };
static struct ibv_mr region = { .lkey = 1, .rkey = 1 };
static struct ibv_comp_channel channel;
static struct gp_rdma_device device = { .verbs = &verbs, .pd = &pd, .reads_max = 4 };
static struct rdma_cm_id id = { .verbs = &verbs };
static struct rdma_event_channel events;

/* The library's functions. */

static void
complete(const struct ibv_wc *wc)
{
	uint64_t one = 1;

	assert_true(side.count < COMPLETIONS_MAX);
	side.completions[(side.first + side.count++) % COMPLETIONS_MAX] = *wc;
	if (side.armed)
		assert_int_equal(write(channel.fd, &one, sizeof(one)), sizeof(one));
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

	if (read(channel.fd, &count, sizeof(count)) != sizeof(count))
		return -1;
	pthread_mutex_lock(&side.lock);
	side.events++;
	pthread_mutex_unlock(&side.lock);
	return 0;
}

static void
ack_cq_events(struct ibv_cq *of, unsigned int count)
{
}

static struct ibv_pd domains[8];
static unsigned int domain_count;

static struct ibv_pd *
alloc_pd(struct ibv_context *of)
{
	struct ibv_pd *made = &domains[domain_count++ % 8];

	*made = (struct ibv_pd){ .context = of };
	return made;
}

static unsigned int given_back;

static int
dealloc_pd(struct ibv_pd *of)
{
	given_back++;
	return 0;
}

static bool unusable;

static int
query_device(struct ibv_context *of, struct ibv_device_attr *attr)
{
	if (unusable)
		return EIO;
	*attr = (struct ibv_device_attr){ .max_qp_rd_atom = 4 };
	return 0;
}

static struct ibv_pd *registered_in;

static struct ibv_mr *
reg_mr(struct ibv_pd *of, void *address, size_t length, int access)
{
	registered_in = of;
	return &region;
}

static int
dereg_mr(struct ibv_mr *mr)
{
	return 0;
}

static struct ibv_comp_channel *
create_channel(struct ibv_context *of)
{
	channel.fd = eventfd(0, EFD_CLOEXEC);
	return &channel;
}

static int
destroy_channel(struct ibv_comp_channel *of)
{
	return close(of->fd);
}

static struct ibv_cq *
create_cq(struct ibv_context *of, int room, void *arg, struct ibv_comp_channel *to, int vector)
{
	return &cq;
}

static int
destroy_cq(struct ibv_cq *of)
{
	return 0;
}

static int
create_qp(struct rdma_cm_id *of, struct ibv_pd *in, struct ibv_qp_init_attr *attr)
{
	of->qp = &qp;
	return 0;
}

static void
destroy_qp(struct rdma_cm_id *of)
{
	of->qp = NULL;
}

static int
no_cm_event(struct rdma_event_channel *of, struct rdma_cm_event **event_p)
{
	errno = EAGAIN;
	return -1;
}

static int
disconnect(struct rdma_cm_id *of)
{
	return 0;
}

static int
destroy_id(struct rdma_cm_id *of)
{
	return 0;
}

static void
destroy_events(struct rdma_event_channel *of)
{
	(void)close(of->fd);
}

static const char *
status_text(enum ibv_wc_status status)
{
	return "a status";
}

static int
set_up(void **state)
{
	verbs.ops.post_send = post_send;
	verbs.ops.post_recv = post_recv;
	verbs.ops.poll_cq = poll_cq;
	verbs.ops.req_notify_cq = req_notify_cq;
	gp_rdma_lib.ibv_alloc_pd = alloc_pd;
	gp_rdma_lib.ibv_dealloc_pd = dealloc_pd;
	gp_rdma_lib.ibv_query_device = query_device;
	gp_rdma_lib.ibv_reg_mr = reg_mr;
	gp_rdma_lib.ibv_dereg_mr = dereg_mr;
	gp_rdma_lib.ibv_create_comp_channel = create_channel;
	gp_rdma_lib.ibv_destroy_comp_channel = destroy_channel;
	gp_rdma_lib.ibv_create_cq = create_cq;
	gp_rdma_lib.ibv_destroy_cq = destroy_cq;
	gp_rdma_lib.ibv_get_cq_event = get_cq_event;
	gp_rdma_lib.ibv_ack_cq_events = ack_cq_events;
	gp_rdma_lib.ibv_wc_status_str = status_text;
	gp_rdma_lib.rdma_create_qp = create_qp;
	gp_rdma_lib.rdma_destroy_qp = destroy_qp;
	gp_rdma_lib.rdma_get_cm_event = no_cm_event;
	gp_rdma_lib.rdma_disconnect = disconnect;
	gp_rdma_lib.rdma_destroy_id = destroy_id;
	gp_rdma_lib.rdma_destroy_event_channel = destroy_events;
	return 0;
}

static struct gp_rdma_conn *
create(void)
{
	struct gp_rdma_conn *conn = calloc(1, sizeof(*conn));
	pthread_condattr_t attr;
	char detail[160];

	assert_non_null(conn);
	side.first = side.count = side.receive_first = side.receive_count = 0;
	side.posts = side.writes = side.events = 0;
	side.silent = side.armed = false;
	events.fd = eventfd(0, EFD_CLOEXEC);
	if (verbs.cmd_fd == 0) {
		verbs.cmd_fd = eventfd(0, EFD_CLOEXEC);
		verbs.async_fd = eventfd(0, EFD_CLOEXEC);
	}
	gp_own_fd_mark(verbs.cmd_fd);
	device.posts_by_kernel = false;
	conn->events = &events;
	conn->id = &id;
	conn->device = &device;
	conn->poll_fd = conn->wake_fd = -1;
	pthread_mutex_init(&conn->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&conn->changed, &attr);
	pthread_condattr_destroy(&attr);
	assert_int_equal(gp_stream_init(&conn->stream, &gp_rdma_ops, &gp_rdma_io,
					GP_CONN_CAP_FD | GP_CONN_CAP_REMOTE_MEM),
			 0);
	assert_int_equal(gp_rdma_queue_init(conn, detail, sizeof(detail)), 0);
	return conn;
}

/* What the peer sends: a message without bulk, of this size. */
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
	conn->heard_ms = gp_now_ms() - GP_RDMA_BEAT_MS;
	pthread_mutex_unlock(&conn->lock);
	assert_int_equal(gp_conn_wait(&conn->stream.conn, 0), 0);
}

static void
a_silent_peer_is_asked_behind_short_messages(void **state)
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

static void
an_event_is_left_to_who_sleeps_for_it(void **state)
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

static void
who_watches_is_told_of_what_comes_when_another_reader_has_left(void **state)
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

static void
who_watches_the_descriptor_is_told_of_what_a_sender_has_taken(void **state)
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

static void
nothing_is_kept_of_a_device_that_cannot_be_used(void **state)
{
	struct ibv_context broken = { .device = NULL };
	struct gp_rdma_device *found;
	char detail[160] = "";

	unusable = true;
	for (unsigned int i = 1; i <= 3; i++) {
		assert_int_equal(gp_rdma_device_get(&broken, NULL, &found, detail, sizeof(detail)),
				 -ENODEV);
		assert_null(found);
		assert_int_equal(given_back, i);
	}
	unusable = false;
}

static struct gp_rdma_device *
device_of(const char *host, uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct gp_rdma_device *found;
	char detail[160];

	assert_int_equal(inet_pton(AF_INET, host, &address.sin_addr), 1);
	assert_int_equal(gp_rdma_device_get(&verbs, (struct sockaddr *)&address, &found, detail,
					    sizeof(detail)),
			 0);
	return found;
}

/* What a program shows to one daemon no other one can reach, even if it knows the key. */
static void
each_daemon_has_a_protection_domain_of_its_own(void **state)
{
	struct gp_rdma_device *a = device_of("10.0.0.1", 4833), *b = device_of("10.0.0.2", 4833);
	static uint8_t memory[65536];

	assert_ptr_equal(device_of("10.0.0.1", 4833), a);
	assert_ptr_not_equal(a, b);
	assert_ptr_not_equal(a->pd, b->pd);
	assert_ptr_not_equal(device_of("10.0.0.1", 4834)->pd, a->pd);
	gp_memory_keep(memory, sizeof(memory));
	assert_ptr_equal(gp_rdma_kept(b, memory, sizeof(memory), true), &region);
	assert_ptr_equal(registered_in, b->pd);
	assert_ptr_equal(gp_rdma_kept(a, memory, sizeof(memory), true), &region);
	assert_ptr_equal(registered_in, a->pd);
	gp_memory_forget(memory);
}

static void
the_child_of_a_fork_does_not_use_its_parents_device(void **state)
{
	union {
		struct sockaddr_in in;
		struct sockaddr address;
	} new = { .in = { .sin_family = AF_INET, .sin_port = 17 } };
	struct gp_rdma_device *found, *again;
	char detail[160] = "";
	pid_t child;
	int status;

	assert_int_equal(gp_rdma_device_get(&verbs, NULL, &found, detail, sizeof(detail)), 0);
	assert_int_equal(gp_rdma_device_get(&verbs, NULL, &again, detail, sizeof(detail)), 0);
	assert_ptr_equal(again, found);
	child = fork();
	if (child == 0)
		_exit(gp_rdma_device_get(&verbs, NULL, &again, detail, sizeof(detail)) ==
					      -EOPNOTSUPP &&
				      strstr(detail, "forked") &&
				      /* Nor for a daemon that its parent does not know. */
				      gp_rdma_device_get(&verbs, &new.address, &again, detail,
							 sizeof(detail)) == -EOPNOTSUPP
			      ? 0
			      : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void
a_peer_that_sends_without_end_holds_nobody_up(void **state)
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

static void
who_polls_outside_is_told_of_completions_that_were_left(void **state)
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
			    conn->watch_fd, conn->wake_fd,    conn->tell_fd };

	return which < sizeof(all) / sizeof(all[0]) ? all[which] : -1;
}

static void
a_descriptor_that_is_the_programs_now_ends_the_connection(void **state)
{
	struct gp_rdma_conn *conn = create();
	unsigned int which = 0;

	do {
		int fd;

		/* The completion queue is to tell, and somebody is to be told. */
		(void)gp_conn_fd(&conn->stream.conn);
		fd = descriptor(conn, which);
		replace(fd);
		(void)gp_conn_fd(&conn->stream.conn);
		/* These two are looked at when there is something to say. */
		if (fd == conn->wake_fd || fd == conn->tell_fd)
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

static void
a_device_that_posts_by_a_descriptor_posts_nothing_to_the_programs(void **state)
{
	struct gp_rdma_conn *conn = create();
	struct iovec data = { (uint8_t[20]){ 0 }, 20 };
	int fd = dup(verbs.cmd_fd);

	device.posts_by_kernel = true;
	send_bytes(conn, 20);
	assert_int_equal(side.posts, 1);
	replace(verbs.cmd_fd);
	/* What it has taken so far it has not sent. */
	send_bytes(conn, 20);
	assert_int_equal(gp_conn_send(&conn->stream.conn, &data, 1, NULL, 0), -EBADF);
	assert_int_equal(side.posts, 1);
	expect_untouched(verbs.cmd_fd);
	assert_int_equal(dup2(fd, verbs.cmd_fd), verbs.cmd_fd);
	assert_int_equal(close(fd), 0);
	gp_conn_destroy(&conn->stream.conn);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_peer_that_sends_without_end_holds_nobody_up, set_up),
		cmocka_unit_test_setup(who_polls_outside_is_told_of_completions_that_were_left,
				       set_up),
		cmocka_unit_test_setup(a_descriptor_that_is_the_programs_now_ends_the_connection,
				       set_up),
		cmocka_unit_test_setup(
			a_device_that_posts_by_a_descriptor_posts_nothing_to_the_programs, set_up),
		cmocka_unit_test_setup(a_silent_peer_is_asked_behind_short_messages, set_up),
		cmocka_unit_test_setup(an_event_is_left_to_who_sleeps_for_it, set_up),
		cmocka_unit_test_setup(
			who_watches_is_told_of_what_comes_when_another_reader_has_left, set_up),
		cmocka_unit_test_setup(nothing_is_kept_of_a_device_that_cannot_be_used, set_up),
		cmocka_unit_test_setup(each_daemon_has_a_protection_domain_of_its_own, set_up),
		cmocka_unit_test_setup(the_child_of_a_fork_does_not_use_its_parents_device, set_up),
		cmocka_unit_test_setup(
			who_watches_the_descriptor_is_told_of_what_a_sender_has_taken, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
