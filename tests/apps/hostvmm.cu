/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual memory management of host memory, as NCCL uses it: mapped at one address for both
 * sides. */
#include "peer_app.h"
#include "physical_app.h"

#include <unistd.h>

static __global__ void
add(int *data, size_t count, int value)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
	     i += gridDim.x * blockDim.x)
		data[i] += value + (int)i;
}

static size_t granule;

static CUmemAllocationProp
properties(CUmemLocationType where, unsigned int types)
{
	CUmemAllocationProp prop = app_physical_properties(where);

	prop.requestedHandleTypes = (CUmemAllocationHandleType)types;
	return prop;
}

static void
find_granule(void)
{
	granule = app_physical_granularity(properties(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0));
	REQUIRE(granule >= 4096 && (granule & (granule - 1)) == 0);
}

static CUmemGenericAllocationHandle
make(const CUmemAllocationProp &prop)
{
	return app_physical_create(prop, granule);
}

static CUresult
give(CUdeviceptr base, CUmemLocationType who, int id, CUmemAccess_flags flags)
{
	return app_physical_allow(base, granule, who, id, flags);
}

static unsigned long long
access(CUdeviceptr base, CUmemLocationType who)
{
	unsigned long long flags = 99;
	CUmemLocation location = {};

	location.type = who;
	DCHECK(DRIVER(cuMemGetAccess)(&flags, &location, base));
	return flags;
}

/* Reserved, mapped, and accessible to both sides. */
static int *
map(CUmemGenericAllocationHandle handle)
{
	CUdeviceptr base = app_physical_map(handle, granule);

	DCHECK(give(base, CU_MEM_LOCATION_TYPE_HOST_NUMA, 0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	return (int *)base;
}

static void
unmap(int *memory)
{
	app_physical_unmap((CUdeviceptr)memory, granule);
}

/* The program and kernels access it alternately, with copies in both directions. */
static void
alternate(int *memory)
{
	const size_t count = granule / sizeof(int);
	int *device = app_malloc<int>(count);
	std::vector<int> copy(count);

	for (int round = 1; round < 4; round++) {
		for (size_t i = 0; i < count; i++)
			memory[i] = round;
		add<<<16, 256>>>(memory, count, 10);
		CHECK(cudaMemcpyAsync(device, memory, granule, cudaMemcpyDefault, 0));
		add<<<16, 256>>>(device, count, 0);
		CHECK(cudaMemcpyAsync(memory, device, granule, cudaMemcpyDefault, 0));
		CHECK(cudaMemcpyAsync(copy.data(), memory, granule, cudaMemcpyDefault, 0));
		CHECK(cudaDeviceSynchronize());
		for (size_t i = 0; i < count; i++)
			REQUIRE(memory[i] == round + 10 + 2 * (int)i && copy[i] == memory[i]);
	}
	CHECK(cudaMemset(memory, 0x11, granule));
	CHECK(cudaDeviceSynchronize());
	REQUIRE(memory[0] == 0x11111111 && memory[count - 1] == 0x11111111);
	CHECK(cudaFree(device));
}

static void
use(CUmemLocationType where)
{
	CUmemAllocationProp prop = properties(where, 0), found;
	CUmemGenericAllocationHandle handle = make(prop), same;
	cudaPointerAttributes attributes;
	int *memory = map(handle);

	REQUIRE(memory[0] == 0 && memory[granule / sizeof(int) - 1] == 0);
	printf("access of the device %llu, of the host %llu\n",
	       access((CUdeviceptr)memory, CU_MEM_LOCATION_TYPE_DEVICE),
	       access((CUdeviceptr)memory, CU_MEM_LOCATION_TYPE_HOST_NUMA));
	CHECK(cudaPointerGetAttributes(&attributes, memory));
	printf("memory type %d, device pointer %s, host pointer %s\n", (int)attributes.type,
	       attributes.devicePointer == memory ? "the same" : "another",
	       attributes.hostPointer == memory ? "the same" : "another");
	alternate(memory);
	DCHECK(DRIVER(cuMemRetainAllocationHandle)(&same, memory));
	REQUIRE(same == handle);
	DCHECK(DRIVER(cuMemGetAllocationPropertiesFromHandle)(&found, handle));
	printf("location %d, %d\n", (int)found.location.type, found.location.id);
	DCHECK(DRIVER(cuMemRelease)(same));
	/* Contents are preserved while the memory is not mapped. */
	memory[5] = 55;
	unmap(memory);
	memory = map(handle);
	REQUIRE(memory[5] == 55 && memory[6] == 0x11111111);
	DCHECK(DRIVER(cuMemRelease)(handle));
	memory[7] = 77;
	add<<<1, 1>>>(memory + 7, 1, 1);
	CHECK(cudaDeviceSynchronize());
	REQUIRE(memory[7] == 78);
	unmap(memory);
}

static void
pass_on(void)
{
	CUmemGenericAllocationHandle handle = make(properties(
		CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	CUmemGenericAllocationHandle other;
	int *memory = map(handle), *again, fd = -1;

	DCHECK(DRIVER(cuMemExportToShareableHandle)(&fd, handle,
						    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	DCHECK(DRIVER(cuMemImportFromShareableHandle)(&other, (void *)(intptr_t)fd,
						      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	again = map(other);
	memory[3] = 5;
	add<<<1, 1>>>(again + 3, 1, 4);
	CHECK(cudaDeviceSynchronize());
	REQUIRE(again[3] == 9 && memory[3] == 9);
	unmap(again);
	unmap(memory);
	DCHECK(DRIVER(cuMemRelease)(handle));
	DCHECK(DRIVER(cuMemRelease)(other));
}

/* Offsets of a message of four words and its flag, in both directions. */
#define THERE 16
#define THERE_FLAG 64
#define BACK 128
#define BACK_FLAG 192

static __global__ void
answer(volatile int *words, int messages)
{
	for (int message = 1; message <= messages; message++) {
		while (words[THERE_FLAG] != message)
			;
		__threadfence_system();
		for (int i = 0; i < 4; i++)
			words[BACK + i] = 2 * words[THERE + i];
		__threadfence_system();
		words[BACK_FLAG] = message;
	}
}

/* Another process, whose kernel replies to the messages of the first. */
static int
serve()
{
	CUmemGenericAllocationHandle handle;
	int fd = app_recv_fd(), *words;

	if (fd < 0)
		return 0;
	CHECK(cudaFree(nullptr));
	find_granule();
	DCHECK(DRIVER(cuMemImportFromShareableHandle)(&handle, (void *)(intptr_t)fd,
						      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	words = map(handle);
	REQUIRE(words[0] == 1234);
	answer<<<1, 1>>>(words, 5);
	CHECK(cudaDeviceSynchronize());
	unmap(words);
	DCHECK(DRIVER(cuMemRelease)(handle));
	return 0;
}

static void
talk_to()
{
	CUmemGenericAllocationHandle handle = make(properties(
		CU_MEM_LOCATION_TYPE_HOST_NUMA, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	volatile int *words = map(handle);
	int fd = -1;

	words[0] = 1234;
	DCHECK(DRIVER(cuMemExportToShareableHandle)(&fd, handle,
						    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	app_pass(fd);
	for (int message = 1; message <= 5; message++) {
		for (int i = 0; i < 4; i++)
			words[THERE + i] = message * 10 + i;
		__sync_synchronize();
		words[THERE_FLAG] = message;
		for (int tries = 0; words[BACK_FLAG] != message; tries++) {
			REQUIRE(tries < 300000);
			usleep(100);
		}
		__sync_synchronize();
		for (int i = 0; i < 4; i++)
			REQUIRE(words[BACK + i] == 2 * (message * 10 + i));
	}
	unmap((int *)words);
	DCHECK(DRIVER(cuMemRelease)(handle));
	printf("another process answers\n");
}

static void
print_result(const char *what, CUresult result)
{
	const char *name = "unknown";

	(void)DRIVER(cuGetErrorName)(result, &name);
	printf("%s: %s\n", what, name);
}

static void
call_wrongly(void)
{
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp prop = properties(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0);
	CUdeviceptr base;

	print_result("the current node", DRIVER(cuMemCreate)(&handle, granule, &prop, 0));
	prop = properties(CU_MEM_LOCATION_TYPE_HOST, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	print_result("exported from the host", DRIVER(cuMemCreate)(&handle, granule, &prop, 0));
	prop = properties(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0);
	print_result("half a page", DRIVER(cuMemCreate)(&handle, 2048, &prop, 0));
	print_result("nothing", DRIVER(cuMemCreate)(&handle, 0, &prop, 0));
	handle = make(prop);
	DCHECK(DRIVER(cuMemAddressReserve)(&base, 2 * granule, 0, 0, 0));
	print_result("more than there is", DRIVER(cuMemMap)(base, 2 * granule, 0, handle, 0));
	DCHECK(DRIVER(cuMemMap)(base, granule, 0, handle, 0));
	print_result("mapped twice", DRIVER(cuMemMap)(base, granule, 0, handle, 0));
	print_result("access of no device", give(base, CU_MEM_LOCATION_TYPE_DEVICE, 99,
						 CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	print_result("freed while mapped", DRIVER(cuMemAddressFree)(base, 2 * granule));
	DCHECK(DRIVER(cuMemUnmap)(base, granule));
	print_result("unmapped twice", DRIVER(cuMemUnmap)(base, granule));
	DCHECK(DRIVER(cuMemAddressFree)(base, 2 * granule));
	DCHECK(DRIVER(cuMemRelease)(handle));
	print_result("released twice", DRIVER(cuMemRelease)(handle));
}

static int
run()
{
	int node = 0, host = 0;

	CHECK(cudaFree(nullptr));
	DCHECK(DRIVER(cuDeviceGetAttribute)(
		&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
	DCHECK(DRIVER(cuDeviceGetAttribute)(
		&host, CU_DEVICE_ATTRIBUTE_HOST_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
	find_granule();
	if (!node || !host) {
		printf("hostvmm: not supported\n");
		return 77;
	}
	use(CU_MEM_LOCATION_TYPE_HOST_NUMA);
	use(CU_MEM_LOCATION_TYPE_HOST);
	pass_on();
	talk_to();
	call_wrongly();
	return 0;
}

int
main()
{
	return app_run_both("hostvmm", run, serve);
}
