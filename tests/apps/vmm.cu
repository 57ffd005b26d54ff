/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management: pieces of physical memory mapped into reserved addresses. */
#include "physical_app.h"

static __global__ void
fill(int *data, size_t count, int value)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
	     i += gridDim.x * blockDim.x)
		data[i] = value + (int)i;
}

static decltype(&cuMemRelease) release;
static decltype(&cuMemMap) map;
static decltype(&cuMemUnmap) unmap;
static decltype(&cuMemAddressReserve) reserve;
static decltype(&cuMemAddressFree) unreserve;

static CUmemAllocationProp prop;
static size_t granule;

static CUmemGenericAllocationHandle
make(size_t granules)
{
	return app_physical_create(prop, granules * granule);
}

static void
map_at(CUdeviceptr address, size_t granules, CUmemGenericAllocationHandle handle)
{
	DCHECK(map(address, granules * granule, 0, handle, 0));
	DCHECK(app_physical_allow(address, granules * granule, CU_MEM_LOCATION_TYPE_DEVICE, 0));
}

static void
expect(CUdeviceptr address, size_t count, int first)
{
	std::vector<int> host(count);

	CHECK(cudaMemcpy(host.data(), (void *)address, count * sizeof(int),
			 cudaMemcpyDeviceToHost));
	for (size_t i = 0; i < count; i++)
		REQUIRE(host[i] == first + (int)i);
}

/* An array that grows without moving. */
static void
grow()
{
	const size_t pieces = 6, count = granule / sizeof(int);
	CUdeviceptr base;

	DCHECK(reserve(&base, 64 * granule, 0, 0, 0));
	REQUIRE(base % granule == 0);
	for (size_t i = 1; i <= pieces; i++) {
		CUmemGenericAllocationHandle piece = make(1);

		map_at(base + (i - 1) * granule, 1, piece);
		DCHECK(release(piece));
		fill<<<32, 256>>>((int *)base, i * count, (int)i);
		CHECK(cudaGetLastError());
		expect(base, i * count, (int)i);
	}
	/* Each mapping has its own range, even if memory is mapped next to it. */
	for (size_t i = 0; i < pieces; i++) {
		CUdeviceptr start;
		size_t size;

		DCHECK(DRIVER(cuMemGetAddressRange)(&start, &size, base + i * granule + 12));
		REQUIRE(start == base + i * granule && size == granule);
	}
	DEXPECT(CUDA_ERROR_INVALID_VALUE, unmap(base, granule / 2));
	DEXPECT(CUDA_ERROR_INVALID_VALUE, unreserve(base, 64 * granule));
	for (size_t i = 0; i < pieces; i++)
		DCHECK(unmap(base + i * granule, granule));
	DCHECK(unreserve(base, 64 * granule));
}

/* Contents of physical memory are preserved, wherever it is mapped. */
static void
move()
{
	auto retain = DRIVER(cuMemRetainAllocationHandle);
	auto get_access = DRIVER(cuMemGetAccess);
	CUmemGenericAllocationHandle memory = make(2), same;
	unsigned long long flags;
	CUdeviceptr base;
	CUresult part;
	size_t size;

	DCHECK(reserve(&base, 8 * granule, 4 * granule, 0, 0));
	REQUIRE(base % (4 * granule) == 0);
	map_at(base, 2, memory);
	fill<<<32, 256>>>((int *)base, 1000, 7);
	CHECK(cudaDeviceSynchronize());
	DCHECK(unmap(base, 2 * granule));
	map_at(base + 4 * granule, 2, memory);
	expect(base + 4 * granule, 1000, 7);
	/* A driver need not support mapping a part. */
	part = map(base, granule, 0, memory, 0);
	REQUIRE(part == CUDA_SUCCESS || part == CUDA_ERROR_NOT_SUPPORTED);
	size = part == CUDA_SUCCESS ? granule : 2 * granule;
	if (part != CUDA_SUCCESS)
		DCHECK(map(base, size, 0, memory, 0));
	DCHECK(get_access(&flags, &prop.location, base));
	REQUIRE(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
	DCHECK(app_physical_allow(base, size, CU_MEM_LOCATION_TYPE_DEVICE, 0));
	DCHECK(get_access(&flags, &prop.location, base));
	REQUIRE(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	expect(base, 1000, 7);
	DEXPECT(CUDA_ERROR_INVALID_VALUE, map(base, size, 0, memory, 0));
	DCHECK(release(memory));
	DCHECK(retain(&same, (void *)(base + 5)));
	REQUIRE(same == memory);
	DCHECK(unmap(base, size));
	DCHECK(unmap(base + 4 * granule, 2 * granule));
	map_at(base + 2 * granule, 2, memory);
	expect(base + 2 * granule, 1000, 7);
	DCHECK(unmap(base + 2 * granule, 2 * granule));
	DCHECK(release(memory));
	DCHECK(unreserve(base, 8 * granule));
}

/* Far more addresses than the device has memory. */
static void
reserve_much()
{
	CUdeviceptr large[3];
	cudaDeviceProp properties;

	CHECK(cudaGetDeviceProperties(&properties, 0));
	size_t size = (properties.totalGlobalMem / granule + 1) * granule;
	for (CUdeviceptr &base : large) {
		CUmemGenericAllocationHandle memory = make(1);

		DCHECK(reserve(&base, size, 0, 0, 0));
		map_at(base + size - granule, 1, memory);
		DCHECK(release(memory));
		fill<<<32, 256>>>((int *)(base + size - granule), granule / sizeof(int), 3);
		expect(base + size - granule, granule / sizeof(int), 3);
	}
	for (CUdeviceptr base : large) {
		DCHECK(unmap(base + size - granule, granule));
		DCHECK(unreserve(base, size));
	}
}

static void
refuse()
{
	CUmemGenericAllocationHandle memory;
	CUdeviceptr base;

	DEXPECT(CUDA_ERROR_INVALID_VALUE, DRIVER(cuMemCreate)(&memory, granule / 2, &prop, 0));
	DEXPECT(CUDA_ERROR_OUT_OF_MEMORY, DRIVER(cuMemCreate)(&memory, (size_t)1 << 46, &prop, 0));
	DEXPECT(CUDA_ERROR_INVALID_VALUE, reserve(&base, 100, 0, 0, 0));
	DEXPECT(CUDA_ERROR_INVALID_VALUE, unreserve(4096, 4096));
}

int
main()
{
	int supported;

	CHECK(cudaSetDevice(0));
	CHECK(cudaFree(0));
	DCHECK(DRIVER(cuDeviceGetAttribute)(
		&supported, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
	app_skip_unless_supported(supported ? cudaSuccess : cudaErrorNotSupported,
				  "virtual memory management");
	release = DRIVER(cuMemRelease);
	map = DRIVER(cuMemMap);
	unmap = DRIVER(cuMemUnmap);
	reserve = DRIVER(cuMemAddressReserve);
	unreserve = DRIVER(cuMemAddressFree);
	prop = app_physical_properties();
	granule = app_physical_granularity(prop);

	grow();
	move();
	reserve_much();
	refuse();
	return app_ok("vmm");
}
