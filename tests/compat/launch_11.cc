// SPDX-License-Identifier: Apache-2.0
// What code from nvcc 12 and later asks of its runtime at a launch, made of what CUDA 11's has:
// there a kernel goes by the address of its stub.
#include <cuda_runtime_api.h>

extern "C" cudaError_t
__cudaGetKernel(const void **kernel, const void *stub)
{
	*kernel = stub;
	return cudaSuccess;
}

extern "C" cudaError_t
__cudaLaunchKernel(const void *stub, dim3 grid, dim3 block, void **args, size_t shared,
		   cudaStream_t stream)
{
	return cudaLaunchKernel(stub, grid, block, args, shared, stream);
}
