/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/transport/tls/tls_fixture.h"

#include "tests/certificates.h"
#include "tests/test.h"
#include "transport/tls/tls_helpers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[] = "/tmp/gpupool-tls-XXXXXX";

const char *
tls_file(const char *name, const char *suffix)
{
	static char paths[8][96];
	static unsigned int next;
	char *text = paths[next++ % 8];

	snprintf(text, sizeof(paths[0]), "%s/%s.%s", folder, name, suffix);
	return text;
}

struct gp_tls *
tls_server_of(const char *name, const char *authority)
{
	struct gp_tls_files files = { .certificate = tls_file(name, "pem"),
				      .key = tls_file(name, "key"),
				      .authority = authority ? tls_file(authority, "pem") : NULL };
	char error[400] = "";
	struct gp_tls *tls;

	if (gp_tls_create_server(&files, &tls, error, sizeof(error)))
		fail_msg("%s", error);
	return tls;
}

static void
listen_for(struct tls_ends *ends)
{
	struct gp_url url;
	char error[400] = "";

	*ends = (struct tls_ends){ .timeout_ms = TLS_HANDSHAKE_MS };
	assert_int_equal(gp_url_parse("tls://127.0.0.1:0", &url, error, sizeof(error)), 0);
	if (gp_listen(&url, &ends->listener, error, sizeof(error)))
		fail_msg("%s", error);
}

void
tls_connect(struct tls_ends *ends)
{
	char error[400] = "";

	listen_for(ends);
	if (gp_connect(gp_listener_url(ends->listener), NULL, 0, 5000, &ends->client, error,
		       sizeof(error)))
		fail_msg("%s", error);
	assert_int_equal(gp_accept(ends->listener, 5000, &ends->server), 0);
}

int
tls_connect_raw(struct tls_ends *ends)
{
	char error[400] = "";
	int fd;

	listen_for(ends);
	if (gp_connect(gp_listener_url(ends->listener), NULL, 0, 5000, &ends->client, error,
		       sizeof(error)))
		fail_msg("%s", error);
	assert_int_equal(gp_accept(ends->listener, 5000, &ends->server), 0);
	assert_int_equal(gp_conn_release_fd(ends->client, &fd), 0);
	ends->client = NULL;
	return fd;
}

void
tls_close(struct tls_ends *ends)
{
	gp_conn_destroy(ends->client);
	gp_conn_destroy(ends->server);
	gp_listener_destroy(ends->listener);
	gp_tls_unref(ends->server_tls);
}

static void *
secure_server(void *argument)
{
	struct tls_ends *ends = argument;

	if (ends->server_tls)
		ends->server_r =
			gp_conn_secure(ends->server, ends->server_tls, NULL, ends->timeout_ms);
	else
		ends->server_r =
			gp_conn_secure_psk(ends->server, true, ends->key, ends->timeout_ms);
	return NULL;
}

void
tls_start_server(struct tls_ends *ends, struct gp_tls *tls, const uint8_t *key)
{
	ends->server_tls = tls;
	ends->key = key;
	assert_int_equal(pthread_create(&ends->thread, NULL, secure_server, ends), 0);
}

/* A * at the end of `expected` matches any rest, for example a date. */
void
tls_expect_text(const char *said, const char *expected)
{
	size_t length = strlen(expected);

	if (length && expected[length - 1] == '*')
		assert_memory_equal(said, expected, length - 1);
	else
		assert_string_equal(said, expected);
}

void
tls_expect_server(struct tls_ends *ends, int r, const char *error)
{
	pthread_join(ends->thread, NULL);
	if (ends->server_r != r)
		fail_msg("%d, %s", ends->server_r, gp_conn_error(ends->server));
	tls_expect_text(gp_conn_error(ends->server), error);
	assert_true(!(gp_conn_caps(ends->server) & GP_CONN_CAP_ENCRYPTED) == (r != 0));
}

int
tls_make_folder(void **state)
{
	gp_tls_helpers_set_max(1);
	return mkdtemp(folder) && certificates_make(folder) == 0 ? 0 : -1;
}

int
tls_remove_folder(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}
