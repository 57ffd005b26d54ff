/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client sends to a worker on the software device: records back to back.  Each becomes a
 * message of its own; behind one with the bulk flag come a u32 and so many bytes of bulk.  A record
 * that cannot be cut off is sent with all that is left.
 *
 * The worker is the real one, in this process, a session of it per input.  Launches are not
 * carried out: kernels may do what they like, and end the worker.
 */
#include "protocol/frame.h"
#include "server/channel.h"
#include "server/driver.h"
#include "server/ledger.h"
#include "server/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define WINDOW_FIRST UINT64_C(0x110000000000)
#define WINDOW_SIZE ((uint64_t)1 << 30)
#define ANSWER_MS 20000

static struct gpd_channel supervisor;
static struct gpd_ledger *ledger;
static int ledger_fd;

static CUresult CUDAAPI
launch_nothing(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
	return CUDA_SUCCESS;
}

static void
fail(const char *what)
{
	fprintf(stderr, "fuzz_dispatch: %s\n", what);
	abort();
}

static void *
work(void *arg)
{
	struct gpd_worker_options options = {
		.fd = *(int *)arg,
		.ledger_fd = ledger_fd,
		.driver = getenv("GP_DRIVER"),
	};

	_exit(gpd_worker_run(&options));
}

/* The next message of the worker that is of this type. */
static void
expect(enum gpd_channel_type type)
{
	struct gpd_channel_message message;

	do {
		if (gpd_channel_recv(&supervisor, true, &message))
			fail("the worker has ended");
		if (message.header.type == GPD_CHANNEL_LOST ||
		    message.header.type == GPD_CHANNEL_FAILED) {
			fprintf(stderr, "%.*s\n", (int)message.size, (const char *)message.data);
			fail("the worker is lost");
		}
	} while (message.header.type != (uint32_t)type);
}

static void
start(void)
{
	static int fds[2];
	pthread_t thread;

	(void)setenv("GPUPOOL_CACHE_DIR", "", 1);
	(void)setenv("GPUPOOL_SOFT_MEMORY", "64M", 1);
	ledger = gpd_ledger_create(&ledger_fd);
	if (!ledger || gpd_channel_pair(fds) || gpd_channel_init(&supervisor, fds[0]) ||
	    pthread_create(&thread, NULL, work, &fds[1]))
		fail("cannot start a worker");
	expect(GPD_CHANNEL_READY);
	gpd_driver.cuLaunchKernelEx = launch_nothing;
}

/* A session with the first window, which the addresses in the inputs are of. */
static int
open_session(uint64_t id)
{
	uint64_t body[(sizeof(struct gpd_channel_open) + sizeof(struct gpd_range)) / 8] = { 0 };
	struct gpd_channel_open *open = (struct gpd_channel_open *)body;
	struct gpd_channel_header header = { .type = GPD_CHANNEL_OPEN, .session = id };
	int fds[2];

	gpd_ledger_close_worker(ledger, 0);
	open->line = gpd_ledger_index(ledger, gpd_ledger_open(ledger, id, 0, 0));
	snprintf(open->peer, sizeof(open->peer), "fuzz");
	open->window_size = WINDOW_SIZE;
	open->avoid_count = 1;
	open->avoid[0] = (struct gpd_range){ WINDOW_FIRST + WINDOW_SIZE, (uint64_t)1 << 47 };
	if (gpd_channel_send(&supervisor, &header, body, sizeof(body), -1))
		fail("the worker does not listen");
	expect(GPD_CHANNEL_OPENED);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		fail("no socket pair");
	header.type = GPD_CHANNEL_LANE;
	if (gpd_channel_send(&supervisor, &header, "tcp", 3, fds[1]))
		fail("the worker takes no lane");
	(void)close(fds[1]);
	(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
	return fds[0];
}

/* Whether the connection still stands; what comes back is read and forgotten. */
static bool
exchange(int fd, const uint8_t *bytes, size_t size)
{
	static uint8_t answers[1 << 16];
	struct pollfd poller = { .fd = fd, .events = POLLIN };
	ssize_t n;

	while (size || bytes == NULL) {
		poller.events = size ? POLLIN | POLLOUT : POLLIN;
		if (poll(&poller, 1, ANSWER_MS) <= 0)
			fail("the session hangs");
		if (poller.revents & POLLOUT) {
			n = send(fd, bytes, size, MSG_NOSIGNAL);
			if (n < 0 && errno != EAGAIN)
				return false;
			bytes += n > 0 ? n : 0;
			size -= n > 0 ? (size_t)n : 0;
		}
		if (poller.revents & (POLLIN | POLLHUP | POLLERR)) {
			n = recv(fd, answers, sizeof(answers), 0);
			if (n == 0 || (n < 0 && errno != EAGAIN))
				return false;
		}
	}
	return true;
}

static bool
send_message(int fd, const uint8_t *record, size_t size, const uint8_t *bulk, size_t bulk_size)
{
	uint32_t sizes[2] = { (uint32_t)size, (uint32_t)bulk_size };

	return exchange(fd, (const uint8_t *)sizes, sizeof(sizes)) && exchange(fd, record, size) &&
	       exchange(fd, bulk, bulk_size);
}

static void
send_records(int fd, const uint8_t *data, size_t size)
{
	while (size) {
		const uint8_t *bulk = data;
		uint32_t bulk_size = 0;
		struct gp_header header;
		size_t record = size;

		if (gp_header_decode(&header, data, size) == 0) {
			record = header.size;
			bulk = data + record;
			if (header.flags & GP_FRAME_BULK && size - record >= sizeof(bulk_size)) {
				memcpy(&bulk_size, bulk, sizeof(bulk_size));
				bulk += sizeof(bulk_size);
				if (bulk_size > size - record - sizeof(bulk_size))
					bulk_size = (uint32_t)(size - record - sizeof(bulk_size));
			}
		}
		if (!send_message(fd, data, record, bulk, bulk_size))
			return;
		record = (size_t)(bulk - data) + bulk_size > record
				 ? (size_t)(bulk - data) + bulk_size
				 : record;
		data += record;
		size -= record;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint64_t id;
	int fd;

	if (size > 1 << 18)
		return 0;
	if (id++ == 0)
		start();
	fd = open_session(id);
	send_records(fd, data, size);
	(void)shutdown(fd, SHUT_WR);
	(void)exchange(fd, NULL, 0);
	(void)close(fd);
	expect(GPD_CHANNEL_CLOSED);
	return 0;
}
