/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cost of encryption: bulk over 1 and 4 connections (or the numbers given as the second and further
 * arguments) between two processes, tcp next to tls in the same run, compared with the cipher on
 * one core, measured as `openssl speed -evp aes-128-gcm` does. Each for SECONDS, the first argument
 * (default 1). Prints a result per line: name, value, unit.
 *
 * "wanted" is the smaller of tcp's rate and 0.9 times the cipher's rate times the connections;
 * "met" is tls's part of it.
 */
#include "transport/tls/tls.h"

#include "bench/bench_conn.h"

#include <openssl/evp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define LANES_MAX 32
#define CHUNK ((size_t)1 << 20)
/* Larger than caches, as in copies. */
#define MEMORY ((size_t)32 << 20)
#define RECORD (16 << 10)

struct lane {
	struct gp_conn *conn;
	pthread_t thread;
	char *memory; /* of the process: source or destination of the bulk */
	uint64_t received;
};

static atomic_bool over;
static const uint8_t key[GP_TLS_KEY_SIZE] = "a lane's key, out of its ticket";

static void *
send_chunks(void *argument)
{
	struct lane *lane = argument;
	char header[16] = "";

	for (size_t at = 0; !atomic_load(&over); at = (at + CHUNK) % MEMORY) {
		struct iovec data = { header, sizeof(header) }, bulk = { lane->memory + at, CHUNK };

		must(gp_conn_send(lane->conn, &data, 1, &bulk, 1), "send", lane->conn);
	}
	gp_conn_shutdown(lane->conn);
	return NULL;
}

static void *
receive_chunks(void *argument)
{
	struct lane *lane = argument;

	for (size_t at = 0;; at = (at + CHUNK) % MEMORY) {
		struct gp_message message;
		int r = gp_conn_recv(lane->conn, &message);

		if (r == GP_E_EOF)
			return NULL;
		must(r, "receive", lane->conn);
		must(gp_conn_recv_bulk(lane->conn, lane->memory + at, message.bulk_size), "bulk",
		     lane->conn);
		lane->received += message.bulk_size;
	}
}

static void
secure(struct gp_conn *conn, const struct gp_url *url, bool daemon)
{
	if (strcmp(url->scheme, "tls") == 0)
		must(gp_conn_secure_psk(conn, daemon, key, 5000), "handshake", conn);
}

/* Runs a thread for each lane until all have ended. */
static void
run_all(struct lane *lanes, int count, void *(*run)(void *), double seconds)
{
	struct timespec time = { .tv_sec = (time_t)seconds,
				 .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) };

	for (int i = 0; i < count; i++)
		must(pthread_create(&lanes[i].thread, NULL, run, &lanes[i]), "thread", NULL);
	nanosleep(&time, NULL);
	atomic_store(&over, true);
	for (int i = 0; i < count; i++)
		pthread_join(lanes[i].thread, NULL);
}

/* The daemon's end: receives from all lanes and reports the rate. */
static void
receive_all(struct gp_listener *listener, struct lane *lanes, int count, int result)
{
	uint64_t received = 0;
	double begin, rate;

	for (int i = 0; i < count; i++) {
		memset(lanes[i].memory, 1, MEMORY);
		must(gp_accept(listener, 5000, &lanes[i].conn), "accept", NULL);
		secure(lanes[i].conn, gp_listener_url(listener), true);
	}
	begin = now();
	run_all(lanes, count, receive_chunks, 0);
	for (int i = 0; i < count; i++)
		received += lanes[i].received;
	rate = (double)received / (now() - begin) / 1e9;
	_exit(write(result, &rate, sizeof(rate)) == sizeof(rate) ? 0 : 1);
}

/* The client's end. */
static void
send_all(struct gp_listener *listener, struct lane *lanes, int count, double seconds)
{
	const struct gp_url *url = gp_listener_url(listener);
	char error[400] = "";

	for (int i = 0; i < count; i++) {
		/* Touches the pages; otherwise the bulk would be a single zero page. */
		memset(lanes[i].memory, i + 1, MEMORY);
		must(gp_connect(url, NULL, 0, 5000, &lanes[i].conn, error, sizeof(error)), error,
		     NULL);
		secure(lanes[i].conn, url, false);
	}
	run_all(lanes, count, send_chunks, seconds);
	for (int i = 0; i < count; i++)
		gp_conn_destroy(lanes[i].conn);
	_exit(0);
}

/* Returns GB/s over `count` connections between two processes. */
static double
measure(const char *text, struct lane *lanes, int count, double seconds)
{
	struct gp_listener *listener;
	pid_t receiver, sender;
	char error[400] = "";
	struct gp_url url;
	double rate = 0;
	int result[2];

	if (gp_url_parse(text, &url, error, sizeof(error)) ||
	    gp_listen(&url, &listener, error, sizeof(error)) || pipe(result)) {
		fprintf(stderr, "%s\n", error);
		exit(1);
	}
	receiver = fork();
	if (receiver == 0)
		receive_all(listener, lanes, count, result[1]);
	sender = fork();
	if (sender == 0)
		send_all(listener, lanes, count, seconds);
	close(result[1]);
	gp_listener_destroy(listener);
	if (read(result[0], &rate, sizeof(rate)) != sizeof(rate))
		exit(1);
	close(result[0]);
	(void)waitpid(receiver, NULL, 0);
	(void)waitpid(sender, NULL, 0);
	return rate;
}

/* The cipher alone, with data in a core's cache. */
static double
measure_cipher(double seconds)
{
	static unsigned char from[RECORD], to[RECORD + 16];
	unsigned char zero[16] = "";
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	double begin = now(), end;
	long count = 0;
	int done;

	if (!ctx || EVP_EncryptInit_ex(ctx, EVP_aes_128_gcm(), NULL, zero, zero) != 1)
		exit(1);
	do {
		for (int i = 0; i < 1000; i++)
			(void)EVP_EncryptUpdate(ctx, to, &done, from, RECORD);
		count += 1000;
		end = now();
	} while (end - begin < seconds);
	EVP_CIPHER_CTX_free(ctx);
	return (double)count * RECORD / (end - begin) / 1e9;
}

static void
compare(struct lane *lanes, int count, double cipher, double seconds)
{
	double tcp = measure("tcp://127.0.0.1:0", lanes, count, seconds);
	double tls = measure("tls://127.0.0.1:0", lanes, count, seconds);
	double wanted = 0.9 * cipher * count < tcp ? 0.9 * cipher * count : tcp;

	printf("tcp_%d %.2f GB/s\n", count, tcp);
	printf("tls_%d %.2f GB/s\n", count, tls);
	printf("tls_by_tcp_%d %.2f ratio\n", count, tls / tcp);
	printf("tls_by_cipher_%d %.2f ratio\n", count, tls / (cipher * count));
	printf("wanted_%d %.2f GB/s\n", count, wanted);
	printf("met_%d %.2f ratio\n", count, tls / wanted);
	fflush(stdout);
}

int
main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1, cipher;
	static struct lane lanes[LANES_MAX];

	for (int i = 0; i < LANES_MAX; i++) {
		lanes[i].memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE,
				       MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
		if (lanes[i].memory == MAP_FAILED)
			return 1;
		if (i + 1 >= 4 && argc <= 2)
			break;
	}
	cipher = measure_cipher(seconds);
	printf("cipher %.2f GB/s\n", cipher);
	if (argc <= 2) {
		compare(lanes, 1, cipher, seconds);
		compare(lanes, 4, cipher, seconds);
	}
	for (int i = 2; i < argc; i++) {
		int count = atoi(argv[i]);

		if (count >= 1 && count <= LANES_MAX)
			compare(lanes, count, cipher, seconds);
	}
	return 0;
}
