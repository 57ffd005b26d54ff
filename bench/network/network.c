/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulated network between a program and a daemon: network --to HOST:PORT [--rtt MS] [--rate GBIT]
 * [--window BYTES]. Listens on a loopback port and forwards to the daemon, half a round trip later
 * and no faster than the rate; all connections share the rate, separately for each direction.
 * Buffers at most the window per connection and direction. Connecting takes a round trip, as it
 * would without loopback.
 *
 * Prints "listening HOST:PORT" and "rtt MS", the round-trip time measured through itself. For each
 * line on standard input it prints "trips N connections N up N down N": a trip is a change of
 * direction and back, that is, bytes of the daemon that follow bytes of the program, over all
 * connections together; up and down are bytes. Ends at the end of standard input.
 */
#include "bench/bench.h"
#include "bench/network/link.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MEASURED_SECONDS 0.3 /* approximate duration, with at least MEASURED_MIN samples */
#define MEASURED_MIN 5
#define MEASURED_MAX 201
#define PING 64

static struct addrinfo *target;

static void
die(const char *what)
{
	fprintf(stderr, "network: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int
listen_on_loopback(struct sockaddr_in *address)
{
	socklen_t size = sizeof(*address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET };
	address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)address, sizeof(*address)) ||
	    listen(fd, SOMAXCONN) || getsockname(fd, (struct sockaddr *)address, &size))
		die("cannot listen on loopback");
	return fd;
}

/* Creates both ends of a connection over loopback. */
static void
make_pair(int ends[2])
{
	struct sockaddr_in address;
	int one = 1, fd = listen_on_loopback(&address);

	ends[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (ends[0] < 0 || connect(ends[0], (struct sockaddr *)&address, sizeof(address)))
		die("cannot connect to loopback");
	ends[1] = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	if (ends[1] < 0)
		die("cannot accept on loopback");
	(void)setsockopt(ends[0], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	(void)setsockopt(ends[1], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	close(fd);
}

static void
send_ping(int from, int to)
{
	char ping[PING] = { 0 };

	if (send(from, ping, sizeof(ping), 0) != sizeof(ping) ||
	    recv(to, ping, sizeof(ping), MSG_WAITALL) != sizeof(ping))
		die("cannot measure the round trip");
}

/* Returns the median round-trip time, in seconds, of bytes through this process. */
static double
measure(void)
{
	double times[MEASURED_MAX], end;
	int near[2], far[2], count = 0;

	make_pair(near);
	make_pair(far);
	if (link_connect(near[1], far[0]))
		die("cannot start a thread");
	send_ping(near[0], far[1]);
	end = now() + MEASURED_SECONDS;
	while (count < MEASURED_MIN || (count < MEASURED_MAX && now() < end)) {
		double begin = now();

		send_ping(near[0], far[1]);
		send_ping(far[1], near[0]);
		times[count++] = now() - begin;
	}
	close(near[0]);
	close(far[1]);
	return median(times, (size_t)count);
}

static void *
accept_all(void *arg)
{
	int listener = *(const int *)arg;

	for (;;) {
		int near = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		int far;

		if (near < 0)
			continue;
		far = socket(target->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (far < 0 || connect(far, target->ai_addr, target->ai_addrlen) ||
		    link_connect(near, far)) {
			fprintf(stderr, "network: a connection is lost: %s\n", strerror(errno));
			close(near);
			if (far >= 0)
				close(far);
		}
	}
	return NULL;
}

static void
find_target(char *text)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	char *colon = strrchr(text, ':');

	if (!colon) {
		fprintf(stderr, "network: %s is not HOST:PORT\n", text);
		exit(2);
	}
	*colon = '\0';
	if (getaddrinfo(text, colon + 1, &hints, &target)) {
		fprintf(stderr, "network: there is no %s\n", text);
		exit(1);
	}
}

static double
number(const char *text, double least)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= least)) {
		fprintf(stderr, "network: %s is not such a number\n", text);
		exit(2);
	}
	return value;
}

static void
read_options(int argc, char **argv, struct link_options *options)
{
	static const struct option known[] = { { "to", required_argument, NULL, 't' },
					       { "rtt", required_argument, NULL, 'r' },
					       { "rate", required_argument, NULL, 'g' },
					       { "window", required_argument, NULL, 'w' },
					       { 0 } };
	int option;

	while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
		if (option == 't')
			find_target(optarg);
		else if (option == 'r')
			options->rtt_ns = (uint64_t)(number(optarg, 0) * 1e6);
		else if (option == 'g')
			options->bytes_per_ns = number(optarg, 0) / 8;
		else if (option == 'w')
			options->window = (size_t)number(optarg, 1);
		else
			exit(2);
	}
	if (!target || optind < argc) {
		fprintf(stderr, "usage: network --to HOST:PORT [--rtt MS] [--rate GBIT] "
				"[--window BYTES]\n");
		exit(2);
	}
}

int
main(int argc, char **argv)
{
	struct link_options options = { .window = (size_t)4 << 20 };
	struct sockaddr_in address;
	pthread_t thread;
	double rtt;
	int listener, c;

	read_options(argc, argv, &options);
	link_set(&options);
	rtt = measure();
	link_reset_counts();
	listener = listen_on_loopback(&address);
	if (pthread_create(&thread, NULL, accept_all, &listener))
		die("cannot start a thread");
	printf("listening 127.0.0.1:%u\nrtt %.4f\n", ntohs(address.sin_port), rtt * 1e3);
	(void)fflush(stdout);
	while ((c = getchar()) != EOF) {
		struct link_counts counts;

		if (c != '\n')
			continue;
		link_get_counts(&counts);
		printf("trips %" PRIu64 " connections %" PRIu64 " up %" PRIu64 " down %" PRIu64
		       "\n",
		       counts.trips, counts.connections, counts.bytes[LINK_UP],
		       counts.bytes[LINK_DOWN]);
		(void)fflush(stdout);
	}
	/* Threads run until the process ends. */
	_exit(0);
}
