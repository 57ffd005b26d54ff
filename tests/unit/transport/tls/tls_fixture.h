/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture for tests of TLS: both ends of a connection over loopback, with the daemon's handshake in
 * a thread, and certificates (tests/certificates.h) in a folder that the group of tests shares.
 *
 * Ownership: the test owns struct tls_ends. tls_connect() or tls_connect_raw() creates its
 * contents, tls_close() frees them.
 * Threads: the functions are called by the test's thread only.
 * Errors: all failures fail the test.
 */
#ifndef TLS_FIXTURE_H
#define TLS_FIXTURE_H

#include "transport/tls/tls.h"
#include "transport/transport.h"

#include <pthread.h>
#include <stdint.h>

/* Timeout of the daemon's handshake, in milliseconds. */
#define TLS_HANDSHAKE_MS 60000

/* The two ends of a connection. `server` is the daemon's. */
struct tls_ends {
	struct gp_listener *listener;
	struct gp_conn *client, *server;
	/* Parameters and result of the thread that performs the daemon's handshake. */
	pthread_t thread;
	struct gp_tls *server_tls; /* NULL: authenticate with `key` */
	const uint8_t *key;
	int timeout_ms; /* of the handshake; a test may change it before tls_start_server() */
	int server_r;   /* result of the handshake: 0 or a negative error */
};

/* Returns the path of NAME.SUFFIX in the folder. It is valid for the next seven calls. */
const char *tls_file(const char *name, const char *suffix);
/* Returns a new TLS context of a daemon with the certificate `name`, for tls_start_server().
 * `authority`: name of the authority that must have issued the clients' certificates; NULL: clients
 * need no certificate. */
struct gp_tls *tls_server_of(const char *name, const char *authority);

/* Connects the ends without a handshake. */
void tls_connect(struct tls_ends *ends);
/* Connects with a plain socket at the client's end, and returns this socket, which the caller
 * closes. ends->client is NULL then. */
int tls_connect_raw(struct tls_ends *ends);
/* Destroys both ends, the listener and the TLS context. The handshake's thread must have ended,
 * see tls_expect_server(). */
void tls_close(struct tls_ends *ends);

/* Starts the daemon's handshake in a thread: with certificates if `tls` is not NULL, of which it
 * takes ownership; otherwise with the key, which must stay valid until the handshake ends. */
void tls_start_server(struct tls_ends *ends, struct gp_tls *tls, const uint8_t *key);
/* Asserts that the text `said` is `expected`. A * at the end of `expected` matches any rest, for
 * example a date. */
void tls_expect_text(const char *said, const char *expected);
/* Waits for the daemon's handshake. Asserts its result and its error text, as in tls_expect_text(),
 * and that the connection is encrypted if and only if it succeeded. */
void tls_expect_server(struct tls_ends *ends, int r, const char *error);

/* Group setup and teardown for UNIT_TEST_MAIN(): create and remove the folder. Return 0, or another
 * value on failure. */
int tls_make_folder(void **state);
int tls_remove_folder(void **state);

#endif /* TLS_FIXTURE_H */
