/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/softgpu/driver/common.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static CUlibrary library;

int
gs_test_setup(void **state)
{
	CUcontext ctx;

	if (cuInit(0) || cuDevicePrimaryCtxRetain(&ctx, 0) || cuCtxSetCurrent(ctx))
		return -1;
	return 0;
}

int
gs_test_teardown(void **state)
{
	if (library && cuLibraryUnload(library))
		return -1;
	library = NULL;
	return cuDevicePrimaryCtxRelease_v2(0) ? -1 : 0;
}

CUlibrary
gs_test_library(void)
{
	if (!library) {
		void *image = gs_test_file("kernels.fatbin", NULL);

		check(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
		free(image);
	}
	return library;
}

CUfunction
gs_test_kernel(const char *name)
{
	CUkernel kernel;

	check(cuLibraryGetKernel(&kernel, gs_test_library(), name));
	return (CUfunction)kernel;
}

void
gs_test_deadline(unsigned int seconds)
{
	alarm(seconds);
}

CUstream
gs_test_stream(void)
{
	CUstream stream;

	check(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

#define WORDS_SIZE 4096

unsigned int *gs_test_words;

int
gs_test_make_words(void)
{
	return (int)cuMemHostAlloc((void **)&gs_test_words, WORDS_SIZE, 0);
}

int
gs_test_clear_words(void **state)
{
	memset(gs_test_words, 0, WORDS_SIZE);
	return 0;
}

CUdeviceptr
gs_test_address(unsigned int i)
{
	return (CUdeviceptr)(uintptr_t)&gs_test_words[i];
}

unsigned int
gs_test_word(unsigned int i)
{
	return __atomic_load_n(&gs_test_words[i], __ATOMIC_SEQ_CST);
}

void
gs_test_open_gate(unsigned int i)
{
	__atomic_store_n(&gs_test_words[i], 1, __ATOMIC_SEQ_CST);
}

void
gs_test_wait_at_gate(CUstream stream, unsigned int i)
{
	check(cuStreamWaitValue32_v2(stream, gs_test_address(i), 1, CU_STREAM_WAIT_VALUE_EQ));
}
