/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Performance of the transport over a link between two processes: rdma URL WHAT COUNT [SIZE]. WHAT:
 * latency (round trips of SIZE bytes, us each); up and down (COUNT messages with SIZE bytes of bulk
 * to or from the listening end, MiB/s); up-copied and down-copied (the same, but with memory that
 * is not registered with the transport). For latency both ends poll and do not sleep. Prints a
 * line: the median of the round trips, or the rate from the first message to the last.
 */
#include "bench/bench_conn.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* For latency only. For bulk both ends sleep, as programs that transfer much data do, because the
 * processors are busy. */
#define SPIN_USEC 1000000
#define CONNECT_MS 10000
#define HEADER 16
#define WARM_UP 50

struct run {
	const char *what;
	long count;
	size_t size;
	char *memory;
	double *times; /* of the messages, at the end that measures */
};

static void
put(const struct run *run, struct gp_conn *conn, size_t size, size_t bulk_size)
{
	static char data[GP_CONN_MESSAGE_MAX];
	struct iovec part = { data, size }, bulk = { run->memory, bulk_size };

	must(gp_conn_send(conn, &part, 1, &bulk, bulk_size ? 1 : 0), "send", conn);
}

static void
receive(const struct run *run, struct gp_conn *conn)
{
	struct gp_message message;

	must(gp_conn_recv(conn, &message), "receive", conn);
	must(gp_conn_recv_bulk(conn, run->memory, message.bulk_size), "bulk", conn);
}

static void
send_all(const struct run *run, struct gp_conn *conn)
{
	for (long i = 0; i < run->count; i++) {
		put(run, conn, HEADER, run->size);
		run->times[i] = now();
	}
	receive(run, conn);
}

static void
receive_all(const struct run *run, struct gp_conn *conn)
{
	for (long i = 0; i < run->count; i++) {
		receive(run, conn);
		run->times[i] = now();
	}
	put(run, conn, HEADER, 0);
}

static void
answer(const struct run *run, struct gp_conn *conn, long count)
{
	for (long i = 0; i < count; i++) {
		receive(run, conn);
		put(run, conn, run->size, 0);
	}
}

static void
send_requests(const struct run *run, struct gp_conn *conn, long count)
{
	for (long i = 0; i < count; i++) {
		put(run, conn, run->size, 0);
		receive(run, conn);
		run->times[i] = now();
	}
}

/* Returns the median time between two messages. */
static double
get_median(struct run *run)
{
	long count = run->count - 1;

	for (long i = 0; i < count; i++)
		run->times[i] = run->times[i + 1] - run->times[i];
	return median(run->times, (size_t)count);
}

/* The connecting end, which measures. */
static void
near_end(struct run *run, struct gp_conn *conn)
{
	if (strcmp(run->what, "latency") == 0) {
		send_requests(run, conn, WARM_UP);
		send_requests(run, conn, run->count);
		printf("%.2f\n", get_median(run) * 1e6);
		return;
	}
	receive(run, conn);
	if (strncmp(run->what, "up", 2) == 0)
		send_all(run, conn);
	else
		receive_all(run, conn);
	printf("%.2f\n", (double)(run->count - 1) * (double)run->size /
				 (run->times[run->count - 1] - run->times[0]) / (double)(1 << 20));
}

static void
far_end(const struct run *run, struct gp_conn *conn)
{
	struct gp_message message;

	if (strcmp(run->what, "latency") == 0) {
		answer(run, conn, WARM_UP + run->count);
	} else {
		put(run, conn, HEADER, 0);
		if (strncmp(run->what, "up", 2) == 0)
			receive_all(run, conn);
		else
			send_all(run, conn);
	}
	if (gp_conn_recv(conn, &message) != GP_E_EOF)
		fprintf(stderr, "the other end did not close: %s\n", gp_conn_error(conn));
}

static unsigned int
get_spin(const struct run *run)
{
	return strcmp(run->what, "latency") == 0 ? SPIN_USEC : 0;
}

static int
connect_to(const struct gp_url *url, struct run *run)
{
	char error[400];
	struct gp_conn *conn;

	must(gp_connect(url, NULL, 0, CONNECT_MS, &conn, error, sizeof(error)), error, NULL);
	gp_conn_set_spin(conn, get_spin(run));
	near_end(run, conn);
	gp_conn_destroy(conn);
	return 0;
}

static int
serve(struct gp_listener *listener, const struct run *run)
{
	struct gp_conn *conn;

	must(gp_accept(listener, CONNECT_MS, &conn), "accept", NULL);
	gp_conn_set_spin(conn, get_spin(run));
	far_end(run, conn);
	gp_conn_destroy(conn);
	return 0;
}

int
main(int argc, char **argv)
{
	struct run run = { .size = 64 };
	struct gp_listener *listener;
	char error[400];
	struct gp_url url;
	int pipes[2], status = 1;
	pid_t child;

	if (argc < 4 || gp_url_parse(argv[1], &url, error, sizeof(error)) || pipe(pipes)) {
		fprintf(stderr, "usage: %s URL WHAT COUNT [SIZE]\n", argv[0]);
		return 2;
	}
	run.what = argv[2];
	run.count = atol(argv[3]);
	run.times = calloc((size_t)(run.count > WARM_UP ? run.count : WARM_UP), sizeof(*run.times));
	if (argc > 4)
		run.size = (size_t)atol(argv[4]);
	/* The device must not be open when the process forks. */
	child = fork();
	run.memory = aligned_alloc(4096, (run.size + 4095) & ~(size_t)4095);
	memset(run.memory, 1, run.size);
	if (!strstr(run.what, "copied"))
		gp_memory_register(run.memory, run.size);
	if (child == 0) {
		must(read(pipes[0], &url, sizeof(url)) != sizeof(url), "address", NULL);
		return connect_to(&url, &run);
	}
	must(gp_listen(&url, &listener, error, sizeof(error)), error, NULL);
	must(write(pipes[1], gp_listener_url(listener), sizeof(url)) != sizeof(url), "address",
	     NULL);
	(void)serve(listener, &run);
	gp_listener_destroy(listener);
	(void)waitpid(child, &status, 0);
	return status != 0;
}
