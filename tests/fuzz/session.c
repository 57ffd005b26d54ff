/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fuzz/session.h"

#include "server/common/base/device_list.h"
#include "server/common/base/log.h"
#include "server/common/ledger/channel.h"
#include "server/common/ledger/ledger.h"
#include "server/worker/device/driver.h"
#include "server/worker/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MS 60000
/* A data lane that accepts nothing for this time is waiting for a record. */
#define LANE_MS 300

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
	fprintf(stderr, "fuzz: %s\n", what);
	abort();
}

static void *
work(void *arg)
{
	static const struct gpd_device_list all = { .used = UINT32_MAX, .contexts = UINT32_MAX };
	struct gpd_worker_options options = {
		.fd = *(int *)arg,
		.ledger_fd = ledger_fd,
		.connections = 8,
		.devices = &all,
		.syscall_filter = GPD_SYSCALL_FILTER_OFF,
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
	int out = dup(STDERR_FILENO);
	pthread_t thread;

	(void)setenv("GPUPOOL_CACHE_DIR", "", 1);
	(void)setenv("GPUPOOL_SOFT_MEMORY", "64M", 1);
	ledger = gpd_ledger_create(&ledger_fd);
	if (!ledger || gpd_channel_pair(fds) || gpd_channel_init(&supervisor, fds[0]) ||
	    pthread_create(&thread, NULL, work, &fds[1]))
		fail("cannot start a worker");
	expect(GPD_CHANNEL_READY);
	/* The worker reads its driver's messages there: a fuzzer's last message would be lost. */
	(void)dup2(out, STDERR_FILENO);
	(void)close(out);
	gpd_log_level = GPD_LOG_ERROR;
	gpd_driver.cuLaunchKernelEx = launch_nothing;
}

/* Its descriptor is this end's. */
static int
hand_lane(uint64_t id, unsigned int number)
{
	struct gpd_channel_header header = { .type = number ? GPD_CHANNEL_DATA_LANE
							    : GPD_CHANNEL_LANE,
					     .result = (int32_t)number,
					     .session = id };
	const struct gpd_channel_lane lane = { .scheme = "tcp" };
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		fail("no socket pair");
	if (gpd_channel_send(&supervisor, &header, &lane, sizeof(lane), fds[1]))
		fail("the worker takes no lane");
	(void)close(fds[1]);
	(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
	return fds[0];
}

void
fuzz_session_open(struct fuzz_session *session, unsigned int lanes)
{
	static uint64_t id;
	uint64_t body[(sizeof(struct gpd_channel_open) + sizeof(struct gpd_range)) / 8] = { 0 };
	struct gpd_channel_open *open = (struct gpd_channel_open *)body;
	struct gpd_channel_header header = { .type = GPD_CHANNEL_OPEN };
	int fd;

	if (id++ == 0)
		start();
	header.session = id;
	gpd_ledger_close_worker(ledger, 0);
	open->entry = gpd_ledger_index(ledger, gpd_ledger_open(ledger, id, 0, 0));
	snprintf(open->peer, sizeof(open->peer), "fuzz");
	open->lanes_max = lanes;
	open->window_size = FUZZ_WINDOW_SIZE;
	open->avoid_count = 1;
	open->avoid[0] =
		(struct gpd_range){ FUZZ_WINDOW_FIRST + FUZZ_WINDOW_SIZE, (uint64_t)1 << 47 };
	fd = gpd_ledger_share(ledger, &ledger->sessions[open->entry]);
	if (gpd_channel_send(&supervisor, &header, body, sizeof(body), fd))
		fail("the worker does not listen");
	(void)close(fd);
	expect(GPD_CHANNEL_OPENED);
	session->count = lanes;
	session->broken = 0;
	for (unsigned int i = 0; i < lanes; i++)
		session->lanes[i] = hand_lane(id, i);
}

/* The worker's replies are read and discarded. */
static void
listen_to(struct fuzz_session *session, const struct pollfd *pollers)
{
	static uint8_t answers[1 << 16];

	for (unsigned int i = 0; i < session->count; i++) {
		ssize_t n;

		if (!(pollers[i].revents & (POLLIN | POLLHUP | POLLERR)))
			continue;
		n = recv(session->lanes[i], answers, sizeof(answers), 0);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			session->broken |= 1u << i;
	}
}

/* How many lanes have something; a signal is the fuzzing engine's clock. */
static int
wait_for_lanes(struct fuzz_session *session, struct pollfd *pollers, unsigned int writer, int ms)
{
	int r;

	for (unsigned int i = 0; i < session->count; i++) {
		pollers[i] = (struct pollfd){ .fd = session->lanes[i],
					      .events = i == writer ? POLLIN | POLLOUT : POLLIN };
		if (session->broken >> i & 1)
			pollers[i].fd = -1;
	}
	do
		r = poll(pollers, session->count, ms);
	while (r < 0 && errno == EINTR);
	listen_to(session, pollers);
	return r;
}

bool
fuzz_session_send(struct fuzz_session *session, unsigned int lane, const void *bytes, size_t size)
{
	struct pollfd pollers[FUZZ_LANES];
	const uint8_t *from = bytes;

	while (size && !(session->broken >> lane & 1)) {
		int r = wait_for_lanes(session, pollers, lane, lane ? LANE_MS : ANSWER_MS);
		ssize_t n;

		if (r <= 0 && lane == 0)
			fail("the session hangs");
		/* Chunks of copies whose records never arrive keep a lane waiting. */
		if (r <= 0)
			session->broken |= 1u << lane;
		if (r <= 0 || !(pollers[lane].revents & POLLOUT))
			continue;
		n = send(session->lanes[lane], from, size, MSG_NOSIGNAL);
		if (n < 0 && errno != EAGAIN)
			session->broken |= 1u << lane;
		from += n > 0 ? n : 0;
		size -= n > 0 ? (size_t)n : 0;
	}
	return !(session->broken >> lane & 1);
}

void
fuzz_session_close(struct fuzz_session *session)
{
	struct pollfd pollers[FUZZ_LANES];

	for (unsigned int i = 0; i < session->count; i++)
		(void)shutdown(session->lanes[i], SHUT_WR);
	while (session->broken != (1u << session->count) - 1)
		if (wait_for_lanes(session, pollers, FUZZ_LANES, ANSWER_MS) <= 0)
			fail("the session hangs");
	for (unsigned int i = 0; i < session->count; i++)
		(void)close(session->lanes[i]);
	expect(GPD_CHANNEL_CLOSED);
}
