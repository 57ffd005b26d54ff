/* SPDX-License-Identifier: Apache-2.0 */
#include "gpd_calls.h"
#include "protocol/frame.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/staging.h"
#include "server/worker/memory/memory.h"
#include "tests/test.h"
#include "tests/unit/server/server_fake.h"

#include <stdlib.h>
#include <string.h>

/* More than a session may hold of the staging memory for copies to the host. */
#define MAPPED ((uint64_t)64 << 20)

#ifdef __SANITIZE_THREAD__
#define WINDOW "552000000000"
#define WINDOW_1M "552000100000"
#else
#define WINDOW "120000000000"
#define WINDOW_1M "120000100000"
#endif

static struct fake fake;
static uint8_t *const device = (uint8_t *)FAKE_WINDOW;

static int
setup(void **state)
{
	fake_create(&fake);
	assert_int_equal(gpd_memory_create(&fake.session, FAKE_WINDOW, FAKE_WINDOW_SIZE), 0);
	assert_int_equal(gpd_staging_create(&fake.session), 0);
	assert_int_equal(gpd_memory_map(&fake.session, FAKE_WINDOW, MAPPED, 0), CUDA_SUCCESS);
	fake_forget_calls();
	fake.session.request = 9;
	fake.session.call = 0x302;
	return 0;
}

static int
teardown(void **state)
{
	fake_run_markers(&fake, -1);
	gpd_copy_forget(&fake.session);
	gpd_memory_destroy(&fake.session);
	gpd_staging_destroy(&fake.session);
	fake_destroy(&fake);
	return 0;
}

static uint8_t *
pattern(size_t size)
{
	uint8_t *bytes = malloc(size);
	uint32_t x = 12345;

	for (size_t i = 0; i < size; i++) {
		x = x * 1664525 + 1013904223;
		bytes[i] = (uint8_t)(x >> 24);
	}
	return bytes;
}

static CUresult
copy_in(const struct gp_args_gpCopyIn *args, const uint8_t *bytes, size_t size)
{
	fake.bulk = bytes;
	fake.session.bulk_left = size;
	return gpd_gpCopyIn(&fake.session, args);
}

static void
bytes_arrive_whole(void **state)
{
	static const size_t sizes[] = { 1,      64,     4096,    131072,  131073,
					262144, 262145, 1048577, 4194304, 9437189 };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint8_t *bytes = pattern(sizes[i]);
		struct gp_args_gpCopyIn args = { .stream = FAKE_STREAM,
						 .dst = FAKE_WINDOW + 3,
						 .width = sizes[i],
						 .height = 1 };

		memset(device, 0, sizes[i] + 4);
		assert_int_equal(copy_in(&args, bytes, sizes[i]), CUDA_SUCCESS);
		assert_memory_equal(device + 3, bytes, sizes[i]);
		assert_int_equal(device[2], 0);
		assert_int_equal(device[3 + sizes[i]], 0);
		assert_int_equal(fake.session.bulk_left, 0);
		free(bytes);
	}
}

static void
a_small_copy_costs_the_driver_one_call(void **state)
{
	uint8_t *bytes = pattern(64);
	struct gp_args_gpCopyIn args = {
		.stream = FAKE_STREAM, .dst = FAKE_WINDOW, .width = 64, .height = 1
	};

	copy_in(&args, bytes, 64);

	assert_string_equal(fake_calls, "cuMemHostAlloc 8454144\n"
					"cuMemcpyHtoDAsync " WINDOW " 64\n");
	fake_forget_calls();
	copy_in(&args, bytes, 64);
	assert_string_equal(fake_calls, "cuMemcpyHtoDAsync " WINDOW " 64\n");
	free(bytes);
}

static void
bytes_of_the_record_arrive(void **state)
{
	uint8_t *bytes = pattern(300);
	struct gp_args_gpCopyInShort args = { .stream = FAKE_STREAM,
					      .dst = FAKE_WINDOW + 3,
					      .pitch = 200,
					      .width = 100,
					      .height = 3,
					      .data = { bytes, 300 } };

	memset(device, 0, 1000);
	assert_int_equal(gpd_gpCopyInShort(&fake.session, &args), CUDA_SUCCESS);
	for (size_t y = 0; y < 3; y++)
		assert_memory_equal(device + 3 + y * 200, bytes + y * 100, 100);
	assert_int_equal(device[103], 0);
	assert_int_equal(fake.session.bulk_left, 0);
	assert_null(fake.session.bulk_read);
	assert_int_equal(fake.session.account.line->counts.copied_in, 300);
	free(bytes);
}

static void
a_record_with_other_bytes_than_it_says_ends_the_session(void **state)
{
	static const uint8_t bytes[64];
	struct gp_args_gpCopyInShort args = { .stream = FAKE_STREAM,
					      .dst = FAKE_WINDOW,
					      .width = 65,
					      .height = 1,
					      .data = { bytes, 64 } };

	(void)gpd_gpCopyInShort(&fake.session, &args);
	assert_string_equal(fake.violation,
			    "copy of 1 slices of 1 rows of 65 bytes with a tail of 64");
	assert_null(fake.session.bulk_read);
}

static void
rows_in(size_t pitch, size_t width, size_t height)
{
	uint8_t *bytes = pattern(width * height);
	struct gp_args_gpCopyIn args = { .stream = FAKE_STREAM,
					 .dst = FAKE_WINDOW,
					 .pitch = pitch,
					 .width = width,
					 .height = height };

	memset(device, 0, pitch * height);
	assert_int_equal(copy_in(&args, bytes, width * height), CUDA_SUCCESS);
	for (size_t y = 0; y < height; y++) {
		assert_memory_equal(device + y * pitch, bytes + y * width, width);
		if (pitch > width && y < height - 1)
			assert_int_equal(device[y * pitch + width], 0);
	}
	free(bytes);
}

static void
rows_arrive_at_their_pitch(void **state)
{
	rows_in(100, 7, 5);
	rows_in(8192, 8000, 700);
	rows_in(64, 64, 100);
	assert_int_equal(fake_count_calls("cuMemcpyHtoDAsync " WINDOW " 6400"), 1);
	rows_in(3 << 20, (2 << 20) + 5, 3);
}

static void
rows_go_out_packed(void **state)
{
	uint8_t *bytes = pattern(8192 * 700);
	struct gp_args_gpCopyOut args = { .stream = FAKE_STREAM,
					  .src = FAKE_WINDOW,
					  .pitch = 8192,
					  .width = 8000,
					  .height = 700 };

	memcpy(device, bytes, 8192 * 700);
	assert_int_equal(gpd_gpCopyOut(&fake.session, &args), GPD_LATER);
	fake_run_markers(&fake, -1);

	assert_int_equal(fake.data_size, 8000 * 700);
	for (size_t y = 0; y < 700; y++)
		assert_memory_equal(fake.data + y * 8000, bytes + y * 8192, 8000);
	assert_int_equal(fake.reply_count, 1);
	assert_int_equal(fake.replies[0].result, CUDA_SUCCESS);
	assert_int_equal(fake.replies[0].request, 9);
	assert_int_equal(fake.replies[0].call, 0x302);
	free(bytes);
}

static void
a_copy_out_is_answered_once_when_all_is_sent(void **state)
{
	struct gp_args_gpCopyOut args = {
		.stream = FAKE_STREAM, .src = FAKE_WINDOW, .width = 8 << 20, .height = 1
	};

	assert_int_equal(gpd_gpCopyOut(&fake.session, &args), GPD_LATER);
	assert_int_equal(fake_markers(&fake), 8);
	fake_run_markers(&fake, 7);
	assert_int_equal(fake.reply_count, 0);
	assert_int_equal(fake.data_notes, 7);
	fake_run_markers(&fake, 1);

	assert_int_equal(fake.reply_count, 1);
	assert_int_equal(fake.data_size, 8 << 20);
}

static void
a_short_copy_out_comes_in_its_answer(void **state)
{
	struct gp_args_gpCopyOut args = {
		.stream = FAKE_STREAM, .src = FAKE_WINDOW, .width = 4, .height = 1
	};

	memcpy(device, "yes", 4);
	assert_int_equal(gpd_gpCopyOut(&fake.session, &args), GPD_LATER);
	fake_run_markers(&fake, -1);

	assert_int_equal(fake.data_notes, 0);
	assert_int_equal(fake.reply_count, 1);
	assert_string_equal(fake.data, "yes");
}

static void
every_part_of_a_copy_counts_as_work(void **state)
{
	struct gp_args_gpCopyOut args = {
		.stream = FAKE_STREAM, .src = FAKE_WINDOW, .width = 8 << 20, .height = 1
	};

	gpd_gpCopyOut(&fake.session, &args);

	assert_true(fake.stream.work >= 8);
	assert_int_equal(fake.stream.work, fake.session.work);
}

static void
start_large_copy_out(void)
{
	struct gp_args_gpCopyOut args = {
		.stream = FAKE_STREAM, .src = FAKE_WINDOW, .width = MAPPED, .height = 1
	};

	assert_int_equal(gpd_gpCopyOut(&fake.session, &args), GPD_LATER);
}

static void
a_large_copy_out_goes_on_as_its_parts_are_sent(void **state)
{
	for (size_t i = 0; i < MAPPED; i += 4096)
		device[i] = (uint8_t)(i >> 12);
	start_large_copy_out();
	assert_int_equal(fake_markers(&fake), GPD_STAGING_SHARE_OUT);
	assert_true(gpd_copy_continue(&fake.session));
	assert_int_equal(fake_markers(&fake), GPD_STAGING_SHARE_OUT);

	fake_run_markers(&fake, 10);
	assert_true(gpd_copy_continue(&fake.session));
	assert_int_equal(fake_markers(&fake), GPD_STAGING_SHARE_OUT);
	fake_run_markers(&fake, -1);
	assert_int_equal(fake.reply_count, 0);
	assert_false(gpd_copy_continue(&fake.session));
	fake_run_markers(&fake, -1);

	assert_int_equal(fake.reply_count, 1);
	assert_int_equal(fake.data_size, MAPPED);
	assert_memory_equal(fake.data, device, MAPPED);
}

static void
other_streams_go_on_during_a_large_copy_out(void **state)
{
	struct gp_args_gpFill fill = { FAKE_OTHER_STREAM, FAKE_WINDOW, 0, 4, 0, 1, 1 };
	uint8_t bytes[1 << 18] = { 0 };
	struct gp_args_gpCopyIn in = {
		.stream = FAKE_OTHER_STREAM, .dst = FAKE_WINDOW, .width = sizeof(bytes), .height = 1
	};
	uint32_t other = FAKE_OTHER_STREAM;

	start_large_copy_out();
	fake_forget_calls();
	gpd_copy_before(&fake.session, GP_CALL_gpFill, NULL, 0);
	assert_int_equal(gpd_gpFill(&fake.session, &fill), CUDA_SUCCESS);
	gpd_copy_before(&fake.session, GP_CALL_gpCopyIn, NULL, 0);
	assert_int_equal(copy_in(&in, bytes, sizeof(bytes)), CUDA_SUCCESS);
	gpd_copy_before(&fake.session, GP_CALL_cuStreamSynchronize, &other, sizeof(other));

	assert_int_equal(fake.data_notes, 0);
	assert_int_equal(fake_count_calls("cuMemcpyDtoHAsync"), 0);
}

static void
what_follows_a_large_copy_out_comes_behind_its_last_part(void **state)
{
	struct gp_args_gpFill fill = { FAKE_STREAM, FAKE_WINDOW, 0, 4, 0, 1, 1 };
	uint32_t stream = FAKE_STREAM;

	start_large_copy_out();
	assert_int_equal(gpd_gpFill(&fake.session, &fill), CUDA_SUCCESS);
	assert_int_equal(fake_count_calls("cuMemcpyDtoHAsync"), MAPPED / GPD_STAGING_SLOT);
	assert_null(fake.session.copies_out);

	fake_run_markers(&fake, -1);
	start_large_copy_out();
	gpd_copy_before(&fake.session, GP_CALL_cuStreamSynchronize, &stream, sizeof(stream));
	assert_null(fake.session.copies_out);

	fake_run_markers(&fake, -1);
	fake.reply_count = 0;
	start_large_copy_out();
	gpd_copy_before(&fake.session, GP_CALL_gpFence, NULL, 0);
	assert_null(fake.session.copies_out);
}

static void
copies_out_of_one_stream_queue_up(void **state)
{
	struct gp_args_gpCopyOut args = { .stream = FAKE_STREAM, .width = 4, .height = 1 };

	device[MAPPED - 1] = 77;
	start_large_copy_out();
	args.src = FAKE_WINDOW + MAPPED - 4;
	assert_int_equal(gpd_gpCopyOut(&fake.session, &args), GPD_LATER);
	assert_int_equal(fake.data_notes, 0);
	while (gpd_copy_continue(&fake.session))
		fake_run_markers(&fake, 7);
	fake_run_markers(&fake, -1);

	assert_int_equal(fake.reply_count, 2);
	assert_int_equal(fake.data_size, MAPPED + 4);
	assert_int_equal(fake.data[MAPPED + 3], 77);
}

static void
a_client_that_only_asks_is_made_to_read(void **state)
{
	struct gp_args_gpCopyOut args = {
		.stream = FAKE_STREAM, .src = FAKE_WINDOW, .width = 4, .height = 1
	};
	unsigned int waiting = 0;

	fake.keeps_no_replies = true;
	start_large_copy_out();
	for (int i = 0; i < 5000; i++) {
		fake_forget_calls();
		if (!fake.session.copies_out)
			fake_run_markers(&fake, -1);
		assert_int_equal(gpd_gpCopyOut(&fake.session, &args), GPD_LATER);
		waiting = fake.session.copies_out ? waiting + 1 : 0;
		assert_true(waiting < 2000);
	}
}

static void
blocking_streams_and_the_default_stream_wait_for_each_other(void **state)
{
	uint32_t other = FAKE_OTHER_STREAM;

	fake.stream.legacy = true;
	start_large_copy_out();
	gpd_copy_await(&fake.session, &fake.other);
	assert_non_null(fake.session.copies_out);
	fake.other.blocking = true;
	gpd_copy_before(&fake.session, GP_CALL_cuStreamQuery, &other, sizeof(other));
	assert_null(fake.session.copies_out);
}

static void
a_session_may_end_in_the_middle_of_a_copy_out(void **state)
{
	start_large_copy_out();
	fake_run_markers(&fake, 3);
	fake_run_markers(&fake, -1);
	gpd_copy_forget(&fake.session);

	assert_null(fake.session.copies_out);
	assert_int_equal(fake.reply_count, 0);
}

static void
a_stream_with_parts_to_come_is_not_idle(void **state)
{
	uint64_t marked;

	start_large_copy_out();
	marked = GPD_STAGING_SHARE_OUT + 1;
	assert_true(fake.stream.work > marked);
}

static void
an_error_in_the_middle_of_a_copy_out_is_its_answer(void **state)
{
	struct gp_args_gpCopyOut args = {
		.stream = FAKE_STREAM, .src = FAKE_WINDOW, .width = 4 << 20, .height = 1
	};

	fake_fail("cuMemcpyDtoHAsync", CUDA_ERROR_ILLEGAL_ADDRESS, 2);
	assert_int_equal(gpd_gpCopyOut(&fake.session, &args), GPD_LATER);
	fake_run_markers(&fake, -1);

	assert_int_equal(fake.reply_count, 1);
	assert_int_equal(fake.replies[0].result, CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(fake.session.sticky, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void
an_error_in_a_copy_in_takes_the_rest_of_the_tail(void **state)
{
	uint8_t *bytes = pattern(4 << 20);
	struct gp_args_gpCopyIn args = {
		.stream = FAKE_STREAM, .dst = FAKE_WINDOW, .width = 4 << 20, .height = 1
	};

	fake_fail("cuMemcpyHtoDAsync", CUDA_ERROR_UNKNOWN, 1);
	assert_int_equal(copy_in(&args, bytes, 4 << 20), CUDA_ERROR_UNKNOWN);
	assert_int_equal(fake.session.bulk_left, 0);
	args.stream = 77;
	assert_int_equal(copy_in(&args, bytes, 4 << 20), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(fake.session.bulk_left, 0);
	free(bytes);
}

static void
only_mapped_memory_is_touched(void **state)
{
	static const struct {
		uint64_t at, pitch, width, height;
	} bad[] = {
		{ MAPPED - 3, 0, 4, 1 },
		{ MAPPED, 0, 4, 1 },
		{ 0, 8, 16, 2 },
		{ 0, MAPPED, 4, 2 },
		{ 0, UINT64_MAX, 4, 3 },
		{ (uint64_t)0 - 8, 0, 16, 1 },
		{ (uint64_t)0 - FAKE_WINDOW, 0, 4, 1 },
	};
	uint8_t bytes[32] = { 0 };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		uint64_t at = FAKE_WINDOW + bad[i].at;
		struct gp_args_gpCopyIn in = { FAKE_STREAM,   at, bad[i].pitch, bad[i].width,
					       bad[i].height, 0 };
		struct gp_args_gpCopyOut out = { FAKE_STREAM, at, bad[i].pitch, bad[i].width,
						 bad[i].height };
		struct gp_args_gpFill fill = { FAKE_STREAM, at,           bad[i].pitch, 1,
					       0,           bad[i].width, bad[i].height };

		assert_int_equal(copy_in(&in, bytes, bad[i].width * bad[i].height),
				 CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(fake.session.bulk_left, 0);
		assert_int_equal(gpd_gpCopyOut(&fake.session, &out), CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(gpd_gpFill(&fake.session, &fill), CUDA_ERROR_INVALID_VALUE);
	}
	assert_string_equal(fake_calls, "");
	assert_string_equal(fake.violation, "");
}

static void
a_tail_of_another_size_breaks_the_protocol(void **state)
{
	uint8_t bytes[64] = { 0 };
	struct gp_args_gpCopyIn args = {
		.stream = FAKE_STREAM, .dst = FAKE_WINDOW, .width = 63, .height = 1
	};

	copy_in(&args, bytes, 64);
	assert_string_not_equal(fake.violation, "");

	fake.violation[0] = 0;
	args.width = (uint64_t)1 << 63;
	args.height = 2;
	copy_in(&args, bytes, 0);
	assert_string_not_equal(fake.violation, "");
	assert_string_equal(fake_calls, "");
}

static void
nothing_to_do_succeeds_at_once(void **state)
{
	struct gp_args_gpCopyIn in = { .stream = FAKE_STREAM, .dst = 1 };
	struct gp_args_gpCopyOut out = { .stream = FAKE_STREAM, .src = 1, .width = 5 };
	struct gp_args_gpCopyDevice device_copy = { .width = 5, .height = 5 };
	struct gp_args_gpFill fill = { .element_size = 4, .width = 5 };

	assert_int_equal(copy_in(&in, NULL, 0), CUDA_SUCCESS);
	assert_int_equal(gpd_gpCopyOut(&fake.session, &out), CUDA_SUCCESS);
	assert_int_equal(gpd_gpCopyDevice(&fake.session, &device_copy), CUDA_SUCCESS);
	assert_int_equal(gpd_gpFill(&fake.session, &fill), CUDA_SUCCESS);
	assert_string_equal(fake_calls, "");
}

static void
a_barrier_follows_the_copy_that_asks_for_it(void **state)
{
	uint8_t bytes[8] = { 0 };
	struct gp_args_gpCopyIn args = {
		.stream = FAKE_STREAM, .dst = FAKE_WINDOW, .width = 8, .height = 1
	};

	copy_in(&args, bytes, 8);
	assert_int_equal(fake.barriers, 0);
	args.flags = GP_COPY_BARRIER;
	copy_in(&args, bytes, 8);
	assert_int_equal(fake.barriers, 1);
}

static void
a_box_on_the_device_is_copied_by_the_smallest_means(void **state)
{
	static const struct {
		uint64_t pitch, slice, width, height, depth;
		const char *call;
	} boxes[] = {
		{ 0, 0, 100, 1, 1, "cuMemcpyDtoDAsync " WINDOW_1M " " WINDOW " 100\n" },
		{ 10, 0, 10, 10, 1, "cuMemcpyDtoDAsync " WINDOW_1M " " WINDOW " 100\n" },
		{ 16, 0, 10, 10, 1, "cuMemcpy3DAsync 10 x 10 x 1\n" },
		{ 10, 64, 10, 1, 7, "cuMemcpy3DAsync 10 x 7 x 1\n" },
		{ 16, 256, 10, 12, 5, "cuMemcpy3DAsync 10 x 12 x 5\n" },
	};
	uint8_t *bytes = pattern(4096);

	for (size_t i = 0; i < sizeof(boxes) / sizeof(*boxes); i++) {
		struct gp_args_gpCopyDevice args = {
			FAKE_STREAM,     FAKE_WINDOW + 0x100000, boxes[i].pitch, boxes[i].slice,
			FAKE_WINDOW,     boxes[i].pitch,         boxes[i].slice, boxes[i].width,
			boxes[i].height, boxes[i].depth,
		};

		memcpy(device, bytes, 4096);
		memset(device + 0x100000, 0, 4096);
		fake_forget_calls();
		assert_int_equal(gpd_gpCopyDevice(&fake.session, &args), CUDA_SUCCESS);
		assert_string_equal(fake_calls, boxes[i].call);
		for (size_t z = 0; z < boxes[i].depth; z++) {
			for (size_t y = 0; y < boxes[i].height; y++) {
				size_t at = z * boxes[i].slice + y * boxes[i].pitch;

				assert_memory_equal(device + 0x100000 + at, bytes + at,
						    boxes[i].width);
			}
		}
	}
	free(bytes);
}

static void
a_box_outside_mapped_memory_is_invalid(void **state)
{
	struct gp_args_gpCopyDevice good = {
		FAKE_STREAM, FAKE_WINDOW + 0x100000, 64, 4096, FAKE_WINDOW, 64, 4096, 64, 64, 4
	};
	struct gp_args_gpCopyDevice bad = good;

	assert_int_equal(gpd_gpCopyDevice(&fake.session, &good), CUDA_SUCCESS);
	bad.dst = FAKE_WINDOW + MAPPED - 4 * 4096 + 1;
	assert_int_equal(gpd_gpCopyDevice(&fake.session, &bad), CUDA_ERROR_INVALID_VALUE);
	bad = good;
	bad.src_slice = UINT64_MAX / 2;
	assert_int_equal(gpd_gpCopyDevice(&fake.session, &bad), CUDA_ERROR_INVALID_VALUE);
	bad = good;
	bad.src_slice = 4095;
	assert_int_equal(gpd_gpCopyDevice(&fake.session, &bad), CUDA_ERROR_INVALID_VALUE);
	bad = good;
	bad.depth = UINT64_MAX;
	assert_int_equal(gpd_gpCopyDevice(&fake.session, &bad), CUDA_ERROR_INVALID_VALUE);
	bad = good;
	bad.src_pitch = 100;
	bad.src_slice = 6400 + 50;
	assert_int_equal(gpd_gpCopyDevice(&fake.session, &bad), CUDA_ERROR_INVALID_VALUE);
}

static void
a_fill_writes_elements_of_its_size(void **state)
{
	static const struct {
		uint64_t pitch;
		uint32_t element;
		uint64_t width, height;
		const char *call;
	} fills[] = {
		{ 0, 1, 10, 1, "cuMemsetD8Async " WINDOW " 10\n" },
		{ 0, 2, 10, 1, "cuMemsetD16Async " WINDOW " 10\n" },
		{ 0, 4, 10, 1, "cuMemsetD32Async " WINDOW " 10\n" },
		{ 40, 4, 10, 3, "cuMemsetD32Async " WINDOW " 30\n" },
		{ 64, 1, 10, 3, "cuMemsetD2D8Async 10 x 3\n" },
		{ 64, 2, 10, 3, "cuMemsetD2D16Async 10 x 3\n" },
		{ 64, 4, 10, 3, "cuMemsetD2D32Async 10 x 3\n" },
	};
	const uint32_t value = 0x44332211;

	for (size_t i = 0; i < sizeof(fills) / sizeof(*fills); i++) {
		struct gp_args_gpFill args = { FAKE_STREAM,      FAKE_WINDOW, fills[i].pitch,
					       fills[i].element, value,       fills[i].width,
					       fills[i].height };

		memset(device, 0, 1024);
		fake_forget_calls();
		assert_int_equal(gpd_gpFill(&fake.session, &args), CUDA_SUCCESS);
		assert_string_equal(fake_calls, fills[i].call);
		for (size_t y = 0; y < fills[i].height; y++)
			for (size_t x = 0; x < fills[i].width; x++)
				assert_memory_equal(device + y * fills[i].pitch +
							    x * fills[i].element,
						    &value, fills[i].element);
	}
}

static void
a_fill_must_be_aligned_to_its_elements(void **state)
{
	struct gp_args_gpFill args = { FAKE_STREAM, FAKE_WINDOW + 2, 0, 4, 0, 1, 1 };

	assert_int_equal(gpd_gpFill(&fake.session, &args), CUDA_ERROR_INVALID_VALUE);
	args.element_size = 2;
	assert_int_equal(gpd_gpFill(&fake.session, &args), CUDA_SUCCESS);
	args.element_size = 3;
	assert_int_equal(gpd_gpFill(&fake.session, &args), CUDA_ERROR_INVALID_VALUE);
	args.element_size = 0;
	assert_int_equal(gpd_gpFill(&fake.session, &args), CUDA_ERROR_INVALID_VALUE);
}

/* One granule of device 1 behind what is mapped of device 0, where the streams are. */
static void
map_apart(void)
{
	assert_int_equal(gpd_memory_map(&fake.session, FAKE_WINDOW + MAPPED, FAKE_GRANULE, 1),
			 CUDA_SUCCESS);
	memset(device + MAPPED, 0x5a, 64);
	fake_forget_calls();
}

static void
a_copy_between_devices_names_both(void **state)
{
	struct gp_args_gpCopyDevice args = { .stream = FAKE_STREAM,
					     .dst = FAKE_WINDOW,
					     .src = FAKE_WINDOW + MAPPED,
					     .width = 64,
					     .height = 1,
					     .depth = 1 };

	map_apart();
	assert_int_equal(gpd_gpCopyDevice(&fake.session, &args), CUDA_SUCCESS);
	assert_int_equal(fake_count_calls("cuMemcpyPeerAsync " WINDOW " of 100, "), 1);
	assert_non_null(strstr(fake_calls, " of 101, 64\n"));
	assert_int_equal(fake_count_calls("cuMemcpyDtoDAsync"), 0);
	assert_memory_equal(device, device + MAPPED, 64);
	args.src = FAKE_WINDOW + 4096;
	assert_int_equal(gpd_gpCopyDevice(&fake.session, &args), CUDA_SUCCESS);
	assert_int_equal(fake_count_calls("cuMemcpyDtoDAsync"), 1);
}

static void
what_a_stream_does_not_reach_is_worked_on_aside(void **state)
{
	const struct gp_args_gpFill fill = { .stream = FAKE_STREAM,
					     .dst = FAKE_WINDOW + MAPPED,
					     .pitch = 32,
					     .width = 32,
					     .height = 1,
					     .element_size = 1,
					     .value = 7 };

	map_apart();
	assert_int_equal(gpd_gpFill(&fake.session, &fill), CUDA_SUCCESS);
	assert_int_equal(device[MAPPED + 31], 7);
	assert_int_equal(device[MAPPED + 32], 0x5a);
	/* Behind what the stream has (gpd_stream_record() is the fake's), and the stream behind it.
	 */
	assert_int_equal(fake_count_calls("cuStreamCreate"), 1);
	assert_int_equal(fake_count_calls("cuEventRecord"), 1);
	assert_int_equal(fake_count_calls("cuStreamWaitEvent"), 2);
	assert_int_equal(gpd_gpFill(&fake.session, &fill), CUDA_SUCCESS);
	assert_int_equal(fake_count_calls("cuStreamCreate"), 1);
	assert_int_equal(fake_count_calls("cuStreamWaitEvent"), 4);
	gpd_stream_forget_aside(&fake.stream);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_small_copy_costs_the_driver_one_call),
		TEST(bytes_arrive_whole),
		TEST(bytes_of_the_record_arrive),
		TEST(a_record_with_other_bytes_than_it_says_ends_the_session),
		TEST(rows_arrive_at_their_pitch),
		TEST(rows_go_out_packed),
		TEST(a_copy_out_is_answered_once_when_all_is_sent),
		TEST(a_short_copy_out_comes_in_its_answer),
		TEST(every_part_of_a_copy_counts_as_work),
		TEST(a_large_copy_out_goes_on_as_its_parts_are_sent),
		TEST(other_streams_go_on_during_a_large_copy_out),
		TEST(what_follows_a_large_copy_out_comes_behind_its_last_part),
		TEST(copies_out_of_one_stream_queue_up),
		TEST(a_client_that_only_asks_is_made_to_read),
		TEST(blocking_streams_and_the_default_stream_wait_for_each_other),
		TEST(a_session_may_end_in_the_middle_of_a_copy_out),
		TEST(a_stream_with_parts_to_come_is_not_idle),
		TEST(an_error_in_the_middle_of_a_copy_out_is_its_answer),
		TEST(an_error_in_a_copy_in_takes_the_rest_of_the_tail),
		TEST(only_mapped_memory_is_touched),
		TEST(a_tail_of_another_size_breaks_the_protocol),
		TEST(nothing_to_do_succeeds_at_once),
		TEST(a_barrier_follows_the_copy_that_asks_for_it),
		TEST(a_box_on_the_device_is_copied_by_the_smallest_means),
		TEST(a_box_outside_mapped_memory_is_invalid),
		TEST(a_fill_writes_elements_of_its_size),
		TEST(a_fill_must_be_aligned_to_its_elements),
		cmocka_unit_test_setup_teardown(a_copy_between_devices_names_both, setup, teardown),
		cmocka_unit_test_setup_teardown(what_a_stream_does_not_reach_is_worked_on_aside,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
