/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture of the contract suite, which tests every transport (tcp, tls, unix, ...) in the same way:
 * two connected ends over the transport that the command line names.
 *
 * Each test gets a new pair, and fails if it leaves a file descriptor open.
 * Threads: CMocka's assertions work in the main thread only, so a `struct job`, a thread of a test,
 * reports by its result.
 * Errors: functions without a result fail the test.
 */
#ifndef GP_CONTRACT_FIXTURE_H
#define GP_CONTRACT_FIXTURE_H

#include "tests/test.h"
#include "transport/transport.h"

#include <pthread.h>

/* The state of a test: a listener and the two ends of one connection to it. Owned by
 * fixture_setup() and fixture_teardown(). */
struct pair {
	struct gp_listener *listener;
	struct gp_conn *client;
	struct gp_conn *server;
	int open_fds; /* open descriptors before the test */
};

/* A thread of a test, which calls `run`. The other members are its parameters and results. */
struct job {
	pthread_t thread;
	int (*run)(struct job *job);
	int result; /* result of `run`; 0: success */
	struct gp_conn *conn;
	size_t size;
	int count;         /* number of messages sent, see send_until_it_fails() */
	unsigned int seed; /* of the pattern, see fill_pattern() */
};

/* The URL that listeners of the tests listen on. */
extern struct gp_url fixture_url;

/* Parses argv[1], the URL to listen on, into fixture_url. Exits with status 0 and a skip line if
 * the machine lacks the address (for example IPv6), and with 2 if the URL is missing or invalid. */
void fixture_init(int argc, char **argv);
/* CMocka setup and teardown of a test; *state is a struct pair. They return 0, or -1 if
 * descriptors were left open. */
int fixture_setup(void **state);
int fixture_teardown(void **state);
/* Defines a test of the suite. */
#define CONTRACT_TEST(test) UNIT_TEST_WITH(test, fixture_setup, fixture_teardown)

/* Connects another pair with the listener of `pair`, including the TLS handshake. The caller
 * destroys both ends with gp_conn_destroy(). */
void fixture_connect(struct pair *pair, struct gp_conn **client_p, struct gp_conn **server_p);

/* Returns whether the transport is TLS. */
bool fixture_is_tls(void);
/* Performs the TLS handshake on a pair that fixture_connect() did not create, in a second thread
 * for the server. Does nothing if the transport is not TLS. */
void fixture_secure(struct gp_conn *client, struct gp_conn *server);

/* Starts the job's thread. The job must stay valid until job_join(), which waits for the thread
 * and returns job->result. */
void job_start(struct job *job);
int job_join(struct job *job);
/* Job functions. send_one_large() sends one message with `size` bulk bytes, and returns 0 or the
 * error. send_until_it_fails() sends messages, counts them in `count`, and returns the error that
 * ended it. */
int send_one_large(struct job *job);
int send_until_it_fails(struct job *job);

/* Sends a message with the fields `data` and, if bulk_size is not 0, bulk bytes. */
void send_bytes(struct gp_conn *conn, const void *data, size_t size, const void *bulk,
		size_t bulk_size);
/* Receives a message and asserts that it has exactly these bytes and no bulk bytes. */
void expect_message(struct gp_conn *conn, const void *data, size_t size);

/* Write and check a pattern in which each 4-byte word depends on its position and the seed.
 * check_pattern() returns 0, or -1 for a difference. */
void fill_pattern(void *bytes, size_t size, unsigned int seed);
int check_pattern(const void *bytes, size_t size, unsigned int seed);
/* Returns memory with `size` bytes of the pattern, which the caller frees. */
void *pattern(size_t size, unsigned int seed);
/* Returns the number of open file descriptors of the process, plus a constant. */
int count_open_fds(void);
/* Sleeps for `ms` milliseconds. */
void sleep_ms(int ms);
/* Returns `amount`, or a tenth of it if GP_CONTRACT_SMALL is set in the environment, for slow
 * machines. */
size_t fixture_scale(size_t amount);

#endif /* GP_CONTRACT_FIXTURE_H */
