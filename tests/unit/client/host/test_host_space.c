/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that is the daemon's, too: arenas of shared memory. */
#include "client/host/coherence.h"
#include "client/host/host_space.h"
#include "client/memory/host_memory.h"
#include "gpc_calls.h"
#include "tests/unit/client/fake_wire.h"

#include <stdlib.h>
#include <string.h>

static int
setup(void **state)
{
	int r = fake_wire_setup(state);

	fake.shares_memory = true;
	fake_wire_allow_host();
	return r;
}

static uint8_t *
pinned(size_t size)
{
	uint8_t *host;

	CU(gpc_cuMemHostAlloc((void **)&host, size, 0));
	return host;
}

#define TEST(test) UNIT_TEST_WITH(test, setup, fake_wire_teardown)

TEST(kernels_and_the_program_have_one_memory)
{
	uint8_t *host = pinned(1000), *second = pinned(1000);
	uint64_t address = (uintptr_t)host;

	host[999] = 1;
	assert_int_equal(fake_wire_host_at((uintptr_t)host)[999], 1);
	fake_wire_host_at((uintptr_t)host)[0] = 2;
	assert_int_equal(host[0], 2);
	assert_true(gpc_host_memory_get_device_address(&address, 1000));
	assert_int_equal(address, (uintptr_t)host);
	assert_false(gpc_host_memory_get_device_address(&address, 1001));
	/* Small ones share an arena, and nothing is mirrored. */
	assert_int_equal(fake.host_maps, 1);
	assert_int_equal(atomic_load(&gpc_replica_count), 0);
	assert_int_equal(atomic_load(&gpc_host_memory_copy_only), 0);
	CU(gpc_cuMemFreeHost(host));
	CU(gpc_cuMemFreeHost(second));
}

/* Where memory is shared the GPU writes into some of it, and the bytes are copied from there. */
TEST(short_copies_to_plain_memory_go_through_shared_memory)
{
	static const size_t sizes[] = { 32768, 65537, 262144, 262271, 262272, 1048576, 1572864 };
	uint8_t *in = fake_wire_pattern(1572866, 3), *out = calloc(1, 1572866);
	CUdeviceptr device = fake_wire_alloc(1572866);

	CU(gpc_cuMemcpyHtoD_v2(device, in, 1572866));
	/* The first ones do without. */
	for (int i = 0; i < 2; i++)
		CU(gpc_cuMemcpyDtoH_v2(out, device, 65536));
	assert_int_equal(fake.copies_device, 0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		fake.copies_device = 0;
		memset(out, 0, 1572866);
		CU(gpc_cuMemcpyDtoH_v2(out, device + 1, sizes[i]));
		assert_memory_equal(out, in + 1, sizes[i]);
		assert_int_equal(out[sizes[i]], 0);
		assert_int_equal(fake.copies_device, (sizes[i] + 262143 - 127) / 262144);
	}
	/* Others go as they did: too short, too long. */
	fake.copies_device = 0;
	CU(gpc_cuMemcpyDtoH_v2(out, device, 32767));
	CU(gpc_cuMemcpyDtoH_v2(out, device, 1572865));
	assert_memory_equal(out, in, 1572865);
	assert_int_equal(fake.copies_device, 0);
	/* A piece that fails is the copy's failure. */
	fake.copy_out_result = CUDA_ERROR_ILLEGAL_ADDRESS;
	assert_int_equal(gpc_cuMemcpyDtoH_v2(out, device, 1048576), CUDA_ERROR_ILLEGAL_ADDRESS);
	fake.copy_out_result = CUDA_SUCCESS;
	CU(gpc_cuMemcpyDtoH_v2(out, device, 1048576));
	assert_memory_equal(out, in, 1048576);
	free(in);
	free(out);
}

TEST(freed_memory_waits_for_work)
{
	uint8_t *host = pinned(4096), *next;

	fake.posted = fake.done + 1;
	CU(gpc_cuMemFreeHost(host));
	next = pinned(4096);
	assert_ptr_not_equal(host, next);
	CU(gpc_cuMemFreeHost(next));
	fake.done = fake.posted;
}

TEST(a_large_arena_is_had_again)
{
	uint8_t *large = pinned(9 * FAKE_WIRE_MIB), *again;
	int maps = fake.host_maps;

	memset(large, 1, 9 * FAKE_WIRE_MIB);
	CU(gpc_cuMemFreeHost(large));
	again = pinned(10 * FAKE_WIRE_MIB);
	assert_ptr_equal(again, large);
	assert_int_equal(fake.host_maps, maps);
	CU(gpc_cuMemFreeHost(again));
}

TEST(past_the_quota_there_is_no_memory)
{
	void *host;

	/* What is kept goes first. */
	fake.host_quota = fake_wire_host_mapped();
	CU(gpc_cuMemHostAlloc(&host, 5 * FAKE_WIRE_MIB, 0));
	CU(gpc_cuMemFreeHost(host));
	fake.host_quota = 0;
	assert_int_equal(gpc_cuMemHostAlloc(&host, 7 * FAKE_WIRE_MIB, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

UNIT_TEST_MAIN(NULL, NULL)
