/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two ends of a tls connection over loopback, the handshake of the daemon's in a thread of its own,
 * and certificates for them (tests/certificates.h) in a folder of the group of tests.  All fail the
 * test if something does not work; the test's thread only.
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
	/* Of the server's thread. */
	pthread_t thread;
	struct gp_tls *server_tls; /* NULL: by key */
	const uint8_t *key;
	int timeout_ms;
	int server_r;
};

/* A file of the folder, for the next seven calls. */
const char *tls_file(const char *name, const char *suffix);
/* A daemon's context with these files; authority NULL: clients show no certificate. */
struct gp_tls *tls_server_of(const char *name, const char *authority);

/* Connects them, without a handshake. */
void tls_connect(struct tls_ends *ends);
/* The client's end is a socket that is the test's own. */
int tls_connect_raw(struct tls_ends *ends);
void tls_close(struct tls_ends *ends);

/* The daemon's handshake begins, by certificate (takes the context) or by this key. */
void tls_start_server(struct tls_ends *ends, struct gp_tls *tls, const uint8_t *key);
/* Behind a * at the end of what is expected there may be anything. */
void tls_expect_text(const char *said, const char *expected);
/* It has ended so. */
void tls_expect_server(struct tls_ends *ends, int r, const char *error);

/* For UNIT_TEST_MAIN(). */
int tls_make_folder(void **state);
int tls_remove_folder(void **state);

#endif /* TLS_FIXTURE_H */
