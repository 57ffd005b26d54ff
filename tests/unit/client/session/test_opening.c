/* SPDX-License-Identifier: Apache-2.0 */
/* Openings of a session that do not succeed, or take long. */
#include "tests/control_messages.h"
#include "tests/unit/client/fake_supervisor.h"

/* Offset of this process's clock, so that tests do not have to wait. */
static atomic_int seconds_ahead;

int
clock_gettime(clockid_t clock, struct timespec *time)
{
	int r = (int)syscall(SYS_clock_gettime, clock, time);

	if (r == 0 && clock == CLOCK_MONOTONIC)
		time->tv_sec += atomic_load(&seconds_ahead);
	return r;
}

static void
serve_http(struct supervisor *supervisor, struct gp_conn *control)
{
	static const char page[] = "HTTP/1.1 400 Bad Request\r\nServer: something\r\n"
				   "Content-Type: text/html\r\n\r\n<html><body></body></html>";

	(void)!gp_conn_send_preamble(control, page, sizeof(page) - 1);
	take_hello(supervisor, control);
}

UNIT_TEST(other_service_is_said_to_be_none_of_ours)
{
	expect_failure(start(serve_http), GP_E_FOREIGN, "is not a gpupool daemon");
}

static void
serve_nothing(struct supervisor *supervisor, struct gp_conn *control)
{
}

UNIT_TEST(service_that_closes_at_once_is_said_to_be_none_of_ours)
{
	expect_failure(start(serve_nothing), GP_E_FOREIGN, "is not a gpupool daemon");
}

static void
serve_other_version(struct supervisor *supervisor, struct gp_conn *control)
{
	answer_preamble(control, 2);
	take_hello(supervisor, control);
}

UNIT_TEST(daemon_of_another_version_is_told_apart)
{
	expect_failure(start(serve_other_version), GP_E_VERSION,
		       "the daemon speaks protocol 2, this client 1");
}

static void
serve_refusal(struct supervisor *supervisor, struct gp_conn *control)
{
	answer_preamble(control, GP_VERSION_MAJOR);
	take_hello(supervisor, control);
	(void)!gp_control_send_refused(control, GPUPOOL__REFUSED__REASON__FULL,
				       "all 4 places are taken");
}

UNIT_TEST(reason_of_a_refusal_is_told)
{
	expect_failure(start(serve_refusal), -EBUSY, "refused: all 4 places are taken");
}

static void
serve_policy(struct supervisor *supervisor, struct gp_conn *control)
{
	answer_preamble(control, GP_VERSION_MAJOR);
	take_hello(supervisor, control);
	(void)!gp_control_send_refused(control, GPUPOOL__REFUSED__REASON__POLICY, "not for you");
}

/* Nothing that waiting would mend. */
UNIT_TEST(refusal_for_good_is_told_apart)
{
	expect_failure(start(serve_policy), GP_E_UNSUPPORTED, "refused: not for you");
}

static void
serve_control_characters(struct supervisor *supervisor, struct gp_conn *control)
{
	char text[1024];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	memcpy(text, "\x1b]0;mine\a\xc2\x9b[2J\nall is fine\r", 27);
	answer_preamble(control, GP_VERSION_MAJOR);
	take_hello(supervisor, control);
	(void)!gp_control_send_refused(control, GPUPOOL__REFUSED__REASON__FULL, text);
}

UNIT_TEST(what_a_terminal_would_act_on_is_not_said)
{
	expect_failure(start(serve_control_characters), -EBUSY,
		       "refused: \\x1b]0;mine\\x07\\xc2\\x9b[2J\\x0aall is fine\\x0dxxx");
}

static void
serve_pong(struct supervisor *supervisor, struct gp_conn *control)
{
	answer_preamble(control, GP_VERSION_MAJOR);
	take_hello(supervisor, control);
	(void)!gp_control_send_pong(control, 5);
}

UNIT_TEST(other_message_than_a_welcome_is_refused)
{
	expect_failure(start(serve_pong), GP_E_INVALID, "unexpected Pong");
}

/* A byte each second, of a message that would take hours so. */
static void
serve_slowly(struct supervisor *supervisor, struct gp_conn *control)
{
	static const char head[8] = "\x60\xea";
	struct timespec pause = { .tv_nsec = 20000000 };

	answer_preamble(control, GP_VERSION_MAJOR);
	take_hello(supervisor, control);
	for (size_t i = 0; i < 200; i++) {
		if (gp_conn_send_preamble(control, i < sizeof(head) ? head + i : "x", 1) != 0)
			return;
		(void)nanosleep(&pause, NULL);
		(void)atomic_fetch_add(&seconds_ahead, 1);
	}
}

UNIT_TEST(daemon_that_goes_on_for_ever_is_given_up)
{
	expect_failure(start(serve_slowly), -ETIMEDOUT, ": no whole message came in time");
	assert_true(atomic_load(&seconds_ahead) < 90);
	atomic_store(&seconds_ahead, 0);
}

static void
serve_a_word_later(struct supervisor *supervisor, struct gp_conn *control)
{
	serve_session(supervisor, control);
	(void)atomic_fetch_add(&seconds_ahead, 3600);
	(void)!gp_control_send_pong(control, 5);
}

UNIT_TEST(open_session_may_be_silent_for_as_long_as_it_likes)
{
	struct supervisor *supervisor = start(serve_a_word_later);
	Gpupool__ControlMessage *message;
	struct gpc_link link;
	char error[512];

	assert_int_equal(open_link(supervisor, &link, error), 0);
	(void)pthread_join(supervisor->thread, NULL);
	assert_int_equal(gp_control_recv(link.control, &message), 0);
	assert_int_equal(message->body_case, GPUPOOL__CONTROL_MESSAGE__BODY_PONG);
	gp_control_free(message);
	atomic_store(&seconds_ahead, 0);
	close_link(&link);
	clean_up(supervisor);
}

UNIT_TEST(nobody_listening_is_said_in_the_words_of_the_system)
{
	struct supervisor *supervisor = start(serve_nothing);
	struct gp_url url = *supervisor->url;
	struct gpc_link link;
	char error[512];

	gp_listener_destroy(supervisor->listener);
	free(supervisor);
	assert_true(gpc_link_open(&url, NULL, 0, NULL, &link, error, sizeof(error)) < 0);
	assert_non_null(strstr(error, "cannot connect to tcp://127.0.0.1:"));
	assert_non_null(strstr(error, "Connection refused"));
}

static void
spoil(struct supervisor *supervisor, int how)
{
	Gpupool__Welcome *welcome = &supervisor->welcome;

	switch (how) {
	case 0:
		welcome->window = NULL;
		break;
	case 1:
		welcome->limits = NULL;
		break;
	case 2:
		supervisor->limits.heap_granularity = 0;
		break;
	case 3:
		supervisor->limits.heap_granularity = GRANULARITY + 4096;
		break;
	case 4:
		supervisor->limits.heap_granularity = (uint64_t)1 << 63;
		break;
	case 5:
		supervisor->window.size = 0;
		break;
	case 6:
		supervisor->window.size = ~(uint64_t)0;
		break;
	case 7:
		supervisor->window.address = ~(uint64_t)0 - GRANULARITY + 1;
		break;
	case 8:
		supervisor->window.address += 4096;
		break;
	case 9:
		welcome->ticket.len = 31;
		break;
	case 10:
		welcome->n_devices = GPC_DEVICES_MAX + 1;
		break;
	case 11:
		supervisor->device.uuid.len = 15;
		break;
	case 12:
		supervisor->limits.heap_size = GRANULARITY + 1;
		break;
	case 13:
		supervisor->window.address = 0;
		break;
	}
}

UNIT_TEST(welcome_that_makes_no_sense_is_refused)
{
	for (int how = 0; how <= 13; how++) {
		struct supervisor *supervisor = start(serve_welcome);

		spoil(supervisor, how);
		expect_failure(supervisor, GP_E_INVALID, "is invalid");
	}
}

UNIT_TEST_MAIN(NULL, NULL)
