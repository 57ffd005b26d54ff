/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host memory that is freed while a stream waits for a word in it. NVIDIA's driver frees and
 * unregisters host memory after all work; a thread that writes the word in the meantime lets the
 * stream continue.
 */
#include "app.h"

#include <cuda.h>
#include <thread>
#include <unistd.h>

static decltype(&cuStreamWaitValue32) wait_value;

static void
load()
{
	cudaDriverEntryPointQueryResult found;
	void *function = nullptr;

	CHECK(cudaGetDriverEntryPointByVersion("cuStreamWaitValue32", &function, 13000,
					       cudaEnableDefault, &found));
	REQUIRE(function);
	wait_value = reinterpret_cast<decltype(wait_value)>(function);
}

/* The function frees the memory while a stream waits for its first word. */
static void
let_go(const char *how, unsigned int *word, unsigned int *there,
       cudaError_t (*function)(void *memory))
{
	unsigned int *result = app_malloc<unsigned int>(1);
	cudaStream_t stream;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMemset(result, 0, sizeof(*result)));
	CHECK(cudaDeviceSynchronize());
	__atomic_store_n(word, 0, __ATOMIC_RELEASE);
	REQUIRE(wait_value(stream, reinterpret_cast<CUdeviceptr>(there), 7,
			   CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS);
	CHECK(cudaMemsetAsync(result, 1, sizeof(*result), stream));
	std::thread writer([=] {
		usleep(100000);
		__atomic_store_n(word, 7, __ATOMIC_RELEASE);
	});
	CHECK(function(word));
	CHECK(cudaStreamSynchronize(stream));
	writer.join();
	REQUIRE(app_download(result, 1)[0] == 0x01010101);
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFree(result));
	printf("%s\n", how);
}

int
main()
{
	std::vector<unsigned int> own(100);
	unsigned int *memory, *there;

	load();
	CHECK(cudaHostAlloc(&memory, 4096, cudaHostAllocMapped));
	let_go("freed", memory, memory, cudaFreeHost);
	CHECK(cudaHostRegister(own.data(), own.size() * sizeof(own[0]), cudaHostRegisterMapped));
	CHECK(cudaHostGetDevicePointer(&there, own.data(), 0));
	let_go("unregistered", own.data(), there, cudaHostUnregister);
	return app_ok("wordsfreed");
}
