/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors that the runtime returns for misuse. Prints every error, so that the output of two
 * machines can be compared. Documented errors are also checked.
 */
#include "app.h"

static int wrong;
/* Stands for any error, because the value depends on the versions of runtime and driver. */
static const cudaError_t some_error = cudaErrorUnknown;

static void
report(const char *what, cudaError_t error, cudaError_t expected)
{
	printf("%s: %s (%d)\n", what, cudaGetErrorName(error), (int)error);
	if (expected == some_error ? error == cudaSuccess : error != expected) {
		printf("  expected %s (%d)\n", cudaGetErrorName(expected), (int)expected);
		wrong++;
	}
	(void)cudaGetLastError();
}

static __global__ void
nothing(int *out)
{
	if (out)
		*out = 1;
}

static __global__ void __launch_bounds__(128) at_most_128(int *out)
{
	if (out)
		*out = 1;
}

static void
launches()
{
	int *none = nullptr;
	void *arguments[] = { &none };

	nothing<<<0, 32>>>(none);
	report("no blocks", cudaGetLastError(), some_error);
	nothing<<<1, 0>>>(none);
	report("no threads", cudaGetLastError(), some_error);
	nothing<<<1, 1025>>>(none);
	report("1025 threads", cudaGetLastError(), some_error);
	nothing<<<1, dim3(64, 32, 1)>>>(none);
	report("64 x 32 threads", cudaGetLastError(), some_error);
	nothing<<<1, dim3(1, 1, 65)>>>(none);
	report("65 threads in z", cudaGetLastError(), some_error);
	nothing<<<dim3(1, 65536), 32>>>(none);
	report("65536 blocks in y", cudaGetLastError(), some_error);
	nothing<<<1, 32, 1 << 20>>>(none);
	report("1 MiB of shared memory", cudaGetLastError(), cudaErrorInvalidValue);
	at_most_128<<<1, 256>>>(none);
	report("more than the launch bounds", cudaGetLastError(), some_error);
	report("a launch of no kernel",
	       cudaLaunchKernel((const void *)&wrong, 1, 1, arguments, 0, 0), some_error);
	nothing<<<1, 32>>>(none);
	report("a good launch", cudaGetLastError(), cudaSuccess);
	report("and its end", cudaDeviceSynchronize(), cudaSuccess);
}

static void
memory()
{
	char host[64] = {};
	char *device, *nowhere = nullptr;
	void *huge;

	report("malloc", cudaMalloc(&device, 1000), cudaSuccess);
	report("malloc of nothing", cudaMalloc(&nowhere, 0), cudaSuccess);
	REQUIRE(nowhere == nullptr);
	report("malloc to nowhere", cudaMalloc((void **)nullptr, 16), cudaErrorInvalidValue);
	report("malloc of 2^50 bytes", cudaMalloc(&huge, (size_t)1 << 50),
	       cudaErrorMemoryAllocation);
	report("malloc of all bytes", cudaMalloc(&huge, ~(size_t)0), cudaErrorMemoryAllocation);
	report("free of null", cudaFree(nullptr), cudaSuccess);
	report("free of the inside", cudaFree(device + 16), cudaErrorInvalidValue);
	report("free of a host address", cudaFree(host), cudaErrorInvalidValue);
	report("free of a wild address", cudaFree((void *)0x123456789000), cudaErrorInvalidValue);
	report("memset of null", cudaMemset(nullptr, 0, 16), cudaErrorInvalidValue);
	report("memset of nothing", cudaMemset(nullptr, 0, 0), cudaSuccess);
	report("memset past the end", cudaMemset(device, 0, (size_t)1 << 40),
	       cudaErrorInvalidValue);
	report("free", cudaFree(device), cudaSuccess);
	report("free again", cudaFree(device), cudaErrorInvalidValue);
}

static void
copies()
{
	char host[64] = {};
	char *device = app_malloc<char>(1000);

	report("copy of a wrong kind", cudaMemcpy(device, host, 64, (cudaMemcpyKind)77),
	       cudaErrorInvalidMemcpyDirection);
	report("copy of nothing", cudaMemcpy(device, host, 0, cudaMemcpyHostToDevice), cudaSuccess);
	report("copy from null", cudaMemcpy(device, nullptr, 64, cudaMemcpyHostToDevice),
	       cudaErrorInvalidValue);
	report("copy to null", cudaMemcpy(nullptr, host, 64, cudaMemcpyHostToDevice),
	       cudaErrorInvalidValue);
	report("copy past the end",
	       cudaMemcpy(device, device, (size_t)1 << 40, cudaMemcpyDeviceToDevice),
	       cudaErrorInvalidValue);
	report("copy", cudaMemcpy(device, host, 64, cudaMemcpyHostToDevice), cudaSuccess);
	CHECK(cudaFree(device));
}

static void
objects()
{
	cudaDeviceProp prop;
	cudaFuncAttributes attributes;
	int value;

	report("device 1000", cudaSetDevice(1000), cudaErrorInvalidDevice);
	report("properties of device -1", cudaGetDeviceProperties(&prop, -1),
	       cudaErrorInvalidDevice);
	report("attribute 9999", cudaDeviceGetAttribute(&value, (cudaDeviceAttr)9999, 0),
	       cudaErrorInvalidValue);
	report("stream to nowhere", cudaStreamCreate(nullptr), cudaErrorInvalidValue);
	report("event to nowhere", cudaEventCreate(nullptr), cudaErrorInvalidValue);
	report("event null", cudaEventQuery(nullptr), cudaErrorInvalidResourceHandle);
	report("destroy of stream null", cudaStreamDestroy(nullptr),
	       cudaErrorInvalidResourceHandle);
	report("attributes of no kernel", cudaFuncGetAttributes(&attributes, (const void *)&wrong),
	       some_error);
	report("limit 99", cudaDeviceSetLimit((cudaLimit)99, 1), some_error);
}

static void
last_error()
{
	int count;

	REQUIRE(cudaSetDevice(1000) == cudaErrorInvalidDevice);
	CHECK(cudaGetDeviceCount(&count));
	REQUIRE(cudaPeekAtLastError() == cudaErrorInvalidDevice);
	REQUIRE(cudaPeekAtLastError() == cudaErrorInvalidDevice);
	REQUIRE(cudaGetLastError() == cudaErrorInvalidDevice);
	REQUIRE(cudaGetLastError() == cudaSuccess);
	/* A later error replaces an earlier one. */
	REQUIRE(cudaSetDevice(1000) == cudaErrorInvalidDevice);
	REQUIRE(cudaMemset(nullptr, 0, 16) == cudaErrorInvalidValue);
	REQUIRE(cudaGetLastError() == cudaErrorInvalidValue);
	REQUIRE(cudaPeekAtLastError() == cudaSuccess);
	printf("the last error stays until it is fetched\n");
	printf("%s, %s\n", cudaGetErrorName((cudaError_t)12345),
	       cudaGetErrorString(cudaErrorMemoryAllocation));
}

int
main()
{
	CHECK(cudaFree(0));
	launches();
	memory();
	copies();
	objects();
	last_error();
	if (wrong)
		printf("%d differ\n", wrong);
	return wrong ? 1 : app_ok("errors");
}
