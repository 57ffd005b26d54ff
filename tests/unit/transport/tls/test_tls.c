/* SPDX-License-Identifier: Apache-2.0 */
/* Whom tls lets in and whom not. */
#include "tests/test.h"
#include "tests/unit/transport/tls/tls_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const uint8_t right[GP_TLS_KEY_SIZE] = "what both ends have";
static const uint8_t wrong[GP_TLS_KEY_SIZE] = "what one end has";

static struct gp_tls *
client_of(const char *name, const char *authority)
{
	struct gp_tls_files files = { .certificate = name ? tls_file(name, "pem") : NULL,
				      .key = name ? tls_file(name, "key") : NULL,
				      .authority = tls_file(authority, "pem") };
	char error[400] = "";
	struct gp_tls *tls;

	if (gp_tls_create_client(&files, &tls, error, sizeof(error)))
		fail_msg("%s", error);
	return tls;
}

/* The handshake with certificates; puts the contexts. */
static int
handshake(struct tls_ends *ends, struct gp_tls *server, struct gp_tls *client, const char *host)
{
	int r;

	tls_connect(ends);
	tls_start_server(ends, server, NULL);
	r = gp_conn_secure(ends->client, client, host, TLS_HANDSHAKE_MS);
	gp_tls_unref(client);
	return r;
}

static void
expect_passes(struct gp_conn *from, struct gp_conn *to, size_t size)
{
	uint8_t *bytes = malloc(size), *got = malloc(size);
	struct iovec part = { (void *)"head", 4 }, bulk = { bytes, size };
	struct gp_message message;

	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 251);
	assert_int_equal(gp_conn_send(from, &part, 1, &bulk, 1), 0);
	assert_int_equal(gp_conn_recv(to, &message), 0);
	assert_int_equal(message.size, 4);
	assert_int_equal(gp_conn_recv_bulk(to, got, size), 0);
	assert_memory_equal(bytes, got, size);
	free(bytes);
	free(got);
}

UNIT_TEST(certificates_make_a_connection_and_name_the_client)
{
	static const struct {
		const char *certificate, *name;
	} clients[] = { { NULL, NULL }, { "alice", "alice" }, { "nameless", "bob.example" } };
	static const char *const hosts[] = { "127.0.0.1", "localhost", "::1" };

	for (size_t i = 0; i < 3; i++) {
		struct tls_ends ends;

		assert_int_equal(handshake(&ends, tls_server_of("server", "ca"),
					   client_of(clients[i].certificate, "ca"), hosts[i]),
				 0);
		tls_expect_server(&ends, 0, "");
		expect_passes(ends.client, ends.server, 1000);
		expect_passes(ends.server, ends.client, 1000);
		assert_null(gp_conn_get_certificate_name(ends.client));
		if (clients[i].name)
			assert_string_equal(gp_conn_get_certificate_name(ends.server),
					    clients[i].name);
		else
			assert_null(gp_conn_get_certificate_name(ends.server));
		tls_close(&ends);
	}
}

/* It is as good as the authority that signed it. */
UNIT_TEST(a_certificate_holds_no_longer_than_its_authority)
{
	int64_t two_days = time(NULL) + 48 * 3600;

	for (int i = 0; i < 2; i++) {
		struct tls_ends ends;

		assert_int_equal(handshake(&ends, tls_server_of("server", "ca"),
					   client_of(i ? "lasting" : "alice", "ca"), "127.0.0.1"),
				 0);
		tls_expect_server(&ends, 0, "");
		expect_passes(ends.client, ends.server, 1000);
		assert_in_range(gp_conn_get_certificate_not_after(ends.server), two_days - 600,
				two_days);
		tls_close(&ends);
	}
}

UNIT_TEST(without_an_authority_no_clients_certificate_counts)
{
	struct tls_ends ends;

	assert_int_equal(handshake(&ends, tls_server_of("server", NULL), client_of("mallory", "ca"),
				   "127.0.0.1"),
			 0);
	tls_expect_server(&ends, 0, "");
	assert_null(gp_conn_get_certificate_name(ends.server));
	tls_close(&ends);
}

static void
expect_refused_daemon(const char *shows, const char *authority, const char *host,
		      const char *client_says, const char *server_says)
{
	struct tls_ends ends;
	struct gp_message message;

	assert_int_equal(
		handshake(&ends, tls_server_of(shows, "ca"), client_of(NULL, authority), host),
		-EACCES);
	tls_expect_text(gp_conn_error(ends.client), client_says);
	tls_expect_server(&ends, -EACCES, server_says);
	/* It is dead, not in clear. */
	assert_int_equal(gp_conn_send(ends.client, NULL, 0, NULL, 0), -EACCES);
	assert_int_equal(gp_conn_recv(ends.client, &message), -EACCES);
	assert_int_equal(gp_conn_send(ends.server, NULL, 0, NULL, 0), -EACCES);
	tls_close(&ends);
}

UNIT_TEST(daemons_that_are_not_whom_the_client_wants_are_refused)
{
	static const char bad[] = "the client refuses the TLS handshake: bad certificate";

	expect_refused_daemon("elsewhere", "ca", "127.0.0.1",
			      "the daemon's certificate is for another name or address: for "
			      "elsewhere.example, 127.9.9.9, not for 127.0.0.1",
			      bad);
	/* Its common name is this one, which is not what counts. */
	expect_refused_daemon("elsewhere", "ca", "localhost",
			      "the daemon's certificate is for another name or address: for "
			      "elsewhere.example, 127.9.9.9, not for localhost",
			      bad);
	expect_refused_daemon("server", "ca", "127.0.0.2",
			      "the daemon's certificate is for another name or address: for *",
			      bad);
	expect_refused_daemon("old", "ca", "127.0.0.1",
			      "the daemon's certificate has expired: it was valid until 20*",
			      "the client refuses the TLS handshake: certificate expired");
	expect_refused_daemon("foreign", "ca", "127.0.0.1",
			      "the daemon's certificate is signed by an unknown authority",
			      "the client refuses the TLS handshake: unknown CA");
}

static void
expect_refused_client(const char *shows, const char *client_says, const char *server_says)
{
	struct gp_message message;
	struct tls_ends ends;

	/* In TLS 1.3 the client is done before the daemon has seen its certificate. */
	assert_int_equal(handshake(&ends, tls_server_of("server", "ca"), client_of(shows, "ca"),
				   "127.0.0.1"),
			 0);
	tls_expect_server(&ends, -EACCES, server_says);
	assert_null(gp_conn_get_certificate_name(ends.server));
	assert_int_equal(gp_conn_recv(ends.client, &message), -EACCES);
	assert_string_equal(gp_conn_error(ends.client), client_says);
	tls_close(&ends);
}

UNIT_TEST(clients_with_a_bad_certificate_are_refused_and_told)
{
	expect_refused_client("past",
			      "the daemon does not accept this end's certificate: "
			      "certificate expired",
			      "the client's certificate has expired: it was valid until 20*");
	expect_refused_client("mallory",
			      "the daemon does not accept this end's certificate: unknown CA",
			      "the client's certificate is signed by an unknown authority");
	/* A server's certificate is none for a client. */
	expect_refused_client("renewed",
			      "the daemon does not accept this end's certificate: "
			      "unsupported certificate",
			      "the client's certificate is not accepted: "
			      "unsuitable certificate purpose");
}

UNIT_TEST(a_key_that_both_ends_have_makes_a_connection)
{
	struct tls_ends ends;

	tls_connect(&ends);
	tls_start_server(&ends, NULL, right);
	assert_int_equal(gp_conn_secure_psk(ends.client, false, right, TLS_HANDSHAKE_MS), 0);
	tls_expect_server(&ends, 0, "");
	expect_passes(ends.client, ends.server, 3 << 20);
	expect_passes(ends.server, ends.client, 3 << 20);
	assert_null(gp_conn_get_certificate_name(ends.server));
	assert_int_equal(gp_conn_caps(ends.client) & GP_CONN_CAP_ADOPT, 0);
	assert_int_equal(gp_conn_secure_psk(ends.client, false, right, TLS_HANDSHAKE_MS), -EPROTO);
	tls_close(&ends);
}

/* The daemon's preamble comes when its handshake has begun at the client's end. */
UNIT_TEST(a_handshake_may_begin_before_the_daemons_preamble)
{
	static const char greeting[] = "a preamble in clear";
	struct gp_tls *client = client_of("alice", "ca");
	char got[sizeof(greeting)];
	struct tls_ends ends;

	tls_connect(&ends);
	assert_int_equal(gp_conn_secure_start(ends.client, client, "127.0.0.1"), 0);
	assert_int_equal(gp_conn_recv_preamble(ends.client, got, sizeof(got), 0), GP_E_TIMEOUT);
	assert_int_equal(gp_conn_send_preamble(ends.server, greeting, sizeof(greeting)), 0);
	tls_start_server(&ends, tls_server_of("server", "ca"), NULL);
	assert_int_equal(gp_conn_recv_preamble(ends.client, got, sizeof(got), TLS_HANDSHAKE_MS), 0);
	assert_string_equal(got, greeting);
	assert_int_equal(gp_conn_secure(ends.client, client, "127.0.0.1", TLS_HANDSHAKE_MS), 0);
	tls_expect_server(&ends, 0, "");
	expect_passes(ends.client, ends.server, 1000);
	expect_passes(ends.server, ends.client, 1000);
	tls_close(&ends);
	gp_tls_unref(client);
}

/* Nobody answers, and it is forgotten; or whoever answers is not the one who is wanted. */
UNIT_TEST(a_handshake_that_has_begun_can_fail_like_any_other)
{
	struct gp_tls *client = client_of("alice", "ca");
	struct tls_ends ends;

	tls_connect(&ends);
	assert_int_equal(gp_conn_secure_start(ends.client, client, "127.0.0.1"), 0);
	tls_close(&ends);

	for (int good = 0; good < 2; good++) {
		const char *host = good ? "127.0.0.1" : "127.0.0.2";

		tls_connect(&ends);
		assert_int_equal(gp_conn_secure_start(ends.client, client, host), 0);
		tls_start_server(&ends, tls_server_of("server", "ca"), NULL);
		assert_int_equal(gp_conn_secure(ends.client, client, host, TLS_HANDSHAKE_MS),
				 good ? 0 : -EACCES);
		tls_expect_server(&ends, good ? 0 : -EACCES,
				  good ? ""
				       : "the client refuses the TLS handshake: bad certificate");
		if (good) {
			assert_string_equal(gp_conn_get_certificate_name(ends.server), "alice");
			expect_passes(ends.client, ends.server, 1000);
			expect_passes(ends.server, ends.client, 1000);
		}
		tls_close(&ends);
	}
	gp_tls_unref(client);
}

UNIT_TEST(another_key_is_refused)
{
	struct tls_ends ends;

	tls_connect(&ends);
	tls_start_server(&ends, NULL, right);
	assert_int_equal(gp_conn_secure_psk(ends.client, false, wrong, TLS_HANDSHAKE_MS), -EACCES);
	tls_expect_server(&ends, -EACCES, "the client has another key");
	assert_string_equal(gp_conn_error(ends.client),
			    "the daemon refuses the TLS handshake: illegal parameter");
	tls_close(&ends);
}

UNIT_TEST(a_certificate_is_no_key_and_a_key_no_certificate)
{
	struct gp_tls *client = client_of("alice", "ca");
	struct tls_ends ends;

	tls_connect(&ends);
	tls_start_server(&ends, NULL, right);
	assert_int_equal(gp_conn_secure(ends.client, client, "127.0.0.1", TLS_HANDSHAKE_MS),
			 -EACCES);
	tls_expect_server(&ends, -EACCES, "the client has no key");
	tls_close(&ends);
	gp_tls_unref(client);

	tls_connect(&ends);
	tls_start_server(&ends, tls_server_of("server", "ca"), NULL);
	assert_int_equal(gp_conn_secure_psk(ends.client, false, right, TLS_HANDSHAKE_MS), -EACCES);
	assert_string_equal(gp_conn_error(ends.client),
			    "the daemon's certificate is signed by an unknown authority");
	tls_expect_server(&ends, -EACCES, "the client refuses the TLS handshake: unknown CA");
	tls_close(&ends);
}

UNIT_TEST(nothing_goes_out_in_clear_before_the_handshake)
{
	struct gp_message message;
	struct tls_ends ends;

	tls_connect(&ends);
	assert_int_equal(gp_conn_send(ends.client, NULL, 0, NULL, 0), -EPROTO);
	assert_int_equal(gp_conn_recv(ends.server, &message), -EPROTO);
	assert_string_equal(gp_conn_error(ends.client), "no message before the TLS handshake");
	tls_close(&ends);
}
UNIT_TEST(files_that_cannot_be_used_are_named)
{
	struct gp_tls_files files = { .certificate = "/nowhere/x.pem", .key = "/nowhere/x.key" };
	char error[400], expected[400];
	struct gp_tls *tls;

	assert_int_equal(gp_tls_create_server(&files, &tls, error, sizeof(error)), GP_E_INVALID);
	assert_string_equal(error, "certificate /nowhere/x.pem: No such file or directory");
	files.certificate = "/dev/null";
	assert_int_equal(gp_tls_create_server(&files, &tls, error, sizeof(error)), GP_E_INVALID);
	assert_string_equal(error, "certificate /dev/null: not a regular file");
	files.certificate = tls_file("server", "key");
	assert_int_equal(gp_tls_create_server(&files, &tls, error, sizeof(error)), GP_E_INVALID);
	snprintf(expected, sizeof(expected),
		 "certificate %s cannot be used: none found in the file", files.certificate);
	assert_string_equal(error, expected);
	files.certificate = tls_file("server", "pem");
	files.key = tls_file("old", "key");
	assert_int_equal(gp_tls_create_server(&files, &tls, error, sizeof(error)), GP_E_INVALID);
	snprintf(expected, sizeof(expected), "key %s cannot be used: key values mismatch",
		 files.key);
	assert_string_equal(error, expected);
	files.key = NULL;
	assert_int_equal(gp_tls_create_client(&files, &tls, error, sizeof(error)), GP_E_INVALID);
	files = (struct gp_tls_files){ .authority = tls_file("server", "key") };
	assert_int_equal(gp_tls_create_client(&files, &tls, error, sizeof(error)), GP_E_INVALID);
	assert_non_null(strstr(error, "authority "));
}
UNIT_TEST_MAIN(tls_make_folder, tls_remove_folder)
