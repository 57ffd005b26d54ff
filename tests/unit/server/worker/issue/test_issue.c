/* SPDX-License-Identifier: Apache-2.0 */
/* Launches of several streams by threads of their own, with a driver that notes them down. */
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/issue/issue.h"
#include "tests/test.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#define STREAMS 4
#define NOTES 4096
#define PATIENCE_S 60
/* In the place of a launch's number: a mark with this value. */
#define MARK 0x10000u
#define FAILS 13

static _Atomic bool closing;
static _Atomic int sticky;
static struct gpd_issue issue, other;
static uint8_t launchers[STREAMS];

/* The launches that the driver received, by stream. */
static struct {
	uint32_t numbers[NOTES];
	_Atomic unsigned int count;
	pthread_t by;
} notes[STREAMS];
/* While it is set, launches on stream 0 wait for it, and say so before. */
static _Atomic bool stops;
static sem_t begun, gate;
static uint32_t words[STREAMS];
static _Atomic CUresult write_result;
static _Atomic unsigned int failures;
static uint32_t failed_attribute;

static void
await(sem_t *semaphore)
{
	struct timespec limit;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += PATIENCE_S;
	while (sem_timedwait(semaphore, &limit)) {
		if (errno != EINTR)
			fail_msg("it did not come");
	}
}

static void
note(CUstream stream, uint32_t number)
{
	unsigned int s = (unsigned int)((uintptr_t)stream - 1);
	unsigned int count = atomic_load(&notes[s].count);

	notes[s].by = pthread_self();
	notes[s].numbers[count % NOTES] = number;
	atomic_store(&notes[s].count, count + 1);
}

static CUresult
launch(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
	uint32_t number;

	memcpy(&number, extra[1], sizeof(number));
	if (atomic_load(&stops) && config->hStream == (CUstream)1) {
		sem_post(&begun);
		await(&gate);
	}
	note(config->hStream, number);
	return number == FAILS ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult
write_value(CUstream stream, CUdeviceptr to, cuuint32_t value, unsigned int flags)
{
	note(stream, MARK + value);
	return atomic_load(&write_result);
}

static CUresult
set_current(CUcontext context)
{
	return CUDA_SUCCESS;
}

static void
failed(struct gpd_issue *of, const struct gpd_issue_launch *launch, CUresult result)
{
	assert_ptr_equal(of, &issue);
	assert_int_equal(result, CUDA_ERROR_INVALID_VALUE);
	assert_string_equal(launch->kernel, "ant");
	failed_attribute = launch->config.numAttrs ? launch->config.attrs[0].value.priority : 0;
	atomic_fetch_add(&failures, 1);
}

static void
make(struct gpd_issue *made)
{
	*made = (struct gpd_issue){
		.failed = failed, .closing = &closing, .sticky = &sticky, .most = STREAMS
	};
}

static int
setup(void **state)
{
	gpd_driver = (struct gpd_driver){
		.cuCtxSetCurrent = set_current,
		.cuLaunchKernelEx = launch,
		.cuStreamWriteValue32_v2 = write_value,
	};
	gpd_devices.count = 1;
	atomic_store(&gpd_devices.all[0].has_context, true);
	memset(notes, 0, sizeof(notes));
	memset(launchers, 0, sizeof(launchers));
	memset(words, 0, sizeof(words));
	closing = stops = false;
	sticky = 0;
	failures = 0;
	write_result = CUDA_SUCCESS;
	sem_init(&begun, 0, 0);
	sem_init(&gate, 0, 0);
	make(&issue);
	make(&other);
	return 0;
}

static int
teardown(void **state)
{
	gpd_issue_stop(&issue);
	gpd_issue_stop(&other);
	sem_destroy(&begun);
	sem_destroy(&gate);
	return 0;
}

/* The launch's parameters are gone when this returns. */
static bool
hand(unsigned int stream, uint32_t number, unsigned int attributes, size_t size)
{
	CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_PRIORITY };
	uint8_t params[2 * GPD_ISSUE_ROOM] = { 0 };
	const struct gpd_issue_launch handed = {
		.config = { .hStream = (CUstream)(uintptr_t)(stream + 1),
			    .numAttrs = attributes,
			    .attrs = &attribute },
		.params = params,
		.params_size = size,
		.kernel = "ant",
	};
	bool done;

	attribute.value.priority = 7;
	memcpy(params, &number, sizeof(number));
	done = gpd_issue_launch(&issue, &launchers[stream], &handed);
	memset(params, 0xff, sizeof(params));
	memset(&attribute, 0xff, sizeof(attribute));
	return done;
}

static void
give(unsigned int stream, uint32_t number)
{
	assert_true(hand(stream, number, 0, sizeof(number)));
}

static void
mark(unsigned int stream, uint32_t value)
{
	gpd_issue_write(&issue, launchers[stream], 0, (CUstream)(uintptr_t)(stream + 1), 0,
			&words[stream], value);
}

#define CASE(test) UNIT_TEST_WITH(test, setup, teardown)

CASE(a_stream_keeps_its_order_and_all_is_there_when_it_is_settled)
{
	const unsigned int each = 1000;

	for (uint32_t i = 0; i < each; i++) {
		for (unsigned int s = 0; s < STREAMS; s++)
			give(s, 100 + i);
	}
	assert_true(issue.pending);
	gpd_issue_settle(&issue);

	assert_false(issue.pending);
	for (unsigned int s = 0; s < STREAMS; s++) {
		assert_int_equal(notes[s].count, each);
		for (uint32_t i = 0; i < each; i++)
			assert_int_equal(notes[s].numbers[i], 100 + i);
		assert_false(pthread_equal(notes[s].by, pthread_self()));
	}
	assert_int_equal(issue.handed, STREAMS * each);
}

CASE(a_stream_waits_for_no_other_until_it_is_settled)
{
	stops = true;
	give(0, 1);
	await(&begun);
	/* Another thread launches while the first one is in the driver. */
	for (uint32_t i = 0; i < 10; i++)
		give(1, i);
	for (int i = 0; i < PATIENCE_S * 1000 && notes[1].count < 10; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	assert_int_equal(notes[1].count, 10);
	assert_int_equal(notes[0].count, 0);

	stops = false;
	sem_post(&gate);
	gpd_issue_settle(&issue);
	assert_int_equal(notes[0].count, 1);
}

CASE(marks_stand_between_the_launches_of_their_stream)
{
	const uint32_t wanted[] = { 1, 2, MARK + 2, 3, MARK + 3 };

	give(0, 1);
	give(0, 2);
	mark(0, 2);
	give(0, 3);
	mark(0, 3);
	gpd_issue_settle(&issue);

	assert_int_equal(notes[0].count, 5);
	assert_memory_equal(notes[0].numbers, wanted, sizeof(wanted));
	/* The GPU writes it, and here there is none. */
	assert_int_equal(words[0], 0);
}

CASE(nobody_waits_for_a_mark_that_was_refused)
{
	write_result = CUDA_ERROR_INVALID_VALUE;
	give(0, 1);
	mark(0, 77);
	gpd_issue_settle(&issue);
	assert_int_equal(words[0], 77);
	assert_int_equal(failures, 0);
}

CASE(a_failure_is_told_with_its_launch)
{
	give(0, 1);
	assert_true(hand(0, FAILS, 1, 12));
	give(0, 2);
	gpd_issue_settle(&issue);

	assert_int_equal(failures, 1);
	assert_int_equal(failed_attribute, 7);
	assert_int_equal(notes[0].count, 3);
}

CASE(what_is_large_is_launched_by_the_executor_behind_all)
{
	give(0, 1);
	assert_true(hand(1, 2, 1, GPD_ISSUE_ROOM - sizeof(CUlaunchAttribute)));
	assert_false(hand(1, 3, 1, GPD_ISSUE_ROOM - sizeof(CUlaunchAttribute) + 1));

	assert_false(issue.pending);
	assert_int_equal(notes[0].count, 1);
	assert_int_equal(notes[1].count, 1);
}

CASE(a_session_that_ends_launches_no_more)
{
	stops = true;
	give(0, 1);
	await(&begun);
	give(0, 2);
	mark(0, 5);
	closing = true;
	stops = false;
	sem_post(&gate);
	gpd_issue_settle(&issue);

	assert_int_equal(notes[0].count, 1);
	assert_int_equal(words[0], 5);
	assert_int_equal(failures, 0);
}

CASE(nor_does_one_whose_gpu_is_lost)
{
	sticky = CUDA_ERROR_ILLEGAL_ADDRESS;
	give(0, FAILS);
	gpd_issue_settle(&issue);
	assert_int_equal(notes[0].count, 0);
	assert_int_equal(failures, 0);
}

CASE(several_streams_of_a_long_message_are_handed_over)
{
	const void *a = &notes[0], *b = &notes[1];

	gpd_issue_message(&issue, true);
	assert_false(gpd_issue_wants(&issue, a));
	assert_false(gpd_issue_wants(&issue, a));
	assert_true(gpd_issue_wants(&issue, b));
	give(1, 1);
	assert_true(gpd_issue_wants(&issue, b));
	assert_true(gpd_issue_wants(&issue, a));
	give(0, 1);
	/* What comes alone is not, and comes behind. */
	gpd_issue_message(&issue, false);
	assert_int_equal(notes[0].count, 1);
	assert_int_equal(notes[1].count, 1);
	assert_false(gpd_issue_wants(&issue, a));
	assert_false(gpd_issue_wants(&issue, b));
}

CASE(one_stream_is_never_handed_over)
{
	for (int message = 0; message < 3; message++) {
		gpd_issue_message(&issue, true);
		for (int i = 0; i < 100; i++)
			assert_false(gpd_issue_wants(&issue, notes));
	}
	assert_int_equal(issue.begun, 0);
}

CASE(a_session_without_threads_hands_nothing_over)
{
	issue.most = 0;
	gpd_issue_message(&issue, true);
	for (int i = 0; i < 100; i++)
		assert_false(gpd_issue_wants(&issue, &notes[i % 2]));
}

/* Launches on two streams in turns until one is to be handed over; how many were not. */
static unsigned int
alternate(void)
{
	unsigned int i = 0;

	while (i < 1000 && !gpd_issue_wants(&issue, &notes[i % 2]))
		i++;
	return i;
}

CASE(few_launches_between_other_calls_are_not_worth_while)
{
	unsigned int first, later;

	gpd_issue_message(&issue, true);
	first = alternate();
	give(0, 1);
	gpd_issue_barrier(&issue);
	assert_int_equal(notes[0].count, 1);
	later = alternate();
	assert_in_range(first, 1, 2);
	assert_in_range(later, 50, 999);

	for (uint32_t i = 0; i < 100; i++)
		give(i % 2, i);
	gpd_issue_barrier(&issue);
	assert_in_range(alternate(), 0, 2);
}

CASE(the_process_has_so_many_threads_in_all)
{
	const struct gpd_issue_launch empty = { .config = { .hStream = (CUstream)4 },
						.params = &(uint32_t){ 5 },
						.params_size = 4 };
	uint8_t launcher = 0;

	issue.most = other.most = 2;
	for (unsigned int s = 0; s < 3; s++)
		give(s, 1);
	assert_int_equal(issue.begun, 2);
	assert_int_equal(launchers[2], 1);
	assert_false(gpd_issue_launch(&other, &launcher, &empty));
	assert_int_equal(launcher, 0);

	gpd_issue_stop(&issue);
	assert_int_equal(notes[2].count, 1);
	assert_true(gpd_issue_launch(&other, &launcher, &empty));
	gpd_issue_settle(&other);
	assert_int_equal(notes[3].numbers[0], 5);
}

CASE(threads_sleep_and_wake)
{
	for (uint32_t i = 0; i < 5; i++) {
		give(0, i);
		gpd_issue_settle(&issue);
		assert_int_equal(notes[0].count, i + 1);
		/* Longer than the threads poll for more work. */
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	}
}

CASE(how_many_threads_there_are_follows_the_processors_unless_it_is_said)
{
	assert_int_equal(gpd_issue_most(2, NULL), 0);
	assert_int_equal(gpd_issue_most(7, NULL), 0);
	assert_int_equal(gpd_issue_most(16, NULL), 4);
	assert_int_equal(gpd_issue_most(16, ""), 4);
	assert_int_equal(gpd_issue_most(16, "0"), 0);
	assert_int_equal(gpd_issue_most(2, "3"), 3);
	assert_int_equal(gpd_issue_most(16, "1"), 0);
	assert_int_equal(gpd_issue_most(16, "99999999999999999999"), 64);
}

CASE(what_is_no_number_of_threads_is_refused)
{
	unsigned int most = 77;

	assert_true(gpd_issue_parse(NULL, &most));
	assert_true(gpd_issue_parse("", &most));
	assert_int_equal(most, 77);
	assert_true(gpd_issue_parse("0", &most));
	assert_int_equal(most, 0);
	assert_false(gpd_issue_parse("many", &most));
	assert_false(gpd_issue_parse("4 threads", &most));
	assert_false(gpd_issue_parse("-1", &most));
}

UNIT_TEST_MAIN(NULL, NULL)
