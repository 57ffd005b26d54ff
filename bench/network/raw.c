/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Throughput and latency of a link without gpupool, over plain TCP: raw serve prints "listening
 * HOST:PORT" and replies until standard input ends; raw HOST:PORT CONNECTIONS [once] prints a
 * figure per line: name, value, unit; with "once" from a single request each. ping is 64 bytes
 * there and back; up_SIZE and down_SIZE transfer SIZE bytes, divided among the connections, with a
 * reply of 64 bytes, or for a request of 64.
 */
#include "bench/bench.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SECONDS 0.2
#define SAMPLES_MAX 5000
#define WARM_UP 3
#define CONNECTIONS_MAX 16
#define PIECE ((size_t)1 << 20)
/* Size of a request and of the shortest reply. */
#define MESSAGE 64

/* The first bytes of a request; the rest is zero. */
struct request {
	uint64_t up, down; /* bytes that follow the request, and bytes of the reply */
};

struct part {
	int fd;
	struct request request;
};

static void
die(const char *what)
{
	perror(what);
	exit(1);
}

/* Returns 0, or -1 at the end of the connection. */
static int
send_bytes(int fd, uint64_t size)
{
	static const char zeros[PIECE];

	while (size > 0) {
		ssize_t sent = send(fd, zeros, size < PIECE ? size : PIECE, MSG_NOSIGNAL);

		if (sent <= 0)
			return -1;
		size -= (uint64_t)sent;
	}
	return 0;
}

static int
receive_bytes(int fd, uint64_t size, char *room)
{
	while (size > 0) {
		ssize_t got = recv(fd, room, size < PIECE ? size : PIECE, 0);

		if (got <= 0)
			return -1;
		size -= (uint64_t)got;
	}
	return 0;
}

static char *
make_room(void)
{
	char *room = malloc(PIECE);

	if (!room)
		die("no memory");
	return room;
}

static void *
answer(void *arg)
{
	int fd = *(int *)arg;
	char message[MESSAGE], *room = make_room();
	struct request request;

	free(arg);
	while (recv(fd, message, sizeof(message), MSG_WAITALL) == sizeof(message)) {
		memcpy(&request, message, sizeof(request));
		if (receive_bytes(fd, request.up, room) || send_bytes(fd, request.down))
			break;
	}
	free(room);
	close(fd);
	return NULL;
}

static void
set_no_delay(int fd)
{
	int one = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static void *
serve(void *arg)
{
	int listener = *(const int *)arg;

	for (;;) {
		int *fd = malloc(sizeof(*fd));
		pthread_t thread;

		if (!fd)
			die("no memory");
		*fd = accept(listener, NULL, NULL);
		if (*fd < 0)
			die("accept");
		set_no_delay(*fd);
		if (pthread_create(&thread, NULL, answer, fd))
			die("no thread");
		(void)pthread_detach(thread);
	}
	return NULL;
}

static int
run_server(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	pthread_t thread;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(fd, SOMAXCONN) || getsockname(fd, (struct sockaddr *)&address, &size) ||
	    pthread_create(&thread, NULL, serve, &fd))
		die("cannot listen");
	printf("listening 127.0.0.1:%u\n", ntohs(address.sin_port));
	(void)fflush(stdout);
	while (getchar() != EOF)
		;
	_exit(0);
}

static int
connect_to(char *text)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	char *colon = strrchr(text, ':');
	struct addrinfo *found;
	int fd;

	if (!colon)
		die(text);
	*colon = '\0';
	if (getaddrinfo(text, colon + 1, &hints, &found))
		die(text);
	*colon = ':';
	fd = socket(found->ai_family, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen))
		die("cannot connect");
	freeaddrinfo(found);
	set_no_delay(fd);
	return fd;
}

static void *
exchange(void *arg)
{
	const struct part *part = arg;
	char message[MESSAGE] = { 0 }, *room = make_room();

	memcpy(message, &part->request, sizeof(part->request));
	if (send(part->fd, message, sizeof(message), MSG_NOSIGNAL) != sizeof(message) ||
	    send_bytes(part->fd, part->request.up) ||
	    receive_bytes(part->fd, part->request.down, room))
		die("the connection is lost");
	free(room);
	return NULL;
}

/* Sends requests over all connections at once; this thread handles the first connection. */
static void
exchange_all(struct part *parts, int count)
{
	pthread_t threads[CONNECTIONS_MAX];

	for (int i = 1; i < count; i++) {
		if (pthread_create(&threads[i], NULL, exchange, &parts[i]))
			die("no thread");
	}
	(void)exchange(&parts[0]);
	for (int i = 1; i < count; i++)
		(void)pthread_join(threads[i], NULL);
}

/* Whether to use a single request per figure. */
static int once;

/* Returns the median, in seconds. */
static double
measure(const int *fds, int count, uint64_t up, uint64_t down)
{
	static double times[SAMPLES_MAX];
	struct part parts[CONNECTIONS_MAX];
	double end = 0;
	int taken = 0;

	for (int i = 0; i < count; i++)
		parts[i] = (struct part){
			.fd = fds[i],
			.request = { up / (uint64_t)count, down / (uint64_t)count },
		};
	for (int i = 0; up > 0 && i < count; i++)
		parts[i].request.down = MESSAGE;
	for (int i = once ? 0 : -WARM_UP;
	     i < (once ? 1 : 3) || (!once && now() < end && taken < SAMPLES_MAX); i++) {
		double begin = now();

		if (i == 0)
			end = begin + SECONDS;
		exchange_all(parts, count);
		if (i >= 0)
			times[taken++] = now() - begin;
	}
	return median(times, (size_t)taken);
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		uint64_t size;
	} sizes[] = {
		{ "64k", 65536 }, { "1m", 1 << 20 }, { "16m", 16 << 20 }, { "256m", 256 << 20 }
	};
	int fds[CONNECTIONS_MAX], count = argc == 3 || argc == 4 ? atoi(argv[2]) : 0;

	if (argc == 2 && strcmp(argv[1], "serve") == 0)
		return run_server();
	once = argc == 4 && strcmp(argv[3], "once") == 0;
	if (count < 1 || count > CONNECTIONS_MAX || (argc == 4 && !once)) {
		fprintf(stderr, "usage: raw serve | HOST:PORT CONNECTIONS [once]\n");
		return 2;
	}
	for (int i = 0; i < count; i++)
		fds[i] = connect_to(argv[1]);
	printf("ping %.4f us\n", measure(fds, 1, 0, MESSAGE) * 1e6);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		/* As copies do: below 512 KiB over a single connection. */
		int used = sizes[i].size < (uint64_t)512 << 10 ? 1 : count;
		double size = (double)sizes[i].size / 1e9;

		printf("up_%s %.4f GB/s\n", sizes[i].name,
		       size / measure(fds, used, sizes[i].size, 0));
		printf("down_%s %.4f GB/s\n", sizes[i].name,
		       size / measure(fds, used, 0, sizes[i].size));
		(void)fflush(stdout);
	}
	return 0;
}
