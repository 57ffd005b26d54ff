/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture of the contract suite: two connected ends over the transport that the command line names.
 *
 * Each test gets a new pair, and fails if it leaves a descriptor open.
 * Threads: CMocka's assertions work in the main thread only, so a `struct job` reports by its
 * result.
 */
#ifndef GP_CONTRACT_FIXTURE_H
#define GP_CONTRACT_FIXTURE_H

#include "tests/test.h"
#include "transport/transport.h"

#include <pthread.h>

struct pair {
	struct gp_listener *listener;
	struct gp_conn *client;
	struct gp_conn *server;
	int open_fds;
};

/* A thread of a test. `run` returns 0 on success. */
struct job {
	pthread_t thread;
	int (*run)(struct job *job);
	int result;
	struct gp_conn *conn;
	size_t size;
	int count;
	unsigned int seed;
};

extern struct gp_url fixture_url;

/* Parses argv[1], the URL to listen on. Exits as skipped if the transport is not available. */
void fixture_init(int argc, char **argv);
int fixture_setup(void **state);
int fixture_teardown(void **state);
#define CONTRACT_TEST(test) UNIT_TEST_WITH(test, fixture_setup, fixture_teardown)

/* Connects a further pair with the same listener. */
void fixture_connect(struct pair *pair, struct gp_conn **client_p, struct gp_conn **server_p);

/* Run the TLS handshake on a pair that fixture_connect() did not create; without TLS they do
 * nothing. */
bool fixture_is_tls(void);
void fixture_secure(struct gp_conn *client, struct gp_conn *server);

void job_start(struct job *job);
int job_join(struct job *job);
/* Job functions: send one message of `size` bytes, or send until one fails and count in `count`. */
int send_one_large(struct job *job);
int send_until_it_fails(struct job *job);

void send_bytes(struct gp_conn *conn, const void *data, size_t size, const void *bulk,
		size_t bulk_size);
void expect_message(struct gp_conn *conn, const void *data, size_t size);

void fill_pattern(void *bytes, size_t size, unsigned int seed);
int check_pattern(const void *bytes, size_t size, unsigned int seed);
void *pattern(size_t size, unsigned int seed);
int count_open_fds(void);
void sleep_ms(int ms);
/* Returns a tenth of an amount if GP_CONTRACT_SMALL is set, for slow machines, and the amount
 * otherwise. */
size_t fixture_scale(size_t amount);

#endif /* GP_CONTRACT_FIXTURE_H */
