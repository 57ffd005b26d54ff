/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cost of the transport alone: latency, messages and bytes per second between two threads, over the
 * given URL (default tcp://127.0.0.1:0; also tls://127.0.0.1:0, shm:///tmp/NAME), each for about
 * SECONDS (default 0.5). Prints a result per line: name, value, unit.
 */
#include "base/thread.h"
#include "bench/bench_conn.h"
#include "transport/tls/tls.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>

/* The first byte of a message selects how the far end processes it. */
#define ECHO 'e'
#define KEEP 'k'
/* Another thread replies while this one polls for the next message, as in the daemon. */
#define PASS_ON 'p'
/* The reply has bulk of the size of a copy. */
#define FETCH_64K 'f'
#define FETCH_1M 'm'

#define BULK_MAX ((size_t)16 << 20)
#define COPIES_MAX 100000

struct bench {
	struct gp_conn *near;
	struct gp_conn *far;
	double seconds;
	char *bulk;
	/* Messages that the far end has passed on so far; finally PASS_END. */
	_Atomic long passed;
};

#define PASS_END (-1L)

static void *
answer_passed(void *argument)
{
	struct bench *bench = argument;
	char data[64] = { PASS_ON };
	struct iovec echo = { data, sizeof(data) };
	long answered = 0, passed;
	struct rusage usage;

	for (; (passed = atomic_load(&bench->passed)) != PASS_END;) {
		if (passed == answered) {
			(void)gp_cpu_yield();
			continue;
		}
		answered = passed;
		must(gp_conn_send(bench->far, &echo, 1, NULL, 0), "answer", bench->far);
	}
	/* The thread waits for nothing but the connection. */
	(void)getrusage(RUSAGE_THREAD, &usage);
	printf("round_trip_passed_sleeps %.1f %%\n",
	       100.0 * (double)usage.ru_nvcsw / (double)answered);
	return NULL;
}

static void *
far_end(void *argument)
{
	struct bench *bench = argument;
	char *to = malloc(BULK_MAX);

	for (;;) {
		struct gp_message message;
		struct iovec echo, tail = { to, 0 };
		int r = gp_conn_recv(bench->far, &message);

		if (r == GP_E_EOF)
			break;
		must(r, "receive", bench->far);
		must(gp_conn_recv_bulk(bench->far, to, message.bulk_size), "bulk", bench->far);
		switch (*(const char *)message.data) {
		case KEEP:
			continue;
		case PASS_ON:
			atomic_fetch_add(&bench->passed, 1);
			continue;
		case FETCH_64K:
			tail.iov_len = (size_t)64 << 10;
			break;
		case FETCH_1M:
			tail.iov_len = (size_t)1 << 20;
			break;
		}
		echo = (struct iovec){ (void *)message.data, message.size };
		must(gp_conn_send(bench->far, &echo, 1, &tail, tail.iov_len != 0), "echo",
		     bench->far);
	}
	free(to);
	return NULL;
}

static void
put(struct bench *bench, char what, size_t size, size_t bulk_size)
{
	static char data[GP_CONN_MESSAGE_MAX];
	struct iovec part = { data, size }, bulk = { bench->bulk, bulk_size };

	data[0] = what;
	must(gp_conn_send(bench->near, &part, 1, &bulk, bulk_size ? 1 : 0), "send", bench->near);
}

static void
round_trip(struct bench *bench, char what, size_t size, size_t bulk_size)
{
	struct gp_message message;

	put(bench, what, size, bulk_size);
	must(gp_conn_recv(bench->near, &message), "reply", bench->near);
	must(gp_conn_recv_bulk(bench->near, bench->bulk, message.bulk_size), "its tail",
	     bench->near);
}

/* Median of a message each way, one of them with bulk, as a copy sends. */
static void
copy(struct bench *bench, const char *name, char what, size_t bulk_size)
{
	static double times[COPIES_MAX];
	double end = now() + bench->seconds;
	size_t count = 0;

	while (count < COPIES_MAX && (count < 3 || now() < end)) {
		double start = now();

		round_trip(bench, what, 64, bulk_size);
		times[count++] = (now() - start) * 1e6;
	}
	printf("%s %.2f us\n", name, median(times, count));
}

static void
ping_pong(struct bench *bench, const char *name, char what, unsigned int spin_usec)
{
	gp_conn_set_spin(bench->near, spin_usec);
	gp_conn_set_spin(bench->far, spin_usec);
	copy(bench, name, what, 0);
}

static void
one_way(struct bench *bench, const char *name, size_t size, size_t bulk_size)
{
	double start = now(), end;
	long count = 0;

	do {
		for (int i = 0; i < 4; i++)
			put(bench, KEEP, size, bulk_size);
		count += 4;
	} while (now() - start < bench->seconds);
	round_trip(bench, ECHO, 8, 0);
	end = now();
	if (bulk_size)
		printf("%s_%zu %.2f GB/s\n", name, bulk_size,
		       (double)count * (double)bulk_size / (end - start) / 1e9);
	else
		printf("%s_%zu %.3f M/s\n", name, size, (double)count / (end - start) / 1e6);
}

static const uint8_t key[GP_TLS_KEY_SIZE] = "a lane's key, out of its ticket";

static void *
secure_far(void *argument)
{
	struct bench *bench = argument;

	must(gp_conn_secure_psk(bench->far, true, key, 5000), "handshake", bench->far);
	return NULL;
}

static void
secure_ends(struct bench *bench)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, secure_far, bench))
		exit(1);
	must(gp_conn_secure_psk(bench->near, false, key, 5000), "handshake", bench->near);
	pthread_join(thread, NULL);
}

struct accepting {
	struct bench *bench;
	struct gp_listener *listener;
};

/* Runs while the near end connects: that of shm waits for memory of the far end. */
static void *
accept_far(void *argument)
{
	struct accepting *accepting = argument;

	must(gp_accept(accepting->listener, 5000, &accepting->bench->far), "accept", NULL);
	return NULL;
}

static void
connect_ends(struct bench *bench, const char *text)
{
	struct accepting accepting = { .bench = bench };
	char error[400] = "";
	struct gp_url url;
	pthread_t thread;

	if (gp_url_parse(text, &url, error, sizeof(error)) ||
	    gp_listen(&url, &accepting.listener, error, sizeof(error)) ||
	    pthread_create(&thread, NULL, accept_far, &accepting) ||
	    gp_connect(gp_listener_url(accepting.listener), NULL, 0, 5000, &bench->near, error,
		       sizeof(error))) {
		fprintf(stderr, "%s\n", error);
		exit(1);
	}
	pthread_join(thread, NULL);
	gp_listener_destroy(accepting.listener);
	if (strcmp(url.scheme, "tls") == 0)
		secure_ends(bench);
}

int
main(int argc, char **argv)
{
	struct bench bench = { .seconds = argc > 2 ? atof(argv[2]) : 0.5 };
	pthread_t thread, passer;

	bench.bulk = calloc(1, BULK_MAX);
	if (!bench.bulk)
		return 1;
	connect_ends(&bench, argc > 1 ? argv[1] : "tcp://127.0.0.1:0");
	if (pthread_create(&thread, NULL, far_end, &bench))
		return 1;
	memset(bench.bulk, 1, BULK_MAX);

	ping_pong(&bench, "round_trip_64", ECHO, 0);
	ping_pong(&bench, "round_trip_spin_64", ECHO, 50);
	if (pthread_create(&passer, NULL, answer_passed, &bench))
		return 1;
	ping_pong(&bench, "round_trip_passed_64", PASS_ON, 50);
	atomic_store(&bench.passed, PASS_END);
	pthread_join(passer, NULL);
	copy(&bench, "copy_in_64k", ECHO, (size_t)64 << 10);
	copy(&bench, "copy_out_64k", FETCH_64K, 0);
	copy(&bench, "copy_in_1m", ECHO, (size_t)1 << 20);
	copy(&bench, "copy_out_1m", FETCH_1M, 0);
	gp_conn_set_spin(bench.near, 0);
	gp_conn_set_spin(bench.far, 0);
	one_way(&bench, "messages", 64, 0);
	one_way(&bench, "messages", 4096, 0);
	one_way(&bench, "bulk", 64, (size_t)64 << 10);
	one_way(&bench, "bulk", 64, (size_t)1 << 20);
	one_way(&bench, "bulk", 64, BULK_MAX);

	gp_conn_shutdown(bench.near);
	pthread_join(thread, NULL);
	gp_conn_destroy(bench.near);
	gp_conn_destroy(bench.far);
	free(bench.bulk);
	return 0;
}
