/* SPDX-License-Identifier: Apache-2.0 */
#include "client/host/pending_copy.h"
#include "tests/unit/client/fake_wire.h"

#include <stdlib.h>

#define BASE ((uintptr_t)0x100000)
#define SIZE 1000

struct copy {
	struct gpc_pending_copy pending;
	struct gpc_request request;
};

static int done, done_waited;

static void
copy_done(struct gpc_request *request)
{
	done++;
	/* It may be freed here. */
	done_waited += gpc_pending_copy_done(request->arg, request->result);
}

/* A copy to the memory number `at`, which is completed when the client waits. lanes: the number of
 * its stream if it uses data lanes, otherwise 0. */
static struct copy *
add_over(int at, uint64_t lanes)
{
	struct copy *copy = calloc(1, sizeof(*copy));

	assert_non_null(copy);
	copy->pending.lanes = lanes;
	copy->request.done = copy_done;
	copy->request.arg = &copy->pending;
	copy->pending.request = &copy->request;
	copy->pending.start = BASE + (uintptr_t)at * SIZE;
	copy->pending.end = copy->pending.start + SIZE;
	gpc_pending_copy_add(&copy->pending);
	return copy;
}

static struct copy *
add(int at)
{
	return add_over(at, 0);
}

static void
start(struct copy *copy, CUresult result)
{
	fake_wire_start(&copy->request, NULL, 0, result);
	gpc_pending_copy_started(&copy->pending, true);
}

static CUresult
settle(int at, size_t offset, size_t size)
{
	return gpc_pending_copy_settle((const void *)(BASE + (uintptr_t)at * SIZE + offset), size);
}

static int
begin(void **state)
{
	done = done_waited = 0;
	if (fake_wire_setup(state) != 0)
		return -1;
	fake.lazy = true;
	return 0;
}
#define TEST(test) UNIT_TEST_WITH(test, begin, fake_wire_teardown)

TEST(memory_that_a_copy_writes_to_is_waited_for)
{
	start(add(1), CUDA_SUCCESS);
	assert_int_equal(settle(0, 0, SIZE), CUDA_SUCCESS);
	assert_int_equal(settle(2, 0, SIZE), CUDA_SUCCESS);
	assert_int_equal(done, 0);
	assert_int_equal(settle(0, SIZE - 1, 2), CUDA_SUCCESS);
	assert_int_equal(done, 1);
	assert_int_equal(done_waited, 1);
	assert_int_equal(settle(1, 0, SIZE), CUDA_SUCCESS);
}

TEST(an_error_is_told_to_who_waits)
{
	start(add(1), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(settle(1, 0, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(done_waited, 1);
}

TEST(nobody_waits_for_what_has_been_answered)
{
	struct copy *copy = add(1);

	fake_wire_start(&copy->request, NULL, 0, CUDA_SUCCESS);
	/* The answer overtakes who starts it. */
	fake_wire_deliver();
	assert_int_equal(done, 1);
	assert_int_equal(done_waited, 0);
	gpc_pending_copy_started(&copy->pending, true);
	assert_int_equal(settle(1, 0, SIZE), CUDA_SUCCESS);
}

TEST(last_work_of_a_stream_is_waited_for)
{
	struct copy *copies[2] = { add(1), add(2) };
	CUresult result = CUDA_ERROR_UNKNOWN;

	for (int i = 0; i < 2; i++) {
		copies[i]->pending.stream = 7;
		copies[i]->request.session = gpc_session_get();
		copies[i]->request.issued = 10 + (uint64_t)i;
		start(copies[i], CUDA_SUCCESS);
	}
	assert_false(gpc_pending_copy_await(gpc_session_get(), 8, 11, &result));
	assert_false(gpc_pending_copy_await(gpc_session_get(), 7, 12, &result));
	assert_int_equal(done, 0);
	assert_true(gpc_pending_copy_await(gpc_session_get(), 7, 11, &result));
	assert_int_equal(result, CUDA_SUCCESS);
	assert_int_equal(done, 2);
	assert_int_equal(done_waited, 1);
	/* Of what is done the last one is known. */
	assert_true(gpc_pending_copy_await(gpc_session_get(), 7, 11, &result));
	assert_int_equal(result, CUDA_SUCCESS);
	assert_false(gpc_pending_copy_await(gpc_session_get(), 8, 11, &result));
	assert_false(gpc_pending_copy_await(gpc_session_get(), 7, 10, &result));
}

TEST(a_copy_that_could_not_be_started_is_in_nobodys_way)
{
	gpc_pending_copy_started(&add(1)->pending, false);
	assert_int_equal(settle(1, 0, SIZE), CUDA_SUCCESS);
	assert_int_equal(done, 0);
}

static enum gpc_pending_overlap
overlap(int at, size_t offset, uint64_t stream)
{
	return gpc_pending_copy_overlap((const void *)(BASE + (uintptr_t)at * SIZE + offset), SIZE,
					stream);
}

TEST(copies_to_the_same_memory_are_found_by_stream_and_lane)
{
	struct copy *unstarted = add_over(1, 5);

	assert_int_equal(overlap(1, 0, 7), GPC_OVERLAP_NONE);
	gpc_pending_copy_started(&unstarted->pending, false);
	assert_false(gpc_pending_copy_over_lanes());
	start(add_over(1, 7), CUDA_SUCCESS);
	assert_true(gpc_pending_copy_over_lanes());
	assert_int_equal(overlap(2, 0, 7), GPC_OVERLAP_NONE);
	assert_int_equal(overlap(1, SIZE - 1, 7), GPC_OVERLAP_STREAM);
	assert_int_equal(overlap(0, 1, 8), GPC_OVERLAP_OTHER);
	start(add(2), CUDA_SUCCESS);
	assert_int_equal(overlap(1, 0, 7), GPC_OVERLAP_STREAM);
	assert_int_equal(overlap(1, 1, 7), GPC_OVERLAP_LANE_0);
	assert_int_equal(overlap(1, 1, 8), GPC_OVERLAP_OTHER);
	fake_wire_deliver();
	assert_int_equal(overlap(1, 1, 8), GPC_OVERLAP_NONE);
	assert_false(gpc_pending_copy_over_lanes());
}

UNIT_TEST_MAIN(NULL, NULL)
