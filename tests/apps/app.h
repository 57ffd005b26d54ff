/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers that all sample programs share. A sample program is a CUDA program that prints the same
 * output locally and through gpupool.
 *
 * A program checks its own results. It prints only text that is the same in every run (no
 * addresses, no times) and ends with "<name>: ok" and status 0. On a difference it prints the
 * source line and exits with status 1.
 * Errors: helpers that call CUDA end the program as CHECK() does.
 */
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <vector>

/* Calls a runtime function that must succeed; otherwise ends the program. */
#define CHECK(call) app_check(cudaSuccess, call, #call, __LINE__)

/* Calls a runtime function that must return the error `expected`; otherwise ends the program.
 * Clears the runtime's last error. */
#define EXPECT(expected, call)                                                                     \
	do {                                                                                       \
		app_check(expected, call, #call, __LINE__);                                        \
		(void)cudaGetLastError();                                                          \
	} while (0)

/* Ends the program if the condition is false. */
#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition))                                                                  \
			app_fail("is not so: " #condition, __LINE__);                              \
	} while (0)

/* Prints the line and the text, and exits with status 1. */
[[noreturn]] static inline void
app_fail(const char *what, int line)
{
	printf("line %d: %s\n", line, what);
	fflush(stdout);
	exit(1);
}

/* Implements CHECK() and EXPECT(). */
static inline void
app_check(cudaError_t expected, cudaError_t error, const char *call, int line)
{
	if (error == expected)
		return;
	printf("line %d: %s: %s (%d), expected %s (%d)\n", line, call, cudaGetErrorName(error),
	       (int)error, cudaGetErrorName(expected), (int)expected);
	fflush(stdout);
	exit(1);
}

/* Returns the GPU's global time in nanoseconds. */
static __device__ inline unsigned long long
app_nanoseconds()
{
	unsigned long long now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	return now;
}

/* Sleeps between two polls in a waiting kernel: half of `ns` nanoseconds, at most 1 ms. Leaves
 * the processor to other threads if the device is software. Does nothing before compute capability
 * 7.0. */
static __device__ inline void
app_rest(unsigned long long ns)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
	__nanosleep(ns < 2000000 ? (unsigned int)ns / 2 : 1000000);
#endif
}

/* Occupies the calling GPU thread for `ns` nanoseconds. */
static __device__ inline void
app_stay(unsigned long long ns)
{
	unsigned long long start = app_nanoseconds(), gone;

	while ((gone = app_nanoseconds() - start) < ns)
		app_rest(ns - gone);
}

/* Prints that the program has succeeded. Returns the exit status 0. */
static inline int
app_ok(const char *name)
{
	printf("%s: ok\n", name);
	return 0;
}

/* Exits with 77 (skipped) if the error means that the device does not support the optional feature
 * `what`. Returns for all other values. */
static inline void
app_skip_unless_supported(cudaError_t error, const char *what)
{
	if (error != cudaErrorNotSupported)
		return;
	printf("skipped: %s: not supported\n", what);
	fflush(stdout);
	exit(77);
}

/* Returns whether the GPU is local. Through gpupool, host and GPU cannot access managed memory
 * concurrently. */
static inline bool
app_is_local()
{
	int concurrent;

	CHECK(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
	return concurrent;
}

/* Loads a kernel that will be launched later. A local GPU loads kernels lazily at their first
 * launch, and loading waits for all earlier work, which would deadlock if that work waits for the
 * kernel. */
static inline void
app_load(const void *kernel)
{
	cudaFuncAttributes attributes;

	CHECK(cudaFuncGetAttributes(&attributes, kernel));
}

/* Returns uninitialized device memory for `count` elements, which the caller frees with
 * cudaFree(). */
template <typename T>
static inline T *
app_malloc(size_t count)
{
	T *device = nullptr;

	CHECK(cudaMalloc(&device, count * sizeof(T)));
	return device;
}

/* Returns device memory with a copy of the elements, which the caller frees with cudaFree(). */
template <typename T>
static inline T *
app_upload(const std::vector<T> &host)
{
	T *device = app_malloc<T>(host.size());

	CHECK(cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice));
	return device;
}

/* Returns a copy of `count` elements of device memory. */
template <typename T>
static inline std::vector<T>
app_download(const T *device, size_t count)
{
	std::vector<T> host(count);

	CHECK(cudaMemcpy(host.data(), device, count * sizeof(T), cudaMemcpyDeviceToHost));
	return host;
}

/* Adds a kernel node with one thread to the graph and returns it. `after` points to the node that
 * it depends on; NULL: none. `args` are copied. */
static inline cudaGraphNode_t
app_add_kernel(cudaGraph_t graph, const cudaGraphNode_t *after, void *function, void **args)
{
	cudaKernelNodeParams params = {};
	cudaGraphNode_t node;

	params.func = function;
	params.gridDim = params.blockDim = dim3(1);
	params.kernelParams = args;
	CHECK(cudaGraphAddKernelNode(&node, graph, after, after != nullptr, &params));
	return node;
}
