/* SPDX-License-Identifier: Apache-2.0 */
/* Early copies from pinned memory that are corrected before changed words are published. */
#include "client/host/coherence_internal.h"
#include "client/host/listed_copy.h"
#include "protocol/frame.h"
#include "tests/unit/client/coherence_fixture.h"

#define SIZE ((size_t)100000)

static uint8_t *source, *flag;
static CUdeviceptr device;

/* Kernels know a word of the program's, and one of them is under way. */
static int
begin(void **state)
{
	if (setup(state) != 0)
		return -1;
	fake_wire_allow_late();
	source = pinned(SIZE);
	flag = pinned(64);
	memset(flag, 0, 64);
	(void)reach(flag);
	CU(gpc_coherence_before_work(session()));
	device = fake_wire_alloc(SIZE);
	/* The mirror of the test before it is the same one. */
	gpc_coherence_find(session())->listed.polled = false;
	fake.posted++;
	fake.host_written = 0;
	return 0;
}

static int
end(void **state)
{
	fake.done = fake.posted;
	while (fake.late_count > 0)
		fake_wire_run_late(CUDA_ERROR_DEINITIALIZED);
	if (source)
		CU(gpc_cuMemFreeHost(source));
	CU(gpc_cuMemFreeHost(flag));
	return fake_wire_teardown(state);
}
#undef TEST
static void
copy(size_t size)
{
	CU(gpc_cuMemcpyHtoDAsync_v2(device, source, size, FAKE_WIRE_STREAM));
}

static void
publish(uint8_t value)
{
	flag[0] = value;
	CU(gpc_coherence_before_work(session()));
}

#define TEST(test) UNIT_TEST_WITH(test, begin, end)

TEST(a_filled_source_is_sent_again_before_the_word)
{
	uint32_t number;

	copy(SIZE);
	assert_int_equal(fake.copies_in, 1);
	number = fake.last_listed;
	assert_int_not_equal(number, 0);
	memset(source, 9, SIZE);
	publish(1);
	assert_int_equal(fake.replaced_bytes, SIZE);
	assert_int_equal(fake.last_replaced, number);
	assert_int_equal(fake.last_replaced_byte, 9);
	assert_int_equal(fake.replaced_before, 0);
	assert_true(fake.host_written > 0);
}

TEST(later_words_send_what_has_changed_since)
{
	copy(SIZE);
	publish(1);
	fake.replaced_bytes = 0;
	publish(2);
	assert_int_equal(fake.replaced_bytes, 0);
	source[SIZE - 1] = 3;
	publish(3);
	assert_int_equal(fake.replaced_bytes, SIZE - GP_REPLACE_MAX);
	assert_int_equal(fake.last_replaced_byte, 3);
}

TEST(without_a_changed_word_nothing_is_sent_again)
{
	copy(SIZE);
	CU(gpc_coherence_before_work(session()));
	assert_int_equal(fake.replacements, 0);
}

TEST(what_is_done_is_not_sent_again)
{
	copy(SIZE);
	fake.done = fake.posted;
	publish(1);
	assert_int_equal(fake.replacements, 0);
	/* And nothing is listed while nothing is under way. */
	fake.last_listed = 0;
	copy(SIZE);
	assert_int_equal(fake.last_listed, 0);
}

TEST(copies_are_late_once_words_were_polled)
{
	copy(100);
	publish(1);
	copy(200);
	assert_int_equal(fake.copies_in, 1);
	fake_wire_run_late(CUDA_SUCCESS);
	assert_int_equal(fake.copies_in, 2);
}

TEST(more_copies_than_the_worker_may_hold_are_late)
{
	int early = 0, late = 0;

	for (; late == 0 && early<10000; early += fake.copies_in> early) {
		copy(64);
		late += fake.copies_in == early;
	}
	assert_in_range(early, 100, 1000);
	fake_wire_run_late(CUDA_SUCCESS);
	/* When they are done, copies are listed again. */
	fake.done = fake.posted;
	fake.posted++;
	copy(64);
	assert_int_equal(fake.copies_in, early + 2);
}

TEST(memory_that_is_freed_is_not_read)
{
	copy(SIZE);
	CU(gpc_cuMemFreeHost(source));
	source = NULL;
	publish(1);
	assert_int_equal(fake.replacements, 0);
}

TEST(rows_are_sent_again_as_they_were_packed)
{
	const CUDA_MEMCPY2D rows = { .srcMemoryType = CU_MEMORYTYPE_HOST,
				     .srcHost = source,
				     .srcPitch = 1000,
				     .dstMemoryType = CU_MEMORYTYPE_DEVICE,
				     .dstDevice = device,
				     .dstPitch = 300,
				     .WidthInBytes = 300,
				     .Height = 50 };

	CU(gpc_cuMemcpy2DAsync_v2(&rows, FAKE_WIRE_STREAM));
	assert_int_not_equal(fake.last_listed, 0);
	source[49 * 1000 + 299] = 7;
	publish(1);
	assert_int_equal(fake.replaced_bytes, 50 * 300);
	assert_int_equal(fake.last_replaced_byte, 7);
}

TEST(a_daemon_without_replacements_gets_late_copies)
{
	fake.facts->unknown_calls[GP_CALL_gpCopyReplace / 8] |= 1 << GP_CALL_gpCopyReplace % 8;
	copy(SIZE);
	assert_int_equal(fake.copies_in, 0);
	fake_wire_run_late(CUDA_SUCCESS);
	assert_int_equal(fake.copies_in, 1);
	fake.facts->unknown_calls[GP_CALL_gpCopyReplace / 8] &= ~(1 << GP_CALL_gpCopyReplace % 8);
}

UNIT_TEST_MAIN(NULL, NULL)
