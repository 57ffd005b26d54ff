/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/contract/fixture.h"

#include "tests/certificates.h"
#include "transport/tls/tls.h"
#include "transport/tls/tls_helpers.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CONNECT_MS 10000

struct gp_url fixture_url;

static int
accept_one(struct job *job)
{
	return gp_accept((struct gp_listener *)job->conn, CONNECT_MS, &job->conn);
}

/* TLS with certificates over IPv4. Over IPv6 with a key, and with helper threads even on few
 * processors. */

static struct gp_tls *server_tls, *client_tls;
static const uint8_t tls_key[GP_TLS_KEY_SIZE] = "a key that both ends have";

static void
release_tls(void)
{
	gp_tls_unref(server_tls);
	gp_tls_unref(client_tls);
}

static void
prepare_tls(void)
{
	char folder[] = "/tmp/gpupool-contract-XXXXXX", error[400] = "no certificates";
	char certificate[64], key[64], authority[64], command[96];
	struct gp_tls_files server = { .certificate = certificate, .key = key };
	struct gp_tls_files client = { .authority = authority };
	bool ready = mkdtemp(folder) && certificates_make(folder) == 0;

	(void)snprintf(certificate, sizeof(certificate), "%s/server.pem", folder);
	(void)snprintf(key, sizeof(key), "%s/server.key", folder);
	(void)snprintf(authority, sizeof(authority), "%s/ca.pem", folder);
	ready = ready && gp_tls_create_server(&server, &server_tls, error, sizeof(error)) == 0 &&
		gp_tls_create_client(&client, &client_tls, error, sizeof(error)) == 0;
	(void)snprintf(command, sizeof(command), "rm -rf %s", folder);
	if (system(command) != 0 || !ready) {
		fprintf(stderr, "%s\n", error);
		exit(2);
	}
	(void)atexit(release_tls);
}

static bool
with_certificates(void)
{
	return strcmp(fixture_url.host, "127.0.0.1") == 0;
}

static int
secure_server(struct job *job)
{
	return with_certificates() ? gp_conn_secure(job->conn, server_tls, NULL, CONNECT_MS)
				   : gp_conn_secure_psk(job->conn, true, tls_key, CONNECT_MS);
}

bool
fixture_is_tls(void)
{
	return strcmp(fixture_url.scheme, "tls") == 0;
}

void
fixture_init(int argc, char **argv)
{
	char error[400] = "no URL given";
	struct gp_listener *listener;
	int r;

	if (argc < 2 || gp_url_parse(argv[1], &fixture_url, error, sizeof(error))) {
		fprintf(stderr, "usage: %s URL: %s\n", argv[0], error);
		exit(2);
	}
	/* Concurrent tests need different paths. */
	if (fixture_url.host[0] == '/')
		snprintf(fixture_url.host + strlen(fixture_url.host), 16, "%d", (int)getpid());
	r = gp_listen(&fixture_url, &listener, error, sizeof(error));
	if (r == -EADDRNOTAVAIL || r == -EAFNOSUPPORT) {
		printf("1..0 # SKIP %s\n", error);
		exit(0);
	}
	if (r == 0)
		gp_listener_destroy(listener);
	if (fixture_is_tls()) {
		prepare_tls();
		gp_tls_helpers_set_max(with_certificates() ? 0 : 2);
	}
}

void
fixture_secure(struct gp_conn *client, struct gp_conn *server)
{
	struct job securing = { .run = secure_server, .conn = server };
	int r;

	if (!fixture_is_tls())
		return;
	job_start(&securing);
	r = with_certificates() ? gp_conn_secure(client, client_tls, fixture_url.host, CONNECT_MS)
				: gp_conn_secure_psk(client, false, tls_key, CONNECT_MS);
	if (job_join(&securing) || r)
		fail_msg("%s; %s", gp_conn_error(client), gp_conn_error(server));
}

void
fixture_connect(struct pair *pair, struct gp_conn **client_p, struct gp_conn **server_p)
{
	/* Some backends finish connecting only after the other side has accepted. */
	struct job accepting = { .run = accept_one, .conn = (struct gp_conn *)pair->listener };
	char error[400] = "";

	job_start(&accepting);
	if (gp_connect(gp_listener_url(pair->listener), NULL, 0, CONNECT_MS, client_p, error,
		       sizeof(error)))
		fail_msg("%s", error);
	assert_int_equal(job_join(&accepting), 0);
	*server_p = accepting.conn;
	fixture_secure(*client_p, *server_p);
}

int
fixture_setup(void **state)
{
	struct pair *pair = calloc(1, sizeof(*pair));
	char error[400] = "";

	assert_non_null(pair);
	pair->open_fds = count_open_fds();
	if (gp_listen(&fixture_url, &pair->listener, error, sizeof(error)))
		fail_msg("%s", error);
	fixture_connect(pair, &pair->client, &pair->server);
	*state = pair;
	return 0;
}

int
fixture_teardown(void **state)
{
	struct pair *pair = *state;
	int before = pair->open_fds;

	gp_conn_destroy(pair->client);
	gp_conn_destroy(pair->server);
	gp_listener_destroy(pair->listener);
	free(pair);
	if (count_open_fds() == before)
		return 0;
	print_error("%d descriptors before the test, %d after it\n", before, count_open_fds());
	return -1;
}

static void *
job_main(void *argument)
{
	struct job *job = argument;

	job->result = job->run(job);
	return NULL;
}

void
job_start(struct job *job)
{
	assert_int_equal(pthread_create(&job->thread, NULL, job_main, job), 0);
}

int
job_join(struct job *job)
{
	pthread_join(job->thread, NULL);
	return job->result;
}

void
send_bytes(struct gp_conn *conn, const void *data, size_t size, const void *bulk, size_t bulk_size)
{
	struct iovec part = { .iov_base = (void *)data, .iov_len = size };
	struct iovec tail = { .iov_base = (void *)bulk, .iov_len = bulk_size };

	assert_int_equal(gp_conn_send(conn, &part, 1, &tail, bulk_size ? 1 : 0), 0);
}

void
expect_message(struct gp_conn *conn, const void *data, size_t size)
{
	struct gp_message message;

	assert_int_equal(gp_conn_recv(conn, &message), 0);
	assert_int_equal(message.size, size);
	assert_int_equal(message.bulk_size, 0);
	assert_int_equal((uintptr_t)message.data % 8, 0);
	if (size)
		assert_memory_equal(message.data, data, size);
}

/* Each word depends on its position, so that lost and swapped parts are detected. */
static uint32_t
word_at(size_t i, unsigned int seed)
{
	return (uint32_t)i * 2654435761u ^ seed * 40503u;
}

void
fill_pattern(void *bytes, size_t size, unsigned int seed)
{
	for (size_t i = 0; i < size; i += 4) {
		uint32_t word = word_at(i, seed);

		memcpy((uint8_t *)bytes + i, &word, size - i < 4 ? size - i : 4);
	}
}

int
check_pattern(const void *bytes, size_t size, unsigned int seed)
{
	for (size_t i = 0; i < size; i += 4) {
		uint32_t word = word_at(i, seed);

		if (memcmp((const uint8_t *)bytes + i, &word, size - i < 4 ? size - i : 4) != 0)
			return -1;
	}
	return 0;
}

void *
pattern(size_t size, unsigned int seed)
{
	void *bytes = malloc(size + 1);

	assert_non_null(bytes);
	fill_pattern(bytes, size, seed);
	return bytes;
}

int
count_open_fds(void)
{
	DIR *folder = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(folder);
	while (readdir(folder))
		count++;
	closedir(folder);
	return count;
}

void
sleep_ms(int ms)
{
	struct timespec duration = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };

	nanosleep(&duration, NULL);
}

size_t
fixture_scale(size_t amount)
{
	return getenv("GP_CONTRACT_SMALL") ? amount / 10 : amount;
}

int
send_one_large(struct job *job)
{
	uint8_t *bytes = calloc(1, job->size);
	struct iovec bulk = { bytes, job->size };
	int r = gp_conn_send(job->conn, NULL, 0, &bulk, 1);

	free(bytes);
	return r;
}

int
send_until_it_fails(struct job *job)
{
	static uint8_t bytes[100000];
	struct iovec part = { bytes, sizeof(bytes) };

	for (;;) {
		int r = gp_conn_send(job->conn, &part, 1, &part, 1);

		if (r)
			return r;
		job->count++;
	}
}
