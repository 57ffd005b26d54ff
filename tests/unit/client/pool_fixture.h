/* SPDX-License-Identifier: Apache-2.0 */
/* Fixture for tests of memory pools on the fake wire layer (fake_wire.h): calls that must succeed.
 * The teardown checks that no pool but the default one is left, and that it is empty. */
#ifndef POOL_FIXTURE_H
#define POOL_FIXTURE_H

#include "client/memory/address.h"
#include "client/memory/memory.h"
#include "client/memory/pool.h"
#include "gpc_calls.h"
#include "tests/unit/client/fake_wire.h"

#define ORDINAL 3 /* of the fake device */

/* Empties the default pool and checks that nothing is left. */
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

#define TEST(test) UNIT_TEST_WITH(test, fake_wire_setup, pool_teardown)

static inline CUdeviceptr
alloc(size_t size, CUstream stream)
{
	CUdeviceptr address = 0;

	assert_int_equal(gpc_cuMemAllocAsync(&address, size, stream), CUDA_SUCCESS);
	return address;
}

/* Frees asynchronously with work before it in the stream, so that the block is not reusable at
 * once. */
static inline void
release(CUdeviceptr address, CUstream stream)
{
	fake.posted++;
	assert_int_equal(gpc_cuMemFreeAsync(address, stream), CUDA_SUCCESS);
}

static inline CUmemoryPool
default_pool(void)
{
	CUmemoryPool pool;

	assert_int_equal(gpc_cuDeviceGetDefaultMemPool(&pool, ORDINAL), CUDA_SUCCESS);
	return pool;
}

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

static inline uint64_t
get(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	cuuint64_t value;

	assert_int_equal(gpc_cuMemPoolGetAttribute(pool, attribute, &value), CUDA_SUCCESS);
	return value;
}

static inline void
set(CUmemoryPool pool, CUmemPool_attribute attribute, uint64_t value)
{
	assert_int_equal(gpc_cuMemPoolSetAttribute(pool, attribute, &value), CUDA_SUCCESS);
}

static inline void
set_flag(CUmemoryPool pool, CUmemPool_attribute attribute, int on)
{
	assert_int_equal(gpc_cuMemPoolSetAttribute(pool, attribute, &on), CUDA_SUCCESS);
}

/* The effect of cuStreamSynchronize() on pools. */
static inline void
synchronize(const struct gpc_stream *stream)
{
	gpc_pool_stream_done(stream->context, stream->number, gpc_pool_frees());
}

#endif /* POOL_FIXTURE_H */
