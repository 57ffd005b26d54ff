/* SPDX-License-Identifier: Apache-2.0 */
/* Queue depth of streams, on a GPU that executes an operation when the test says so. */
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/stream.h"
#include "server/worker/stream/stream_depth.h"
#include "tests/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STREAMS 64
#define MARKS 4096

/* Marks in a stream, with the number of operations before each. */
static struct queue {
	struct gpd_stream stream;
	CUdeviceptr to[MARKS];
	uint32_t value[MARKS];
	_Atomic unsigned int given, done;
} queues[STREAMS];
static struct gpd_stream_session stream_part;
static struct gpd_session session;

static CUresult
host_alloc(void **memory, size_t size, unsigned int flags)
{
	*memory = calloc(1, size);
	return *memory ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
host_free(void *memory)
{
	free(memory);
	return CUDA_SUCCESS;
}

static CUresult
device_pointer(CUdeviceptr *device, void *host, unsigned int flags)
{
	*device = (CUdeviceptr)host;
	return CUDA_SUCCESS;
}

static CUresult
write_value(CUstream stream, CUdeviceptr to, cuuint32_t value, unsigned int flags)
{
	struct queue *queue = (struct queue *)stream;

	queue->to[queue->given % MARKS] = to;
	queue->value[queue->given % MARKS] = value;
	queue->given++;
	return CUDA_SUCCESS;
}

/* The GPU reaches the next mark of the stream. */
static bool
reach(struct queue *queue)
{
	unsigned int mark = queue->done;

	if (mark == queue->given)
		return false;
	__atomic_store_n((uint32_t *)queue->to[mark % MARKS], queue->value[mark % MARKS],
			 __ATOMIC_RELEASE);
	queue->done++;
	return true;
}

static void
open_streams(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		queues[i].stream.driver = (CUstream)&queues[i];
		gpd_depth_open(&session, &queues[i].stream);
		assert_int_not_equal(queues[i].stream.depth.slot, 0);
	}
}

static int
setup(void **state)
{
	gpd_driver = (struct gpd_driver){
		.cuMemHostAlloc = host_alloc,
		.cuMemFreeHost = host_free,
		.cuMemHostGetDevicePointer_v2 = device_pointer,
		.cuStreamWriteValue32_v2 = write_value,
	};
	gpd_devices.connections = 32;
	memset(&session, 0, sizeof(session));
	memset(&stream_part, 0, sizeof(stream_part));
	session.streams = &stream_part;
	memset(queues, 0, sizeof(queues));
	gpd_depth_timeout_ns = UINT64_C(3600000000000);
	return 0;
}

static int
teardown(void **state)
{
	for (unsigned int i = 0; i < STREAMS; i++)
		gpd_depth_close(&session, &queues[i].stream);
	gpd_depth_free(&session);
	return 0;
}

/* One more operation, as gpd_stream_begin() does it, when the stream is not full. */
static void
add(struct gpd_stream *stream)
{
	struct gpd_depth *depth = &stream->depth;

	while (depth->full && !gpd_depth_poll(&session, stream))
		(void)usleep(100);
	if (++depth->given - depth->marked >= depth->stride)
		gpd_depth_mark(&session, stream);
}

static struct adder {
	pthread_t thread;
	unsigned int count;
	_Atomic unsigned int added;
} adder;

static void *
add_many(void *arg)
{
	while (adder.added < adder.count) {
		add(&queues[0].stream);
		adder.added++;
	}
	return NULL;
}

static void
start(unsigned int count)
{
	adder.count = count;
	adder.added = 0;
	assert_int_equal(pthread_create(&adder.thread, NULL, add_many, NULL), 0);
}

/* Until it adds no more. */
static unsigned int
settle(void)
{
	unsigned int before;

	do {
		before = adder.added;
		(void)usleep(50000);
	} while (adder.added != before);
	return before;
}

#define CASE(test) UNIT_TEST_WITH(test, setup, teardown)

CASE(few_operations_cost_no_mark)
{
	open_streams(1);
	for (int i = 0; i < 60; i++)
		add(&queues[0].stream);
	assert_int_equal(queues[0].given, 0);
}

CASE(a_stream_that_is_often_idle_needs_no_mark)
{
	struct gpd_depth *depth = &queues[0].stream.depth;

	open_streams(1);
	for (int step = 0; step < 100; step++) {
		gpd_depth_set_idle(depth);
		for (int i = 0; i < 60; i++)
			add(&queues[0].stream);
	}
	assert_int_equal(queues[0].given, 0);
	/* It has capacity as before its first mark, which the GPU has not reached. */
	for (int i = 0; i < 500; i++)
		add(&queues[0].stream);
	assert_false(depth->full);
	for (int i = 0; i < 500 && !depth->full; i++)
		add(&queues[0].stream);
	assert_true(depth->full);
	assert_in_range(depth->given - depth->idle, 512, 900);
	while (reach(&queues[0]))
		;
	assert_true(gpd_depth_poll(&session, &queues[0].stream));
}

CASE(a_full_stream_waits_for_the_gpu)
{
	unsigned int added;

	open_streams(1);
	start(3000);
	added = settle();
	assert_in_range(added, 512, 900);
	/* It is opened again when a quarter of it is done. */
	for (int i = 0; i < 2; i++)
		assert_true(reach(&queues[0]));
	assert_int_equal(settle(), added);
	for (int i = 0; i < 2; i++)
		assert_true(reach(&queues[0]));
	assert_in_range(settle() - added, 1, 320);
	while (adder.added < 3000) {
		uint32_t done = __atomic_load_n(
			&session.streams->depths.page->host[queues[0].stream.depth.slot - 1],
			__ATOMIC_ACQUIRE);

		assert_true(adder.added - done < 900);
		if (!reach(&queues[0]))
			(void)usleep(100);
	}
	assert_int_equal(pthread_join(adder.thread, NULL), 0);
}

/* The value that it waits for may be in a later record. */
CASE(the_executor_waits_for_a_full_stream_only_briefly)
{
	struct gpd_stream *stream = &queues[0].stream;

	open_streams(2);
	for (int i = 0; i < 900 && !stream->depth.full; i++)
		add(stream);
	assert_true(stream->depth.full);
	assert_true(session.streams->depths.filled);
	assert_false(gpd_depth_poll(&session, stream));
	for (int i = 0; i < 500; i++)
		add(&queues[1].stream);
	assert_false(queues[1].stream.depth.full);
	while (reach(&queues[0]))
		;
	assert_true(gpd_depth_poll(&session, stream));
	assert_false(stream->depth.full);
}

CASE(many_streams_have_less_room_each)
{
	open_streams(STREAMS);
	start(1000);
	assert_in_range(settle(), 128, 256);
	session.closing = true;
	assert_int_equal(pthread_join(adder.thread, NULL), 0);
}

/* The first operation of a stream may wait for a later one of another stream. */
CASE(without_progress_there_is_room_for_what_a_driver_takes)
{
	gpd_depth_timeout_ns = 5000000;
	open_streams(STREAMS);
	start(1000);
	while (adder.added < 700)
		(void)usleep(1000);
	assert_in_range(settle(), 700, 900);
	session.closing = true;
	assert_int_equal(pthread_join(adder.thread, NULL), 0);
}

CASE(after_a_long_wait_marks_are_far_apart_again)
{
	open_streams(1);
	start(900);
	(void)settle();
	while (adder.added < 900) {
		if (!reach(&queues[0]))
			(void)usleep(100);
	}
	assert_int_equal(pthread_join(adder.thread, NULL), 0);
	while (reach(&queues[0]))
		;
	for (int i = 0; i < 64; i++)
		add(&queues[0].stream);
	assert_int_equal(queues[0].stream.depth.stride, 96);
}

CASE(closing_ends_the_wait)
{
	open_streams(1);
	start(2000);
	(void)settle();
	session.closing = true;
	assert_int_equal(pthread_join(adder.thread, NULL), 0);
	assert_int_equal(adder.added, 2000);
}

CASE(numbers_wrap_around)
{
	struct gpd_depth *depth = &queues[0].stream.depth;

	open_streams(1);
	depth->given = depth->marked = UINT32_MAX - 100;
	session.streams->depths.page->host[depth->slot - 1] = depth->given;
	for (int i = 0; i < 500; i++)
		add(&queues[0].stream);
	while (reach(&queues[0]))
		;
	for (int i = 0; i < 500; i++)
		add(&queues[0].stream);
	assert_in_range(queues[0].given, 9, 11);
}

CASE(places_are_used_again_and_what_has_none_is_not_counted)
{
	static struct gpd_stream streams[GPD_MARKER_PAGE_SLOTS + 1];
	struct gpd_stream *last = &streams[GPD_MARKER_PAGE_SLOTS];

	for (int i = 0; i <= GPD_MARKER_PAGE_SLOTS; i++)
		gpd_depth_open(&session, &streams[i]);
	assert_int_equal(last->depth.slot, 0);
	for (int i = 0; i < 2000; i++)
		add(last);
	gpd_depth_close(&session, &streams[7]);
	gpd_depth_open(&session, last);
	assert_int_equal(last->depth.slot, 8);
	streams[7].depth.slot = 0;
	for (int i = 0; i <= GPD_MARKER_PAGE_SLOTS; i++)
		gpd_depth_close(&session, &streams[i]);
}

UNIT_TEST_MAIN(NULL, NULL)
