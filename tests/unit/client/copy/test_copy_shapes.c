/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of rectangles and boxes, and into what records they are cut. */
#include "client/host/pending_copy.h"
#include "gpc_calls.h"
#include "tests/unit/client/fake_wire.h"

#include <stdlib.h>
#include <string.h>

static CUDA_MEMCPY2D
to_device_2d(const void *host, size_t host_pitch, CUdeviceptr device, size_t pitch, size_t width,
	     size_t height)
{
	return (CUDA_MEMCPY2D){
		.srcMemoryType = CU_MEMORYTYPE_HOST,
		.srcHost = host,
		.srcPitch = host_pitch,
		.dstMemoryType = CU_MEMORYTYPE_DEVICE,
		.dstDevice = device,
		.dstPitch = pitch,
		.WidthInBytes = width,
		.Height = height,
	};
}

FAKE_WIRE_TEST(no_record_is_larger_than_the_daemon_allows)
{
	uint8_t *out = fake_wire_pattern(100 * 3000, 16);
	CUdeviceptr device = fake_wire_alloc(100 * 4096);
	CUDA_MEMCPY2D copy = to_device_2d(out, 3000, device, 4096, 3000, 100);

	fake.facts->max_bulk = 10000;
	CU(gpc_cuMemcpyHtoD_v2(device, out, 100 * 3000));
	assert_memory_equal(fake_wire_at(device), out, 100 * 3000);
	CU(gpc_cuMemcpy2D_v2(&copy));
	assert_memory_equal(fake_wire_at(device + 99 * 4096), out + 99 * 3000, 3000);
	fake.facts->max_bulk = 1000;
	CU(gpc_cuMemcpy2D_v2(&copy));

	assert_int_equal(fake.copies_in, 30 + 34 + 300);
	assert_int_equal(fake.barriers, 3);
	assert_int_equal(fake.largest_copy_in, 10000);
	free(out);
}

FAKE_WIRE_TEST(few_bytes_travel_in_the_record)
{
	uint8_t *out = fake_wire_pattern(16385, 3);
	CUdeviceptr device = fake_wire_alloc(65536);
	CUDA_MEMCPY2D copy = to_device_2d(out, 128, device, 512, 100, 100);

	CU(gpc_cuMemcpyHtoD_v2(device, out, 16384));
	assert_memory_equal(fake_wire_at(device), out, 16384);
	assert_int_equal(fake.copies_in_short, 1);
	assert_int_equal(fake.barriers, 1);
	CU(gpc_cuMemcpy2D_v2(&copy));
	assert_memory_equal(fake_wire_at(device + 99 * 512), out + 99 * 128, 100);
	assert_int_equal(fake.copies_in_short, 2);
	CU(gpc_cuMemcpyHtoD_v2(device, out, 16385));

	assert_int_equal(fake.copies_in_short, 2);
	assert_int_equal(fake.copies_in, 3);
	free(out);
}

static CUDA_MEMCPY2D
turned(const CUDA_MEMCPY2D *copy, void *host)
{
	return (CUDA_MEMCPY2D){
		.srcMemoryType = copy->dstMemoryType,
		.srcDevice = copy->dstDevice,
		.srcPitch = copy->dstPitch,
		.srcXInBytes = copy->dstXInBytes,
		.srcY = copy->dstY,
		.dstMemoryType = copy->srcMemoryType,
		.dstHost = host,
		.dstPitch = copy->srcPitch,
		.dstXInBytes = copy->srcXInBytes,
		.dstY = copy->srcY,
		.WidthInBytes = copy->WidthInBytes,
		.Height = copy->Height,
	};
}

/* There and back between two pitches, from an inner corner; the rest stays as it was. */
static void
check_rectangle(size_t width, size_t height, size_t host_pitch, size_t pitch)
{
	size_t host_size = host_pitch * (height + 2), size = pitch * (height + 3);
	uint8_t *out = fake_wire_pattern(host_size, 9), *back = calloc(1, host_size);
	CUdeviceptr device = fake_wire_alloc(size);
	CUDA_MEMCPY2D copy = to_device_2d(out, host_pitch, device, pitch, width, height), home;

	memset(fake_wire_at(device), 0xee, size);
	copy.srcXInBytes = 3;
	copy.srcY = 2;
	copy.dstXInBytes = 5;
	copy.dstY = 1;
	CU(gpc_cuMemcpy2D_v2(&copy));
	home = turned(&copy, back);
	CU(gpc_cuMemcpy2D_v2(&home));

	for (size_t y = 0; y < height + 2; y++) {
		for (size_t x = 0; x < host_pitch; x++) {
			bool inside = y >= 2 && x >= 3 && x < 3 + width;
			uint8_t want = inside ? out[y * host_pitch + x] : 0;

			if (back[y * host_pitch + x] != want)
				fail_msg("wrong byte at row %zu, column %zu", y, x);
		}
	}
	for (size_t y = 0; y < height + 3; y++) {
		const uint8_t *row = fake_wire_at(device + y * pitch);

		assert_int_equal(row[4], 0xee);
		assert_int_equal(row[width + 5], 0xee);
	}
	assert_int_equal(fake.barriers, 1);
	fake.barriers = 0;
	CU(gpc_cuMemFree_v2(device));
	free(out);
	free(back);
}

FAKE_WIRE_TEST(rectangles_keep_their_shape)
{
	check_rectangle(1, 1, 16, 32);
	check_rectangle(100, 37, 111, 512);
	check_rectangle(4000, 700, 4096, 4608);
	check_rectangle(2047, 300, 2050, 2054);
	check_rectangle(3, 5000, 7, 16);
	check_rectangle(9 * FAKE_WIRE_MIB, 2, 9 * FAKE_WIRE_MIB + 8, 9 * FAKE_WIRE_MIB + 512);
}

FAKE_WIRE_TEST(packed_rows_travel_as_one)
{
	uint8_t *out = fake_wire_pattern(64 * 1000, 10);
	CUdeviceptr device = fake_wire_alloc(64 * 1000);
	CUDA_MEMCPY2D copy = to_device_2d(out, 64, device, 64, 64, 1000);

	CU(gpc_cuMemcpy2D_v2(&copy));
	assert_int_equal(fake.copies_in, 1);
	assert_memory_equal(fake_wire_at(device), out, 64 * 1000);
	free(out);
}

FAKE_WIRE_TEST(rectangles_are_checked)
{
	uint8_t *host = fake_wire_pattern(10000, 11);
	CUdeviceptr device = fake_wire_alloc(10240);
	CUDA_MEMCPY2D good = to_device_2d(host, 100, device, 512, 100, 20), bad;

	CU(gpc_cuMemcpy2D_v2(&good));
	bad = good, bad.srcPitch = 99;
	INVALID(gpc_cuMemcpy2D_v2(&bad));
	bad = good, bad.dstPitch = 10;
	INVALID(gpc_cuMemcpy2D_v2(&bad));
	bad = good, bad.srcXInBytes = 1;
	INVALID(gpc_cuMemcpy2D_v2(&bad));
	bad = good, bad.dstY = 1;
	INVALID(gpc_cuMemcpy2D_v2(&bad));
	bad = good, bad.dstY = SIZE_MAX / 256;
	INVALID(gpc_cuMemcpy2D_v2(&bad));
	bad = good, bad.srcHost = NULL;
	INVALID(gpc_cuMemcpy2D_v2(&bad));
	bad = good, bad.srcMemoryType = 0;
	INVALID(gpc_cuMemcpy2D_v2(&bad));
	bad = good, bad.Height = SIZE_MAX;
	INVALID(gpc_cuMemcpy2D_v2(&bad));
	bad = good, bad.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	INVALID(gpc_cuMemcpy2D_v2(&bad));
	bad.srcArray = (CUarray)&bad;
	assert_int_equal(gpc_cuMemcpy2D_v2(&bad), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(fake.copies_in, 1);
	free(host);
}

static CUDA_MEMCPY3D
box(size_t width, size_t height, size_t depth)
{
	return (CUDA_MEMCPY3D){ .WidthInBytes = width, .Height = height, .Depth = depth };
}

/* A box inside a larger one, there, across the device, and back. */
FAKE_WIRE_TEST(boxes_keep_their_shape)
{
	enum {
		WIDTH = 30,
		HEIGHT = 7,
		DEPTH = 40
	};
	const size_t host_pitch = 50, host_height = 9, pitch = 512, rows = 8;
	size_t host_size = host_pitch * host_height * DEPTH;
	uint8_t *out = fake_wire_pattern(host_size, 12), *back = calloc(1, host_size);
	CUdeviceptr device = fake_wire_alloc(pitch * rows * DEPTH);
	CUdeviceptr other = fake_wire_alloc(pitch * rows * DEPTH);
	CUDA_MEMCPY3D copy = box(WIDTH, HEIGHT, DEPTH);

	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = out;
	copy.srcPitch = host_pitch;
	copy.srcHeight = host_height;
	copy.srcXInBytes = 4;
	copy.srcY = 2;
	copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.dstDevice = device;
	copy.dstPitch = pitch;
	copy.dstHeight = rows;
	CU(gpc_cuMemcpy3D_v2(&copy));

	copy = box(WIDTH, HEIGHT, DEPTH);
	copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.srcDevice = device;
	copy.srcPitch = pitch;
	copy.srcHeight = rows;
	copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
	copy.dstDevice = other;
	copy.dstPitch = pitch;
	copy.dstHeight = rows;
	CU(gpc_cuMemcpy3DAsync_v2(&copy, FAKE_WIRE_STREAM));

	copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
	copy.srcDevice = other;
	copy.dstDevice = (uintptr_t)back;
	copy.dstPitch = host_pitch;
	copy.dstHeight = host_height;
	fake.lazy = true;
	CU(gpc_cuMemcpy3D_v2(&copy));

	for (size_t z = 0; z < DEPTH; z++) {
		for (size_t y = 0; y < HEIGHT; y++)
			assert_memory_equal(back + (z * host_height + y) * host_pitch,
					    out + (z * host_height + y + 2) * host_pitch + 4,
					    WIDTH);
	}
	assert_int_equal(fake.barriers, 1);
	assert_int_equal(fake.copies_out, DEPTH);
	free(out);
	free(back);
}

FAKE_WIRE_TEST(boxes_without_gaps_travel_as_one)
{
	uint8_t *host = fake_wire_pattern(8000, 15), *back = calloc(1, 8000);
	CUdeviceptr device = fake_wire_alloc(8000);
	CUDA_MEMCPY3D copy = box(40, 10, 20);

	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = host;
	copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.dstDevice = device;
	CU(gpc_cuMemcpy3D_v2(&copy));
	CU(gpc_cuMemcpyDtoH_v2(back, device, 8000));

	assert_memory_equal(back, host, 8000);
	assert_int_equal(fake.copies_in, 1);
	free(host);
	free(back);
}

FAKE_WIRE_TEST(boxes_in_pinned_memory_settle_slice_by_slice)
{
	const size_t slice = 16 * 8;
	uint8_t *host, *out = fake_wire_pattern(40 * 512, 13);
	CUdeviceptr device = fake_wire_alloc(40 * 512);
	CUDA_MEMCPY3D copy = box(16, 3, 40);

	CU(gpc_cuMemHostAlloc((void **)&host, 40 * slice, 0));
	fake.lazy = true;
	CU(gpc_cuMemcpyHtoD_v2(device, out, 40 * 512));
	copy.srcMemoryType = CU_MEMORYTYPE_DEVICE;
	copy.srcDevice = device;
	copy.srcPitch = 64;
	copy.srcHeight = 8;
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = host;
	copy.dstPitch = 16;
	copy.dstHeight = 8;
	CU(gpc_cuMemcpy3DAsync_v2(&copy, FAKE_WIRE_STREAM));
	CU(gpc_pending_copy_settle(host + 39 * slice, 1));

	for (size_t z = 0; z < 40; z++) {
		for (size_t y = 0; y < 3; y++)
			assert_memory_equal(host + z * slice + y * 16, out + z * 512 + y * 64, 16);
	}
	free(out);
}

FAKE_WIRE_TEST(boxes_are_checked)
{
	uint8_t *host = fake_wire_pattern(10000, 14);
	CUdeviceptr device = fake_wire_alloc(10240);
	CUDA_MEMCPY3D good = box(100, 5, 4), bad;

	good.srcMemoryType = CU_MEMORYTYPE_HOST;
	good.srcHost = host;
	good.srcPitch = 100;
	good.srcHeight = 5;
	good.dstMemoryType = CU_MEMORYTYPE_DEVICE;
	good.dstDevice = device;
	good.dstPitch = 512;
	good.dstHeight = 5;
	CU(gpc_cuMemcpy3D_v2(&good));
	for (size_t y = 0; y < 20; y++)
		assert_memory_equal(fake_wire_at(device + y * 512), host + y * 100, 100);
	assert_int_equal(fake.copies_in, 1);
	bad = good, bad.srcHeight = 4;
	INVALID(gpc_cuMemcpy3D_v2(&bad));
	bad = good, bad.dstZ = 1;
	INVALID(gpc_cuMemcpy3D_v2(&bad));
	bad = good, bad.dstY = 1;
	INVALID(gpc_cuMemcpy3D_v2(&bad));
	bad = good, bad.Depth = SIZE_MAX / 2;
	INVALID(gpc_cuMemcpy3D_v2(&bad));
	bad = good, bad.srcHeight = 4, bad.Depth = 1;
	INVALID(gpc_cuMemcpy3D_v2(&bad));
	assert_int_equal(fake.copies_in, 1);
	free(host);
}

UNIT_TEST_MAIN(NULL, NULL)
