/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stamps of the GPU's clock, on a device of the driver that GP_TEST_DRIVER names: the software
 * device, or NVIDIA's.
 */
#include "base/clock.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/gpu_timestamp.h"
#include "tests/test.h"
#include "tests/unit/server/move_fixture.h"

#include <unistd.h>

static struct gpd_marker_page *page;

static int
start(void **state)
{
	if (move_start(state))
		return -1;
	gpd_gpu_timestamp_start(0);
	return 0;
}

static int
setup(void **state)
{
	page = gpd_marker_page_acquire();
	return page ? move_setup(state) : -1;
}

static int
teardown(void **state)
{
	int r = move_teardown(state);

	gpd_marker_page_release(page);
	return r;
}

static void
stamp(struct move_fixture *f, uint32_t stream, uint32_t word)
{
	assert_true(gpd_gpu_timestamp_record(0, move_begin(f, stream)->driver, page, word));
}

static uint64_t
read_word(uint32_t word)
{
	return gpd_gpu_timestamp_read(page, word);
}

#define STAMP_CASE(test) UNIT_TEST_WITH(test, setup, teardown)

STAMP_CASE(the_clock_goes_on_along_a_stream_and_from_one_to_another)
{
	struct move_fixture *f = *state;
	const uint64_t begin = gp_now_ns();

	stamp(f, A, 0);
	stamp(f, A, 1);
	move_synchronize(f);
	assert_true(read_word(0) > 0);
	assert_true(read_word(1) >= read_word(0));
	print_message("# from one stamp to the next: %lu ns\n",
		      (unsigned long)(read_word(1) - read_word(0)));
	(void)usleep(20000);
	stamp(f, B, 2);
	move_synchronize(f);
	/* The same clock, with seconds of the host's length. */
	assert_in_range(read_word(2) - read_word(1), 19000000, 2 * (gp_now_ns() - begin));
}

STAMP_CASE(a_stream_that_has_not_come_there_has_no_stamp)
{
	struct move_fixture *f = *state;
	const uint64_t begin = gp_now_ns();

	stamp(f, A, 0);
	move_wait_at_gate(f, A, 0);
	stamp(f, A, 1);
	assert_true(gpd_gpu_timestamp_write_marker(move_begin(f, A)->driver, page, 2));
	while (read_word(0) == 0)
		(void)usleep(1000);
	(void)usleep(50000);
	assert_int_equal(read_word(1), 0);
	assert_int_equal(read_word(2), 0);
	move_open_gate(0);
	move_synchronize(f);
	assert_in_range(read_word(1) - read_word(0), 45000000, 2 * (gp_now_ns() - begin));
	assert_int_equal(read_word(2), 1);
}

/* The kernel was loaded for the device's own context. */
STAMP_CASE(streams_of_green_contexts_are_stamped)
{
	struct move_fixture *f = *state;
	uint32_t word = 0;

	for (uint32_t share = 2; share <= 8; share += 2) {
		move_set_share(f, share);
		stamp(f, A, word++);
		stamp(f, B, word++);
		assert_true(gpd_gpu_timestamp_write_marker(move_begin(f, A)->driver, page, word++));
		move_synchronize(f);
	}
	for (uint32_t i = 0; i < word; i++)
		assert_true(read_word(i) > 0);
	assert_true(read_word(word - 3) > read_word(0));
}

static CUresult
refuse(CUlibrary *library, const void *code, CUjit_option *jit, void **jit_values,
       unsigned int jit_count, CUlibraryOption *options, void **values, unsigned int count)
{
	return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
}

STAMP_CASE(a_driver_that_loads_no_code_writes_ones_only)
{
	struct move_fixture *f = *state;
	__typeof__(cuLibraryLoadData) *real = gpd_driver.cuLibraryLoadData;

	gpd_gpu_timestamp_stop(0);
	gpd_driver.cuLibraryLoadData = refuse;
	gpd_gpu_timestamp_start(0);
	assert_false(gpd_gpu_timestamp_record(0, move_begin(f, A)->driver, page, 0));
	assert_true(gpd_gpu_timestamp_write_marker(move_begin(f, A)->driver, page, 1));
	move_synchronize(f);
	assert_int_equal(read_word(0), 0);
	assert_int_equal(read_word(1), 1);
	gpd_driver.cuLibraryLoadData = real;
	gpd_gpu_timestamp_start(0);
	stamp(f, A, 0);
	move_synchronize(f);
	assert_true(read_word(0) > 0);
}

UNIT_TEST_MAIN(start, move_stop)
