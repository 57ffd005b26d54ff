/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of a daemon over the data lanes of a client that waits for two copies.  Each operation
 * is a byte with its operands: chunks of either copy or of none, with offsets and sizes of the
 * input's, messages of the input's, and bytes.  At the end the lanes are closed, and each waiting
 * thread must continue; only the memory of its copy may have been written.
 */
#include "client/session/lane.h"
#include "client/session/session_internal.h"
#include "protocol/frame.h"
#include "tests/connection_pair.h"
#include "transport/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LANES 3
#define COPIES 2
#define COPY_SIZE (GP_CHUNK_MAX + 5000)
#define TIMEOUT_MS 10000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const uint8_t *next, *end;
};

static struct gp_listener *listener;

static void
check(bool holds)
{
	if (!holds)
		abort();
}

static unsigned int
pop_byte(struct input *input)
{
	return input->next < input->end ? *input->next++ : 0;
}

static uint64_t
pop_number(struct input *input)
{
	unsigned int code = pop_byte(input);

	return code == 0xff ? ~(uint64_t)0 - pop_byte(input) : code < 64 ? code : code * 5000ull;
}

static void
give(struct gp_conn *conn, const void *bytes, size_t size, size_t bulk_size)
{
	static const uint8_t zeros[GP_CHUNK_MAX];
	struct iovec data = { (void *)bytes, size };
	struct iovec bulk = { (void *)zeros, bulk_size };

	/* Fails if the peer has closed the connection. */
	(void)!gp_conn_send(conn, &data, 1, &bulk, 1);
}

static void
give_chunk(struct gp_conn *conn, struct input *input, const struct gpc_incoming_copy *in)
{
	unsigned int how = pop_byte(input);
	struct gp_chunk chunk = { .copy = in[how & 1].copy, .offset = pop_number(input) };
	uint8_t header[GP_CHUNK_SIZE];

	if (how & 2)
		chunk.copy += pop_byte(input);
	gp_chunk_encode(&chunk, header);
	if (how & 4)
		header[4] = (uint8_t)pop_byte(input);
	give(conn, header, sizeof(header), pop_number(input) % (GP_CHUNK_MAX + 1));
}

static void
give_bytes(struct gp_conn *conn, struct input *input, size_t bulk_max)
{
	size_t size = pop_byte(input), left = (size_t)(input->end - input->next);

	if (size > left)
		size = left;
	give(conn, input->next, size, pop_number(input) % bulk_max);
	input->next += size < (size_t)(input->end - input->next)
			       ? size
			       : (size_t)(input->end - input->next);
}

static void
open_lanes(struct gpc_session *session, struct gp_conn **far)
{
	struct gpc_lanes_config source = { .max = LANES, .exact = true };

	source.url = *gp_listener_url(listener);
	gpc_lanes_configure(session, &source);
	check(gpc_lanes_open_for_copy(session, GPC_LANE_COPY_MIN, false));
	for (int i = 1; i < LANES; i++) {
		uint8_t preamble[GP_PREAMBLE_SIZE];

		check(gp_accept(listener, TIMEOUT_MS, &far[i]) == 0);
		check(gp_conn_recv_preamble(far[i], preamble, sizeof(preamble), TIMEOUT_MS) == 0);
	}
}

static void
tear_down(void)
{
	gp_listener_destroy(listener);
}

static void
set_up(void)
{
	struct gp_url url;
	char error[200], text[64];

	(void)snprintf(text, sizeof(text), "unix:///tmp/gpupool-lanes-%d", (int)getpid());
	check(gp_url_parse(text, &url, error, sizeof(error)) == 0);
	check(gp_listen(&url, &listener, error, sizeof(error)) == 0);
	check(atexit(tear_down) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gpc_session_facts facts = { .max_bulk = GP_CONN_BULK_MAX };
	struct input input = { data, data + size };
	struct gpc_incoming_copy in[COPIES] = { { 0 } };
	struct gp_conn *near, *far[LANES];
	struct gpc_session *session;

	if (!listener)
		set_up();
	check(connection_pair_create(&near, &far[0]) == 0);
	check(gpc_session_create(near, NULL, &facts, 100, &session) == 0);
	gpc_session_set(session);
	open_lanes(session, far);
	for (int i = 0; i < COPIES; i++) {
		in[i].size = i ? 3000 : COPY_SIZE;
		in[i].memory = malloc(in[i].size);
		check(in[i].memory != NULL);
		gpc_lanes_expect(session, &in[i]);
	}
	for (int i = 0; i < 64 && input.next < input.end; i++) {
		unsigned int what = pop_byte(&input);
		struct gp_conn *conn = far[what >> 4 & 1 ? 2 : 1];

		if (what % 8 == 0)
			give_bytes(conn, &input, GP_CHUNK_MAX);
		/* No thread waits for this lane, so little is read. */
		else if (what % 8 == 1)
			give_bytes(far[0], &input, 1000);
		else if (what == 0xfa)
			gp_conn_shutdown(conn);
		else
			give_chunk(conn, &input, in);
	}
	for (int i = 1; i < LANES; i++)
		gp_conn_shutdown(far[i]);
	for (int i = 0; i < COPIES; i++) {
		gpc_lanes_finish(session, &in[i], in[i].size);
		free(in[i].memory);
	}
	gpc_session_close(session, 60000);
	gpc_session_set(NULL);
	gpc_session_destroy(session);
	for (int i = 0; i < LANES; i++)
		gp_conn_destroy(far[i]);
	return 0;
}
