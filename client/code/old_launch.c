/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA driver API: launches as they were before CUDA 4.  Block, shared memory and parameters are
 * set beforehand, and the function keeps them; of two threads that set one function, the program
 * keeps the order.
 */
#include "client/base/lacks.h"
#include "client/code/image.h"
#include "client/code/launch.h"
#include "gpc_calls.h"

#include <stdlib.h>
#include <string.h>

/* Of one block, on every device. */
#define THREADS_MAX 1024
#define THICK_MAX 64
#define FLAGS_ALL                                                                                  \
	(CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC |                                 \
	 CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC)

/* The function's parameters, made when first asked for; NULL: out of memory. */
static char *
params_of(struct gpc_function *function)
{
	char *params;

	(void)pthread_mutex_lock(&function->image->lock);
	if (!function->old.params)
		function->old.params = calloc(1, GPC_OLD_PARAMS);
	params = function->old.params;
	(void)pthread_mutex_unlock(&function->image->lock);
	return params;
}

CUresult
gpc_cuParamSetv(CUfunction hfunc, int offset, void *ptr, unsigned int numbytes)
{
	struct gpc_function *function;
	CUresult result = gpc_function_enter(hfunc, &function);
	char *params;

	if (result != CUDA_SUCCESS)
		return result;
	if (!ptr || offset < 0 || offset > GPC_OLD_PARAMS ||
	    numbytes > GPC_OLD_PARAMS - (unsigned int)offset)
		return CUDA_ERROR_INVALID_VALUE;
	params = params_of(function);
	if (!params)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(params + offset, ptr, numbytes);
	return CUDA_SUCCESS;
}

CUresult
gpc_cuParamSeti(CUfunction hfunc, int offset, unsigned int value)
{
	return gpc_cuParamSetv(hfunc, offset, &value, sizeof(value));
}

CUresult
gpc_cuParamSetf(CUfunction hfunc, int offset, float value)
{
	return gpc_cuParamSetv(hfunc, offset, &value, sizeof(value));
}

CUresult
gpc_cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z)
{
	struct gpc_function *function;
	CUresult result = gpc_function_enter(hfunc, &function);

	if (result != CUDA_SUCCESS)
		return result;
	if (x < 1 || y < 1 || z < 1 || x > THREADS_MAX || y > THREADS_MAX / x ||
	    z > THREADS_MAX / x / y || z > THICK_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	function->old.block_x = x;
	function->old.block_y = y;
	function->old.block_z = z;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes)
{
	struct gpc_function *function;
	CUresult result = gpc_function_enter(hfunc, &function);
	int most;

	if (result != CUDA_SUCCESS)
		return result;
	if (gpc_function_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
				   &most) &&
	    bytes > (unsigned int)most)
		return CUDA_ERROR_INVALID_VALUE;
	function->old.shared = bytes;
	return CUDA_SUCCESS;
}

/* Of a block whose shape was never set. */
static unsigned int
set_or_one(int extent)
{
	return extent ? (unsigned int)extent : 1;
}

CUresult
gpc_cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream)
{
	struct gpc_function *function;
	CUresult result = gpc_function_enter(f, &function);
	CUlaunchConfig config;
	size_t size;
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, NULL, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			  CU_LAUNCH_PARAM_END };

	if (result != CUDA_SUCCESS)
		return result;
	extra[1] = params_of(function);
	if (!extra[1])
		return CUDA_ERROR_OUT_OF_MEMORY;
	config = (CUlaunchConfig){
		.gridDimX = (unsigned int)grid_width,
		.gridDimY = (unsigned int)grid_height,
		.gridDimZ = 1,
		.blockDimX = set_or_one(function->old.block_x),
		.blockDimY = set_or_one(function->old.block_y),
		.blockDimZ = set_or_one(function->old.block_z),
		.sharedMemBytes = function->old.shared,
		.hStream = hStream,
	};
	/* What was not set is zero; so is what lies beyond the size that was. */
	size = gpc_launch_params_size(function->info);
	if (size < function->old.size || size > GPC_OLD_PARAMS)
		size = function->old.size;
	return gpc_cuLaunchKernelEx(&config, f, NULL, extra);
}

CUresult
gpc_cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *launchParamsList,
					 unsigned int numDevices, unsigned int flags)
{
	const CUDA_LAUNCH_PARAMS *one = launchParamsList;
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS)
		return result;
	if (!one || numDevices == 0 || flags > FLAGS_ALL)
		return CUDA_ERROR_INVALID_VALUE;
	if (numDevices > 1)
		return gpc_lacks(GPC_LACK_SEVERAL_DEVICES);
	if (!one->function || !one->hStream)
		return CUDA_ERROR_INVALID_HANDLE;
	if (one->hStream == CU_STREAM_LEGACY || one->hStream == CU_STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_VALUE;
	return gpc_cuLaunchCooperativeKernel(one->function, one->gridDimX, one->gridDimY,
					     one->gridDimZ, one->blockDimX, one->blockDimY,
					     one->blockDimZ, one->sharedMemBytes, one->hStream,
					     one->kernelParams);
}
