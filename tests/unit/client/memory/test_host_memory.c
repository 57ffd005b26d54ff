/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/ranges.h"
#include "client/memory/host_memory.h"
#include "client/memory/memory.h"
#include "gpc_calls.h"
#include "tests/unit/client/fake_wire.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <unistd.h>

FAKE_WIRE_TEST(pinned_memory_is_page_aligned_zeroed_and_writable)
{
	uint8_t *host;

	CU(gpc_cuMemHostAlloc((void **)&host, 10001, CU_MEMHOSTALLOC_PORTABLE));
	assert_int_equal((uintptr_t)host % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
	assert_int_equal(host[10000], 0);
	memset(host, 1, 10001);
	assert_true(gpc_host_memory_is_pinned(host, 10001));
	assert_true(gpc_host_memory_is_pinned(host + 10000, 1));
	assert_false(gpc_host_memory_is_pinned(host, 10002));
	CU(gpc_cuMemFreeHost(host));
	assert_false(gpc_host_memory_is_pinned(host, 1));
}

FAKE_WIRE_TEST(write_combining_is_reported_and_all_is_mapped)
{
	unsigned int flags = 99;
	void *host;

	for (unsigned int given = 0; given < 8; given++) {
		CU(gpc_cuMemHostAlloc(&host, 100, given));
		CU(gpc_cuMemHostGetFlags(&flags, (uint8_t *)host + 50));
		assert_int_equal(flags, CU_MEMHOSTALLOC_DEVICEMAP |
						(given & CU_MEMHOSTALLOC_WRITECOMBINED));
		CU(gpc_cuMemFreeHost(host));
	}
	INVALID(gpc_cuMemHostAlloc(&host, 100, 8));
	INVALID(gpc_cuMemHostGetFlags(&flags, host));
	INVALID(gpc_cuMemHostGetFlags(NULL, host));
}

FAKE_WIRE_TEST(senseless_sizes_are_refused)
{
	void *host;

	CU(gpc_cuMemHostAlloc(&host, 0, 0));
	assert_null(host);
	INVALID(gpc_cuMemHostAlloc(NULL, 1, 0));
	assert_int_equal(gpc_cuMemHostAlloc(&host, SIZE_MAX, 0), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(gpc_cuMemHostAlloc(&host, (size_t)1 << 60, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

FAKE_WIRE_TEST(only_what_was_allocated_can_be_freed)
{
	static uint8_t buffer[8192];
	uint8_t *host;
	int local;

	CU(gpc_cuMemHostAlloc((void **)&host, 5000, 0));
	CU(gpc_cuMemHostRegister_v2(buffer, sizeof(buffer), 0));

	CU(gpc_cuMemFreeHost(NULL));
	INVALID(gpc_cuMemFreeHost(&local));
	INVALID(gpc_cuMemFreeHost(host + 1));
	INVALID(gpc_cuMemFreeHost(buffer));
	INVALID(gpc_cuMemFree_v2((uintptr_t)host));
	CU(gpc_cuMemFreeHost(host));
	INVALID(gpc_cuMemFreeHost(host));
	CU(gpc_cuMemHostUnregister(buffer));
}

FAKE_WIRE_TEST(memory_is_registered_once)
{
	static uint8_t buffer[16384];
	uint8_t *host;

	CU(gpc_cuMemHostRegister_v2(buffer + 100, 8000, CU_MEMHOSTREGISTER_PORTABLE));
	assert_true(gpc_host_memory_is_pinned(buffer + 100, 8000));
	assert_false(gpc_host_memory_is_pinned(buffer + 99, 1));
	assert_int_equal(gpc_cuMemHostRegister_v2(buffer, 101, 0),
			 CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	assert_int_equal(gpc_cuMemHostRegister_v2(buffer + 8099, 1, 0),
			 CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	CU(gpc_cuMemHostRegister_v2(buffer + 8100, 1000, 0));
	CU(gpc_cuMemHostAlloc((void **)&host, 4096, 0));
	INVALID(gpc_cuMemHostRegister_v2(host, 4096, 0));

	INVALID(gpc_cuMemHostUnregister(buffer + 101));
	INVALID(gpc_cuMemHostUnregister(host));
	CU(gpc_cuMemHostUnregister(buffer + 100));
	assert_int_equal(gpc_cuMemHostUnregister(buffer + 100),
			 CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	CU(gpc_cuMemHostUnregister(buffer + 8100));
}

FAKE_WIRE_TEST(only_memory_can_be_registered)
{
	CUdeviceptr device = fake_wire_alloc(4096);
	static uint8_t buffer[64];
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *hole =
		mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(hole != MAP_FAILED);
	assert_int_equal(munmap(hole + page, page), 0);
	INVALID(gpc_cuMemHostRegister_v2(hole, 3 * page, 0));
	INVALID(gpc_cuMemHostRegister_v2(hole + page, 1, 0));
	INVALID(gpc_cuMemHostRegister_v2((void *)(uintptr_t)device, 4096, 0));
	INVALID(gpc_cuMemHostRegister_v2(NULL, 4096, 0));
	INVALID(gpc_cuMemHostRegister_v2(buffer, 0, 0));
	INVALID(gpc_cuMemHostRegister_v2(buffer, SIZE_MAX, 0));
	INVALID(gpc_cuMemHostRegister_v2(buffer, 64, 16));
	assert_int_equal(gpc_cuMemHostRegister_v2(buffer, 64, CU_MEMHOSTREGISTER_IOMEMORY),
			 CUDA_ERROR_NOT_SUPPORTED);
	(void)munmap(hole, page);
	(void)munmap(hole + 2 * page, page);
}

/* Whether a mapping of the file can be registered. */
static CUresult
register_file(int file, int protection, int sharing, unsigned int flags)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *memory;
	CUresult result;

	assert_int_equal(ftruncate(file, (off_t)page), 0);
	memory = mmap(NULL, page, protection, sharing, file, 0);
	assert_true(memory != MAP_FAILED);
	result = gpc_cuMemHostRegister_v2(memory, page, flags);
	if (result == CUDA_SUCCESS)
		CU(gpc_cuMemHostUnregister(memory));
	(void)munmap(memory, page);
	return result;
}

FAKE_WIRE_TEST(shared_memory_can_be_registered)
{
	static const char name[] = "/gpupool-test-host-memory";
	int memory = memfd_create("test", 0), shared = shm_open(name, O_RDWR | O_CREAT, 0600);

	assert_true(memory >= 0 && shared >= 0);
	(void)shm_unlink(name);
	CU(register_file(memory, PROT_READ | PROT_WRITE, MAP_SHARED, 0));
	CU(register_file(shared, PROT_READ | PROT_WRITE, MAP_SHARED, 0));
	CU(register_file(shared, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0));
	INVALID(register_file(shared, PROT_READ, MAP_SHARED, 0));
	CU(register_file(shared, PROT_READ, MAP_SHARED, CU_MEMHOSTREGISTER_READ_ONLY));
	(void)close(memory);
	(void)close(shared);
}

static bool
kernel_pins_files(void)
{
	struct utsname name;
	int first, second;

	assert_int_equal(uname(&name), 0);
	assert_int_equal(sscanf(name.release, "%d.%d", &first, &second), 2);
	return first * 100 + second < 605;
}

static bool
is_on_disk(int file)
{
	struct stat status;

	assert_int_equal(fstat(file, &status), 0);
	return major(status.st_dev) != 0;
}

FAKE_WIRE_TEST(a_file_on_a_disk_can_be_registered_as_a_copy_only)
{
	char path[] = "test_host_memory.XXXXXX";
	int file = mkstemp(path);
	CUresult shared;

	assert_true(file >= 0);
	(void)unlink(path);
	shared = register_file(file, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	/* On other file systems the call may do either. */
	if (is_on_disk(file))
		assert_int_equal(shared,
				 kernel_pins_files() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
	CU(register_file(file, PROT_READ | PROT_WRITE, MAP_PRIVATE, 0));
	INVALID(register_file(file, PROT_READ, MAP_PRIVATE, 0));
	CU(register_file(file, PROT_READ, MAP_SHARED, CU_MEMHOSTREGISTER_READ_ONLY));
	(void)close(file);
}

FAKE_WIRE_TEST(memory_without_access_cannot_be_registered)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *pages =
		mmap(NULL, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(pages != MAP_FAILED);
	assert_int_equal(mprotect(pages + page, page, PROT_NONE), 0);
	INVALID(gpc_cuMemHostRegister_v2(pages, 3 * page, 0));
	INVALID(gpc_cuMemHostRegister_v2(pages + page - 1, 2, 0));
	INVALID(gpc_cuMemHostRegister_v2(pages + page, page, CU_MEMHOSTREGISTER_READ_ONLY));
	INVALID(gpc_cuMemHostRegister_v2(pages + 2 * page - 1, 2, 0));
	CU(gpc_cuMemHostRegister_v2(pages, page, 0));
	CU(gpc_cuMemHostRegister_v2(pages + 2 * page, page, 0));
	CU(gpc_cuMemHostUnregister(pages));
	CU(gpc_cuMemHostUnregister(pages + 2 * page));
	assert_int_equal(mprotect(pages + page, page, PROT_READ), 0);
	INVALID(gpc_cuMemHostRegister_v2(pages, 3 * page, 0));
	INVALID(gpc_cuMemHostRegister_v2(pages + page, page, CU_MEMHOSTREGISTER_PORTABLE));
	CU(gpc_cuMemHostRegister_v2(pages, page, 0));
	CU(gpc_cuMemHostUnregister(pages));
	CU(gpc_cuMemHostRegister_v2(pages, 3 * page, CU_MEMHOSTREGISTER_READ_ONLY));
	CU(gpc_cuMemHostUnregister(pages));
	(void)munmap(pages, 3 * page);
}

FAKE_WIRE_TEST(a_context_takes_its_host_memory_along)
{
	static uint8_t buffer[64];
	void *host;

	CU(gpc_cuMemHostAlloc(&host, 4096, 0));
	CU(gpc_cuMemHostRegister_v2(buffer, 64, 0));
	gpc_host_block_drop_context(fake.context);

	assert_false(gpc_host_memory_is_pinned(host, 1));
	assert_false(gpc_host_memory_is_pinned(buffer, 1));
}

UNIT_TEST(ranges_find_what_overlaps)
{
	struct gpc_ranges ranges = { 0 };
	int items[3];

	assert_int_equal(gpc_ranges_add(&ranges, 100, 50, &items[1]), 0);
	assert_int_equal(gpc_ranges_add(&ranges, 200, 1, &items[2]), 0);
	assert_int_equal(gpc_ranges_add(&ranges, 10, 90, &items[0]), 0);
	assert_int_equal(gpc_ranges_add(&ranges, 149, 5, NULL), GP_E_INVALID);
	assert_int_equal(gpc_ranges_add(&ranges, 0, 11, NULL), GP_E_INVALID);
	assert_int_equal(gpc_ranges_add(&ranges, 0, 1000, NULL), GP_E_INVALID);
	assert_int_equal(gpc_ranges_add(&ranges, 500, 0, NULL), GP_E_INVALID);
	assert_int_equal(gpc_ranges_add(&ranges, UINT64_MAX, 2, NULL), GP_E_INVALID);

	assert_null(gpc_ranges_find(&ranges, 0, 10));
	assert_ptr_equal(gpc_ranges_find(&ranges, 0, 11)->item, &items[0]);
	assert_ptr_equal(gpc_ranges_find(&ranges, 99, 1)->item, &items[0]);
	assert_ptr_equal(gpc_ranges_find(&ranges, 100, 1)->item, &items[1]);
	assert_null(gpc_ranges_find(&ranges, 150, 50));
	assert_ptr_equal(gpc_ranges_find(&ranges, 150, 51)->item, &items[2]);
	assert_null(gpc_ranges_find(&ranges, 201, UINT64_MAX - 201));
	gpc_ranges_remove(&ranges, gpc_ranges_find(&ranges, 120, 1));
	assert_null(gpc_ranges_find(&ranges, 100, 100));
	assert_ptr_equal(gpc_ranges_find(&ranges, 200, 1)->item, &items[2]);
	free(ranges.list);
}

UNIT_TEST_MAIN(NULL, NULL)
