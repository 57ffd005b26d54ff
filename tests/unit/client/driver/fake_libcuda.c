/* SPDX-License-Identifier: Apache-2.0 */
/* Fake libcuda.so.1, recognizable by its results. It lacks most functions. */
#include <cuda.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED CUresult
cuInit(unsigned int Flags)
{
	return Flags == 4711 ? CUDA_ERROR_STUB_LIBRARY : CUDA_SUCCESS;
}

EXPORTED CUresult
cuDeviceGetCount(int *count)
{
	*count = 42;
	return CUDA_SUCCESS;
}

EXPORTED CUresult
cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
	*ppExportTable = NULL;
	return CUDA_ERROR_INVALID_VALUE;
}
