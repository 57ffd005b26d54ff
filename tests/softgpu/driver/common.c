/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/softgpu/driver/common.h"

#include <stdlib.h>
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
