/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/network/link.h"

#include "base/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Bytes that are delivered together; more bytes are delivered in several parts. */
#define PART ((size_t)16384)
#define PARTS 4096
#define READ_MAX ((size_t)262144)
/* A sleep usually ends at most this much too late; the rest of the time is spent polling. */
#define AWAKE_NS 80000

struct part {
	uint64_t end; /* of its bytes, counted from the start of the connection */
	uint64_t due;
};

struct connection {
	int near, far;
	pthread_mutex_t lock;
	int ways; /* directions that have not ended */
};

/* A direction of a connection. */
struct pump {
	struct connection *connection;
	enum link_way way;
	int from, to;
	uint8_t *ring;
	uint64_t in, out; /* bytes, counted from the start */
	struct part parts[PARTS];
	unsigned int first, next;
	bool ended; /* nothing more will arrive */
};

static struct link_options set;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Protected by the lock. */
static uint64_t free_at[2]; /* when the link has sent everything it has accepted */
static struct link_counts counts;
static enum link_way last_way = LINK_DOWN;

void
link_set(const struct link_options *options)
{
	set = *options;
}

void
link_get_counts(struct link_counts *result)
{
	(void)pthread_mutex_lock(&lock);
	*result = counts;
	(void)pthread_mutex_unlock(&lock);
}

void
link_reset_counts(void)
{
	(void)pthread_mutex_lock(&lock);
	counts = (struct link_counts){ 0 };
	last_way = LINK_DOWN;
	(void)pthread_mutex_unlock(&lock);
}

/* Counts from the program's view: when its bytes are sent, and just before the daemon's bytes
 * arrive. */
static void
count_way(enum link_way way, size_t bytes)
{
	(void)pthread_mutex_lock(&lock);
	counts.trips += way == LINK_DOWN && last_way == LINK_UP;
	counts.bytes[way] += bytes;
	last_way = way;
	(void)pthread_mutex_unlock(&lock);
}

/* Adds bytes to the link's queue; returns when they arrive at the other end. */
static uint64_t
queue_bytes(enum link_way way, uint64_t now, size_t bytes)
{
	uint64_t due = now;

	if (set.bytes_per_ns > 0) {
		(void)pthread_mutex_lock(&lock);
		if (free_at[way] > due)
			due = free_at[way];
		due += (uint64_t)((double)bytes / set.bytes_per_ns);
		free_at[way] = due;
		(void)pthread_mutex_unlock(&lock);
	}
	return due + set.rtt_ns / 2;
}

static void
add_parts(struct pump *pump, uint64_t now, size_t bytes)
{
	while (bytes > 0) {
		size_t part = bytes < PART ? bytes : PART;

		pump->in += part;
		pump->parts[pump->next % PARTS] =
			(struct part){ .end = pump->in, .due = queue_bytes(pump->way, now, part) };
		pump->next++;
		bytes -= part;
	}
}

/* Returns the number of bytes that may be read at once now. */
static size_t
get_room(const struct pump *pump)
{
	size_t room = set.window - (size_t)(pump->in - pump->out);
	size_t left = set.window - (size_t)(pump->in % set.window);

	if (pump->ended || pump->next - pump->first > PARTS - READ_MAX / PART - 1)
		return 0;
	if (room > left)
		room = left;
	return room < READ_MAX ? room : READ_MAX;
}

/* Returns whether anything was read. */
static bool
receive(struct pump *pump)
{
	size_t room = get_room(pump);
	ssize_t got;

	if (room == 0)
		return false;
	got = recv(pump->from, pump->ring + pump->in % set.window, room, MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (got <= 0) {
		pump->ended = true;
		return true;
	}
	if (pump->way == LINK_UP)
		count_way(LINK_UP, (size_t)got);
	add_parts(pump, gp_now_ns(), (size_t)got);
	return true;
}

/* Returns the end of the bytes that have arrived at the other end by now. */
static uint64_t
arrived(const struct pump *pump)
{
	uint64_t now = gp_now_ns(), end = pump->out;

	for (unsigned int i = pump->first; i != pump->next && pump->parts[i % PARTS].due <= now;
	     i++)
		end = pump->parts[i % PARTS].end;
	return end;
}

/* Returns 1: bytes were forwarded; 0: nothing has arrived yet, or the receiver has no room
 * (*full_p); -1: the receiver is gone. */
static int
give(struct pump *pump, bool *full_p)
{
	uint64_t end = arrived(pump);
	size_t at = (size_t)(pump->out % set.window), size = (size_t)(end - pump->out);
	ssize_t sent;

	*full_p = false;
	if (size == 0)
		return 0;
	if (size > set.window - at)
		size = set.window - at;
	if (pump->way == LINK_DOWN)
		count_way(LINK_DOWN, size);
	sent = send(pump->to, pump->ring + at, size, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < 0 && (errno == EAGAIN || errno == EINTR)) {
		*full_p = true;
		return 0;
	}
	if (sent <= 0)
		return -1;
	pump->out += (uint64_t)sent;
	while (pump->first != pump->next && pump->parts[pump->first % PARTS].end <= pump->out)
		pump->first++;
	return 1;
}

/* Waits until bytes can be read, the next part is due, or the receiver has room again. */
static void
rest(struct pump *pump, bool full)
{
	struct pollfd fds[2] = { { .fd = get_room(pump) > 0 ? pump->from : -1, .events = POLLIN },
				 { .fd = full ? pump->to : -1, .events = POLLOUT } };
	struct timespec time = { 0 };
	uint64_t now = gp_now_ns(), due;

	if (pump->first == pump->next || full) {
		(void)poll(fds, 2, -1);
		return;
	}
	due = pump->parts[pump->first % PARTS].due;
	if (due <= now + AWAKE_NS)
		return;
	due -= now + AWAKE_NS;
	time.tv_sec = (time_t)(due / 1000000000u);
	time.tv_nsec = (long)(due % 1000000000u);
	(void)ppoll(fds, 2, &time, NULL);
}

static void
pass_on(struct pump *pump)
{
	bool full = false;
	int given = 0;

	while (given >= 0 && !(pump->ended && pump->in == pump->out)) {
		bool taken = receive(pump);

		given = give(pump, &full);
		if (!taken && given == 0)
			rest(pump, full);
	}
	/* If the receiver is gone, the other direction ends too; otherwise its sender ends it. */
	(void)shutdown(pump->to, given < 0 ? SHUT_RDWR : SHUT_WR);
	if (given < 0)
		(void)shutdown(pump->from, SHUT_RDWR);
}

static void
leave(struct connection *connection)
{
	bool last;

	(void)pthread_mutex_lock(&connection->lock);
	last = --connection->ways == 0;
	(void)pthread_mutex_unlock(&connection->lock);
	if (!last)
		return;
	close(connection->near);
	close(connection->far);
	(void)pthread_mutex_destroy(&connection->lock);
	free(connection);
}

static void
sleep_until(uint64_t end)
{
	const struct timespec time = { .tv_sec = (time_t)(end / 1000000000u),
				       .tv_nsec = (long)(end % 1000000000u) };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
		;
}

static void *
run(void *arg)
{
	struct pump *pump = arg;

	(void)prctl(PR_SET_TIMERSLACK, 1UL);
	if (pump->way == LINK_UP) {
		uint64_t made = gp_now_ns() + set.rtt_ns;

		/* The kernel has accepted at once. Bytes of the program are delayed until the
		 * program could have known. */
		count_way(LINK_UP, 0);
		sleep_until(made);
		count_way(LINK_DOWN, 0);
	}
	pass_on(pump);
	leave(pump->connection);
	free(pump->ring);
	free(pump);
	return NULL;
}

static struct pump *
pump_create(struct connection *connection, enum link_way way)
{
	struct pump *pump = calloc(1, sizeof(*pump));
	uint8_t *ring = malloc(set.window);

	if (!pump || !ring) {
		free(pump);
		free(ring);
		return NULL;
	}
	pump->connection = connection;
	pump->way = way;
	pump->ring = ring;
	pump->from = way == LINK_UP ? connection->near : connection->far;
	pump->to = way == LINK_UP ? connection->far : connection->near;
	return pump;
}

int
link_connect(int near, int far)
{
	struct connection *connection = calloc(1, sizeof(*connection));
	struct pump *pumps[2] = { NULL, NULL };
	pthread_t thread;
	int one = 1;

	if (!connection)
		return -1;
	(void)setsockopt(near, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(far, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)pthread_mutex_init(&connection->lock, NULL);
	connection->near = near;
	connection->far = far;
	connection->ways = 2;
	for (int way = LINK_UP; way <= LINK_DOWN; way++) {
		pumps[way] = pump_create(connection, (enum link_way)way);
		if (!pumps[way] || pthread_create(&thread, NULL, run, pumps[way]))
			abort(); /* a half-open connection would invalidate the measurement */
		(void)pthread_detach(thread);
	}
	(void)pthread_mutex_lock(&lock);
	counts.connections++;
	(void)pthread_mutex_unlock(&lock);
	return 0;
}
