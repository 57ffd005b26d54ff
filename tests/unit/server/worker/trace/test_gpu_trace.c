/* SPDX-License-Identifier: Apache-2.0 */
/* The trace of a session's work, on a GPU that is a clock. */
#include "base/clock.h"
#include "gpd_calls.h"
#include "protocol/trace_event.h"
#include "server/common/ledger/ledger.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/stream.h"
#include "server/worker/trace/gpu_trace.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define A 2u
#define B 3u
#define LAUNCH 0x601
#define FILL 0x304
#define MS 1000000ull
#define MANY 10000

/* An event is done when the GPU's clock has come to its time. */
struct event {
	uint64_t at;
};

static uint64_t gpu_ahead; /* of ours */
static uint64_t work_ns;   /* duration of a kernel */
static uint64_t free_ns[8];
static unsigned int events_alive, records;
static bool idle_gpu;

static uint64_t
gpu_now(void)
{
	return gp_now_ns() + gpu_ahead;
}

static CUresult
create_stream(CUstream *stream, unsigned int flags, int priority)
{
	*stream = (CUstream)(uintptr_t)7;
	return CUDA_SUCCESS;
}

static CUresult
destroy_stream(CUstream stream)
{
	return CUDA_SUCCESS;
}

static CUresult
create_event(CUevent *event, unsigned int flags)
{
	assert_int_equal(flags, CU_EVENT_DEFAULT);
	*event = calloc(1, sizeof(struct event));
	events_alive++;
	return CUDA_SUCCESS;
}

static CUresult
destroy_event(CUevent event)
{
	free(event);
	events_alive--;
	return CUDA_SUCCESS;
}

/* Behind a piece of work; 7 has none. */
static CUresult
record(CUevent event, CUstream stream)
{
	uint64_t *end = &free_ns[(uintptr_t)stream], now = gpu_now();

	if (*end < now)
		*end = now;
	if ((uintptr_t)stream != 7)
		*end += work_ns;
	((struct event *)event)->at = *end;
	records++;
	return CUDA_SUCCESS;
}

static CUresult
query(CUevent event)
{
	return !idle_gpu && ((struct event *)event)->at > gpu_now() ? CUDA_ERROR_NOT_READY
								    : CUDA_SUCCESS;
}

static CUresult
elapsed(float *ms, CUevent from, CUevent to)
{
	*ms = (float)((double)(int64_t)(((struct event *)to)->at - ((struct event *)from)->at) /
		      (double)MS);
	return query(to);
}

static CUresult
set_current(CUcontext context)
{
	return CUDA_SUCCESS;
}

struct fixture {
	struct gpd_session session;
	struct gpd_ledger *ledger;
	struct gpd_stream a, b;
	struct gp_reply_gpTraceTake reply;
	struct gp_trace_event events[GP_TRACE_EVENTS_MAX];
	unsigned int count;
};

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	int fd;

	gpd_driver.cuStreamCreateWithPriority = create_stream;
	gpd_driver.cuStreamDestroy_v2 = destroy_stream;
	gpd_driver.cuEventCreate = create_event;
	gpd_driver.cuEventDestroy_v2 = destroy_event;
	gpd_driver.cuEventRecord = record;
	gpd_driver.cuEventQuery = query;
	gpd_driver.cuEventElapsedTime_v2 = elapsed;
	gpd_driver.cuCtxSetCurrent = set_current;
	gpd_devices.count = 1;
	atomic_store(&gpd_devices.all[0].has_context, true);
	gpu_ahead = 0;
	work_ns = 0;
	idle_gpu = false;
	memset(free_ns, 0, sizeof(free_ns));
	if (!f || gpd_handle_add(&f->session.handles, GPD_KIND_STREAM, A, &f->a.handle) ||
	    gpd_handle_add(&f->session.handles, GPD_KIND_STREAM, B, &f->b.handle))
		return -1;
	f->ledger = gpd_ledger_create(&fd);
	if (!f->ledger)
		return -1;
	close(fd);
	f->session.account.ledger = f->ledger;
	f->session.account.entry = &f->ledger->sessions[0];
	f->a.driver = (CUstream)(uintptr_t)1;
	f->b.driver = (CUstream)(uintptr_t)2;
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	free((void *)f->reply.events.data);
	gpd_trace_destroy(&f->session);
	assert_int_equal(events_alive, 0);
	assert_int_equal(f->ledger->sessions[0].host, 0);
	gpd_ledger_destroy(f->ledger);
	gpd_handle_remove(&f->session.handles, &f->a.handle);
	gpd_handle_remove(&f->session.handles, &f->b.handle);
	gpd_handle_fini(&f->session.handles);
	free(f);
	return 0;
}

static void
take(struct fixture *f)
{
	const struct gp_args_gpTraceTake args = { 0 };
	struct gp_dec dec;

	free((void *)f->reply.events.data);
	memset(&f->reply, 0, sizeof(f->reply));
	assert_int_equal(gpd_gpTraceTake(&f->session, &args, &f->reply), CUDA_SUCCESS);
	gp_dec_init(&dec, f->reply.events.data, f->reply.events.size);
	f->count = 0;
	while (gp_trace_event_decode(&dec, &f->events[f->count]))
		f->count++;
	assert_true(gp_dec_done(&dec));
}

static void
work(struct fixture *f, uint32_t stream, uint16_t call, uint64_t kernel, const char *name)
{
	f->session.progress.kernel = name;
	gpd_trace_record(&f->session,
			 &(struct gpd_trace_operation){ .begun_ns = gpd_trace_begin(&f->session),
							.kernel = kernel,
							.stream = stream,
							.call = call });
}

#define CASE(test) UNIT_TEST_WITH(test, setup, teardown)

CASE(nothing_is_measured_before_it_is_asked_for)
{
	struct fixture *f = *state;

	records = 0;
	work(f, A, LAUNCH, 1, "kernel");
	assert_int_equal(records, 0);
	take(f);
	assert_int_equal(f->count, 0);
	assert_true(f->reply.now > 0);
}

CASE(work_lies_between_being_given_and_its_end)
{
	struct fixture *f = *state;
	uint64_t before;

	gpu_ahead = 123456789;
	take(f);
	before = gp_now_ns();
	work_ns = 5 * MS;
	work(f, A, LAUNCH, 1, "kernel");
	work(f, A, FILL, 0, NULL);
	work(f, B, FILL, 0, NULL);
	take(f);
	gp_clock_advance(20 * MS);
	take(f);
	assert_int_equal(f->count, 3);
	assert_int_equal(f->events[0].call, LAUNCH);
	assert_int_equal(f->events[0].name.size, 6);
	assert_true(f->events[0].begin_ns >= before);
	/* The clocks were compared within some microseconds. */
	assert_in_range(f->events[0].end_ns, before + 4 * MS, gp_now_ns());
	/* The next of the stream begins where the one before ends; another stream's does not. */
	assert_int_equal(f->events[1].begin_ns, f->events[0].end_ns);
	assert_true(f->events[1].end_ns > f->events[1].begin_ns);
	assert_int_equal(f->events[2].stream, B);
	assert_true(f->events[2].begin_ns < f->events[0].end_ns);
	assert_int_equal(f->reply.missed, 0);
	take(f);
	assert_int_equal(f->count, 0);
}

CASE(what_is_not_done_is_told_later)
{
	struct fixture *f = *state;

	take(f);
	work_ns = 3600000 * MS;
	work(f, A, FILL, 0, NULL);
	work_ns = 0;
	work(f, B, FILL, 0, NULL);
	take(f);
	assert_int_equal(f->count, 1);
	assert_int_equal(f->events[0].stream, B);
	gp_clock_advance(3600001 * MS);
	take(f);
	assert_int_equal(f->count, 1);
	assert_int_equal(f->events[0].stream, A);
}

CASE(a_name_is_told_with_the_first_that_is_told)
{
	struct fixture *f = *state;

	take(f);
	work_ns = 3600000 * MS;
	work(f, A, LAUNCH, 1, "slow");
	work_ns = 0;
	work(f, B, LAUNCH, 1, "slow");
	work(f, B, LAUNCH, 1, "slow");
	/* The same place for another kernel. */
	work(f, B, LAUNCH, 1 + GP_TRACE_NAME_SLOTS, "other");
	work(f, B, LAUNCH, 2, NULL);
	take(f);
	assert_int_equal(f->count, 4);
	assert_int_equal(f->events[0].name.size, 4);
	assert_int_equal(f->events[1].name.size, 0);
	assert_int_equal(f->events[2].name.size, 5);
	assert_int_equal(f->events[3].name.size, 0);
	gp_clock_advance(3600001 * MS);
	take(f);
	assert_int_equal(f->count, 1);
	assert_int_equal(f->events[0].name.size, 4);
	assert_memory_equal(f->events[0].name.data, "slow", 4);
}

CASE(what_is_too_much_is_counted)
{
	struct fixture *f = *state;
	unsigned int told = 0, joined = 0;

	take(f);
	records = 0;
	work_ns = 1;
	for (int i = 0; i < MANY; i++)
		work(f, A, FILL, 0, NULL);
	assert_true(records < MANY);
	gp_clock_advance(1000 * MS);
	do {
		take(f);
		told += f->count;
	} while (f->reply.left);
	assert_int_equal(told + f->reply.missed, MANY);
	/* The next one that is measured says what is in front of it. */
	for (unsigned int tries = 0; joined == 0 && tries < 2; tries++) {
		work(f, A, FILL, 0, NULL);
		gp_clock_advance(1000 * MS);
		take(f);
		if (f->count)
			joined = f->events[0].joined;
	}
	assert_int_equal(joined, f->reply.missed);
}

CASE(a_session_s_share_of_memory_is_kept)
{
	struct fixture *f = *state;

	take(f);
	work_ns = 3600000 * MS;
	atomic_store(&f->ledger->host_max, 2);
	for (int i = 0; i < MANY; i++)
		work(f, A, FILL, 0, NULL);
	assert_in_range(f->ledger->sessions[0].host, 1, GPD_HOST_MIN);
	assert_int_equal(f->ledger->tenants[0].host, 0);
	take(f);
	assert_in_range(f->reply.missed, 1, MANY - 1);
}

UNIT_TEST_MAIN(NULL, NULL)
