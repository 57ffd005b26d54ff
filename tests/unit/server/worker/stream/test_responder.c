/* SPDX-License-Identifier: Apache-2.0 */
/* Markers and the responder, with a GPU that gets there when the test says so. */
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/marker_page.h"
#include "server/worker/session/session.h"
#include "server/worker/session/sessions.h"
#include "server/worker/stream/event.h"
#include "server/worker/stream/responder.h"
#include "server/worker/stream/stream.h"
#include "tests/test.h"
#include "transport/backend.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WRITES 4096

/* Values written by streams, in order. */
static struct {
	volatile uint32_t *where;
	uint32_t value;
} writes[WRITES];
static int write_count;
static CUresult write_result;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char told[256]; /* names of the waits that were called, in order */
static CUresult last_result;

static CUresult
host_alloc(void **memory, size_t size, unsigned int flags)
{
	*memory = calloc(1, size);
	return CUDA_SUCCESS;
}

static CUresult
device_pointer(CUdeviceptr *device, void *host, unsigned int flags)
{
	*device = (CUdeviceptr)host;
	return CUDA_SUCCESS;
}

static CUresult
write_value(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned int flags)
{
	if (write_result != CUDA_SUCCESS)
		return write_result;
	writes[write_count].where = (volatile uint32_t *)address;
	writes[write_count++].value = value;
	return CUDA_SUCCESS;
}

static CUresult
query_stream(CUstream stream)
{
	return CUDA_ERROR_NOT_READY;
}

static CUresult
set_current(CUcontext context)
{
	return CUDA_SUCCESS;
}

static CUresult
destroy_event(CUevent event)
{
	return CUDA_SUCCESS;
}

/* The GPU gets to the write with this number. */
static void
run(int number)
{
	__atomic_store_n(writes[number].where, writes[number].value, __ATOMIC_RELEASE);
}

static void
tell(struct gpd_session *session, void *arg, CUresult result)
{
	pthread_mutex_lock(&lock);
	strncat(told, arg, sizeof(told) - strlen(told) - 1);
	last_result = result;
	pthread_mutex_unlock(&lock);
}

static void
nap(void)
{
	struct timespec time = { .tv_nsec = 1000000 };

	nanosleep(&time, NULL);
}

/* Waits up to two seconds; returns whether exactly these callbacks were called. */
static bool
is_told(const char *names)
{
	bool same = false;

	for (int i = 0; i < 2000 && !same; i++) {
		pthread_mutex_lock(&lock);
		same = strcmp(told, names) == 0;
		pthread_mutex_unlock(&lock);
		if (!same)
			nap();
	}
	return same;
}

struct fixture {
	struct gpd_session session;
	struct gpd_stream_session streams;
	struct gpd_stream a, b;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	gpd_driver.cuMemHostAlloc = host_alloc;
	gpd_driver.cuMemHostGetDevicePointer_v2 = device_pointer;
	gpd_driver.cuStreamWriteValue32_v2 = write_value;
	gpd_driver.cuStreamQuery = query_stream;
	gpd_driver.cuCtxSetCurrent = set_current;
	gpd_driver.cuEventDestroy_v2 = destroy_event;
	gpd_devices.count = 1;
	atomic_store(&gpd_devices.all[0].has_context, true);
	gpd_sessions.cpus = 1;
	write_count = 0;
	write_result = CUDA_SUCCESS;
	told[0] = 0;
	if (!f)
		return -1;
	f->a.next = &f->b;
	f->session.streams = &f->streams;
	f->session.streams->list = &f->a;
	f->a.work = 1;
	f->b.work = 2;
	f->session.progress.work = 2;
	pthread_mutex_init(&f->session.send.lock, NULL);
	*state = f;
	return gpd_wait_start(&f->session);
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	gpd_wait_stop(&f->session);
	free(f);
	return 0;
}

/* Until the responder is through with all. */
static void
await_all(struct fixture *f)
{
	while (!gpd_wait_is_empty(&f->session))
		gpd_wait_any(&f->session);
}

#define WAIT_TEST(test) UNIT_TEST_WITH(test, setup, teardown)

WAIT_TEST(a_wait_is_called_when_the_gpu_gets_there)
{
	struct fixture *f = *state;

	assert_int_equal(gpd_wait_add(&f->session, &f->a, tell, "a"), CUDA_SUCCESS);
	nap();
	assert_true(is_told(""));
	assert_false(gpd_wait_is_empty(&f->session));
	assert_false(gpd_stream_is_idle(&f->a));
	run(0);
	assert_true(is_told("a"));
	assert_int_equal(last_result, CUDA_SUCCESS);
	await_all(f);
	assert_true(gpd_wait_is_empty(&f->session));
	assert_true(gpd_stream_is_idle(&f->a));
	assert_int_equal(f->a.waits, 0);
}

WAIT_TEST(streams_are_waited_for_independently)
{
	struct fixture *f = *state;

	assert_int_equal(gpd_wait_add(&f->session, &f->a, tell, "a"), CUDA_SUCCESS);
	assert_int_equal(gpd_wait_add(&f->session, &f->b, tell, "b"), CUDA_SUCCESS);
	run(1);
	assert_true(is_told("b"));
	run(0);
	assert_true(is_told("ba"));
}

/* The GPU finishes the older wait, and then this one, just when this one is looked at. */
static CUresult
query_event(CUevent event)
{
	run(0);
	return CUDA_SUCCESS;
}

WAIT_TEST(what_the_gpu_did_first_is_told_first)
{
	struct fixture *f = *state;
	struct gpd_event_ref event = { .count = 1 };

	gpd_driver.cuEventQuery = query_event;
	assert_int_equal(gpd_wait_add(&f->session, &f->a, tell, "a"), CUDA_SUCCESS);
	gpd_wait_add_event(&f->session, &event, tell, "e");
	assert_true(is_told("ae"));
}

static int
send_answer(struct gp_conn *conn, const struct iovec *data, int data_count,
	    const struct iovec *bulk, int bulk_count, size_t data_size, size_t bulk_size)
{
	tell(NULL, "c", CUDA_SUCCESS);
	return 0;
}

WAIT_TEST(what_is_done_is_answered_behind_those_that_are_complete_already)
{
	const struct gp_transport_ops ops = { .send = send_answer };
	struct gp_conn conn = { .ops = &ops };
	struct fixture *f = *state;

	f->session.conn = &conn;
	assert_int_equal(gpd_wait_reply_done(&f->session), CUDA_SUCCESS);

	assert_int_equal(gpd_wait_add(&f->session, &f->a, tell, "a"), CUDA_SUCCESS);
	assert_int_equal(gpd_wait_add(&f->session, &f->b, tell, "b"), CUDA_SUCCESS);
	run(1);
	assert_int_equal(gpd_wait_reply_done(&f->session), GPD_LATER);
	assert_true(is_told("bc"));
	run(0);
	assert_true(is_told("bca"));
	f->session.conn = NULL;
}

WAIT_TEST(a_wait_for_all_is_told_when_the_last_stream_is_done)
{
	struct fixture *f = *state;

	assert_int_equal(gpd_wait_add_all(&f->session, NULL, tell, "all"), CUDA_SUCCESS);
	assert_int_equal(write_count, 2);
	run(1);
	nap();
	assert_true(is_told(""));
	run(0);
	assert_true(is_told("all"));
	await_all(f);
	/* No work was added to a stream since. */
	assert_int_equal(gpd_wait_add_all(&f->session, NULL, tell, "!"), CUDA_SUCCESS);
	assert_int_equal(write_count, 2);
	assert_true(is_told("all!"));
}

WAIT_TEST(a_marker_that_the_driver_refuses_is_never_called)
{
	struct fixture *f = *state;

	write_result = CUDA_ERROR_OUT_OF_MEMORY;
	assert_int_equal(gpd_wait_add(&f->session, &f->a, tell, "a"), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpd_wait_add_all(&f->session, NULL, tell, "all"),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(f->a.waits, 0);
	write_result = CUDA_SUCCESS;
	assert_int_equal(gpd_wait_add(&f->session, &f->a, tell, "b"), CUDA_SUCCESS);
	run(0);
	assert_true(is_told("b"));
}

WAIT_TEST(many_waits_go_through_few_places)
{
	struct fixture *f = *state;

	for (int i = 0; i < 3000; i++) {
		f->a.work++;
		assert_int_equal(gpd_wait_add(&f->session, &f->a, tell, i % 500 ? "" : "."),
				 CUDA_SUCCESS);
		run(i);
	}
	assert_true(is_told("......"));
}

WAIT_TEST(a_session_that_ends_tells_those_whose_work_was_dropped)
{
	struct fixture *f = *state;

	assert_int_equal(gpd_wait_add(&f->session, &f->a, tell, "a"), CUDA_SUCCESS);
	gpd_wait_stop(&f->session);
	assert_true(is_told("a"));
	assert_int_equal(last_result, CUDA_ERROR_DEINITIALIZED);
	assert_int_equal(f->a.waits, 0);
}

WAIT_TEST(a_sticky_error_is_told_to_all)
{
	struct fixture *f = *state;

	assert_int_equal(gpd_wait_add(&f->session, &f->a, tell, "a"), CUDA_SUCCESS);
	assert_int_equal(gpd_wait_add_all(&f->session, NULL, tell, "b"), CUDA_SUCCESS);
	atomic_store(&f->session.send.sticky_reported, true);
	atomic_store(&f->session.sticky, CUDA_ERROR_ILLEGAL_ADDRESS);
	gpd_session_wake(&f->session);
	assert_true(is_told("ab"));
	assert_int_equal(last_result, CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_false(gpd_stream_is_idle(&f->a));
}

/* As in a process that has no memory for one more stack. */
UNIT_TEST(without_a_thread_it_says_why_there_is_none)
{
	static struct gpd_session session;
	pthread_attr_t usual, huge;
	int r;

	assert_int_equal(pthread_getattr_default_np(&usual), 0);
	assert_int_equal(pthread_getattr_default_np(&huge), 0);
	assert_int_equal(pthread_attr_setstacksize(&huge, (size_t)1 << 52), 0);
	assert_int_equal(pthread_setattr_default_np(&huge), 0);
	r = gpd_wait_start(&session);
	assert_int_equal(pthread_setattr_default_np(&usual), 0);
	(void)pthread_attr_destroy(&usual);
	(void)pthread_attr_destroy(&huge);
	assert_int_equal(r, -EAGAIN);
	assert_null(session.waits);
}

UNIT_TEST_MAIN(NULL, NULL)
