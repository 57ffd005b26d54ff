/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills within devices. */
#include "tests/unit/server/copy_fixture.h"

TEST(a_box_on_the_device_is_copied_by_the_smallest_means)
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
		fake_driver_clear_calls();
		assert_int_equal(gpd_gpCopyDevice(&fake.session, &args), CUDA_SUCCESS);
		assert_string_equal(fake_driver_calls, boxes[i].call);
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

TEST(a_box_outside_mapped_memory_is_invalid)
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

TEST(a_fill_writes_elements_of_its_size)
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
		fake_driver_clear_calls();
		assert_int_equal(gpd_gpFill(&fake.session, &args), CUDA_SUCCESS);
		assert_string_equal(fake_driver_calls, fills[i].call);
		for (size_t y = 0; y < fills[i].height; y++)
			for (size_t x = 0; x < fills[i].width; x++)
				assert_memory_equal(device + y * fills[i].pitch +
							    x * fills[i].element,
						    &value, fills[i].element);
	}
}

TEST(a_fill_must_be_aligned_to_its_elements)
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

/* One granule of device 1 after the mapped memory of device 0, where the streams are. */
static void
map_apart(void)
{
	assert_int_equal(gpd_memory_map(&fake.session, FAKE_WINDOW + MAPPED, FAKE_GRANULE, 1),
			 CUDA_SUCCESS);
	memset(device + MAPPED, 0x5a, 64);
	fake_driver_clear_calls();
}

TEST(a_copy_between_devices_names_both)
{
	struct gp_args_gpCopyDevice args = { .stream = FAKE_STREAM,
					     .dst = FAKE_WINDOW,
					     .src = FAKE_WINDOW + MAPPED,
					     .width = 64,
					     .height = 1,
					     .depth = 1 };

	map_apart();
	assert_int_equal(gpd_gpCopyDevice(&fake.session, &args), CUDA_SUCCESS);
	assert_int_equal(fake_driver_count_calls("cuMemcpyPeerAsync " WINDOW " of 100, "), 1);
	assert_non_null(strstr(fake_driver_calls, " of 101, 64\n"));
	assert_int_equal(fake_driver_count_calls("cuMemcpyDtoDAsync"), 0);
	assert_memory_equal(device, device + MAPPED, 64);
	args.src = FAKE_WINDOW + 4096;
	assert_int_equal(gpd_gpCopyDevice(&fake.session, &args), CUDA_SUCCESS);
	assert_int_equal(fake_driver_count_calls("cuMemcpyDtoDAsync"), 1);
}

TEST(what_a_stream_does_not_reach_is_worked_on_aside)
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
	assert_int_equal(fake_driver_count_calls("cuStreamCreate"), 1);
	assert_int_equal(fake_driver_count_calls("cuEventRecord"), 1);
	assert_int_equal(fake_driver_count_calls("cuStreamWaitEvent"), 2);
	assert_int_equal(gpd_gpFill(&fake.session, &fill), CUDA_SUCCESS);
	assert_int_equal(fake_driver_count_calls("cuStreamCreate"), 1);
	assert_int_equal(fake_driver_count_calls("cuStreamWaitEvent"), 4);
	gpd_stream_destroy_peer_stream(&fake.stream);
}

UNIT_TEST_MAIN(NULL, NULL)
