/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the properties of every device that are the same in every run. */
#include "app.h"

static void
print_dimensions(const char *what, const int dimensions[3])
{
	printf("  %s: %d x %d x %d\n", what, dimensions[0], dimensions[1], dimensions[2]);
}

static void
print_device(int device)
{
	cudaDeviceProp prop;
	int value;
	const struct {
		const char *name;
		cudaDeviceAttr attribute;
	} attributes[] = {
		{ "max threads per block", cudaDevAttrMaxThreadsPerBlock },
		{ "max block x", cudaDevAttrMaxBlockDimX },
		{ "max grid y", cudaDevAttrMaxGridDimY },
		{ "shared memory per block", cudaDevAttrMaxSharedMemoryPerBlock },
		{ "shared memory opt-in", cudaDevAttrMaxSharedMemoryPerBlockOptin },
		{ "registers per block", cudaDevAttrMaxRegistersPerBlock },
		{ "constant memory", cudaDevAttrTotalConstantMemory },
		{ "warp size", cudaDevAttrWarpSize },
		{ "multiprocessors", cudaDevAttrMultiProcessorCount },
		{ "compute major", cudaDevAttrComputeCapabilityMajor },
		{ "compute minor", cudaDevAttrComputeCapabilityMinor },
		{ "cooperative launch", cudaDevAttrCooperativeLaunch },
		{ "stream priorities", cudaDevAttrStreamPrioritiesSupported },
	};

	CHECK(cudaGetDeviceProperties(&prop, device));
	printf("device %d: %s\n", device, prop.name);
	for (const auto &entry : attributes) {
		CHECK(cudaDeviceGetAttribute(&value, entry.attribute, device));
		printf("  %s: %d\n", entry.name, value);
	}
	print_dimensions("max block", prop.maxThreadsDim);
	print_dimensions("max grid", prop.maxGridSize);
	printf("  threads per multiprocessor: %d\n", prop.maxThreadsPerMultiProcessor);
	printf("  unified addressing: %d\n", prop.unifiedAddressing);

	CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, device));
	REQUIRE(value == prop.multiProcessorCount && value > 0);
	CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerBlock, device));
	REQUIRE(value == prop.maxThreadsPerBlock && value >= 1024);
	REQUIRE(prop.warpSize == 32);
	REQUIRE(prop.totalGlobalMem > 0);
	REQUIRE(strlen(prop.name) > 0);
}

int
main()
{
	int count, device, driver, runtime;
	size_t free_memory, total_memory;

	CHECK(cudaDriverGetVersion(&driver));
	CHECK(cudaRuntimeGetVersion(&runtime));
	REQUIRE(runtime == CUDART_VERSION);
	REQUIRE(driver / 1000 >= runtime / 1000);
	CHECK(cudaGetDeviceCount(&count));
	REQUIRE(count >= 1);
	for (int i = 0; i < count; i++)
		print_device(i);
	CHECK(cudaGetDevice(&device));
	REQUIRE(device == 0);
	EXPECT(cudaErrorInvalidDevice, cudaSetDevice(count));
	EXPECT(cudaErrorInvalidDevice, cudaSetDevice(-1));
	CHECK(cudaMemGetInfo(&free_memory, &total_memory));
	REQUIRE(free_memory <= total_memory && free_memory > 0);
	return app_ok("devicequery");
}
