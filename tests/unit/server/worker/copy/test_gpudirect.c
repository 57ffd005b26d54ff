/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between device memory and a lane that reaches it: the lane is the test's, and so is the
 * moment at which the stream is through with what came before.
 */
#include "gpd_calls.h"
#include "protocol/frame.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/lane_internal.h"
#include "server/worker/copy/staging.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/gpudirect_memory.h"
#include "server/worker/memory/memory.h"
#include "tests/test.h"
#include "tests/unit/server/fake_session.h"
#include "transport/backend.h"

#include <endian.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MIB ((uint64_t)1 << 20)
#define MAPPED (16 * MIB)
/* The transport moves less than this by copying. */
#define SHORT 32768
#define PATIENCE_S 20

#ifdef __SANITIZE_THREAD__
#define WINDOW_4M_7 "552000400007"
#else
#define WINDOW_4M_7 "120000400007"
#endif

static struct fake_session fake;
static uint8_t *const device = (uint8_t *)FAKE_WINDOW;

/* The chunks that the lane is asked to send, and those that it receives. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct {
		struct gp_chunk chunk;
		uint64_t from;
	} sent[64];
	unsigned int sent_count;
	bool holds; /* sends nothing for the time being */
	bool shut;

	struct gp_chunk next; /* chunk to come, if its size is not 0 */
	uint8_t bytes[GP_CHUNK_SIZE];
	uint64_t to[64]; /* where bulk was received */
	unsigned int to_count;
	bool reaches;
	bool slow; /* the executor shall see to each chunk before the next comes */
} wire = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static int
wire_keep(struct gp_conn *conn, void *base, size_t size, int dma_buf)
{
	return wire.reaches ? 0 : GP_E_UNSUPPORTED;
}

static bool
wire_reaches(struct gp_conn *conn, const void *base, size_t size)
{
	return wire.reaches && size >= SHORT;
}

static const void *
wire_device(const struct gp_conn *conn)
{
	return &wire;
}

static int
wire_send(struct gp_conn *conn, const struct iovec *data, int data_count, const struct iovec *bulk,
	  int bulk_count, size_t data_size, size_t bulk_size)
{
	struct gp_chunk chunk;

	assert_int_equal(gp_chunk_decode(&chunk, data->iov_base, data_size, bulk_size), 0);
	pthread_mutex_lock(&wire.lock);
	while (wire.holds && !wire.shut)
		pthread_cond_wait(&wire.changed, &wire.lock);
	wire.sent[wire.sent_count].chunk = chunk;
	wire.sent[wire.sent_count++].from = (uintptr_t)bulk->iov_base;
	pthread_cond_broadcast(&wire.changed);
	pthread_mutex_unlock(&wire.lock);
	return 0;
}

static int
wire_recv(struct gp_conn *conn, struct gp_message *message)
{
	int r = GP_E_EOF;

	pthread_mutex_lock(&wire.lock);
	while (wire.next.size == 0 && !wire.shut)
		pthread_cond_wait(&wire.changed, &wire.lock);
	if (!wire.shut) {
		gp_chunk_encode(&wire.next, wire.bytes);
		*message = (struct gp_message){ .data = wire.bytes,
						.size = sizeof(wire.bytes),
						.bulk_size = wire.next.size };
		r = 0;
	}
	pthread_mutex_unlock(&wire.lock);
	return r;
}

static int
wire_recv_bulk(struct gp_conn *conn, void *dst, size_t size)
{
	pthread_mutex_lock(&wire.lock);
	memset(dst, 0x42, size);
	wire.to[wire.to_count++] = (uintptr_t)dst;
	wire.next.offset += size;
	wire.next.size = 0;
	pthread_cond_broadcast(&wire.changed);
	pthread_mutex_unlock(&wire.lock);
	return 0;
}

static void
wire_shutdown(struct gp_conn *conn)
{
	pthread_mutex_lock(&wire.lock);
	wire.shut = true;
	pthread_cond_broadcast(&wire.changed);
	pthread_mutex_unlock(&wire.lock);
}

static void
wire_destroy(struct gp_conn *conn)
{
}

static const struct gp_transport_ops wire_ops = {
	.send = wire_send,
	.recv = wire_recv,
	.recv_bulk = wire_recv_bulk,
	.shutdown = wire_shutdown,
	.destroy = wire_destroy,
	.register_range = wire_keep,
	.has_registered = wire_reaches,
	.device = wire_device,
};
static struct gp_conn first_conn, lane_conn;

static CUresult
attribute(int *value, CUdevice_attribute which, CUdevice number)
{
	*value = which == CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED ||
		 which == CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED;
	if (which == CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING)
		*value = CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES;
	return CUDA_SUCCESS;
}

static CUresult stream_state;

static CUresult
stream_query(CUstream stream)
{
	return stream_state;
}

static int
setup(void **state)
{
	fake_session_create(&fake);
	gpd_driver.cuDeviceGetAttribute = attribute;
	gpd_driver.cuStreamQuery = stream_query;
	stream_state = CUDA_SUCCESS;
	wire.sent_count = wire.to_count = 0;
	wire.holds = wire.shut = wire.slow = false;
	wire.reaches = true;
	wire.next = (struct gp_chunk){ 0 };
	first_conn.ops = lane_conn.ops = &wire_ops;
	fake.session.conn = &first_conn;
	gpd_gpudirect_memory_start(true);
	assert_int_equal(gpd_memory_create(&fake.session), 0);
	assert_int_equal(gpd_staging_create(&fake.session), 0);
	assert_int_equal(gpd_memory_map(&fake.session, FAKE_WINDOW, MAPPED, 0), CUDA_SUCCESS);
	assert_int_equal(gpd_lanes_create(&fake.session), 0);
	assert_null(gpd_lanes_add(&fake.session, 1, &lane_conn));
	fake_driver_clear_calls();
	fake.session.current.request = 9;
	fake.session.current.call = 0x302;
	return 0;
}

static int
teardown(void **state)
{
	fake.session.closing = true;
	gpd_lanes_stop(&fake.session);
	fake_session_run_markers(&fake, -1);
	gpd_lanes_destroy(&fake.session);
	gpd_copy_destroy_all(&fake.session);
	gpd_memory_unmap_all(&fake.session);
	gpd_memory_destroy(&fake.session);
	gpd_staging_destroy(&fake.session);
	fake.session.conn = NULL;
	fake_session_destroy(&fake);
	return fake_driver_chunks;
}

static CUresult
copy_out(uint64_t offset, uint64_t size, uint32_t stream, uint32_t copy)
{
	const struct gp_args_gpCopyOutLanes args = {
		.stream = stream, .src = FAKE_WINDOW + offset, .size = size, .copy = copy
	};
	struct gp_reply_gpCopyOutLanes reply;

	return gpd_gpCopyOutLanes(&fake.session, &args, &reply);
}

static void
wait_sent(unsigned int count)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_S;
	pthread_mutex_lock(&wire.lock);
	while (wire.sent_count < count)
		assert_int_equal(pthread_cond_timedwait(&wire.changed, &wire.lock, &until), 0);
	pthread_mutex_unlock(&wire.lock);
}

/* Takes what is done off the list; the lane's thread tells of it behind the last chunk. */
static void
wait_answered(void)
{
	for (unsigned int ms = 0; gpd_copy_continue(&fake.session); ms++) {
		assert_true(ms < PATIENCE_S * 1000);
		(void)nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
}

static void
assert_sent_from(uint64_t address, uint64_t size)
{
	uint64_t seen = 0;

	for (unsigned int i = 0; i < wire.sent_count; i++) {
		assert_int_equal(wire.sent[i].from, address + wire.sent[i].chunk.offset);
		seen += wire.sent[i].chunk.size;
	}
	assert_int_equal(seen, size);
}

#define CASE(test) UNIT_TEST_WITH(test, setup, teardown)

CASE(a_copy_out_goes_straight_when_its_stream_is_done)
{
	assert_int_equal(copy_out(3, 4 * MIB + 50000, FAKE_STREAM, 1), GPD_LATER);
	assert_true(gpd_copy_continue(&fake.session));
	assert_int_equal(fake_session_markers(&fake), 1);
	assert_int_equal(wire.sent_count, 0);

	fake_session_run_markers(&fake, -1);
	wait_sent(5);
	wait_answered();
	assert_int_equal(wire.sent_count, 5);
	assert_sent_from(FAKE_WINDOW + 3, 4 * MIB + 50000);
	assert_int_equal(fake_driver_count_calls("cuMemcpyDtoH"), 0);
	assert_int_equal(fake.reply_count, 1);
	assert_int_equal(fake.replies[0].result, CUDA_SUCCESS);
	assert_int_equal(fake.session.copies->gpudirect_out, 4 * MIB + 50000);
}

CASE(work_behind_it_sends_it_through_the_stream)
{
	assert_int_equal(copy_out(0, 4 * MIB, FAKE_STREAM, 1), GPD_LATER);
	/* Another stream has nothing to do with it. */
	gpd_copy_await(&fake.session, &fake.other);
	assert_int_equal(fake_driver_count_calls("cuMemcpyDtoH"), 0);

	gpd_copy_await(&fake.session, &fake.stream);
	assert_null(fake.session.copies->out);
	assert_int_equal(fake_driver_count_calls("cuMemcpyDtoH"), 4);
	fake_session_run_markers(&fake, -1);
	wait_sent(4);
	assert_int_equal(fake.reply_count, 1);
	assert_int_equal(fake.session.copies->gpudirect_out, 0);
	for (unsigned int i = 0; i < 4; i++)
		assert_false(wire.sent[i].from >= FAKE_WINDOW &&
			     wire.sent[i].from < FAKE_WINDOW + FAKE_WINDOW_SIZE);
}

static _Atomic bool settled;

static void *
settle(void *arg)
{
	gpd_copy_await(&fake.session, NULL);
	settled = true;
	return NULL;
}

CASE(work_behind_it_waits_while_it_is_sent)
{
	pthread_t thread;

	settled = false;
	wire.holds = true;
	assert_int_equal(copy_out(0, 4 * MIB, FAKE_STREAM, 1), GPD_LATER);
	fake_session_run_markers(&fake, -1);
	assert_int_equal(pthread_create(&thread, NULL, settle, NULL), 0);
	(void)nanosleep(&(struct timespec){ .tv_nsec = 30000000 }, NULL);
	assert_false(settled);

	pthread_mutex_lock(&wire.lock);
	wire.holds = false;
	pthread_cond_broadcast(&wire.changed);
	pthread_mutex_unlock(&wire.lock);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(wire.sent_count, 4);
	assert_sent_from(FAKE_WINDOW, 4 * MIB);
	wait_answered();
	assert_int_equal(fake.reply_count, 1);
}

CASE(a_short_last_chunk_goes_through_the_stream)
{
	assert_int_equal(copy_out(7, 4 * MIB + SHORT - 1, FAKE_STREAM, 1), GPD_LATER);
	assert_int_equal(fake_driver_count_calls("cuMemcpyDtoHAsync " WINDOW_4M_7 " 32767"), 1);
	fake_session_run_markers(&fake, -1);
	wait_sent(5);
	wait_answered();
	assert_int_equal(fake.session.copies->gpudirect_out, 4 * MIB);
	assert_int_equal(fake_driver_count_calls("cuMemcpyDtoH"), 1);
	assert_int_equal(fake.reply_count, 1);
}

/* And only once if the rest does, too. */
CASE(a_short_last_chunk_is_not_sent_twice)
{
	assert_int_equal(copy_out(7, 4 * MIB + 100, FAKE_STREAM, 1), GPD_LATER);
	gpd_copy_await(&fake.session, NULL);
	fake_session_run_markers(&fake, -1);
	wait_sent(5);
	assert_int_equal(fake_driver_count_calls("cuMemcpyDtoH"), 5);
	assert_int_equal(wire.sent_count, 5);
	assert_int_equal(fake.reply_count, 1);
	assert_int_equal(fake.session.copies->gpudirect_out, 0);
}

CASE(copies_of_two_streams_do_not_wait_for_one_another)
{
	assert_int_equal(copy_out(0, 4 * MIB, FAKE_STREAM, 1), GPD_LATER);
	assert_int_equal(copy_out(8 * MIB, 4 * MIB, FAKE_OTHER_STREAM, 2), GPD_LATER);
	assert_int_equal(fake_session_markers(&fake), 2);
	/* The second copy of the first stream comes after its first one. */
	assert_int_equal(copy_out(4 * MIB, 4 * MIB, FAKE_STREAM, 3), GPD_LATER);
	assert_true(gpd_copy_continue(&fake.session));
	assert_int_equal(fake_driver_count_calls("cuMemcpyDtoH"), 0);
	fake_session_run_markers(&fake, -1);
	wait_sent(8);
	wait_answered();
	fake_session_run_markers(&fake, -1);
	wait_sent(12);
	assert_int_equal(fake.reply_count, 3);
	assert_int_equal(fake.session.copies->gpudirect_out, 8 * MIB);
}

/* Delivers the chunks of a copy, one after another. */
static void *
bring(void *arg)
{
	uint64_t size = *(uint64_t *)arg;

	pthread_mutex_lock(&wire.lock);
	wire.next = (struct gp_chunk){ .copy = 1 };
	while (wire.next.offset < size) {
		wire.next.size = gp_chunk_get_expected_size(size, GP_CHUNK_MAX, wire.next.offset);
		pthread_cond_broadcast(&wire.changed);
		while (wire.next.size)
			pthread_cond_wait(&wire.changed, &wire.lock);
		if (wire.slow)
			(void)nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	}
	pthread_mutex_unlock(&wire.lock);
	return NULL;
}

static void
copy_in(uint64_t offset, uint64_t size)
{
	const struct gp_args_gpCopyInLanes args = {
		.stream = FAKE_STREAM, .dst = FAKE_WINDOW + offset, .size = size, .copy = 1
	};
	pthread_t thread;

	/* A lane that is ahead of the record would go through staging. */
	pthread_mutex_lock(&fake.session.copies->lanes->lock);
	fake.session.copies->lanes->gpudirect = 1;
	pthread_mutex_unlock(&fake.session.copies->lanes->lock);
	assert_int_equal(pthread_create(&thread, NULL, bring, &size), 0);
	assert_int_equal(gpd_gpCopyInLanes(&fake.session, &args), CUDA_SUCCESS);
	assert_int_equal(pthread_join(thread, NULL), 0);
	for (uint64_t i = 0; i < size; i++)
		assert_int_equal(device[offset + i], 0x42);
	assert_int_equal(device[offset + size], 0);
}

CASE(a_copy_in_goes_straight_if_its_stream_is_idle)
{
	copy_in(5, 5 * MIB + 100);
	/* But for its short end. */
	assert_int_equal(fake.session.copies->gpudirect_in, 5 * MIB);
	assert_int_equal(fake_driver_count_calls("cuMemcpyHtoD"), 1);
	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(wire.to[i], FAKE_WINDOW + 5 + i * MIB);
}

CASE(a_copy_in_behind_work_goes_through_the_stream)
{
	stream_state = CUDA_ERROR_NOT_READY;
	fake_driver_events_pending = true;
	copy_in(0, 4 * MIB);
	fake_driver_events_pending = false;
	assert_int_equal(fake.session.copies->gpudirect_in, 0);
	assert_int_equal(fake_driver_count_calls("cuMemcpyHtoD"), 4);
}

CASE(the_rest_goes_straight_when_the_work_before_is_done)
{
	stream_state = CUDA_ERROR_NOT_READY;
	wire.slow = true;
	copy_in(0, 6 * MIB);
	assert_true(fake.session.copies->gpudirect_in > 0);
	assert_int_equal(fake.session.copies->gpudirect_in +
				 fake_driver_count_calls("cuMemcpyHtoD") * MIB,
			 6 * MIB);
	assert_true(fake_driver_count_calls("cuMemcpyHtoD") > 0);
}

CASE(memory_that_lanes_do_not_reach_is_staged)
{
	wire.reaches = false;
	copy_in(0, 4 * MIB);
	assert_int_equal(copy_out(0, 4 * MIB, FAKE_STREAM, 1), GPD_LATER);
	assert_int_equal(fake_driver_count_calls("cuMemcpyHtoD"), 4);
	assert_int_equal(fake_driver_count_calls("cuMemcpyDtoH"), 4);
	assert_int_equal(fake.session.copies->gpudirect_in + fake.session.copies->gpudirect_out, 0);
}

UNIT_TEST_MAIN(NULL, NULL)
