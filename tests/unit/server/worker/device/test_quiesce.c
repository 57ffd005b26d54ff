/* SPDX-License-Identifier: Apache-2.0 */
/* Quiet moments of a GPU that is a clock: streams that are busy until a point of time. */
#include "server/common/ledger/ledger.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/quiesce.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/stream.h"
#include "tests/test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define CLIENTS 2

struct client {
	struct gpd_session session;
	struct gpd_stream_session streams;
	struct gpd_stream stream;
	_Atomic uint64_t end_ns; /* of the last kernel of its stream */
	uint64_t kernel_ns;
	_Atomic int launches;
	pthread_t thread;
};

static struct client clients[CLIENTS];
static struct gpd_ledger *ledger;
static _Atomic bool stopped, fails;
static _Atomic int events, records;

static uint64_t
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

static CUresult
event_create(CUevent *event, unsigned int flags)
{
	*event = calloc(1, sizeof(uint64_t));
	events++;
	return CUDA_SUCCESS;
}

static CUresult
event_destroy(CUevent event)
{
	free(event);
	events--;
	return CUDA_SUCCESS;
}

static CUresult
context_record(CUcontext context, CUevent event)
{
	uint64_t *at = (uint64_t *)event;

	records++;
	if (fails)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	*at = 0;
	for (int i = 0; i < CLIENTS; i++) {
		uint64_t end = clients[i].end_ns;

		*at = end > *at ? end : *at;
	}
	return CUDA_SUCCESS;
}

static CUresult
event_query(CUevent event)
{
	return *(uint64_t *)event <= now_ns() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult
stream_query(CUstream stream)
{
	return ((struct client *)stream)->end_ns <= now_ns() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

static CUresult
set_current(CUcontext context)
{
	return CUDA_SUCCESS;
}

static int
setup(void **state)
{
	int fd;

	gpd_driver = (struct gpd_driver){
		.cuCtxSetCurrent = set_current,
		.cuCtxRecordEvent = context_record,
		.cuEventCreate = event_create,
		.cuEventDestroy_v2 = event_destroy,
		.cuEventQuery = event_query,
		.cuStreamQuery = stream_query,
	};
	gpd_devices.count = 1;
	atomic_store(&gpd_devices.all[0].has_context, true);
	if (!ledger) {
		ledger = gpd_ledger_create(&fd);
		assert_non_null(ledger);
		(void)close(fd);
	}
	gpd_ledger_add_tenant(ledger, 1, "tenant");
	memset(clients, 0, sizeof(clients));
	for (uint32_t i = 0; i < CLIENTS; i++) {
		struct client *client = &clients[i];

		client->stream.driver = (CUstream)client;
		client->stream.work = 1;
		client->session.streams = &client->streams;
		client->session.streams->list = &client->stream;
		client->session.account.entry = gpd_ledger_open(ledger, i + 1, 1, 0);
	}
	stopped = fails = false;
	records = 0;
	gpd_quiesce_stop_ns = 10 * SECOND;
	gpd_quiesce_long_ns = 250 * MS;
	gpd_quiesce_limit_ns = 30 * SECOND;
	return 0;
}

static int
teardown(void **state)
{
	assert_int_equal(events, 0);
	assert_int_equal(gpd_quiesce_stopped, 0);
	return 0;
}

static void *
work(void *arg)
{
	struct client *client = arg;

	while (!stopped) {
		uint64_t now;

		gpd_stream_wait_quiesce(&client->session, 0);
		now = now_ns();
		client->end_ns = (client->end_ns > now ? client->end_ns : now) + client->kernel_ns;
		client->launches++;
		/* A driver's queue is not endless. */
		while (client->end_ns > now_ns() + 2 * client->kernel_ns && !stopped)
			(void)usleep(100);
	}
	return NULL;
}

static void
start(unsigned int i, uint64_t kernel_ns)
{
	clients[i].kernel_ns = kernel_ns;
	assert_int_equal(pthread_create(&clients[i].thread, NULL, work, &clients[i]), 0);
	while (!clients[i].launches)
		(void)usleep(100);
}

static void
stop(unsigned int count)
{
	stopped = true;
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(pthread_join(clients[i].thread, NULL), 0);
}

#define CASE(test) UNIT_TEST_WITH(test, setup, teardown)

CASE(it_is_quiet_when_nothing_runs)
{
	uint64_t begun = now_ns();

	assert_true(gpd_quiesce_is_idle(0));
	assert_true(gpd_quiesce_begin(0, NULL));
	gpd_quiesce_end(0);
	assert_true(gpd_quiesce_try(0));
	assert_true(now_ns() - begun < gpd_quiesce_stop_ns);
}

CASE(it_is_quiet_beside_short_work)
{
	start(0, MS);
	assert_true(gpd_quiesce_is_idle(0));
	assert_true(gpd_quiesce_begin(0, NULL));
	assert_int_equal(gpd_quiesce_stopped, 0);
	gpd_quiesce_end(0);
	stop(1);
}

CASE(long_work_is_waited_for_and_held_and_short_work_goes_on)
{
	int before;

	start(0, 300 * MS);
	start(1, MS);
	assert_false(gpd_quiesce_is_idle(0));
	before = clients[1].launches;
	assert_true(gpd_quiesce_begin(0, NULL));
	/* Both kernels in its stream are done, and no other was launched. */
	assert_true(clients[0].end_ns <= now_ns());
	assert_true(clients[1].launches - before > 20);
	assert_int_equal(gpd_quiesce_stopped, 1);
	gpd_quiesce_end(0);
	assert_int_equal(gpd_quiesce_stopped, 0);
	before = clients[0].launches;
	while (clients[0].launches == before ||
	       clients[0].session.account.entry->counts.waited_ns <= 100 * MS)
		(void)usleep(100);
	stop(2);
}

/* A client with little work is stopped only when the long work of the other is done, and then not
 * for long. */
CASE(work_of_middle_length_goes_on_until_the_long_work_is_done)
{
	uint64_t begun = now_ns();
	int launches;

	start(0, 600 * MS);
	start(1, 30 * MS);
	launches = clients[1].launches;
	assert_true(gpd_quiesce_begin(0, NULL));
	assert_true(clients[0].end_ns <= now_ns());
	assert_true(clients[1].end_ns <= now_ns());
	/* Two kernels of the first one, most of the time. */
	assert_true(clients[1].launches - launches > 15);
	gpd_quiesce_end(0);
	assert_in_range(now_ns() - begun, SECOND, gpd_quiesce_stop_ns);
	stop(2);
}

CASE(seeking_holds_nobody)
{
	gpd_quiesce_limit_ns = SECOND;
	start(0, 200 * MS);
	assert_false(gpd_quiesce_try(0));
	assert_int_equal(gpd_quiesce_stopped, 0);
	stop(1);
}

static void *
end_soon(void *flag)
{
	(void)usleep(50000);
	*(_Atomic bool *)flag = true;
	return NULL;
}

CASE(waiting_ends_when_it_is_given_up)
{
	_Atomic bool given_up = false;
	uint64_t begun = now_ns();
	pthread_t thread;

	clients[0].end_ns = begun + 1000 * SECOND;
	assert_int_equal(pthread_create(&thread, NULL, end_soon, &given_up), 0);
	assert_false(gpd_quiesce_begin(0, &given_up));
	gpd_quiesce_end(0);
	assert_in_range(now_ns() - begun, 0, 5 * SECOND);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

/* What runs may wait for what would be launched. */
CASE(nobody_is_held_forever)
{
	_Atomic bool given_up = false;
	uint64_t begun = now_ns();
	pthread_t thread;

	gpd_quiesce_stop_ns = 30 * MS;
	clients[0].end_ns = begun + 1000 * SECOND;
	clients[0].kernel_ns = MS;
	assert_int_equal(pthread_create(&clients[0].thread, NULL, work, &clients[0]), 0);
	assert_int_equal(pthread_create(&thread, NULL, end_soon, &given_up), 0);
	assert_false(gpd_quiesce_begin(0, &given_up));
	assert_true(clients[0].launches > 0);
	assert_int_equal(gpd_quiesce_stopped, 0);
	gpd_quiesce_end(0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	stop(1);
}

CASE(a_session_that_closes_is_not_held)
{
	uint64_t begun = now_ns();

	gpd_quiesce_stopped = 1;
	clients[0].end_ns = begun + 1000 * SECOND;
	clients[0].session.closing = true;
	gpd_stream_wait_quiesce(&clients[0].session, 0);
	gpd_quiesce_stopped = 0;
	assert_in_range(now_ns() - begun, 0, SECOND);
}

CASE(a_driver_that_cannot_tell_is_left_to_wait)
{
	clients[0].end_ns = now_ns() + 1000 * SECOND;
	fails = true;
	assert_true(gpd_quiesce_is_idle(0));
	assert_true(gpd_quiesce_begin(0, NULL));
	gpd_quiesce_end(0);
	assert_int_equal(records, 2);
	gpd_driver.cuCtxRecordEvent = NULL;
	assert_true(gpd_quiesce_is_idle(0));
	assert_true(gpd_quiesce_begin(0, NULL));
	gpd_quiesce_end(0);
	assert_int_equal(records, 2);
}

UNIT_TEST_MAIN(NULL, NULL)
