/* SPDX-License-Identifier: Apache-2.0 */
/* Pools as a program sees them: attributes, access, and how they are made and destroyed. */
#include "client/host/coherence.h"
#include "client/managed/advice.h"
#include "client/memory/host_memory.h"
#include "protocol/ipc_handle.h"
#include "tests/unit/client/pool_fixture.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FD CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

TEST(pointers_know_their_pool)
{
	CUdeviceptr block = alloc(1000, NULL), plain = fake_wire_alloc(10);
	CUmemoryPool pool;
	CUcontext context = (CUcontext)state;
	int ordinal;

	assert_int_equal(
		gpc_cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block + 999),
		CUDA_SUCCESS);
	assert_ptr_equal(pool, default_pool());
	assert_int_equal(
		gpc_cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, plain),
		CUDA_SUCCESS);
	assert_null(pool);
	assert_int_equal(
		gpc_cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, block),
		CUDA_SUCCESS);
	assert_int_equal(ordinal, ORDINAL);
	assert_int_equal(gpc_cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, block),
			 CUDA_ERROR_INVALID_VALUE);
	assert_null(context);
	assert_false(gpc_address_is_device(block, 1001));
	release(block, NULL);
	assert_int_equal(
		gpc_cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block),
		CUDA_ERROR_INVALID_VALUE);
}

TEST(a_pool_keeps_count_of_itself)
{
	CUmemoryPool pool = default_pool();
	CUdeviceptr block;

	set(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0);
	set(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0);
	block = alloc(20 * FAKE_WIRE_MIB - 100, NULL);
	assert_int_equal(get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 20 * FAKE_WIRE_MIB);
	assert_int_equal(get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), fake_wire_mapped());
	release(block, NULL);
	assert_int_equal(get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
	assert_int_equal(get(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 20 * FAKE_WIRE_MIB);
	assert_int_equal(get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH), fake_wire_mapped());
	set(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0);
	assert_int_equal(get(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0);
}

TEST(attributes_are_checked)
{
	CUmemoryPool pool = default_pool();
	cuuint64_t one = 1;
	int flag = 5;

	assert_int_equal(
		gpc_cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &flag),
		CUDA_SUCCESS);
	assert_int_equal(flag, 1);
	assert_int_equal(gpc_cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &one),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(
		gpc_cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &one),
		CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemPoolGetAttribute(pool, (CUmemPool_attribute)77, &one),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemPoolGetAttribute((CUmemoryPool)state,
						   CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &one),
			 CUDA_ERROR_INVALID_VALUE);
}

TEST(trimming_keeps_what_it_is_told_to)
{
	CUdeviceptr blocks[3];

	for (int i = 0; i < 3; i++)
		blocks[i] = alloc(40 * FAKE_WIRE_MIB, NULL);
	for (int i = 0; i < 3; i++)
		release(blocks[i], NULL);
	assert_int_equal(gpc_cuMemPoolTrimTo(default_pool(), 0), CUDA_SUCCESS);
	assert_int_equal(fake_wire_mapped(), 120 * FAKE_WIRE_MIB);
	fake.done = fake.posted;
	assert_int_equal(gpc_cuMemPoolTrimTo(default_pool(), 50 * FAKE_WIRE_MIB), CUDA_SUCCESS);
	/* The daemon would get back what the pool has beyond its threshold. */
	assert_int_equal(get(default_pool(), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
			 80 * FAKE_WIRE_MIB);
	assert_int_equal(gpc_cuMemPoolTrimTo(default_pool(), 0), CUDA_SUCCESS);
	assert_int_equal(fake_wire_mapped(), 0);
	assert_int_equal(gpc_cuMemPoolTrimTo(NULL, 0), CUDA_ERROR_INVALID_VALUE);
}

/* As CUDA has it, the caller of cuMemFree has waited for all accesses to a pool's memory. */
TEST(trimming_takes_what_was_freed_in_no_streams_order)
{
	CUdeviceptr block = alloc(40 * FAKE_WIRE_MIB, NULL),
		    other = alloc(40 * FAKE_WIRE_MIB, NULL);

	fake.lazy = true;
	fake.busy = true;
	fake.posted++;
	assert_int_equal(gpc_cuMemFree_v2(block), CUDA_SUCCESS);
	release(other, NULL);
	assert_int_equal(get(default_pool(), CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0);
	assert_int_equal(gpc_cuMemPoolTrimTo(default_pool(), 80 * FAKE_WIRE_MIB), CUDA_SUCCESS);
	assert_int_equal(get(default_pool(), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT),
			 80 * FAKE_WIRE_MIB);
	/* The other one waits for its stream. */
	assert_int_equal(gpc_cuMemPoolTrimTo(default_pool(), 0), CUDA_SUCCESS);
	assert_int_equal(fake_wire_mapped(), 40 * FAKE_WIRE_MIB);
	fake.done = fake.posted;
	assert_int_equal(gpc_cuMemPoolTrimTo(default_pool(), 0), CUDA_SUCCESS);
	assert_int_equal(get(default_pool(), CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
	assert_int_equal(fake_wire_mapped(), 0);
}

TEST(a_destroyed_pool_lives_as_long_as_its_blocks)
{
	CUmemoryPool pool = create(0);
	CUdeviceptr first, second;

	assert_int_equal(gpc_cuMemAllocFromPoolAsync(&first, FAKE_WIRE_MIB, pool, NULL),
			 CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemAllocFromPoolAsync(&second, FAKE_WIRE_MIB, pool, NULL),
			 CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemPoolDestroy(pool), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemAllocFromPoolAsync(&first, FAKE_WIRE_MIB, pool, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemsetD8_v2(second, 1, FAKE_WIRE_MIB), CUDA_SUCCESS);
	release(first, NULL);
	assert_int_not_equal(fake_wire_mapped(), 0);
	release(second, NULL);
	assert_int_equal(fake_wire_mapped(), 0);

	pool = create(0);
	assert_int_equal(gpc_cuMemPoolDestroy(pool), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemPoolDestroy(default_pool()), CUDA_ERROR_INVALID_VALUE);
}

TEST(a_pool_does_not_grow_beyond_its_size)
{
	CUmemoryPool pool = create(10 * FAKE_WIRE_MIB);
	CUdeviceptr first, second;

	assert_int_equal(gpc_cuMemAllocFromPoolAsync(&first, 6 * FAKE_WIRE_MIB, pool, NULL),
			 CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemAllocFromPoolAsync(&second, 6 * FAKE_WIRE_MIB, pool, NULL),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpc_cuMemAllocFromPoolAsync(&second, 4 * FAKE_WIRE_MIB, pool, NULL),
			 CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemPoolDestroy(pool), CUDA_SUCCESS);
	release(first, NULL);
	release(second, NULL);
}

TEST(a_device_has_a_current_pool)
{
	CUmemLocation location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ORDINAL };
	CUmemoryPool pool = create(0), found;
	CUdeviceptr block;

	assert_int_equal(gpc_cuDeviceGetMemPool(&found, ORDINAL), CUDA_SUCCESS);
	assert_ptr_equal(found, default_pool());
	assert_int_equal(gpc_cuDeviceSetMemPool(ORDINAL, pool), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemGetMemPool(&found, &location, CU_MEM_ALLOCATION_TYPE_PINNED),
			 CUDA_SUCCESS);
	assert_ptr_equal(found, pool);
	block = alloc(100, NULL);
	assert_int_equal(
		gpc_cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block),
		CUDA_SUCCESS);
	assert_ptr_equal(found, pool);
	assert_int_equal(gpc_cuMemPoolDestroy(pool), CUDA_SUCCESS);
	release(block, NULL);
	assert_int_equal(gpc_cuDeviceGetMemPool(&found, ORDINAL), CUDA_SUCCESS);
	assert_ptr_equal(found, default_pool());
	assert_int_equal(gpc_cuMemSetMemPool(&location, CU_MEM_ALLOCATION_TYPE_PINNED, found),
			 CUDA_SUCCESS);

	assert_int_equal(gpc_cuDeviceSetMemPool(ORDINAL, pool), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuDeviceGetMemPool(&found, ORDINAL + 1), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(
		gpc_cuMemGetDefaultMemPool(&found, &location, CU_MEM_ALLOCATION_TYPE_INVALID),
		CUDA_ERROR_INVALID_VALUE);
	location.type = CU_MEM_LOCATION_TYPE_HOST;
	assert_int_equal(
		gpc_cuMemGetDefaultMemPool(&found, &location, CU_MEM_ALLOCATION_TYPE_PINNED),
		CUDA_ERROR_NOT_SUPPORTED);
}

TEST(pools_are_made_only_where_there_can_be_one)
{
	const CUmemPoolProps good = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ORDINAL },
	};
	CUmemPoolProps props = good;
	CUmemoryPool pool;

	assert_int_equal(gpc_cuMemPoolCreate(&pool, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemPoolCreate(NULL, &props), CUDA_ERROR_INVALID_VALUE);
	props.location.id = ORDINAL + 1;
	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
	props = good;
	props.location.type = CU_MEM_LOCATION_TYPE_HOST;
	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_ERROR_NOT_SUPPORTED);
	/* Those no driver exports. */
	props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
	props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
	props = good;
	props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA;
	props.location.id = -1;
	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
	props.location.id = 0;
	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_ERROR_NOT_SUPPORTED);
	props = good;
	props.location.type = CU_MEM_LOCATION_TYPE_NONE;
	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
	props.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
	props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
	props = good;
	props.handleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_ERROR_NOT_SUPPORTED);
	props = good;
	props.reserved[3] = 1;
	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
	props = good;
	props.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
}

TEST(a_pools_own_device_has_access_and_no_other)
{
	CUmemAccessDesc access = {
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ORDINAL },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUmemAccess_flags flags;

	assert_int_equal(gpc_cuMemPoolGetAccess(&flags, default_pool(), &access.location),
			 CUDA_SUCCESS);
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	assert_int_equal(gpc_cuMemPoolSetAccess(default_pool(), &access, 1), CUDA_SUCCESS);
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	assert_int_equal(gpc_cuMemPoolSetAccess(default_pool(), &access, 1),
			 CUDA_ERROR_INVALID_VALUE);
	access.location.id = ORDINAL + 1;
	assert_int_equal(gpc_cuMemPoolSetAccess(default_pool(), &access, 1),
			 CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(gpc_cuMemPoolSetAccess(default_pool(), NULL, 1), CUDA_ERROR_INVALID_VALUE);
}

static CUmemoryPool
create_at(CUmemAllocationType type, CUmemLocationType where)
{
	const CUmemPoolProps props = { .allocType = type, .location = { .type = where } };
	CUmemoryPool pool;

	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
	return pool;
}

static uint8_t *
alloc_from(CUmemoryPool pool, size_t size, CUstream stream)
{
	CUdeviceptr address;

	assert_int_equal(gpc_cuMemAllocFromPoolAsync(&address, size, pool, stream), CUDA_SUCCESS);
	return (uint8_t *)(uintptr_t)address;
}

static void
release_at(const void *address, CUstream stream)
{
	release((uintptr_t)address, stream);
}

/* All is done, and known to be. */
static void
finish(CUmemoryPool pool)
{
	fake.done = fake.posted;
	assert_int_equal(gpc_cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
	assert_int_equal(get(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
	assert_int_equal(gpc_cuMemPoolDestroy(pool), CUDA_SUCCESS);
	assert_int_equal(fake_wire_host_mapped(), 0);
}

TEST(a_hosts_pool_has_memory_that_kernels_reach)
{
	struct gpc_address found;
	uint8_t *block, *other;
	CUmemoryPool pool;

	fake_wire_allow_host();
	pool = create_at(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST);
	block = alloc_from(pool, 1000, NULL);
	memset(block, 7, 1000);
	gpc_address_lookup((uintptr_t)block + 999, &found);
	assert_int_equal(found.kind, GPC_ADDRESS_HOST);
	assert_ptr_equal(found.pool, pool);
	assert_int_equal(found.size, 1000);
	assert_false(found.device_mapped);
	assert_int_equal(fake_wire_host_mapped(), 0);
	assert_int_equal(fake_wire_mapped(), 0);
	/* A kernel is told of it. */
	assert_int_equal(gpc_host_memory_scan(fake.context, &block, sizeof(block)), CUDA_SUCCESS);
	assert_int_equal(*fake_wire_host_at((uintptr_t)block + 999), 7);
	assert_int_equal(get(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1024);
	assert_int_equal(gpc_cuMemFreeHost(block), CUDA_ERROR_INVALID_VALUE);
	other = alloc_from(pool, 5000, NULL);
	assert_int_equal(gpc_cuMemFree_v2((uintptr_t)other), CUDA_SUCCESS);
	release_at(block, NULL);
	gpc_address_lookup((uintptr_t)block, &found);
	assert_int_equal(found.kind, GPC_ADDRESS_INVALID);
	assert_int_equal(gpc_cuMemFreeAsync((uintptr_t)block, NULL), CUDA_ERROR_INVALID_VALUE);
	finish(pool);
	fake_wire_forbid_host();
}

TEST(what_a_hosts_pool_got_back_stays_until_the_work_is_done)
{
	CUmemoryPool pool;
	uint8_t *block, *next;

	fake_wire_allow_host();
	pool = create_at(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST_NUMA);
	block = alloc_from(pool, 4096, FAKE_WIRE_STREAM);
	memset(block, 3, 4096);
	assert_int_equal(gpc_host_memory_scan(fake.context, &block, sizeof(block)), CUDA_SUCCESS);
	release_at(block, FAKE_WIRE_STREAM);
	/* Not even its own stream has it, and a kernel's words still come here. */
	next = alloc_from(pool, 4096, FAKE_WIRE_STREAM);
	assert_ptr_not_equal(next, block);
	*fake_wire_host_at((uintptr_t)block) = 9;
	assert_int_equal(gpc_coherence_fetch(fake.context->scope.session), CUDA_SUCCESS);
	assert_int_equal(*block, 9);
	assert_int_equal(gpc_cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
	assert_int_equal(block[1], 3);
	/* Whoever waits for the stream has it back. */
	assert_int_equal(atomic_load(&gpc_replica_count), 1);
	synchronize(fake.stream);
	assert_int_equal(atomic_load(&gpc_replica_count), 0);
	release_at(next, NULL);
	assert_int_equal(gpc_cuMemPoolDestroy(pool), CUDA_SUCCESS);
	assert_int_equal(*next, 0);
	fake.done = fake.posted;
	gpc_pool_event_done(fake.context);
	assert_int_equal(fake_wire_host_mapped(), 0);
	fake_wire_forbid_host();
}

TEST(a_hosts_pool_is_out_of_memory_where_the_daemon_is)
{
	CUmemoryPool pool;
	CUdeviceptr block;
	uint8_t *small;

	fake_wire_allow_host();
	pool = create_at(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST);
	assert_int_equal(gpc_cuMemAllocFromPoolAsync(&block, 4096 * FAKE_WIRE_MIB, pool, NULL),
			 CUDA_ERROR_OUT_OF_MEMORY);
	/* Cold memory is this machine's; what kernels are to reach counts. */
	fake.host_quota = FAKE_WIRE_MIB;
	small = alloc_from(pool, 100, NULL);
	assert_int_equal(gpc_host_memory_scan(fake.context, &small, sizeof(small)),
			 CUDA_ERROR_OUT_OF_MEMORY);
	release_at(small, NULL);
	finish(pool);
	fake_wire_forbid_host();
}

TEST(the_host_has_access_to_its_pools_and_gives_it)
{
	CUmemLocation host = { .type = CU_MEM_LOCATION_TYPE_HOST };
	CUmemAccessDesc access = {
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ORDINAL },
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	CUmemAccess_flags flags;
	CUmemoryPool pool;

	fake_wire_allow_host();
	pool = create_at(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST);
	assert_int_equal(gpc_cuMemPoolGetAccess(&flags, pool, &host), CUDA_SUCCESS);
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	assert_int_equal(gpc_cuMemPoolGetAccess(&flags, pool, &access.location), CUDA_SUCCESS);
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	assert_int_equal(gpc_cuMemPoolSetAccess(pool, &access, 1), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemPoolGetAccess(&flags, pool, &access.location), CUDA_SUCCESS);
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	assert_int_equal(gpc_cuMemPoolSetAccess(pool, &access, 1), CUDA_SUCCESS);
	access.location = host;
	assert_int_equal(gpc_cuMemPoolSetAccess(pool, &access, 1), CUDA_ERROR_INVALID_VALUE);
	access.location = (CUmemLocation){ CU_MEM_LOCATION_TYPE_DEVICE, ORDINAL + 1 };
	assert_int_equal(gpc_cuMemPoolSetAccess(pool, &access, 1), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(gpc_cuMemPoolGetAccess(&flags, default_pool(), &host),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemPoolDestroy(pool), CUDA_SUCCESS);
	fake_wire_forbid_host();
}

TEST(every_place_has_a_pool_and_a_current_one)
{
	const CUmemAllocationType pinned = CU_MEM_ALLOCATION_TYPE_PINNED;
	CUmemLocation host = { .type = CU_MEM_LOCATION_TYPE_HOST };
	CUmemLocation node = { .type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 1 };
	CUmemoryPool standard, found, pool;

	fake_wire_allow_host();
	assert_int_equal(gpc_cuMemGetDefaultMemPool(&standard, &host, pinned), CUDA_SUCCESS);
	host.id = 77;
	assert_int_equal(gpc_cuMemGetMemPool(&found, &host, pinned), CUDA_SUCCESS);
	assert_ptr_equal(found, standard);
	assert_int_equal(gpc_cuMemPoolDestroy(standard), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemGetMemPool(&found, &node, pinned), CUDA_SUCCESS);
	assert_ptr_not_equal(found, standard);
	assert_int_equal(gpc_cuMemSetMemPool(&host, pinned, found), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemSetMemPool(&host, pinned, default_pool()),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuDeviceSetMemPool(ORDINAL, standard), CUDA_ERROR_INVALID_VALUE);
	pool = create_at(pinned, CU_MEM_LOCATION_TYPE_HOST);
	assert_int_equal(gpc_cuMemSetMemPool(&host, pinned, pool), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemGetMemPool(&found, &host, pinned), CUDA_SUCCESS);
	assert_ptr_equal(found, pool);
	assert_int_equal(gpc_cuMemPoolDestroy(pool), CUDA_SUCCESS);
	assert_int_equal(gpc_cuMemGetMemPool(&found, &host, pinned), CUDA_SUCCESS);
	assert_ptr_equal(found, standard);
	node.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
	assert_int_equal(gpc_cuMemGetMemPool(&found, &node, pinned), CUDA_ERROR_INVALID_VALUE);
	fake_wire_forbid_host();
}

TEST(a_pool_of_managed_memory_is_here_and_there)
{
	CUmemLocation device = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = ORDINAL };
	CUmemoryPool pool = create_at(CU_MEM_ALLOCATION_TYPE_MANAGED, CU_MEM_LOCATION_TYPE_HOST);
	struct gpc_address found;
	CUmemAccess_flags flags;
	CUmemLocationType preferred = CU_MEM_LOCATION_TYPE_INVALID;
	uint8_t *block = alloc_from(pool, 100000, NULL);

	memset(block, 5, 100000);
	gpc_address_lookup((uintptr_t)block, &found);
	assert_true(found.managed);
	assert_ptr_equal(found.pool, pool);
	assert_int_equal(gpc_advice_get_attribute((uintptr_t)block, 100000,
						  CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE,
						  &preferred, sizeof(preferred)),
			 CUDA_SUCCESS);
	assert_int_equal(preferred, CU_MEM_LOCATION_TYPE_HOST);
	assert_int_equal(gpc_cuMemPoolGetAccess(&flags, pool, &device), CUDA_SUCCESS);
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	/* It goes with no context, and stays until the work before the free is done. */
	gpc_pool_drop_context(fake.context);
	release_at(block, NULL);
	assert_int_equal(gpc_cuMemPoolDestroy(pool), CUDA_SUCCESS);
	assert_int_equal(block[99999], 5);
	fake.done = fake.posted;
	gpc_pool_context_done(fake.context, gpc_pool_frees());
	assert_int_equal(fake_wire_mapped(), 0);
}

static CUmemoryPool
create_exportable(void)
{
	const CUmemPoolProps props = {
		.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
		.handleTypes = FD,
		.location = { .type = CU_MEM_LOCATION_TYPE_HOST_NUMA },
	};
	CUmemoryPool pool;

	assert_int_equal(gpc_cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
	return pool;
}

static CUresult
import_from(CUmemoryPool *pool, int fd)
{
	/* NOLINTNEXTLINE(performance-no-int-to-ptr) */
	return gpc_cuMemPoolImportFromShareableHandle(pool, (void *)(intptr_t)fd, FD, 0);
}

static CUresult
import_bytes(uint8_t **block, CUmemoryPool pool, const struct gp_ipc_handle *bytes)
{
	CUmemPoolPtrExportData data;
	CUdeviceptr address = 0;
	CUresult result;

	memcpy(&data, bytes, sizeof(data));
	result = gpc_cuMemPoolImportPointer(&address, pool, &data);
	*block = (uint8_t *)(uintptr_t)address;
	return result;
}

/* The memory of one pool, by the descriptor and the bytes that its process passes on. */
static void
export_block(int *fd, struct gp_ipc_handle *bytes)
{
	CUmemoryPool pool = create_exportable(), other;
	uint8_t *block = alloc_from(pool, 5000, NULL);
	CUmemPoolPtrExportData data;
	uint64_t offset;
	uint8_t byte;

	assert_int_equal(gpc_cuMemPoolExportPointer(&data, (uintptr_t)block),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(
		gpc_cuMemPoolExportToShareableHandle(fd, pool, CU_MEM_HANDLE_TYPE_FABRIC, 0),
		CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(gpc_cuMemPoolExportToShareableHandle(fd, pool, FD, 0), CUDA_SUCCESS);
	assert_int_equal(fcntl(*fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(gpc_cuMemPoolExportPointer(&data, (uintptr_t)block + 1),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemPoolExportPointer(&data, (uintptr_t)block), CUDA_SUCCESS);
	memcpy(bytes, &data, sizeof(*bytes));
	assert_int_equal(bytes->size, 5000);
	memcpy(&offset, bytes->secret, sizeof(offset));
	block[4999] = 42;
	assert_int_equal(pread(*fd, &byte, 1, (off_t)(offset + bytes->offset + 4999)), 1);
	assert_int_equal(byte, 42);
	assert_int_equal(import_from(&other, *fd), CUDA_ERROR_NOT_SUPPORTED);
	release_at(block, NULL);
	finish(pool);
	/* What the pool has given back is no memory any more. */
	assert_int_equal(pread(*fd, &byte, 1, (off_t)(offset + bytes->offset + 4999)), 1);
	assert_int_equal(byte, 0);
}

TEST(a_hosts_pool_is_a_file_for_other_processes)
{
	struct gp_ipc_handle bytes;
	struct gpc_address found;
	uint8_t *block, *again, byte = 9;
	CUmemoryPool pool;
	CUdeviceptr none;
	uint64_t offset;
	int fd;

	fake_wire_allow_host();
	export_block(&fd, &bytes);
	/* Its process has no pool of that file any more. */
	assert_int_equal(import_from(&pool, fd), CUDA_SUCCESS);
	assert_int_equal(import_bytes(&block, pool, &bytes), CUDA_SUCCESS);
	assert_int_equal(import_bytes(&again, pool, &bytes), CUDA_ERROR_ALREADY_MAPPED);
	memcpy(&offset, bytes.secret, sizeof(offset));
	assert_int_equal(pwrite(fd, &byte, 1, (off_t)(offset + bytes.offset)), 1);
	assert_int_equal(block[0], 9);
	gpc_address_lookup((uintptr_t)block, &found);
	assert_int_equal(found.kind, GPC_ADDRESS_HOST);
	assert_ptr_equal(found.pool, pool);
	assert_int_equal(gpc_cuMemAllocFromPoolAsync(&none, 100, pool, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	/* Kernels reach it, and what they write comes to the others, freed or not. */
	assert_int_equal(gpc_host_memory_scan(fake.context, &block, sizeof(block)), CUDA_SUCCESS);
	assert_int_equal(*fake_wire_host_at((uintptr_t)block), 9);
	*fake_wire_host_at((uintptr_t)block) = 10;
	release_at(block, NULL);
	assert_int_equal(gpc_cuMemFreeAsync((uintptr_t)block, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemPoolDestroy(pool), CUDA_SUCCESS);
	fake.done = fake.posted;
	gpc_pool_event_done(fake.context);
	gpc_pool_event_done(fake.context);
	assert_int_equal(pread(fd, &byte, 1, (off_t)(offset + bytes.offset)), 1);
	assert_int_equal(byte, 10);
	assert_int_equal(atomic_load(&gpc_replica_count), 0);
	assert_int_equal(fake_wire_host_mapped(), 0);
	assert_int_equal(close(fd), 0);
	fake_wire_forbid_host();
}

static int
memory_file(const char *name, int seals)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 8 * FAKE_WIRE_MIB), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

TEST(files_and_bytes_of_others_are_checked)
{
	static const struct {
		const char *name;
		int seals;
	} files[] = {
		{ "gpupool-host-pool", 0 },
		{ "gpupool-host-pool", F_SEAL_SHRINK | F_SEAL_GROW },
		{ "gpupool-host-pools", F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL },
		{ "gpupool-host-memory", F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL },
	};
	struct gp_ipc_handle bytes, changed;
	CUmemoryPool pool;
	uint8_t *block;
	int fd;

	fake_wire_allow_host();
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		fd = memory_file(files[i].name, files[i].seals);
		assert_int_equal(import_from(&pool, fd), CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(close(fd), 0);
	}
	assert_int_equal(import_from(&pool, -1), CUDA_ERROR_INVALID_VALUE);
	export_block(&fd, &bytes);
	assert_int_equal(import_from(&pool, fd), CUDA_SUCCESS);
	/* Outside of the mapping or of the file, bytes that mean nothing, another file. */
	changed = bytes;
	changed.size = changed.mapping - changed.offset + 1;
	assert_int_equal(import_bytes(&block, pool, &changed), CUDA_ERROR_INVALID_VALUE);
	changed = bytes;
	changed.offset = changed.mapping;
	assert_int_equal(import_bytes(&block, pool, &changed), CUDA_ERROR_INVALID_VALUE);
	changed = bytes;
	memset(changed.secret, 0xff, 8);
	assert_int_equal(import_bytes(&block, pool, &changed), CUDA_ERROR_INVALID_VALUE);
	changed = bytes;
	changed.secret[0] ^= 1;
	assert_int_equal(import_bytes(&block, pool, &changed), CUDA_ERROR_INVALID_VALUE);
	changed = bytes;
	changed.secret[15] = 1;
	assert_int_equal(import_bytes(&block, pool, &changed), CUDA_ERROR_INVALID_VALUE);
	changed = bytes;
	changed.mapping = UINT64_MAX << 21;
	assert_int_equal(import_bytes(&block, pool, &changed), CUDA_ERROR_INVALID_VALUE);
	changed = bytes;
	changed.daemon++;
	assert_int_equal(import_bytes(&block, pool, &changed), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuMemPoolDestroy(pool), CUDA_SUCCESS);
	assert_int_equal(close(fd), 0);
	fake.done = fake.posted;
	gpc_pool_event_done(fake.context);
	gpc_pool_event_done(fake.context);
	fake_wire_forbid_host();
}

UNIT_TEST_MAIN(NULL, NULL)
