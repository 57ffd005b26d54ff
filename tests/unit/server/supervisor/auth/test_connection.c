/* SPDX-License-Identifier: Apache-2.0 */
#include "server/supervisor/auth/authentication.h"
#include "server/supervisor/auth/connection.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REQUESTS 200

static struct gp_listener *listener;

/* A client by hand, and the peer that the supervisor has of it. */
static struct gp_conn *
come(struct gpd_connection **peer_p)
{
	uint8_t bytes[GP_PREAMBLE_SIZE];
	struct gp_preamble preamble;
	struct gp_conn *client, *server;
	char error[200];

	gp_preamble_init(&preamble, GP_PREAMBLE_CONTROL, 0);
	gp_preamble_encode(&preamble, bytes);
	assert_int_equal(gp_connect(gp_listener_url(listener), bytes, sizeof(bytes), 5000, &client,
				    error, sizeof(error)),
			 0);
	assert_int_equal(gp_accept(listener, 5000, &server), 0);
	*peer_p = gpd_connection_create(server, "unix", 30000);
	assert_non_null(*peer_p);
	assert_int_equal(gpd_connection_start(*peer_p), 0);
	assert_int_equal(gp_conn_recv_preamble(client, bytes, sizeof(bytes), 5000), 0);
	return client;
}

static int
say_hello(struct gp_conn *client)
{
	Gpupool__ControlMessage message = GPUPOOL__CONTROL_MESSAGE__INIT;
	Gpupool__Hello hello = GPUPOOL__HELLO__INIT;

	message.body_case = GPUPOOL__CONTROL_MESSAGE__BODY_HELLO;
	message.hello = &hello;
	return gp_control_send(client, &message);
}

static int
ask_for_window(struct gp_conn *client)
{
	Gpupool__ControlMessage message = GPUPOOL__CONTROL_MESSAGE__INIT;
	Gpupool__WindowRequest request = GPUPOOL__WINDOW_REQUEST__INIT;

	message.body_case = GPUPOOL__CONTROL_MESSAGE__BODY_WINDOW_REQUEST;
	message.window_request = &request;
	return gp_control_send(client, &message);
}

/* Waits some seconds; NULL: nothing arrived. */
static struct gpd_connection_event *
next_event(void)
{
	static struct gpd_connection_event *taken;
	struct gpd_connection_event *event;

	for (int i = 0; !taken && i < 5000; i++) {
		taken = gpd_connection_pop_events();
		if (!taken)
			usleep(1000);
	}
	event = taken;
	if (event)
		taken = event->next;
	return event;
}

/* As the supervisor does it. */
static void
take_message(struct gpd_connection *from, Gpupool__ControlMessage__BodyCase body)
{
	struct gpd_connection_event *event = next_event();

	assert_non_null(event);
	assert_ptr_equal(event->peer, from);
	assert_int_equal(event->type, GPD_CONNECTION_MESSAGE);
	assert_int_equal(event->message->body_case, body);
	atomic_fetch_sub(&from->queued, 1);
	gp_control_free(event->message);
	free(event);
}

static void
expect_gone(struct gpd_connection *connection, const char *text)
{
	struct gpd_connection_event *event = next_event();

	assert_non_null(event);
	assert_ptr_equal(event->peer, connection);
	assert_int_equal(event->type, GPD_CONNECTION_CLOSED);
	assert_string_equal(event->text, text);
	free(event);
	gpd_connection_destroy(connection);
}

UNIT_TEST(requests_that_do_not_wait_for_answers_are_refused_and_not_kept)
{
	static const char text[] = "too many pending WindowRequests";
	struct gpd_connection *connection, *neighbour;
	struct gp_conn *client = come(&connection), *other;
	Gpupool__ControlMessage *message;

	/* The supervisor does not run meanwhile. */
	assert_int_equal(say_hello(client), 0);
	for (int i = 0; i < REQUESTS && ask_for_window(client) == 0; i++)
		;
	assert_int_equal(gp_control_recv(client, &message), 0);
	assert_int_equal(message->body_case, GPUPOOL__CONTROL_MESSAGE__BODY_SESSION_ERROR);
	assert_string_equal(message->session_error->text, text);
	gp_control_free(message);
	other = come(&neighbour);
	assert_int_equal(say_hello(other), 0);

	take_message(connection, GPUPOOL__CONTROL_MESSAGE__BODY_HELLO);
	take_message(connection, GPUPOOL__CONTROL_MESSAGE__BODY_WINDOW_REQUEST);
	expect_gone(connection, text);
	take_message(neighbour, GPUPOOL__CONTROL_MESSAGE__BODY_HELLO);
	gp_conn_destroy(client);
	gp_conn_destroy(other);
	expect_gone(neighbour, "connection closed by the client");
}

UNIT_TEST(the_daemons_user_needs_no_credentials_but_its_workers_do)
{
	static struct gpd_authentication authentication;
	static const struct gpd_config config;
	char error[GPD_TOKEN_ERROR_MAX];
	struct gpd_connection *connection;
	struct gp_conn *client = come(&connection);
	struct gpd_connection_event *event;
	const char *text = "";

	assert_int_equal(gpd_authentication_open(&authentication, &config, "/tmp/gpupool-no-tokens",
						 false, error, sizeof(error)),
			 0);
	assert_int_equal(say_hello(client), 0);
	event = next_event();
	assert_non_null(event);
	connection->hello = event->message;
	free(event);
	connection->client_address =
		gpd_client_address_get(gp_conn_peer(connection->conn), &connection->uid);
	assert_true(connection->has_uid);
	assert_int_equal(connection->pid, getpid());
	assert_int_equal(
		gpd_authentication_authenticate(&authentication, &config, connection, 0, &text), 0);
	assert_int_equal(connection->principal.by, GPD_AUTH_BY_USER);

	connection->is_own_process = true;
	assert_int_equal(
		gpd_authentication_authenticate(&authentication, &config, connection, 0, &text),
		GP_E_INVALID);
	assert_non_null(strstr(text, "a worker of the daemon"));
	assert_int_equal(authentication.refusals[GPD_AUTH_NO_CREDENTIALS], 1);
	gp_conn_destroy(client);
	expect_gone(connection, "connection closed by the client");
	gpd_authentication_close(&authentication);
}

UNIT_TEST(requests_that_wait_are_passed_on_however_many_there_are)
{
	struct gpd_connection *connection;
	struct gp_conn *client = come(&connection);

	assert_int_equal(say_hello(client), 0);
	take_message(connection, GPUPOOL__CONTROL_MESSAGE__BODY_HELLO);
	for (int i = 0; i < REQUESTS; i++) {
		assert_int_equal(ask_for_window(client), 0);
		take_message(connection, GPUPOOL__CONTROL_MESSAGE__BODY_WINDOW_REQUEST);
	}
	gp_conn_destroy(client);
	expect_gone(connection, "connection closed by the client");
}

static int
set_up(void **state)
{
	struct gp_url url;
	char error[200], text[64];

	(void)snprintf(text, sizeof(text), "unix:///tmp/gpupool-peers-%d", (int)getpid());
	if (gpd_connection_setup() || gp_url_parse(text, &url, error, sizeof(error)))
		return -1;
	return gp_listen(&url, &listener, error, sizeof(error));
}

static int
tear_down(void **state)
{
	gp_listener_destroy(listener);
	close(gpd_connection_events_fd());
	return 0;
}

/* A row for each state that there may be, a column for each that may follow, in the enum's order:
 * handshake, refused, queued, starting, opening, welcomed, moving, running, ending. */
static const char *const follows[GPD_CONNECTION_STATES] = {
	[GPD_CONNECTION_HANDSHAKE] = ".++.....+", [GPD_CONNECTION_REFUSED] = "........+",
	[GPD_CONNECTION_QUEUED] = "..+++...+",    [GPD_CONNECTION_STARTING] = "...++...+",
	[GPD_CONNECTION_OPENING] = "..+..+..+",   [GPD_CONNECTION_WELCOMED] = "......+++",
	[GPD_CONNECTION_MOVING] = ".....+..+",    [GPD_CONNECTION_RUNNING] = "........+",
	[GPD_CONNECTION_CLOSING] = ".........",
};

UNIT_TEST(only_the_states_that_may_follow_follow)
{
	for (int from = 0; from < GPD_CONNECTION_STATES; from++) {
		assert_int_equal(strlen(follows[from]), GPD_CONNECTION_STATES);
		for (int to = 0; to < GPD_CONNECTION_STATES; to++) {
			struct gpd_connection peer = { .state = (enum gpd_connection_state)from,
						       .deadline_ms = 1 };
			bool may = follows[from][to] == '+';

			assert_int_equal(
				gpd_connection_set_state(&peer, (enum gpd_connection_state)to, 2),
				may);
			assert_int_equal(peer.state, may ? to : from);
			assert_int_equal(peer.deadline_ms, may ? 2 : 1);
		}
	}
}

UNIT_TEST_MAIN(set_up, tear_down)
