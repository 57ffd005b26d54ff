/* SPDX-License-Identifier: Apache-2.0 */
/* The order between the streams of a session, as the driver's calls express it. */
#include "server/worker/context/context.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/stream.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEGACY 1u
#define A 2u
#define B 3u
#define FREE 4u

static char said[4096];
static uintptr_t streams_made, events_made;

static void
say(const char *text, uintptr_t first, uintptr_t second)
{
	size_t used = strlen(said);

	snprintf(said + used, sizeof(said) - used, text, (unsigned int)first, (unsigned int)second);
}

static CUresult
create_stream(CUstream *stream, unsigned int flags, int priority)
{
	assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
	*stream = (CUstream)++streams_made;
	return CUDA_SUCCESS;
}

static CUresult
destroy_stream(CUstream stream)
{
	say("destroy s%u. ", (uintptr_t)stream, 0);
	return CUDA_SUCCESS;
}

static CUresult
create_event(CUevent *event, unsigned int flags)
{
	*event = (CUevent)++events_made;
	return CUDA_SUCCESS;
}

static CUresult
destroy_event(CUevent event)
{
	return CUDA_SUCCESS;
}

static CUresult
record(CUevent event, CUstream stream)
{
	say("e%u on s%u. ", (uintptr_t)event, (uintptr_t)stream);
	return CUDA_SUCCESS;
}

static CUresult
wait_event(CUstream stream, CUevent event, unsigned int flags)
{
	say("s%u after e%u. ", (uintptr_t)stream, (uintptr_t)event);
	return CUDA_SUCCESS;
}

static CUresult
query_stream(CUstream stream)
{
	return CUDA_SUCCESS;
}

/* How deep queues are is counted elsewhere. */
static CUresult
no_memory(void **memory, size_t size, unsigned int flags)
{
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
set_current(CUcontext context)
{
	return CUDA_SUCCESS;
}

struct fixture {
	struct gpd_session session;
	struct gpd_stream_session streams;
	struct gpd_ledger_session entry;
	struct gpd_context context;
};

static int
setup(void **state)
{
	/* The entry's parts are aligned to pages. */
	struct fixture *f = aligned_alloc(_Alignof(struct fixture), sizeof(*f));

	if (f)
		memset(f, 0, sizeof(*f));
	gpd_driver.cuStreamCreateWithPriority = create_stream;
	gpd_driver.cuStreamDestroy_v2 = destroy_stream;
	gpd_driver.cuStreamQuery = query_stream;
	gpd_driver.cuEventCreate = create_event;
	gpd_driver.cuEventDestroy_v2 = destroy_event;
	gpd_driver.cuEventRecord = record;
	gpd_driver.cuStreamWaitEvent = wait_event;
	gpd_driver.cuCtxSetCurrent = set_current;
	gpd_driver.cuMemHostAlloc = no_memory;
	gpd_devices.count = 1;
	atomic_store(&gpd_devices.all[0].has_context, true);
	streams_made = events_made = 0;
	if (f)
		f->session.account.entry = &f->entry;
	if (f)
		f->session.streams = &f->streams;
	if (!f || gpd_handle_add(&f->session.handles, GPD_KIND_CONTEXT, 1, &f->context.handle))
		return -1;
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	gpd_stream_destroy_all(&f->session);
	gpd_handle_fini(&f->session.handles);
	free(f);
	return 0;
}

static void
make(struct fixture *f, uint32_t id, unsigned int flags)
{
	assert_int_equal(gpd_stream_create(&f->session, &f->context, id, flags, 0, id == LEGACY),
			 CUDA_SUCCESS);
}

/* s1 legacy, s2 and s3 blocking, s4 not. */
static void
make_all(struct fixture *f)
{
	make(f, LEGACY, 0);
	make(f, A, 0);
	make(f, B, 0);
	make(f, FREE, CU_STREAM_NON_BLOCKING);
}

static struct gpd_stream *
work(struct fixture *f, uint32_t id)
{
	struct gpd_stream *stream = NULL;

	assert_int_equal(gpd_stream_begin(&f->session, id, &stream), CUDA_SUCCESS);
	return stream;
}

/* The driver's calls for one operation. */
#define assert_says(f, id, text)                                                                   \
	do {                                                                                       \
		said[0] = 0;                                                                       \
		work(f, id);                                                                       \
		assert_string_equal(said, text);                                                   \
	} while (0)

#define STREAM_TEST(test) UNIT_TEST_WITH(test, setup, teardown)

STREAM_TEST(one_stream_alone_costs_nothing)
{
	struct fixture *f = *state;

	make(f, LEGACY, 0);
	assert_says(f, LEGACY, "");
	assert_says(f, LEGACY, "");
	said[0] = 0;
	assert_int_equal(gpd_stream_barrier(&f->session, work(f, LEGACY)), CUDA_SUCCESS);
	assert_string_equal(said, "");
	assert_says(f, LEGACY, "");
}

STREAM_TEST(legacy_work_waits_for_every_blocking_stream_once)
{
	struct fixture *f = *state;

	make_all(f);
	work(f, A);
	work(f, B);
	work(f, FREE);
	assert_says(f, LEGACY, "e1 on s3. s1 after e1. e2 on s2. s1 after e2. ");
	assert_says(f, LEGACY, "");
}

STREAM_TEST(a_blocking_stream_waits_for_legacy_work_it_has_not_seen)
{
	struct fixture *f = *state;

	make_all(f);
	work(f, LEGACY);
	assert_says(f, A, "e1 on s1. s2 after e1. ");
	assert_says(f, A, "");
	/* The same point of the legacy stream is not recorded again for the next one. */
	assert_says(f, B, "s3 after e1. ");
	assert_says(f, FREE, "");
}

STREAM_TEST(an_order_goes_through_the_legacy_stream)
{
	struct fixture *f = *state;

	make_all(f);
	work(f, A);
	assert_says(f, LEGACY, "e1 on s2. s1 after e1. ");
	assert_says(f, B, "e2 on s1. s3 after e2. ");
	assert_says(f, LEGACY, "e3 on s3. s1 after e3. ");
}

STREAM_TEST(finished_work_is_not_waited_for)
{
	struct fixture *f = *state;
	struct gpd_stream *a;

	make_all(f);
	a = work(f, A);
	atomic_store(&a->done, a->work);
	assert_true(gpd_stream_is_idle(a));
	assert_says(f, LEGACY, "");
}

STREAM_TEST(a_barrier_holds_back_every_other_stream_once)
{
	struct fixture *f = *state;

	make_all(f);
	said[0] = 0;
	assert_int_equal(gpd_stream_barrier(&f->session, work(f, FREE)), CUDA_SUCCESS);
	assert_string_equal(said, "e1 on s4. ");
	work(f, FREE);
	assert_says(f, A, "s2 after e1. ");
	assert_says(f, A, "");
	assert_says(f, FREE, "");
}

STREAM_TEST(a_stream_made_after_a_barrier_waits_for_it)
{
	struct fixture *f = *state;

	make(f, LEGACY, 0);
	assert_int_equal(gpd_stream_barrier(&f->session, work(f, LEGACY)), CUDA_SUCCESS);
	said[0] = 0;
	make(f, FREE, CU_STREAM_NON_BLOCKING);
	assert_string_equal(said, "e1 on s1. ");
	assert_says(f, FREE, "s2 after e1. ");
}

STREAM_TEST(a_destroyed_stream_goes_when_its_work_is_done)
{
	struct fixture *f = *state;
	struct gpd_stream *a;

	make_all(f);
	a = work(f, A);
	atomic_store(&a->done, a->work);
	atomic_store(&a->waits, 1);
	said[0] = 0;
	gpd_stream_drop(&f->session, a);
	assert_null(gpd_stream_get(&f->session, A));
	assert_string_equal(said, "");
	atomic_store(&a->waits, 0);
	make(f, A, 0);
	assert_string_equal(said, "destroy s2. ");
}

STREAM_TEST(a_destroyed_idle_stream_goes_at_once)
{
	struct fixture *f = *state;

	make_all(f);
	said[0] = 0;
	gpd_stream_drop(&f->session, gpd_stream_get(&f->session, B));
	assert_string_equal(said, "destroy s3. ");
}

STREAM_TEST(a_name_in_use_or_a_strange_flag_makes_no_stream)
{
	struct fixture *f = *state;

	make(f, LEGACY, 0);
	assert_int_equal(gpd_stream_create(&f->session, &f->context, LEGACY, 0, 0, false),
			 CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(gpd_stream_create(&f->session, &f->context, A, 2, 0, false),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(f->session.streams->count, 1);
}

UNIT_TEST_MAIN(NULL, NULL)
