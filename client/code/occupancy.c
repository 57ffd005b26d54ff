/* SPDX-License-Identifier: Apache-2.0 */
#include "client/code/function.h"
#include "client/code/launch.h"
#include "gpc_calls.h"
#include "protocol/image_info.h"

static CUresult
enter_function(CUfunction token, struct gpc_context **context_p, uint64_t *kernel_p)
{
	CUresult result = gpc_enter(context_p);

	return result == CUDA_SUCCESS ? gpc_function_kernel(*context_p, token, kernel_p) : result;
}

CUresult
gpc_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *numBlocks, CUfunction func,
							 int blockSize, size_t dynamicSMemSize,
							 unsigned int flags)
{
	struct gp_reply_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags reply;
	struct gp_args_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags args = {
		.blockSize = blockSize,
		.dynamicSMemSize = dynamicSMemSize,
		.flags = flags,
	};
	struct gpc_context *context;
	CUresult result = enter_function(func, &context, &args.func);

	if (result != CUDA_SUCCESS)
		return result;
	if (!numBlocks)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpc_wait_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(context, &args,
									       &reply);
	if (result == CUDA_SUCCESS)
		*numBlocks = reply.numBlocks;
	return result;
}

CUresult
gpc_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *numBlocks, CUfunction func, int blockSize,
						size_t dynamicSMemSize)
{
	return gpc_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize,
									dynamicSMemSize, 0);
}

static int
least(int a, int b)
{
	return a < b ? a : b;
}

/*
 * cuOccupancyMaxPotentialBlockSize: of the block sizes that are whole warps (and the limit itself),
 * largest first, the one that keeps most threads on a multiprocessor.
 */
CUresult
gpc_cuOccupancyMaxPotentialBlockSizeWithFlags(int *minGridSize, int *blockSize, CUfunction func,
					      CUoccupancyB2DSize blockSizeToDynamicSMemSize,
					      size_t dynamicSMemSize, int blockSizeLimit,
					      unsigned int flags)
{
	int limit, threads_max, per_sm, sms, warp, best_threads = 0, best_blocks = 0, best_size = 0;
	const int32_t *attributes;
	struct gpc_context *context;
	uint64_t kernel;
	CUresult result = enter_function(func, &context, &kernel);

	if (result != CUDA_SUCCESS)
		return result;
	if (!minGridSize || !blockSize || blockSizeLimit < 0)
		return CUDA_ERROR_INVALID_VALUE;
	result =
		gpc_cuFuncGetAttribute(&threads_max, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, func);
	if (result != CUDA_SUCCESS)
		return result;
	attributes = context->device->attributes;
	warp = attributes[CU_DEVICE_ATTRIBUTE_WARP_SIZE];
	sms = attributes[CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT];
	per_sm = attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR];
	limit = least(threads_max, attributes[CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK]);
	if (blockSizeLimit > 0)
		limit = least(limit, blockSizeLimit);
	if (warp <= 0)
		return CUDA_ERROR_INVALID_DEVICE;
	for (int aligned = (limit + warp - 1) / warp * warp; aligned > 0 && best_threads < per_sm;
	     aligned -= warp) {
		int size = least(aligned, limit), blocks;

		if (blockSizeToDynamicSMemSize)
			dynamicSMemSize = blockSizeToDynamicSMemSize(size);
		result = gpc_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
			&blocks, func, size, dynamicSMemSize, flags);
		if (result != CUDA_SUCCESS)
			return result;
		if (blocks * size > best_threads) {
			best_threads = blocks * size;
			best_blocks = blocks;
			best_size = size;
		}
	}
	*minGridSize = best_blocks * sms;
	*blockSize = best_size;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuOccupancyMaxPotentialBlockSize(int *minGridSize, int *blockSize, CUfunction func,
				     CUoccupancyB2DSize blockSizeToDynamicSMemSize,
				     size_t dynamicSMemSize, int blockSizeLimit)
{
	return gpc_cuOccupancyMaxPotentialBlockSizeWithFlags(
		minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize,
		blockSizeLimit, CU_OCCUPANCY_DEFAULT);
}

/* what: gpOccupancyCluster. */
static CUresult
clusters(unsigned int what, int *value, CUfunction func, const CUlaunchConfig *config)
{
	struct gpc_launch_attributes attributes;
	struct gp_reply_gpOccupancyCluster reply;
	struct gp_args_gpOccupancyCluster args = { .what = what };
	struct gpc_context *context;
	CUresult result = enter_function(func, &context, &args.kernel);

	if (result != CUDA_SUCCESS)
		return result;
	if (!value || !config)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpc_launch_attributes_encode(config, &attributes);
	if (result != CUDA_SUCCESS)
		return result;
	args.attributes = attributes.bytes;
	args.grid_x = config->gridDimX;
	args.grid_y = config->gridDimY;
	args.grid_z = config->gridDimZ;
	args.block_x = config->blockDimX;
	args.block_y = config->blockDimY;
	args.block_z = config->blockDimZ;
	args.shared = config->sharedMemBytes;
	result = gpc_wait_gpOccupancyCluster(context, &args, &reply);
	if (result == CUDA_SUCCESS)
		*value = reply.value;
	return result;
}

CUresult
gpc_cuOccupancyMaxPotentialClusterSize(int *clusterSize, CUfunction func,
				       const CUlaunchConfig *config)
{
	return clusters(0, clusterSize, func, config);
}

CUresult
gpc_cuOccupancyMaxActiveClusters(int *numClusters, CUfunction func, const CUlaunchConfig *config)
{
	return clusters(1, numClusters, func, config);
}
