/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fixture for tests of memory pools on the fake wire layer (fake_wire.h): pool functions that must
 * succeed, otherwise the test fails.
 *
 * The teardown checks that all memory of the default pool was freed and that no other pool has
 * memory.
 * Threads: the test's thread.
 */
#ifndef POOL_FIXTURE_H
#define POOL_FIXTURE_H

#include "client/memory/address.h"
#include "client/memory/memory.h"
#include "client/memory/pool.h"
#include "gpc_calls.h"
#include "tests/unit/client/fake_wire.h"

#define ORDINAL 3 /* ordinal of the fake device */

/* CMocka teardown of a test: empties the default pool and checks that no memory is left. Returns
 * 0. */
static inline int
pool_teardown(void **state)
{
	CUmemoryPool pool;

	fake.enter = CUDA_SUCCESS;
	fake.done = fake.posted;
	fake_wire_deliver();
	assert_int_equal(gpc_cuDeviceGetDefaultMemPool(&pool, ORDINAL), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
						   &(cuuint64_t){ 0 }),
			 CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
	return fake_wire_teardown(state);
}

/* Defines a test with this fixture. */
#define TEST(test) UNIT_TEST_WITH(test, fake_wire_setup, pool_teardown)

/* Returns memory of the default pool, allocated asynchronously on the stream. The test frees it. */
static inline CUdeviceptr
alloc(size_t size, CUstream stream)
{
	CUdeviceptr address = 0;

	assert_int_equal(gpc_cuMemAllocAsync(&address, size, stream), CUDA_SUCCESS);
	return address;
}

/* Frees memory asynchronously, with unfinished work before it in the stream, so that the memory is
 * not reusable at once. */
static inline void
release(CUdeviceptr address, CUstream stream)
{
	fake.posted++;
	assert_int_equal(gpc_cuMemFreeAsync(address, stream), CUDA_SUCCESS);
}

/* Returns the device's default pool. */
static inline CUmemoryPool
default_pool(void)
{
	CUmemoryPool pool;

	assert_int_equal(gpc_cuDeviceGetDefaultMemPool(&pool, ORDINAL), CUDA_SUCCESS);
	return pool;
}

/* Returns a new pool with a maximum size in bytes; 0: no limit. The test destroys it. */
static inline CUmemoryPool
create(size_t max_size)
{
	const CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ORDINAL },
		.maxSize = max_size,
	};
	CUmemoryPool pool;

	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
	return pool;
}

/* Returns a 64-bit attribute of the pool. */
static inline uint64_t
get(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	cuuint64_t value;

	assert_int_equal(gpc_cuMemPoolGetAttribute(pool, attribute, &value), CUDA_SUCCESS);
	return value;
}

/* Sets a 64-bit attribute of the pool. */
static inline void
set(CUmemoryPool pool, CUmemPool_attribute attribute, uint64_t value)
{
	assert_int_equal(gpc_cuMemPoolSetAttribute(pool, attribute, &value), CUDA_SUCCESS);
}

/* Sets a boolean (int) attribute of the pool; on: 0 or 1. */
static inline void
set_flag(CUmemoryPool pool, CUmemPool_attribute attribute, int on)
{
	assert_int_equal(gpc_cuMemPoolSetAttribute(pool, attribute, &on), CUDA_SUCCESS);
}

/* Has the effect of cuStreamSynchronize() on pools: memory that was freed on the stream becomes
 * reusable. */
static inline void
synchronize(const struct gpc_stream *stream)
{
	gpc_pool_stream_done(stream->context, stream->number, gpc_pool_frees());
}

#endif /* POOL_FIXTURE_H */
