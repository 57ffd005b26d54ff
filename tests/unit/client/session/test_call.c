/* SPDX-License-Identifier: Apache-2.0 */
/* The call stream while all is well. */
#include "client/pages/pages.h"
#include "tests/test.h"
#include "tests/unit/client/call_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* The first eight bytes of a gpFill: the stream, then padding; the address follows. */
static uint64_t
address_of_fill(const void *fields, size_t size)
{
	uint64_t address;

	assert_true(size >= 16);
	memcpy(&address, (const uint8_t *)fields + 8, sizeof(address));
	return address;
}

/* Replies to gpMemoryInfo with the device's number, and twice it. */
static int
answer_numbers(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
	       size_t size)
{
	uint64_t numbers[2];
	uint32_t device;

	if (header->call != GP_CALL_gpMemoryInfo)
		return fake_daemon_answer(daemon, header, fields, size);
	memcpy(&device, fields, sizeof(device));
	numbers[0] = device;
	numbers[1] = 2 * device;
	fake_daemon_reply(daemon, header, CUDA_SUCCESS, numbers, sizeof(numbers));
	return 0;
}

struct order {
	uint64_t next;
	bool broken;
};

static int
check_order(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
	    size_t size)
{
	struct order *order = daemon->arg;

	if (header->call == GP_CALL_gpFill && address_of_fill(fields, size) != order->next++)
		order->broken = true;
	return fake_daemon_answer(daemon, header, fields, size);
}

UNIT_TEST(posted_calls_arrive_in_order_and_in_fewer_messages)
{
	struct fixture *fixture = begin(state, check_order);
	struct order order = { 0 };

	fixture->daemon.arg = &order;
	for (uint64_t i = 0; i < 20000; i++)
		assert_int_equal(post(i), CUDA_SUCCESS);
	assert_int_equal(fence(), CUDA_SUCCESS);

	assert_int_equal(order.next, 20000);
	assert_false(order.broken);
	assert_true(atomic_load(&fixture->daemon.messages) < 10000);
	end(fixture);
}

UNIT_TEST(posted_call_arrives_without_anybody_waiting)
{
	struct fixture *fixture = begin(state, NULL);

	assert_int_equal(post(1), CUDA_SUCCESS);
	assert_true(fake_daemon_wait_records(&fixture->daemon, 1));
	(void)usleep(2000); /* the sender sleeps by now */
	assert_int_equal(post(2), CUDA_SUCCESS);
	assert_true(fake_daemon_wait_records(&fixture->daemon, 2));
	assert_int_equal(fixture->daemon.records[0].header.request, 0);
	end(fixture);
}

UNIT_TEST(wait_yields_what_the_daemon_answered)
{
	struct fixture *fixture = begin(state, answer_numbers);
	struct gp_reply_gpMemoryInfo reply;

	assert_int_equal(ask(21, &reply), CUDA_SUCCESS);
	assert_int_equal(reply.free, 21);
	assert_int_equal(reply.total, 42);
	assert_int_not_equal(fixture->daemon.records[0].header.request, 0);
	end(fixture);
}

UNIT_TEST(error_of_a_call_is_its_result_and_nothing_more)
{
	struct fixture *fixture = begin(state, refuse_memory_info);
	struct gp_reply_gpMemoryInfo reply;

	assert_int_equal(ask(0, &reply), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(reply.free, 0);
	assert_int_equal(fence(), CUDA_SUCCESS);
	end(fixture);
}

/* Delays the first of two requests until the second has been answered. */
static int
answer_backwards(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
		 size_t size)
{
	struct gp_header *kept = daemon->arg;
	uint64_t first[2] = { 1, 1 }, second[2] = { 2, 2 };

	if (!kept->request) {
		*kept = *header;
		return 0;
	}
	fake_daemon_reply(daemon, header, CUDA_SUCCESS, second, sizeof(second));
	fake_daemon_reply(daemon, kept, CUDA_SUCCESS, first, sizeof(first));
	return 0;
}

static void *
ask_in_thread(void *arg)
{
	struct gp_reply_gpMemoryInfo reply = { 0 };
	uint64_t *free_p = arg;

	if (ask(0, &reply) == CUDA_SUCCESS)
		*free_p = reply.free;
	return NULL;
}

UNIT_TEST(replies_out_of_order_reach_their_waiters)
{
	struct fixture *fixture = begin(state, answer_backwards);
	struct gp_header kept = { 0 };
	uint64_t first = 0, second = 0;
	pthread_t threads[2];

	fixture->daemon.arg = &kept;
	assert_int_equal(pthread_create(&threads[0], NULL, ask_in_thread, &first), 0);
	assert_true(fake_daemon_wait_records(&fixture->daemon, 1));
	assert_int_equal(pthread_create(&threads[1], NULL, ask_in_thread, &second), 0);
	(void)pthread_join(threads[0], NULL);
	(void)pthread_join(threads[1], NULL);

	assert_int_equal(first, 1);
	assert_int_equal(second, 2);
	end(fixture);
}

#define THREADS 8
#define ROUNDS 300

struct worker {
	int number;
	bool good;
};

static int
check_orders_of_threads(struct fake_daemon *daemon, const struct gp_header *header,
			const void *fields, size_t size)
{
	struct order *orders = daemon->arg;

	if (header->call == GP_CALL_gpFill) {
		uint64_t address = address_of_fill(fields, size);
		struct order *order = &orders[address >> 32];

		if ((uint32_t)address != order->next++)
			order->broken = true;
	}
	return answer_numbers(daemon, header, fields, size);
}

static void *
post_and_ask(void *arg)
{
	struct worker *worker = arg;
	uint32_t posted = 0;

	worker->good = true;
	for (int i = 0; i < ROUNDS; i++) {
		struct gp_reply_gpMemoryInfo reply;
		int device = worker->number * ROUNDS + i;

		for (int k = 0; k < i % 7; k++) {
			if (post((uint64_t)worker->number << 32 | posted++) != CUDA_SUCCESS)
				worker->good = false;
		}
		if (ask(device, &reply) != CUDA_SUCCESS || reply.free != (uint64_t)device)
			worker->good = false;
	}
	return NULL;
}

UNIT_TEST(many_threads_post_and_wait)
{
	struct fixture *fixture = begin(state, check_orders_of_threads);
	struct order orders[THREADS] = { { 0 } };
	struct worker workers[THREADS];
	pthread_t threads[THREADS];

	fixture->daemon.arg = orders;
	for (int i = 0; i < THREADS; i++) {
		workers[i].number = i;
		assert_int_equal(pthread_create(&threads[i], NULL, post_and_ask, &workers[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		(void)pthread_join(threads[i], NULL);
		assert_true(workers[i].good);
		assert_false(orders[i].broken);
	}
	end(fixture);
}

UNIT_TEST(bulk_travels_behind_what_was_posted_before)
{
	struct fixture *fixture = begin(state, NULL);
	static uint8_t data[3 << 20];

	for (int i = 0; i < 5; i++) {
		assert_int_equal(post(1), CUDA_SUCCESS);
		assert_int_equal(copy_in(data, sizeof(data)), CUDA_SUCCESS);
	}
	assert_int_equal(fence(), CUDA_SUCCESS);

	for (int i = 0; i < 10; i++) {
		const struct fake_daemon_record *record = &fixture->daemon.records[i];

		assert_int_equal(record->header.call, i % 2 ? GP_CALL_gpCopyIn : GP_CALL_gpFill);
		assert_int_equal(record->header.flags, i % 2 ? GP_FRAME_BULK : 0);
		assert_int_equal(record->bulk_size, i % 2 ? sizeof(data) : 0);
	}
	end(fixture);
}

static void *
copy_often(void *arg)
{
	static const uint8_t data[100000];
	bool *good = arg;

	*good = true;
	for (int i = 0; i < 50; i++) {
		if (copy_in(data, sizeof(data)) != CUDA_SUCCESS)
			*good = false;
	}
	return NULL;
}

UNIT_TEST(bulk_of_one_thread_and_posts_of_another_do_not_mix)
{
	struct fixture *fixture = begin(state, check_order);
	struct order order = { 0 };
	bool good[2];
	pthread_t threads[2];

	fixture->daemon.arg = &order;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, copy_often, &good[i]), 0);
	for (uint64_t i = 0; i < 20000; i++)
		assert_int_equal(post(i), CUDA_SUCCESS);
	for (int i = 0; i < 2; i++)
		(void)pthread_join(threads[i], NULL);
	assert_int_equal(fence(), CUDA_SUCCESS);

	assert_true(good[0] && good[1]);
	assert_false(order.broken);
	for (size_t i = 0; i < atomic_load(&fixture->daemon.count); i++) {
		const struct fake_daemon_record *record = &fixture->daemon.records[i];

		assert_int_equal(record->bulk_size,
				 record->header.call == GP_CALL_gpCopyIn ? 100000 : 0);
	}
	end(fixture);
}

static void
assert_is_data(const uint8_t *bytes)
{
	for (size_t i = 0; i < DATA_SIZE; i++)
		assert_int_equal(bytes[i], (uint8_t)(i * 7));
}

UNIT_TEST(data_notes_are_taken_by_the_request)
{
	struct fixture *fixture = begin(state, answer_with_data);
	struct gp_args_gpCopyOut args = { .stream = 1, .width = DATA_SIZE, .height = 1 };
	uint8_t *bytes = calloc(1, DATA_SIZE);
	struct gpc_request request = { .data = take_data, .arg = bytes };

	assert_int_equal(gpc_start_gpCopyOut(NULL, &args, &request), CUDA_SUCCESS);
	assert_int_equal(gpc_request_wait(&request), CUDA_SUCCESS);

	assert_is_data(bytes);
	free(bytes);
	end(fixture);
}

UNIT_TEST(request_with_done_is_answered_though_nobody_waits)
{
	struct fixture *fixture = begin(state, NULL);
	struct gp_args_gpFence args = { 0 };
	sem_t done;

	(void)sem_init(&done, 0, 0);
	for (int i = 0; i < 20; i++) {
		struct gpc_request request = { .done = tell, .arg = &done };

		assert_int_equal(gpc_start_gpFence(NULL, &args, &request), CUDA_SUCCESS);
		(void)sem_wait(&done);
		assert_int_equal(request.result, CUDA_SUCCESS);
	}
	(void)sem_destroy(&done);
	end(fixture);
}

static void
free_request(struct gpc_request *request)
{
	atomic_fetch_add((atomic_int *)request->arg, 1);
	free(request);
}

UNIT_TEST(requests_beyond_the_limit_wait_for_their_place)
{
	struct fixture *fixture = begin_limited(state, 4, NULL);
	struct gp_args_gpFence args = { 0 };
	atomic_int freed = 0;

	for (int i = 0; i < 1000; i++) {
		struct gpc_request *request = calloc(1, sizeof(*request));

		request->done = free_request;
		request->arg = &freed;
		assert_int_equal(gpc_start_gpFence(NULL, &args, request), CUDA_SUCCESS);
	}
	assert_int_equal(fence(), CUDA_SUCCESS);
	assert_int_equal(atomic_load(&freed), 1000);
	end(fixture);
}

UNIT_TEST(poll_does_not_wait)
{
	struct fixture *fixture = begin(state, answer_when_told);
	struct gpc_request request = { 0 };
	struct gp_args_gpFence args = { 0 };

	assert_int_equal(gpc_start_gpFence(NULL, &args, &request), CUDA_SUCCESS);
	assert_false(gpc_request_poll(&request));
	(void)sem_post(&fixture->daemon.proceed);
	while (!gpc_request_poll(&request))
		(void)usleep(100);
	assert_int_equal(request.result, CUDA_SUCCESS);
	assert_int_equal(gpc_request_wait(&request), CUDA_SUCCESS);
	end(fixture);
}

static int
print_and_answer(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
		 size_t size)
{
	fake_daemon_note_print(daemon, "hello ");
	fake_daemon_note_print(daemon, "from the kernel\n");
	return fake_daemon_answer(daemon, header, fields, size);
}

UNIT_TEST(output_of_kernels_is_on_stdout_when_the_wait_returns)
{
	struct fixture *fixture = begin(state, print_and_answer);
	char text[64] = "";
	FILE *file = tmpfile();
	int kept;

	(void)fflush(stdout);
	kept = dup(STDOUT_FILENO);
	(void)dup2(fileno(file), STDOUT_FILENO);
	assert_int_equal(fence(), CUDA_SUCCESS);
	(void)dup2(kept, STDOUT_FILENO);
	(void)close(kept);

	rewind(file);
	assert_non_null(fgets(text, sizeof(text), file));
	assert_string_equal(text, "hello from the kernel\n");
	(void)fclose(file);
	end(fixture);
}

static void *
release_later(void *arg)
{
	struct fake_daemon *daemon = arg;

	(void)usleep(100000);
	atomic_store(&daemon->hold, false);
	return NULL;
}

UNIT_TEST(daemon_that_does_not_read_holds_posts_up_and_loses_none)
{
	struct fixture *fixture = begin(state, check_order);
	struct order order = { 0 };
	pthread_t thread;

	fixture->daemon.arg = &order;
	atomic_store(&fixture->daemon.hold, true);
	assert_int_equal(pthread_create(&thread, NULL, release_later, &fixture->daemon), 0);
	for (uint64_t i = 0; i < 60000; i++)
		assert_int_equal(post(i), CUDA_SUCCESS);
	assert_int_equal(fence(), CUDA_SUCCESS);
	(void)pthread_join(thread, NULL);
	assert_int_equal(order.next, 60000);
	assert_false(order.broken);
	end(fixture);
}

/* Before it reads on, sends more than any buffer holds. */
static int
send_much(struct fake_daemon *daemon, const struct gp_header *header, const void *fields,
	  size_t size)
{
	static uint8_t bytes[DATA_SIZE];
	uint32_t *request = daemon->arg;

	if (header->call == GP_CALL_gpCopyOut)
		*request = header->request;
	else if (header->call == GP_CALL_gpCopyIn)
		for (int i = 0; i < 20; i++)
			fake_daemon_note_data(daemon, *request, 0, bytes, sizeof(bytes));
	else
		return fake_daemon_answer(daemon, header, fields, size);
	return 0;
}

UNIT_TEST(both_ends_sending_at_once_is_no_deadlock)
{
	struct fixture *fixture = begin(state, send_much);
	struct gp_args_gpCopyOut args = { .stream = 1, .width = DATA_SIZE, .height = 1 };
	uint8_t *bytes = calloc(1, DATA_SIZE), *source = calloc(1, 4 << 20);
	struct gpc_request request = { .data = take_data, .arg = bytes };
	uint32_t id = 0;

	fixture->daemon.arg = &id;
	assert_int_equal(gpc_start_gpCopyOut(NULL, &args, &request), CUDA_SUCCESS);
	for (int i = 0; i < 8; i++)
		assert_int_equal(copy_in(source, 4 << 20), CUDA_SUCCESS);
	assert_int_equal(fence(), CUDA_SUCCESS);
	end(fixture);
	free(bytes);
	free(source);
}

UNIT_TEST(work_counts_go_up_only)
{
	struct fixture *fixture = begin(state, NULL);

	assert_int_equal(gpc_session_work_mark(fixture->session), 1);
	assert_int_equal(gpc_session_work_mark(fixture->session), 2);
	assert_int_equal(gpc_session_work_posted(fixture->session), 2);
	gpc_session_work_set_done(fixture->session, 2);
	gpc_session_work_set_done(fixture->session, 1);
	assert_int_equal(gpc_session_work_done(fixture->session), 2);
	end(fixture);
}

/* While there is memory whose pages are fetched, fields are gathered without the lock that fetching
 * needs: nothing else changes. */
static int
with_pages(void **state)
{
	atomic_store(&gpc_pages_count, 1);
	return 0;
}

static int
without_pages(void **state)
{
	atomic_store(&gpc_pages_count, 0);
	return 0;
}

int
main(void)
{
	struct CMUnitTest tests[2 * UNIT_TESTS_MAX];

	for (size_t i = 0; i < unit_tests.count; i++) {
		tests[2 * i] = tests[2 * i + 1] = unit_tests.tests[i];
		tests[2 * i + 1].setup_func = with_pages;
		tests[2 * i + 1].teardown_func = without_pages;
	}
	return run_over_both(tests, 2 * unit_tests.count);
}
