/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon's end of opening a session, as a client hears it: preamble, Welcome or a refusal,
 * windows.  The first byte: whether the daemon's preamble is right, or the input's first 64 bytes;
 * then messages, each with its size in two bytes in front, all ones for bytes as they are up to the
 * end.
 */
#include "client/connect/connect.h"
#include "client/connect/window.h"
#include "transport/transport.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS 10000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct gp_listener *listener;
/* Of the client under way; the daemon may be late with it. */
static uint8_t input[60000];
static size_t input_size;

static void
check(bool holds)
{
	if (!holds)
		abort();
}

static void
give(struct gp_conn *conn, const void *bytes, size_t size)
{
	struct iovec data = { (void *)bytes, size };

	(void)!gp_conn_send(conn, &data, 1, NULL, 0);
}

static void
talk(struct gp_conn *conn)
{
	uint8_t bytes[GP_PREAMBLE_SIZE];
	struct gp_preamble preamble;
	const uint8_t *at = input + 1, *end = input + input_size;

	if (input_size == 0)
		return;
	gp_preamble_init(&preamble, GP_PREAMBLE_CONTROL, 0);
	gp_preamble_encode(&preamble, bytes);
	if (input[0] & 1 && end - at >= GP_PREAMBLE_SIZE) {
		memcpy(bytes, at, sizeof(bytes));
		at += sizeof(bytes);
	}
	if (gp_conn_send_preamble(conn, bytes, sizeof(bytes)))
		return;
	while (end - at >= 2) {
		size_t size = (size_t)at[0] | (size_t)at[1] << 8;

		at += 2;
		if (size == 0xffff) {
			for (; at < end; at += size) {
				size = (size_t)(end - at);
				if (size > GP_CONN_PREAMBLE_MAX)
					size = GP_CONN_PREAMBLE_MAX;
				if (gp_conn_send_preamble(conn, at, size))
					return;
			}
			return;
		}
		if (size > (size_t)(end - at))
			size = (size_t)(end - at);
		give(conn, at, size);
		at += size;
	}
}

static void *
serve(void *arg)
{
	for (;;) {
		uint8_t preamble[GP_PREAMBLE_SIZE];
		struct gp_conn *conn;

		if (gp_accept(listener, -1, &conn))
			continue;
		if (gp_conn_recv_preamble(conn, preamble, sizeof(preamble), TIMEOUT_MS) == 0 &&
		    preamble[12] == GP_PREAMBLE_CONTROL)
			talk(conn);
		gp_conn_destroy(conn);
	}
	return NULL;
}

static void
set_up(struct gp_url *url)
{
	pthread_t thread;
	char error[200];

	check(gp_url_parse("tcp://127.0.0.1:0", url, error, sizeof(error)) == 0);
	check(gp_listen(url, &listener, error, sizeof(error)) == 0);
	*url = *gp_listener_url(listener);
	check(pthread_create(&thread, NULL, serve, NULL) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gp_url url;
	char error[640] = "";
	struct gpc_link link;

	if (!listener)
		set_up(&url);
	input_size = size < sizeof(input) ? size : sizeof(input);
	memcpy(input, data, input_size);
	if (gpc_link_open(&url, NULL, 0, NULL, &link, error, sizeof(error)) == 0) {
		check(link.lane && link.control && link.welcome && link.lanes > 0);
		check(link.facts.granularity && link.facts.window_size);
		gpc_window_release(link.facts.window_base, link.facts.window_size);
		gpc_link_fini(&link);
	} else {
		check(error[0]);
	}
	return 0;
}
