/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/control.h"
#include "protocol/preamble.h"
#include "tests/connection_pair.h"
#include "tests/control_messages.h"
#include "tests/test.h"
#include "transport/message_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ends {
	struct gp_conn *client;
	struct gp_conn *daemon;
};

static int
setup(void **state)
{
	struct ends *ends = calloc(1, sizeof(*ends));

	assert_non_null(ends);
	assert_int_equal(connection_pair_create(&ends->client, &ends->daemon), 0);
	*state = ends;
	return 0;
}

static int
teardown(void **state)
{
	struct ends *ends = *state;

	gp_conn_destroy(ends->client);
	gp_conn_destroy(ends->daemon);
	free(ends);
	return 0;
}

static Gpupool__ControlMessage *
expect(struct gp_conn *conn, const char *name)
{
	Gpupool__ControlMessage *message = NULL;

	assert_int_equal(gp_control_recv(conn, &message), 0);
	assert_string_equal(gp_control_get_name(message), name);
	return message;
}

#define TEST(test) UNIT_TEST_WITH(test, setup, teardown)

TEST(hello_arrives_as_it_was_sent)
{
	struct ends *ends = *state;
	Gpupool__Hello hello = GPUPOOL__HELLO__INIT;
	Gpupool__Range range = GPUPOOL__RANGE__INIT, *ranges[] = { &range };
	Gpupool__SessionWish wish = GPUPOOL__SESSION_WISH__INIT;
	Gpupool__ControlMessage *got;

	hello.minor = 3;
	hello.host = (char *)"node7";
	hello.pid = 4711;
	range.address = 0x110000000000;
	range.size = 1 << 20;
	hello.n_window_avoid = 1;
	hello.window_avoid = ranges;
	wish.thread_percentage = 40;
	hello.wish = &wish;
	assert_int_equal(gp_control_send_hello(ends->client, &hello), 0);

	got = expect(ends->daemon, "Hello");
	assert_int_equal(got->hello->minor, 3);
	assert_string_equal(got->hello->host, "node7");
	assert_string_equal(got->hello->user, "");
	assert_int_equal(got->hello->pid, 4711);
	assert_int_equal(got->hello->n_window_avoid, 1);
	assert_int_equal(got->hello->window_avoid[0]->address, 0x110000000000);
	assert_int_equal(got->hello->wish->thread_percentage, 40);
	gp_control_free(got);
}

TEST(welcome_carries_a_device_with_all_its_attributes)
{
	enum {
		ATTRIBUTES = 160
	};
	struct ends *ends = *state;
	Gpupool__Welcome welcome = GPUPOOL__WELCOME__INIT;
	Gpupool__Device device = GPUPOOL__DEVICE__INIT, *devices[] = { &device };
	Gpupool__Window window = GPUPOOL__WINDOW__INIT;
	uint8_t ticket[GP_TICKET_SIZE], bitmap[] = { 0x05, 0x80 };
	int32_t attributes[ATTRIBUTES];
	Gpupool__ControlMessage *got;

	for (int i = 0; i < ATTRIBUTES; i++)
		attributes[i] = i % 5 ? i * 1000 : -i;
	memset(ticket, 0xee, sizeof(ticket));
	welcome.ticket = (ProtobufCBinaryData){ sizeof(ticket), ticket };
	welcome.call_bitmap = (ProtobufCBinaryData){ sizeof(bitmap), bitmap };
	device.name = (char *)"Software GPU";
	device.n_attributes = ATTRIBUTES;
	device.attributes = attributes;
	welcome.n_devices = 1;
	welcome.devices = devices;
	window.address = 0x110000000000;
	window.size = (uint64_t)256 << 30;
	welcome.window = &window;
	assert_int_equal(gp_control_send_welcome(ends->daemon, &welcome), 0);

	got = expect(ends->client, "Welcome");
	assert_int_equal(got->welcome->ticket.len, GP_TICKET_SIZE);
	assert_memory_equal(got->welcome->ticket.data, ticket, sizeof(ticket));
	assert_int_equal(got->welcome->n_devices, 1);
	assert_string_equal(got->welcome->devices[0]->name, "Software GPU");
	assert_int_equal(got->welcome->devices[0]->n_attributes, ATTRIBUTES);
	assert_memory_equal(got->welcome->devices[0]->attributes, attributes, sizeof(attributes));
	assert_int_equal(got->welcome->window->size, (uint64_t)256 << 30);
	assert_true(gp_bitmap_test(&got->welcome->call_bitmap, 0));
	assert_false(gp_bitmap_test(&got->welcome->call_bitmap, 1));
	assert_true(gp_bitmap_test(&got->welcome->call_bitmap, 15));
	assert_false(gp_bitmap_test(&got->welcome->call_bitmap, 16));
	gp_control_free(got);
}

TEST(the_short_messages_arrive_with_their_values)
{
	struct ends *ends = *state;
	Gpupool__ControlMessage *got;

	assert_int_equal(
		gp_control_send_refused(ends->daemon, GPUPOOL__REFUSED__REASON__FULL, "no room"),
		0);
	assert_int_equal(gp_control_send_session_error(ends->daemon, 719, "worker died"), 0);
	assert_int_equal(gp_control_send_pong(ends->daemon, UINT64_MAX), 0);
	assert_int_equal(gp_control_send_bye(ends->daemon, "so long"), 0);

	got = expect(ends->client, "Refused");
	assert_int_equal(got->refused->reason, GPUPOOL__REFUSED__REASON__FULL);
	assert_string_equal(got->refused->text, "no room");
	gp_control_free(got);
	got = expect(ends->client, "SessionError");
	assert_int_equal(got->session_error->cuda_result, 719);
	assert_string_equal(got->session_error->text, "worker died");
	gp_control_free(got);
	got = expect(ends->client, "Pong");
	assert_int_equal(got->pong->number, UINT64_MAX);
	gp_control_free(got);
	got = expect(ends->client, "Bye");
	assert_string_equal(got->bye->text, "so long");
	gp_control_free(got);
}

TEST(the_end_of_the_connection_is_not_an_error)
{
	struct ends *ends = *state;
	Gpupool__ControlMessage *message;

	gp_conn_shutdown(ends->daemon);

	assert_int_equal(gp_control_recv(ends->client, &message), GP_E_EOF);
}

TEST(a_message_over_the_limit_is_refused)
{
	struct ends *ends = *state;
	char *text = malloc(GP_CONTROL_MAX + 1);

	assert_non_null(text);
	memset(text, 'x', GP_CONTROL_MAX);
	text[GP_CONTROL_MAX] = 0;
	assert_int_equal(gp_control_send_bye(ends->client, text), GP_E_TOO_BIG);
	free(text);

	assert_int_equal(gp_control_send_bye(ends->client, ""), 0);
	gp_control_free(expect(ends->daemon, "Bye"));
}

TEST(bytes_that_are_no_control_message_end_the_connection)
{
	struct ends *ends = *state;
	struct iovec bad = { (void *)"\x0a\xff", 2 };
	Gpupool__ControlMessage *message;

	assert_int_equal(gp_conn_send(ends->client, &bad, 1, NULL, 0), 0);

	assert_int_equal(gp_control_recv(ends->daemon, &message), -EPROTO);
	assert_string_equal(gp_conn_error(ends->daemon), "2 bytes that are not a control message");
}

TEST(bulk_has_no_place_in_a_control_message)
{
	struct ends *ends = *state;
	struct iovec bulk = { (void *)"x", 1 };
	Gpupool__ControlMessage *message;

	assert_int_equal(gp_conn_send(ends->client, NULL, 0, &bulk, 1), 0);

	assert_int_equal(gp_control_recv(ends->daemon, &message), -EPROTO);
}

TEST(a_message_of_a_later_version_is_skipped)
{
	struct ends *ends = *state;
	/* Field 1000, length-delimited, two bytes. */
	struct iovec later = { (void *)"\xc2\x3e\x02hi", 5 };

	assert_int_equal(gp_conn_send(ends->client, &later, 1, NULL, 0), 0);
	assert_int_equal(gp_conn_send(ends->client, NULL, 0, NULL, 0), 0);
	assert_int_equal(gp_control_send_bye(ends->client, "now"), 0);

	gp_control_free(expect(ends->daemon, "Bye"));
}

/* What belongs to a client or a session alone is not left where nobody needs it. */
TEST(a_connection_keeps_no_secret_that_went_over_it)
{
	struct ends *ends = *state;
	static uint8_t secret[] = "gpt_a secret that is told once";
	const struct gp_stream *stream = (const struct gp_stream *)ends->daemon;
	Gpupool__Hello hello = GPUPOOL__HELLO__INIT;
	Gpupool__ControlMessage *got;

	hello.token.data = secret;
	hello.token.len = sizeof(secret);
	assert_int_equal(gp_control_send_hello(ends->client, &hello), 0);
	got = expect(ends->daemon, "Hello");
	assert_memory_equal(got->hello->token.data, secret, sizeof(secret));
	assert_true(stream->end > sizeof(secret));
	assert_null(memmem(stream->buffer, stream->end, secret, sizeof(secret)));
	gp_control_free(got);
}

UNIT_TEST_MAIN(NULL, NULL)
