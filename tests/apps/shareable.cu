/* SPDX-License-Identifier: Apache-2.0 */
/* Physical memory of one process in another, by descriptors that the processes pass over a
 * socket. */
#include "peer_app.h"
#include "physical_app.h"

#include <unistd.h>

static __global__ void
fill(int *data, size_t count, int first)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
	     i += gridDim.x * blockDim.x)
		data[i] = first + (int)i;
}

static const CUmemAllocationHandleType type = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
static CUmemAllocationProp prop;
static size_t granule;

static void
prepare()
{
	int supported;

	CHECK(cudaSetDevice(0));
	CHECK(cudaFree(0));
	DCHECK(DRIVER(cuDeviceGetAttribute)(
		&supported, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0));
	app_skip_unless_supported(supported ? cudaSuccess : cudaErrorNotSupported,
				  "memory as a descriptor");
	prop = app_physical_properties();
	prop.requestedHandleTypes = type;
	granule = app_physical_granularity(prop);
}

static int *
map(CUmemGenericAllocationHandle memory)
{
	return (int *)app_physical_map(memory, granule);
}

static void
unmap(int *data)
{
	app_physical_unmap((CUdeviceptr)data, granule);
}

static void
write_to(int *data, int first)
{
	fill<<<32, 256>>>(data, granule / sizeof(int), first);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
}

static void
expect(const int *data, int first)
{
	std::vector<int> host = app_download(data, granule / sizeof(int));

	for (size_t i = 0; i < host.size(); i++)
		REQUIRE(host[i] == first + (int)i);
}

static CUmemGenericAllocationHandle
import_from(int fd)
{
	CUmemGenericAllocationHandle memory;

	DCHECK(DRIVER(cuMemImportFromShareableHandle)(&memory, (void *)(intptr_t)fd, type));
	close(fd);
	return memory;
}

static int
export_memory(CUmemGenericAllocationHandle memory)
{
	int fd = -1;

	DCHECK(DRIVER(cuMemExportToShareableHandle)(&fd, memory, type, 0));
	REQUIRE(fd >= 0);
	return fd;
}

static void
refuse()
{
	CUmemGenericAllocationHandle memory, none;
	int fd, ends[2];

	prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	memory = app_physical_create(prop, granule);
	prop.requestedHandleTypes = type;
	DEXPECT(CUDA_ERROR_INVALID_VALUE,
		DRIVER(cuMemExportToShareableHandle)(&fd, memory, type, 0));
	DCHECK(DRIVER(cuMemRelease)(memory));
	REQUIRE(pipe(ends) == 0);
	REQUIRE(DRIVER(cuMemImportFromShareableHandle)(&none, (void *)(intptr_t)ends[0], type) !=
		CUDA_SUCCESS);
	close(ends[0]);
	close(ends[1]);
}

static int
produce()
{
	CUmemGenericAllocationHandle memory, again;
	int *data, *second;

	prepare();
	refuse();
	memory = app_physical_create(prop, granule);
	/* Before it is mapped anywhere. */
	app_pass(export_memory(memory));
	data = map(memory);
	app_await();
	expect(data, 1000);
	write_to(data, 2000);
	app_nudge();
	app_await();
	/* Also in the same process. */
	again = import_from(export_memory(memory));
	second = map(again);
	expect(second, 3000);
	DCHECK(DRIVER(cuMemRelease)(memory));
	DCHECK(DRIVER(cuMemRelease)(again));
	unmap(data);
	unmap(second);
	app_nudge();
	return 0;
}

static int
consume()
{
	CUmemGenericAllocationHandle memory;
	CUmemAllocationProp found;
	int *data;

	prepare();
	memory = import_from(app_recv_fd());
	DCHECK(DRIVER(cuMemGetAllocationPropertiesFromHandle)(&found, memory));
	REQUIRE(found.type == prop.type && found.location.id == 0);
	data = map(memory);
	DCHECK(DRIVER(cuMemRelease)(memory));
	write_to(data, 1000);
	app_nudge();
	app_await();
	expect(data, 2000);
	write_to(data, 3000);
	app_nudge();
	app_await();
	/* The other process has released it. */
	expect(data, 3000);
	unmap(data);
	return 0;
}

int
main()
{
	return app_run_both("shareable", produce, consume);
}
