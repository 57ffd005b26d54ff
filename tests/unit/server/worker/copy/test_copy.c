/* SPDX-License-Identifier: Apache-2.0 */
/* Copies to and from the device, in parts, and what waits for what. */
#include "tests/unit/server/copy_fixture.h"

static CUresult
copy_in(const struct gp_args_gpCopyIn *args, const uint8_t *bytes, size_t size)
{
	fake.bulk = bytes;
	fake.session.current.bulk_left = size;
	return gpd_gpCopyIn(&fake.session, args);
}

TEST(a_small_copy_costs_the_driver_one_call)
{
	uint8_t *bytes = pattern(64);
	struct gp_args_gpCopyIn args = {
		.stream = FAKE_STREAM, .dst = FAKE_WINDOW, .width = 64, .height = 1
	};

	copy_in(&args, bytes, 64);

	assert_string_equal(fake_driver_calls, "cuMemHostAlloc 8454144\n"
					       "cuMemcpyHtoDAsync " WINDOW " 64\n");
	fake_driver_clear_calls();
	copy_in(&args, bytes, 64);
	assert_string_equal(fake_driver_calls, "cuMemcpyHtoDAsync " WINDOW " 64\n");
	free(bytes);
}

TEST(bytes_arrive_whole)
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
		assert_int_equal(fake.session.current.bulk_left, 0);
		free(bytes);
	}
}

TEST(bytes_of_the_record_arrive)
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
	assert_int_equal(fake.session.current.bulk_left, 0);
	assert_null(fake.session.current.bulk_read);
	assert_int_equal(fake.session.account.entry->counts.copied_in, 300);
	free(bytes);
}

TEST(a_record_with_other_bytes_than_it_says_ends_the_session)
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
	assert_null(fake.session.current.bulk_read);
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

TEST(rows_arrive_at_their_pitch)
{
	rows_in(100, 7, 5);
	rows_in(8192, 8000, 700);
	rows_in(64, 64, 100);
	assert_int_equal(fake_driver_count_calls("cuMemcpyHtoDAsync " WINDOW " 6400"), 1);
	rows_in(3 << 20, (2 << 20) + 5, 3);
}

TEST(rows_go_out_packed)
{
	uint8_t *bytes = pattern(8192 * 700);
	struct gp_args_gpCopyOut args = { .stream = FAKE_STREAM,
					  .src = FAKE_WINDOW,
					  .pitch = 8192,
					  .width = 8000,
					  .height = 700 };

	memcpy(device, bytes, 8192 * 700);
	assert_int_equal(gpd_gpCopyOut(&fake.session, &args), GPD_LATER);
	fake_session_run_markers(&fake, -1);

	assert_int_equal(fake.data_size, 8000 * 700);
	for (size_t y = 0; y < 700; y++)
		assert_memory_equal(fake.data + y * 8000, bytes + y * 8192, 8000);
	assert_int_equal(fake.reply_count, 1);
	assert_int_equal(fake.replies[0].result, CUDA_SUCCESS);
	assert_int_equal(fake.replies[0].request, 9);
	assert_int_equal(fake.replies[0].call, 0x302);
	free(bytes);
}

TEST(a_copy_out_is_answered_once_when_all_is_sent)
{
	struct gp_args_gpCopyOut args = {
		.stream = FAKE_STREAM, .src = FAKE_WINDOW, .width = 8 << 20, .height = 1
	};

	assert_int_equal(gpd_gpCopyOut(&fake.session, &args), GPD_LATER);
	assert_int_equal(fake_session_markers(&fake), 8);
	fake_session_run_markers(&fake, 7);
	assert_int_equal(fake.reply_count, 0);
	assert_int_equal(fake.data_notes, 7);
	fake_session_run_markers(&fake, 1);

	assert_int_equal(fake.reply_count, 1);
	assert_int_equal(fake.data_size, 8 << 20);
}

TEST(a_short_copy_out_comes_in_its_answer)
{
	struct gp_args_gpCopyOut args = {
		.stream = FAKE_STREAM, .src = FAKE_WINDOW, .width = 4, .height = 1
	};

	memcpy(device, "yes", 4);
	assert_int_equal(gpd_gpCopyOut(&fake.session, &args), GPD_LATER);
	fake_session_run_markers(&fake, -1);

	assert_int_equal(fake.data_notes, 0);
	assert_int_equal(fake.reply_count, 1);
	assert_string_equal(fake.data, "yes");
}

TEST(every_part_of_a_copy_counts_as_work)
{
	struct gp_args_gpCopyOut args = {
		.stream = FAKE_STREAM, .src = FAKE_WINDOW, .width = 8 << 20, .height = 1
	};

	gpd_gpCopyOut(&fake.session, &args);

	assert_true(fake.stream.work >= 8);
	assert_int_equal(fake.stream.work, fake.session.progress.work);
}

static void
start_large_copy_out(void)
{
	struct gp_args_gpCopyOut args = {
		.stream = FAKE_STREAM, .src = FAKE_WINDOW, .width = MAPPED, .height = 1
	};

	assert_int_equal(gpd_gpCopyOut(&fake.session, &args), GPD_LATER);
}

TEST(a_large_copy_out_goes_on_as_its_parts_are_sent)
{
	for (size_t i = 0; i < MAPPED; i += 4096)
		device[i] = (uint8_t)(i >> 12);
	start_large_copy_out();
	assert_int_equal(fake_session_markers(&fake), GPD_STAGING_SHARE_OUT);
	assert_true(gpd_copy_continue(&fake.session));
	assert_int_equal(fake_session_markers(&fake), GPD_STAGING_SHARE_OUT);

	fake_session_run_markers(&fake, 10);
	assert_true(gpd_copy_continue(&fake.session));
	assert_int_equal(fake_session_markers(&fake), GPD_STAGING_SHARE_OUT);
	fake_session_run_markers(&fake, -1);
	assert_int_equal(fake.reply_count, 0);
	assert_false(gpd_copy_continue(&fake.session));
	fake_session_run_markers(&fake, -1);

	assert_int_equal(fake.reply_count, 1);
	assert_int_equal(fake.data_size, MAPPED);
	assert_memory_equal(fake.data, device, MAPPED);
}

TEST(other_streams_go_on_during_a_large_copy_out)
{
	struct gp_args_gpFill fill = { FAKE_OTHER_STREAM, FAKE_WINDOW, 0, 4, 0, 1, 1 };
	uint8_t bytes[1 << 18] = { 0 };
	struct gp_args_gpCopyIn in = {
		.stream = FAKE_OTHER_STREAM, .dst = FAKE_WINDOW, .width = sizeof(bytes), .height = 1
	};
	uint32_t other = FAKE_OTHER_STREAM;

	start_large_copy_out();
	fake_driver_clear_calls();
	gpd_copy_wait_before_call(&fake.session, GP_CALL_gpFill, NULL, 0);
	assert_int_equal(gpd_gpFill(&fake.session, &fill), CUDA_SUCCESS);
	gpd_copy_wait_before_call(&fake.session, GP_CALL_gpCopyIn, NULL, 0);
	assert_int_equal(copy_in(&in, bytes, sizeof(bytes)), CUDA_SUCCESS);
	gpd_copy_wait_before_call(&fake.session, GP_CALL_cuStreamSynchronize, &other,
				  sizeof(other));

	assert_int_equal(fake.data_notes, 0);
	assert_int_equal(fake_driver_count_calls("cuMemcpyDtoHAsync"), 0);
}

TEST(what_follows_a_large_copy_out_comes_behind_its_last_part)
{
	struct gp_args_gpFill fill = { FAKE_STREAM, FAKE_WINDOW, 0, 4, 0, 1, 1 };
	uint32_t stream = FAKE_STREAM;

	start_large_copy_out();
	assert_int_equal(gpd_gpFill(&fake.session, &fill), CUDA_SUCCESS);
	assert_int_equal(fake_driver_count_calls("cuMemcpyDtoHAsync"), MAPPED / GPD_STAGING_SLOT);
	assert_null(fake.session.copies->out);

	fake_session_run_markers(&fake, -1);
	start_large_copy_out();
	gpd_copy_wait_before_call(&fake.session, GP_CALL_cuStreamSynchronize, &stream,
				  sizeof(stream));
	assert_null(fake.session.copies->out);

	fake_session_run_markers(&fake, -1);
	fake.reply_count = 0;
	start_large_copy_out();
	gpd_copy_wait_before_call(&fake.session, GP_CALL_gpFence, NULL, 0);
	assert_null(fake.session.copies->out);
}

TEST(copies_out_of_one_stream_queue_up)
{
	struct gp_args_gpCopyOut args = { .stream = FAKE_STREAM, .width = 4, .height = 1 };

	device[MAPPED - 1] = 77;
	start_large_copy_out();
	args.src = FAKE_WINDOW + MAPPED - 4;
	assert_int_equal(gpd_gpCopyOut(&fake.session, &args), GPD_LATER);
	assert_int_equal(fake.data_notes, 0);
	while (gpd_copy_continue(&fake.session))
		fake_session_run_markers(&fake, 7);
	fake_session_run_markers(&fake, -1);

	assert_int_equal(fake.reply_count, 2);
	assert_int_equal(fake.data_size, MAPPED + 4);
	assert_int_equal(fake.data[MAPPED + 3], 77);
}

TEST(a_client_that_only_asks_is_made_to_read)
{
	struct gp_args_gpCopyOut args = {
		.stream = FAKE_STREAM, .src = FAKE_WINDOW, .width = 4, .height = 1
	};
	unsigned int waiting = 0;

	fake.keeps_no_replies = true;
	start_large_copy_out();
	for (int i = 0; i < 5000; i++) {
		fake_driver_clear_calls();
		if (!fake.session.copies->out)
			fake_session_run_markers(&fake, -1);
		assert_int_equal(gpd_gpCopyOut(&fake.session, &args), GPD_LATER);
		waiting = fake.session.copies->out ? waiting + 1 : 0;
		assert_true(waiting < 2000);
	}
}

TEST(blocking_streams_and_the_default_stream_wait_for_each_other)
{
	uint32_t other = FAKE_OTHER_STREAM;

	fake.stream.legacy = true;
	start_large_copy_out();
	gpd_copy_await(&fake.session, &fake.other);
	assert_non_null(fake.session.copies->out);
	fake.other.blocking = true;
	gpd_copy_wait_before_call(&fake.session, GP_CALL_cuStreamQuery, &other, sizeof(other));
	assert_null(fake.session.copies->out);
}

TEST(a_session_may_end_in_the_middle_of_a_copy_out)
{
	start_large_copy_out();
	fake_session_run_markers(&fake, 3);
	fake_session_run_markers(&fake, -1);
	gpd_copy_destroy_all(&fake.session);

	assert_null(fake.session.copies->out);
	assert_int_equal(fake.reply_count, 0);
}

TEST(a_stream_with_parts_to_come_is_not_idle)
{
	uint64_t marked;

	start_large_copy_out();
	marked = GPD_STAGING_SHARE_OUT + 1;
	assert_true(fake.stream.work > marked);
}

TEST(an_error_in_the_middle_of_a_copy_out_is_its_answer)
{
	struct gp_args_gpCopyOut args = {
		.stream = FAKE_STREAM, .src = FAKE_WINDOW, .width = 4 << 20, .height = 1
	};

	fake_driver_fail("cuMemcpyDtoHAsync", CUDA_ERROR_ILLEGAL_ADDRESS, 2);
	assert_int_equal(gpd_gpCopyOut(&fake.session, &args), GPD_LATER);
	fake_session_run_markers(&fake, -1);

	assert_int_equal(fake.reply_count, 1);
	assert_int_equal(fake.replies[0].result, CUDA_ERROR_ILLEGAL_ADDRESS);
	assert_int_equal(fake.session.sticky, CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(an_error_in_a_copy_in_takes_the_rest_of_the_tail)
{
	uint8_t *bytes = pattern(4 << 20);
	struct gp_args_gpCopyIn args = {
		.stream = FAKE_STREAM, .dst = FAKE_WINDOW, .width = 4 << 20, .height = 1
	};

	fake_driver_fail("cuMemcpyHtoDAsync", CUDA_ERROR_UNKNOWN, 1);
	assert_int_equal(copy_in(&args, bytes, 4 << 20), CUDA_ERROR_UNKNOWN);
	assert_int_equal(fake.session.current.bulk_left, 0);
	args.stream = 77;
	assert_int_equal(copy_in(&args, bytes, 4 << 20), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(fake.session.current.bulk_left, 0);
	free(bytes);
}

TEST(only_mapped_memory_is_touched)
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
		assert_int_equal(fake.session.current.bulk_left, 0);
		assert_int_equal(gpd_gpCopyOut(&fake.session, &out), CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(gpd_gpFill(&fake.session, &fill), CUDA_ERROR_INVALID_VALUE);
	}
	/* Elements of the second row that are not aligned. */
	for (uint64_t pitch = 9; pitch < 12; pitch++) {
		struct gp_args_gpFill fill = { FAKE_STREAM, FAKE_WINDOW, pitch, 4, 0, 2, 2 };

		assert_int_equal(gpd_gpFill(&fake.session, &fill), CUDA_ERROR_INVALID_VALUE);
	}
	assert_string_equal(fake_driver_calls, "");
	assert_string_equal(fake.violation, "");
}

TEST(a_tail_of_another_size_breaks_the_protocol)
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
	assert_string_equal(fake_driver_calls, "");
}

TEST(nothing_to_do_succeeds_at_once)
{
	struct gp_args_gpCopyIn in = { .stream = FAKE_STREAM, .dst = 1 };
	struct gp_args_gpCopyOut out = { .stream = FAKE_STREAM, .src = 1, .width = 5 };
	struct gp_args_gpCopyDevice device_copy = { .width = 5, .height = 5 };
	struct gp_args_gpFill fill = { .element_size = 4, .width = 5 };

	assert_int_equal(copy_in(&in, NULL, 0), CUDA_SUCCESS);
	assert_int_equal(gpd_gpCopyOut(&fake.session, &out), CUDA_SUCCESS);
	assert_int_equal(gpd_gpCopyDevice(&fake.session, &device_copy), CUDA_SUCCESS);
	assert_int_equal(gpd_gpFill(&fake.session, &fill), CUDA_SUCCESS);
	assert_string_equal(fake_driver_calls, "");
}

TEST(a_barrier_follows_the_copy_that_asks_for_it)
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

UNIT_TEST_MAIN(NULL, NULL)
