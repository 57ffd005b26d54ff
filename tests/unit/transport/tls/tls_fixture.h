/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture for tests of TLS: both ends of a connection over loopback, with the daemon's handshake in
 * a thread, and certificates (tests/certificates.h) in a folder that the group of tests shares.
 *
 * Ownership: tls_connect() creates the ends, tls_close() frees them.
 * Threads: the functions are called by the test's thread only.
 * Errors: all failures fail the test.
 */
#ifndef TLS_FIXTURE_H
#define TLS_FIXTURE_H

#include "transport/tls/tls.h"
#include "transport/transport.h"

#include <pthread.h>
#include <stdint.h>

#define TLS_HANDSHAKE_MS 5000

struct tls_ends {
	struct gp_listener *listener;
	struct gp_conn *client, *server;
	/* Used by the server's thread. */
	pthread_t thread;
	struct gp_tls *server_tls; /* NULL: authenticate with `key` */
	const uint8_t *key;
	int timeout_ms;
	int server_r;
};

/* Returns the path of a file in the folder, which is valid for the next seven calls. */
const char *tls_file(const char *name, const char *suffix);
/* Returns a daemon's TLS context with these files. With a NULL authority clients need no
 * certificate. */
struct gp_tls *tls_server_of(const char *name, const char *authority);

/* Connects the ends without a handshake. */
void tls_connect(struct tls_ends *ends);
/* Connects with a plain socket at the client's end, and returns that socket. */
int tls_connect_raw(struct tls_ends *ends);
void tls_close(struct tls_ends *ends);

/* Starts the daemon's handshake, by certificate (takes ownership of the context) or by this key. */
void tls_start_server(struct tls_ends *ends, struct gp_tls *tls, const uint8_t *key);
/* Asserts the text. A * at the end of `expected` matches any rest. */
void tls_expect_text(const char *said, const char *expected);
/* Asserts the result of the daemon's handshake. */
void tls_expect_server(struct tls_ends *ends, int r, const char *error);

/* Group setup and teardown for UNIT_TEST_MAIN(). */
int tls_make_folder(void **state);
int tls_remove_folder(void **state);

#endif /* TLS_FIXTURE_H */
