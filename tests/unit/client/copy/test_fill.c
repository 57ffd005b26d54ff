/* SPDX-License-Identifier: Apache-2.0 */
#include "gpc_calls.h"
#include "tests/unit/client/fake_wire.h"

FAKE_WIRE_TEST(fills_write_elements)
{
	CUdeviceptr device = fake_wire_alloc(4096);
	const uint16_t *words = (const uint16_t *)(const void *)fake_wire_at(device);
	const uint32_t *longs = (const uint32_t *)(const void *)fake_wire_at(device);

	CU(gpc_cuMemsetD8_v2(device, 0xff, 4096));
	CU(gpc_cuMemsetD16_v2(device + 2, 0x1234, 10));
	assert_int_equal(words[0], 0xffff);
	assert_int_equal(words[10], 0x1234);
	assert_int_equal(words[11], 0xffff);
	CU(gpc_cuMemsetD32Async(device, 0xdeadbeef, 1024, FAKE_WIRE_STREAM));
	assert_int_equal(longs[1023], 0xdeadbeef);
	CU(gpc_cuMemsetD2D8_v2(device, 64, 0, 3, 4));
	assert_int_equal(longs[0], 0xde000000);
	assert_int_equal(longs[16 * 3], 0xde000000);
	assert_int_equal(longs[16 * 4], 0xdeadbeef);
	assert_int_equal(longs[1], 0xdeadbeef);
	assert_int_equal(fake.posted, 4);
}

FAKE_WIRE_TEST(fills_are_checked)
{
	CUdeviceptr device = fake_wire_alloc(4096);
	uint8_t host[16];

	INVALID(gpc_cuMemsetD16_v2(device + 1, 0, 1));
	INVALID(gpc_cuMemsetD32_v2(device + 2, 0, 1));
	INVALID(gpc_cuMemsetD8_v2(0, 0, 1));
	INVALID(gpc_cuMemsetD8_v2((uintptr_t)host, 0, 1));
	INVALID(gpc_cuMemsetD8_v2(device, 0, 4097));
	INVALID(gpc_cuMemsetD32_v2(device, 0, SIZE_MAX / 2));
	INVALID(gpc_cuMemsetD2D8_v2(device, 10, 0, 11, 2));
	INVALID(gpc_cuMemsetD2D32_v2(device, 10, 0, 2, 2));
	INVALID(gpc_cuMemsetD2D8_v2(device, SIZE_MAX, 0, 1, 3));
	CU(gpc_cuMemsetD8_v2(device, 0, 0));
	CU(gpc_cuMemsetD32_v2(device + 2, 0, 0));
	CU(gpc_cuMemsetD2D8_v2(device, 0, 0, 10, 0));
	CU(gpc_cuMemsetD2D8_v2(device, 0, 0, 10, 1));
	assert_int_equal(gpc_cuMemsetD8Async(device, 0, 1, (CUstream)(uintptr_t)0x99),
			 CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(fake.fills, 1);
}

FAKE_WIRE_TEST(pinned_memory_is_filled_behind_the_streams_work)
{
	uint8_t *host;

	CU(gpc_cuMemHostAlloc((void **)&host, 64, 0));
	CU(gpc_cuMemsetD16Async((uintptr_t)host, 0x0102, 10, FAKE_WIRE_STREAM));
	assert_int_equal(host[0], 2);
	assert_int_equal(host[19], 1);
	assert_int_equal(host[20], 0);
	assert_int_equal(fake.syncs, 1);
	assert_int_equal(fake.fills, 0);
}

UNIT_TEST_MAIN(NULL, NULL)
