/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions that are opened, with their windows, and closed. */
#include "tests/connection_pair.h"
#include "tests/control_messages.h"
#include "tests/unit/client/fake_supervisor.h"

UNIT_TEST(session_is_opened_with_the_facts_of_the_welcome)
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
	/* The window is reserved: no other mapping fits there. */
	taken = mmap((void *)(uintptr_t)link.facts.window_base, 4096, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	assert_true(taken == MAP_FAILED);

	close_link(&link);
	clean_up(supervisor);
}

UNIT_TEST(calls_that_the_daemon_does_not_name_are_unknown_to_it)
{
	struct supervisor *supervisor = start(serve_session);
	uint8_t calls[GP_CALL_gpMemoryMap / 8 + 1] = { 0 };
	struct gpc_link link;
	char error[512];

	calls[GP_CALL_gpMemoryMap / 8] = 1 << GP_CALL_gpMemoryMap % 8;
	supervisor->welcome.call_bitmap = (ProtobufCBinaryData){ sizeof(calls), calls };
	assert_int_equal(open_link(supervisor, &link, error), 0);
	(void)pthread_join(supervisor->thread, NULL);

	assert_true(gpc_facts_have_call(&link.facts, GP_CALL_gpMemoryMap));
	assert_false(gpc_facts_have_call(&link.facts, GP_CALL_gpContextCreate));
	assert_false(gpc_facts_have_call(&link.facts, GP_CALL_gpOccupancyCluster));

	close_link(&link);
	clean_up(supervisor);
}

/* A host name that resolves to another daemon's address each time. */
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

UNIT_TEST(lanes_go_to_the_daemon_that_welcomed)
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

UNIT_TEST(driver_version_is_at_most_our_own)
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

UNIT_TEST(window_that_is_taken_here_is_exchanged_for_another)
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

UNIT_TEST(no_window_at_all_is_an_error)
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

UNIT_TEST(reason_that_the_supervisor_knows_is_the_error_of_later_calls)
{
	struct gpc_session_facts facts = { .max_bulk = GP_CONN_BULK_MAX };
	struct gp_conn *lane, *lane_far, *control, *control_far;
	struct gp_args_gpFence args = { 0 };
	struct gpc_session *session;

	assert_int_equal(connection_pair_create(&lane, &lane_far), 0);
	assert_int_equal(connection_pair_create(&control, &control_far), 0);
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

UNIT_TEST(close_says_goodbye)
{
	struct gpc_session_facts facts = { .max_bulk = GP_CONN_BULK_MAX };
	struct gp_conn *lane, *lane_far, *control, *control_far;
	Gpupool__ControlMessage *message;
	struct gpc_session *session;

	assert_int_equal(connection_pair_create(&lane, &lane_far), 0);
	assert_int_equal(connection_pair_create(&control, &control_far), 0);
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

UNIT_TEST(occupied_ranges_cover_what_is_mapped_in_order)
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

UNIT_TEST_MAIN(NULL, NULL)
