/* SPDX-License-Identifier: Apache-2.0 */
/* A fault ends a process's use of the device, so each test has a process of its own. */
#include "tests/softgpu/driver/common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const CUmemAllocationProp pinned = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
};

static const CUmemAccessDesc read_write = {
	.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
	.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};

#define must(call)                                                                                 \
	do {                                                                                       \
		int must_r = (int)(call);                                                          \
		if (must_r) {                                                                      \
			fprintf(stderr, "%s: %d\n", #call, must_r);                                \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static CUfunction
child_kernel(const char *name)
{
	void *image = gs_test_file("kernels.fatbin", NULL);
	CUlibrary library;
	CUkernel kernel = NULL;

	if (!cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0))
		(void)cuLibraryGetKernel(&kernel, library, name);
	free(image);
	return (CUfunction)kernel;
}

/* Runs part() in a child process with a context, and stores its standard error in `text`. Returns
 * the exit status. */
static int
in_child(int (*part)(void), char *text, size_t room)
{
	int ends[2], status;
	size_t len = 0;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		gs_test_deadline(30);
		_exit(gs_test_setup(NULL) ? 2 : part());
	}
	close(ends[1]);
	while ((n = read(ends[0], text + len, room - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		return 128 + WTERMSIG(status);
	return WEXITSTATUS(status);
}

static int
launch_at(CUdeviceptr ptr, CUstream stream)
{
	return cuLaunchKernel(child_kernel("wild_store"), 1, 1, 1, 1, 1, 1, 0, stream,
			      (void *[]){ &ptr }, NULL);
}

static int
everything_fails_with(CUresult code)
{
	CUdeviceptr ptr;
	CUstream stream;
	CUcontext ctx;
	CUevent event;
	size_t a, b;

	return cuCtxSynchronize() == code && cuMemAlloc_v2(&ptr, 4) == code &&
	       cuMemGetInfo_v2(&a, &b) == code && cuStreamCreate(&stream, 0) == code &&
	       cuEventCreate(&event, 0) == code && cuStreamSynchronize(NULL) == code &&
	       cuMemsetD8_v2(4096, 0, 1) == code && cuDevicePrimaryCtxRetain(&ctx, 0) == code;
}

static int
store_outside_every_range(void)
{
	CUstream stream;

	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	must(launch_at(64, stream));
	must(cuStreamSynchronize(stream) != CUDA_ERROR_ILLEGAL_ADDRESS);
	return everything_fails_with(CUDA_ERROR_ILLEGAL_ADDRESS) ? 0 : 1;
}

static int
store_to_a_page_without_memory(void)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr window;

	must(cuMemAddressReserve(&window, 4 * GS_CHUNK, 0, 0, 0));
	must(cuMemCreate(&handle, GS_CHUNK, &pinned, 0));
	must(cuMemMap(window, GS_CHUNK, 0, handle, 0));
	must(cuMemSetAccess(window, GS_CHUNK, &read_write, 1));
	must(launch_at(window + GS_CHUNK - 4, NULL));
	must(cuCtxSynchronize());
	must(launch_at(window + GS_CHUNK, NULL));
	must(cuCtxSynchronize() != CUDA_ERROR_ILLEGAL_ADDRESS);
	return everything_fails_with(CUDA_ERROR_ILLEGAL_ADDRESS) ? 0 : 1;
}

static int
store_to_freed_memory(void)
{
	CUdeviceptr ptr;

	must(cuMemAlloc_v2(&ptr, 4));
	must(launch_at(ptr, NULL));
	must(cuMemFree_v2(ptr));
	must(launch_at(ptr, NULL));
	must(cuCtxSynchronize() != CUDA_ERROR_ILLEGAL_ADDRESS);
	return 0;
}

static int
store_misaligned(void)
{
	CUdeviceptr ptr;

	must(cuMemAlloc_v2(&ptr, 64));
	must(launch_at(ptr + 2, NULL));
	must(cuCtxSynchronize() != CUDA_ERROR_MISALIGNED_ADDRESS);
	return everything_fails_with(CUDA_ERROR_MISALIGNED_ADDRESS) ? 0 : 1;
}

/* The copy waits at a gate while its target is unmapped: a hostile client's trick. */
static int
copy_to_memory_unmapped_meanwhile(void)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr window;
	CUstream stream;
	unsigned int *gate;

	must(cuMemHostAlloc((void **)&gate, 4096, 0));
	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	must(cuMemAddressReserve(&window, GS_CHUNK, 0, 0, 0));
	must(cuMemCreate(&handle, GS_CHUNK, &pinned, 0));
	must(cuMemMap(window, GS_CHUNK, 0, handle, 0));
	must(cuMemSetAccess(window, GS_CHUNK, &read_write, 1));
	must(cuStreamWaitValue32_v2(stream, (CUdeviceptr)(uintptr_t)gate, 1, 0));
	must(cuMemcpyHtoDAsync_v2(window, gate, 8, stream));
	must(cuMemUnmap(window, GS_CHUNK));
	__atomic_store_n(gate, 1, __ATOMIC_SEQ_CST);
	must(cuStreamSynchronize(stream) != CUDA_ERROR_ILLEGAL_ADDRESS);
	return 0;
}

/* Queued work on other streams is dropped, so that all waits end. */
static int
fault_ends_waiting_of_other_streams(void)
{
	CUstream stream;
	CUevent event;
	unsigned int *gate;

	must(cuMemHostAlloc((void **)&gate, 4096, 0));
	must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	must(cuEventCreate(&event, 0));
	must(cuStreamWaitValue32_v2(stream, (CUdeviceptr)(uintptr_t)gate, 1, 0));
	must(cuEventRecord(event, stream));
	must(launch_at(64, NULL));
	must(cuEventSynchronize(event) != CUDA_ERROR_ILLEGAL_ADDRESS);
	return 0;
}

static int
names_survive_a_fault(void)
{
	const char *name;
	int count;

	must(launch_at(64, NULL));
	must(cuCtxSynchronize() != CUDA_ERROR_ILLEGAL_ADDRESS);
	must(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &name));
	must(cuDeviceGetCount(&count));
	must(cuInit(0));
	return 0;
}

UNIT_TEST(wild_store_is_sticky_and_explained)
{
	char text[4096];

	assert_int_equal(in_child(store_outside_every_range, text, sizeof(text)), 0);
	assert_non_null(strstr(text, "wild_store"));
	assert_non_null(strstr(text, "700"));
	assert_non_null(strstr(text, "line"));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

/* A test whose steps must succeed in a child process. */
#define CHILD_TEST(name, part)                                                                     \
	UNIT_TEST(name)                                                                            \
	{                                                                                          \
		char text[4096];                                                                   \
                                                                                                   \
		assert_int_equal(in_child(part, text, sizeof(text)), 0);                           \
	}

CHILD_TEST(page_without_memory_inside_a_window_faults, store_to_a_page_without_memory)
CHILD_TEST(freed_memory_faults, store_to_freed_memory)
CHILD_TEST(misaligned_store_faults, store_misaligned)
CHILD_TEST(unmapping_under_a_queued_copy_is_no_crash, copy_to_memory_unmapped_meanwhile)
CHILD_TEST(fault_frees_all_waiters, fault_ends_waiting_of_other_streams)
CHILD_TEST(calls_without_a_context_still_work, names_survive_a_fault)

UNIT_TEST_MAIN(NULL, NULL)
