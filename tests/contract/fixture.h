/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two connected ends over the backend that the command line names, for the contract suite.
 *
 * Each test gets a fresh pair and fails when it leaves a descriptor open.  CMocka's assertions
 * belong to the main thread only: what runs in a `struct job` reports by its result.
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

/* A thread; `run` returns 0 when all was well. */
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

/* argv[1] is a URL to listen on; ends the program as skipped where that cannot be. */
void fixture_init(int argc, char **argv);
int fixture_setup(void **state);
int fixture_teardown(void **state);
#define CONTRACT_TEST(test) UNIT_TEST_WITH(test, fixture_setup, fixture_teardown)

/* A further pair on the same listener. */
void fixture_connect(struct pair *pair, struct gp_conn **client_p, struct gp_conn **server_p);

/* Of a pair that was made without fixture_connect(); nothing but with tls. */
bool fixture_is_tls(void);
void fixture_secure(struct gp_conn *client, struct gp_conn *server);

void job_start(struct job *job);
int job_join(struct job *job);
/* What jobs run: one message of `size` bytes, and messages counted in `count` until one fails. */
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
/* GP_CONTRACT_SMALL: a tenth of what is done often or with much, for slow machines. */
size_t fixture_scale(size_t amount);

#endif /* GP_CONTRACT_FIXTURE_H */
