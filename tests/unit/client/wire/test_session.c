/* SPDX-License-Identifier: Apache-2.0 */
#include "client/connect/connect.h"
#include "client/connect/window.h"
#include "client/wire/session.h"
#include "gpc_calls.h"
#include "protocol/preamble.h"
#include "tests/test.h"

#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define WINDOW_SIZE ((uint64_t)1 << 30)
#define GRANULARITY ((uint64_t)2 << 20)

/* The supervisor's end, by a thread: takes the control connection and does as the test says. */
struct supervisor {
	struct gp_listener *listener;
	const struct gp_url *url;
	pthread_t thread;
	void (*serve)(struct supervisor *supervisor, struct gp_conn *control);
	/* What serve() of most tests sends. */
	Gpupool__Welcome welcome;
	Gpupool__Limits limits;
	Gpupool__Window window, other_window;
	Gpupool__Device device, *devices[GPC_DEVICES_MAX + 1];
	uint8_t ticket[GP_TICKET_SIZE], uuid[16];
	/* What came. */
	struct gp_preamble lane;
	char host[64], program[64];
	size_t avoided;
	struct gp_conn *lane_conn;
};

/* How far the clock of this process is ahead, so that nobody has to wait for it. */
static atomic_int seconds_ahead;

int
clock_gettime(clockid_t clock, struct timespec *time)
{
	int r = (int)syscall(SYS_clock_gettime, clock, time);

	if (r == 0 && clock == CLOCK_MONOTONIC)
		time->tv_sec += atomic_load(&seconds_ahead);
	return r;
}

static uint64_t
free_address(void)
{
	/* Far from where the next mapping, a stack say, will come to lie. */
	uint8_t *place = mmap(NULL, 8 * WINDOW_SIZE, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_true(place != MAP_FAILED);
	(void)munmap(place, 8 * WINDOW_SIZE);
	return ((uintptr_t)place + WINDOW_SIZE - 1) & ~(WINDOW_SIZE - 1);
}

static void
take_hello(struct supervisor *supervisor, struct gp_conn *control)
{
	Gpupool__ControlMessage *message;

	if (gp_control_recv(control, &message) != 0)
		return;
	if (message->body_case == GPUPOOL__CONTROL_MESSAGE__BODY_HELLO) {
		(void)snprintf(supervisor->host, sizeof(supervisor->host), "%s",
			       message->hello->host);
		(void)snprintf(supervisor->program, sizeof(supervisor->program), "%s",
			       message->hello->program);
	}
	gp_control_free(message);
}

static void
answer_preamble(struct gp_conn *control, unsigned int major)
{
	uint8_t bytes[GP_PREAMBLE_SIZE];
	struct gp_preamble preamble;

	gp_preamble_init(&preamble, GP_PREAMBLE_CONTROL, 0);
	preamble.major = (uint16_t)major;
	gp_preamble_encode(&preamble, bytes);
	(void)!gp_conn_send_preamble(control, bytes, sizeof(bytes));
}

static void
serve_welcome(struct supervisor *supervisor, struct gp_conn *control)
{
	answer_preamble(control, GP_VERSION_MAJOR);
	take_hello(supervisor, control);
	(void)!gp_control_send_welcome(control, &supervisor->welcome);
}

static void
take_lane(struct supervisor *supervisor)
{
	uint8_t bytes[GP_PREAMBLE_SIZE];

	if (gp_accept(supervisor->listener, 5000, &supervisor->lane_conn) != 0)
		return;
	if (gp_conn_recv_preamble(supervisor->lane_conn, bytes, sizeof(bytes), 5000) == 0)
		(void)!gp_preamble_decode(bytes, &supervisor->lane);
}

static void
serve_session(struct supervisor *supervisor, struct gp_conn *control)
{
	serve_welcome(supervisor, control);
	take_lane(supervisor);
}

static void *
run(void *arg)
{
	struct supervisor *supervisor = arg;
	uint8_t bytes[GP_PREAMBLE_SIZE];
	struct gp_conn *control;

	if (gp_accept(supervisor->listener, 5000, &control) != 0)
		return NULL;
	if (gp_conn_recv_preamble(control, bytes, sizeof(bytes), 5000) == 0)
		supervisor->serve(supervisor, control);
	gp_conn_destroy(control);
	return NULL;
}

static void
make_welcome(struct supervisor *supervisor)
{
	memset(supervisor->ticket, 0x5a, sizeof(supervisor->ticket));
	gpupool__window__init(&supervisor->window);
	supervisor->window.address = free_address();
	supervisor->window.size = WINDOW_SIZE;
	supervisor->other_window = supervisor->window;
	gpupool__limits__init(&supervisor->limits);
	supervisor->limits.heap_granularity = GRANULARITY;
	supervisor->limits.heap_size = 2 * GRANULARITY;
	gpupool__device__init(&supervisor->device);
	supervisor->device.name = (char *)"test device";
	supervisor->device.uuid = (ProtobufCBinaryData){ 16, supervisor->uuid };
	for (int i = 0; i <= GPC_DEVICES_MAX; i++)
		supervisor->devices[i] = &supervisor->device;
	gpupool__welcome__init(&supervisor->welcome);
	supervisor->welcome.ticket = (ProtobufCBinaryData){ GP_TICKET_SIZE, supervisor->ticket };
	supervisor->welcome.window = &supervisor->window;
	supervisor->welcome.limits = &supervisor->limits;
	supervisor->welcome.devices = supervisor->devices;
	supervisor->welcome.n_devices = 1;
	supervisor->welcome.driver_version = 12040;
	supervisor->welcome.session_id = 77;
}

static struct supervisor *
start(void (*serve)(struct supervisor *, struct gp_conn *))
{
	struct supervisor *supervisor = calloc(1, sizeof(*supervisor));
	char error[256];
	struct gp_url url;

	supervisor->serve = serve;
	make_welcome(supervisor);
	assert_int_equal(gp_url_parse("127.0.0.1:1", &url, error, sizeof(error)), 0);
	url.port = 0;
	assert_int_equal(gp_listen(&url, &supervisor->listener, error, sizeof(error)), 0);
	supervisor->url = gp_listener_url(supervisor->listener);
	return supervisor;
}

static int
open_link(struct supervisor *supervisor, struct gpc_link *link, char error[512])
{
	*error = '\0';
	assert_int_equal(pthread_create(&supervisor->thread, NULL, run, supervisor), 0);
	return gpc_link_open(supervisor->url, NULL, 0, 0, link, error, 512);
}

static void
close_link(struct gpc_link *link)
{
	gpc_window_release(link->facts.window_base, link->facts.window_size);
	gpc_link_fini(link);
}

static void
clean_up(struct supervisor *supervisor)
{
	gp_conn_destroy(supervisor->lane_conn);
	gp_listener_destroy(supervisor->listener);
	free(supervisor);
}

static void
stop(struct supervisor *supervisor)
{
	(void)pthread_join(supervisor->thread, NULL);
	clean_up(supervisor);
}

static void
session_is_opened_with_the_facts_of_the_welcome(void **state)
{
	struct supervisor *supervisor = start(serve_session);
	struct gpc_link link;
	char error[512];
	void *taken;

	assert_int_equal(open_link(supervisor, &link, error), 0);
	(void)pthread_join(supervisor->thread, NULL);

	assert_int_equal(link.facts.session_id, 77);
	assert_int_equal(link.facts.window_base, supervisor->window.address);
	assert_int_equal(link.facts.window_size, WINDOW_SIZE);
	assert_int_equal(link.facts.granularity, GRANULARITY);
	assert_int_equal(link.facts.heap_size, 2 * GRANULARITY);
	assert_int_equal(link.facts.driver_version, 12040);
	assert_true(link.facts.max_bulk > 0 && link.facts.max_image_size > 0);
	assert_true(link.max_outstanding > 0);
	assert_int_equal(supervisor->lane.kind, GP_PREAMBLE_LANE);
	assert_memory_equal(supervisor->lane.ticket, supervisor->ticket, GP_TICKET_SIZE);
	assert_true(*supervisor->host != '\0' && *supervisor->program != '\0');
	/* The window is ours: nothing else can be mapped there. */
	taken = mmap((void *)(uintptr_t)link.facts.window_base, 4096, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	assert_true(taken == MAP_FAILED);

	close_link(&link);
	clean_up(supervisor);
}

static bool
knows(const struct gpc_link *link, unsigned int call)
{
	return !(link->facts.unknown_calls[call / 8] >> call % 8 & 1);
}

static void
calls_that_the_daemon_does_not_name_are_unknown_to_it(void **state)
{
	struct supervisor *supervisor = start(serve_session);
	uint8_t calls[GP_CALL_gpMemoryMap / 8 + 1] = { 0 };
	struct gpc_link link;
	char error[512];

	calls[GP_CALL_gpMemoryMap / 8] = 1 << GP_CALL_gpMemoryMap % 8;
	supervisor->welcome.call_bitmap = (ProtobufCBinaryData){ sizeof(calls), calls };
	assert_int_equal(open_link(supervisor, &link, error), 0);
	(void)pthread_join(supervisor->thread, NULL);

	assert_true(knows(&link, GP_CALL_gpMemoryMap));
	assert_false(knows(&link, GP_CALL_gpContextCreate));
	assert_false(knows(&link, GP_CALL_gpOccupancyCluster));

	close_link(&link);
	clean_up(supervisor);
}

/* Of this name: each time it is asked for, the address of another daemon. */
#define POOL_NAME "pool.test"
static unsigned int pool_lookups;

int
getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
	    struct addrinfo **list)
{
	int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
		(int (*)(const char *, const char *, const struct addrinfo *,
			 struct addrinfo **))dlsym(RTLD_NEXT, "getaddrinfo");

	if (name && strcmp(name, POOL_NAME) == 0)
		name = pool_lookups++ == 0 ? "127.0.0.1" : "127.0.0.2";
	return next(name, service, hints, list);
}

static void
lanes_go_to_the_daemon_that_welcomed(void **state)
{
	struct supervisor *supervisor = start(serve_session);
	struct gp_url url = *supervisor->url;
	struct gpc_link link;
	char error[512];

	(void)snprintf(url.host, sizeof(url.host), "%s", POOL_NAME);
	supervisor->url = &url;
	assert_int_equal(open_link(supervisor, &link, error), 0);
	assert_int_equal(pool_lookups, 1);
	assert_string_equal(link.lanes_url.host, "127.0.0.1");
	close_link(&link);
	stop(supervisor);
}

static void
driver_version_is_at_most_our_own(void **state)
{
	struct supervisor *supervisor = start(serve_session);
	struct gpc_link link;
	char error[512];

	supervisor->welcome.driver_version = 99000;
	assert_int_equal(open_link(supervisor, &link, error), 0);
	assert_int_equal(link.facts.driver_version, CUDA_VERSION);
	close_link(&link);
	stop(supervisor);
}

/* Opens, and expects not to get far. */
static void
expect_failure(struct supervisor *supervisor, int r, const char *words)
{
	struct gpc_link link;
	char error[512], text[GP_URL_TEXT_MAX];

	assert_int_equal(open_link(supervisor, &link, error), r);
	gp_url_format(supervisor->url, text, sizeof(text));
	if (!strstr(error, words) || !strstr(error, text) || strchr(error, '\n'))
		print_error("%s\n", error);
	assert_non_null(strstr(error, words));
	assert_non_null(strstr(error, text));
	assert_null(strchr(error, '\n'));
	assert_null(link.control);
	assert_null(link.lane);
	stop(supervisor);
}

static void
serve_http(struct supervisor *supervisor, struct gp_conn *control)
{
	static const char page[] = "HTTP/1.1 400 Bad Request\r\nServer: something\r\n"
				   "Content-Type: text/html\r\n\r\n<html><body></body></html>";

	(void)!gp_conn_send_preamble(control, page, sizeof(page) - 1);
	take_hello(supervisor, control);
}

static void
other_service_is_said_to_be_none_of_ours(void **state)
{
	expect_failure(start(serve_http), GP_E_FOREIGN, "is not a gpupool daemon");
}

static void
serve_nothing(struct supervisor *supervisor, struct gp_conn *control)
{
}

static void
service_that_closes_at_once_is_said_to_be_none_of_ours(void **state)
{
	expect_failure(start(serve_nothing), GP_E_FOREIGN, "is not a gpupool daemon");
}

static void
serve_other_version(struct supervisor *supervisor, struct gp_conn *control)
{
	answer_preamble(control, 2);
	take_hello(supervisor, control);
}

static void
daemon_of_another_version_is_told_apart(void **state)
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

static void
reason_of_a_refusal_is_told(void **state)
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
static void
refusal_for_good_is_told_apart(void **state)
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

static void
what_a_terminal_would_act_on_is_not_said(void **state)
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

static void
other_message_than_a_welcome_is_refused(void **state)
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

static void
daemon_that_goes_on_for_ever_is_given_up(void **state)
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

static void
open_session_may_be_silent_for_as_long_as_it_likes(void **state)
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

static void
nobody_listening_is_said_in_the_words_of_the_system(void **state)
{
	struct supervisor *supervisor = start(serve_nothing);
	struct gp_url url = *supervisor->url;
	struct gpc_link link;
	char error[512];

	gp_listener_destroy(supervisor->listener);
	free(supervisor);
	assert_true(gpc_link_open(&url, NULL, 0, 0, &link, error, sizeof(error)) < 0);
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

static void
welcome_that_makes_no_sense_is_refused(void **state)
{
	for (int how = 0; how <= 13; how++) {
		struct supervisor *supervisor = start(serve_welcome);

		spoil(supervisor, how);
		expect_failure(supervisor, GP_E_INVALID, "makes no sense");
	}
}

static void
serve_second_window(struct supervisor *supervisor, struct gp_conn *control)
{
	Gpupool__WindowReply reply = GPUPOOL__WINDOW_REPLY__INIT;
	Gpupool__ControlMessage message = GPUPOOL__CONTROL_MESSAGE__INIT, *request;

	serve_welcome(supervisor, control);
	if (gp_control_recv(control, &request) != 0)
		return;
	if (request->body_case == GPUPOOL__CONTROL_MESSAGE__BODY_WINDOW_REQUEST) {
		const Gpupool__WindowRequest *wanted = request->window_request;
		uint64_t base = supervisor->window.address;

		for (size_t i = 0; i < wanted->n_avoid; i++) {
			const Gpupool__Range *range = wanted->avoid[i];

			if (range->address <= base && base + 4096 <= range->address + range->size)
				supervisor->avoided++;
		}
	}
	gp_control_free(request);
	reply.window = &supervisor->other_window;
	message.body_case = GPUPOOL__CONTROL_MESSAGE__BODY_WINDOW_REPLY;
	message.window_reply = &reply;
	(void)!gp_control_send(control, &message);
	if (reply.window->size > 0)
		take_lane(supervisor);
}

static void
window_that_is_taken_here_is_exchanged_for_another(void **state)
{
	struct supervisor *supervisor = start(serve_second_window);
	void *place = (void *)(uintptr_t)supervisor->window.address;
	struct gpc_link link;
	char error[512];

	assert_ptr_equal(mmap(place, 4096, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
			 place);
	supervisor->other_window.address += 4 * GRANULARITY;
	supervisor->other_window.size = 8 * GRANULARITY;
	assert_int_equal(open_link(supervisor, &link, error), 0);
	(void)munmap(place, 4096);

	assert_int_equal(link.facts.window_base, supervisor->other_window.address);
	assert_int_equal(link.facts.window_size, 8 * GRANULARITY);
	close_link(&link);
	(void)pthread_join(supervisor->thread, NULL);
	assert_int_equal(supervisor->avoided, 1);
	clean_up(supervisor);
}

static void
no_window_at_all_is_an_error(void **state)
{
	struct supervisor *supervisor = start(serve_second_window);
	void *place = (void *)(uintptr_t)supervisor->window.address;

	assert_ptr_equal(mmap(place, 4096, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
			 place);
	supervisor->other_window.size = 0;
	expect_failure(supervisor, GP_E_RESOURCE, "no range of addresses is free");
	(void)munmap(place, 4096);
}

static void
reason_that_the_supervisor_knows_is_the_error_of_later_calls(void **state)
{
	struct gpc_session_facts facts = { .max_bulk = GP_CONN_BULK_MAX };
	struct gp_conn *lane, *lane_far, *control, *control_far;
	struct gp_args_gpFence args = { 0 };
	struct gpc_session *session;

	assert_int_equal(gp_loop_pair(&lane, &lane_far), 0);
	assert_int_equal(gp_loop_pair(&control, &control_far), 0);
	assert_int_equal(gpc_session_create(lane, control, &facts, 100, &session), 0);
	gpc_session_set(session);
	assert_int_equal(gp_control_send_session_error(control_far, CUDA_ERROR_LAUNCH_FAILED,
						       "the worker died"),
			 0);
	gp_conn_destroy(lane_far);

	assert_int_equal(gpc_wait_gpFence(NULL, &args), CUDA_ERROR_LAUNCH_FAILED);
	assert_int_equal(gpc_session_status(session), CUDA_ERROR_LAUNCH_FAILED);

	gpc_session_close(session, 100);
	gpc_session_set(NULL);
	gpc_session_destroy(session);
	gp_conn_destroy(control_far);
}

static void
close_says_goodbye(void **state)
{
	struct gpc_session_facts facts = { .max_bulk = GP_CONN_BULK_MAX };
	struct gp_conn *lane, *lane_far, *control, *control_far;
	Gpupool__ControlMessage *message;
	struct gpc_session *session;

	assert_int_equal(gp_loop_pair(&lane, &lane_far), 0);
	assert_int_equal(gp_loop_pair(&control, &control_far), 0);
	assert_int_equal(gpc_session_create(lane, control, &facts, 100, &session), 0);
	gpc_session_close(session, 1000);
	assert_int_equal(gp_control_recv(control_far, &message), 0);
	assert_int_equal(message->body_case, GPUPOOL__CONTROL_MESSAGE__BODY_BYE);
	gp_control_free(message);
	assert_int_equal(gp_control_recv(control_far, &message), GP_E_EOF);

	gpc_session_destroy(session);
	gp_conn_destroy(control_far);
	gp_conn_destroy(lane_far);
}

static void
occupied_ranges_cover_what_is_mapped_in_order(void **state)
{
	struct gpc_window_range *ranges;
	uintptr_t here = (uintptr_t)&ranges;
	bool found = false;
	size_t count;

	assert_int_equal(gpc_window_occupied(&ranges, &count), 0);
	assert_true(count > 0);
	for (size_t i = 0; i < count; i++) {
		if (ranges[i].base <= here && here < ranges[i].base + ranges[i].size)
			found = true;
		if (i > 0)
			assert_true(ranges[i].base > ranges[i - 1].base + ranges[i - 1].size);
	}
	assert_true(found);
	free(ranges);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(session_is_opened_with_the_facts_of_the_welcome),
		cmocka_unit_test(calls_that_the_daemon_does_not_name_are_unknown_to_it),
		cmocka_unit_test(lanes_go_to_the_daemon_that_welcomed),
		cmocka_unit_test(driver_version_is_at_most_our_own),
		cmocka_unit_test(other_service_is_said_to_be_none_of_ours),
		cmocka_unit_test(service_that_closes_at_once_is_said_to_be_none_of_ours),
		cmocka_unit_test(daemon_of_another_version_is_told_apart),
		cmocka_unit_test(reason_of_a_refusal_is_told),
		cmocka_unit_test(refusal_for_good_is_told_apart),
		cmocka_unit_test(what_a_terminal_would_act_on_is_not_said),
		cmocka_unit_test(other_message_than_a_welcome_is_refused),
		cmocka_unit_test(daemon_that_goes_on_for_ever_is_given_up),
		cmocka_unit_test(open_session_may_be_silent_for_as_long_as_it_likes),
		cmocka_unit_test(nobody_listening_is_said_in_the_words_of_the_system),
		cmocka_unit_test(welcome_that_makes_no_sense_is_refused),
		cmocka_unit_test(window_that_is_taken_here_is_exchanged_for_another),
		cmocka_unit_test(no_window_at_all_is_an_error),
		cmocka_unit_test(reason_that_the_supervisor_knows_is_the_error_of_later_calls),
		cmocka_unit_test(close_says_goodbye),
		cmocka_unit_test(occupied_ranges_cover_what_is_mapped_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
