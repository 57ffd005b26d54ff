/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/driver/code/binary.h"
#include "softgpu/driver/context/green.h"
#include "softgpu/driver/stream/stream.h"

static size_t
round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static size_t
least(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t
blocks_by_threads(const struct gs_kernel *kernel, size_t threads)
{
	size_t whole_warps = round_up(threads, 32);
	size_t registers = round_up(kernel->info.registers, 8) * whole_warps;
	size_t blocks = least(GS_MULTIPROCESSOR_BLOCKS, GS_MULTIPROCESSOR_THREADS / whole_warps);

	return registers ? least(blocks, GS_MULTIPROCESSOR_REGISTERS / registers) : blocks;
}

int
gs_kernel_occupancy(const struct gs_kernel *kernel, size_t threads, size_t dynamic_shared)
{
	size_t shared = kernel->info.shared_bytes + dynamic_shared;

	if (!threads || threads > kernel->info.max_threads ||
	    dynamic_shared > GS_BLOCK_SHARED_OPTIN || shared > GS_BLOCK_SHARED_OPTIN)
		return 0;
	shared = round_up(shared + GS_BLOCK_SHARED_RESERVED, 128);
	return (int)least(blocks_by_threads(kernel, threads), GS_MULTIPROCESSOR_SHARED / shared);
}

CUresult CUDAAPI
cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction handle, int threads,
						     size_t dynamic_shared, unsigned int flags)
{
	struct gs_kernel *kernel;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!blocks || threads <= 0 || flags & ~(unsigned int)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;
	kernel = gs_kernel_get(handle);
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	*blocks = gs_kernel_occupancy(kernel, (size_t)threads, dynamic_shared);
	gs_kernel_put(kernel);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction handle, int threads,
					    size_t dynamic_shared)
{
	return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
		blocks, handle, threads, dynamic_shared, CU_OCCUPANCY_DEFAULT);
}

CUresult CUDAAPI
cuOccupancyAvailableDynamicSMemPerBlock(size_t *size, CUfunction handle, int blocks, int threads)
{
	struct gs_kernel *kernel;
	size_t room;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!size || blocks <= 0 || threads <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	kernel = gs_kernel_get(handle);
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	room = (size_t)GS_MULTIPROCESSOR_SHARED / (size_t)blocks / 128 * 128;
	room = room > GS_BLOCK_SHARED_RESERVED ? room - GS_BLOCK_SHARED_RESERVED : 0;
	room = least(room, GS_BLOCK_SHARED_OPTIN);
	if (blocks > gs_kernel_occupancy(kernel, (size_t)threads, 0))
		r = CUDA_ERROR_INVALID_VALUE;
	else
		*size = room > kernel->info.shared_bytes ? room - kernel->info.shared_bytes : 0;
	gs_kernel_put(kernel);
	return r;
}

struct block_choice {
	int threads;
	int blocks;
};

/* Returns the block size with the most resident threads; of equal ones the largest block. */
static struct block_choice
best_block(const struct gs_kernel *kernel, CUoccupancyB2DSize shared_of, size_t dynamic_shared,
	   int limit)
{
	struct block_choice best = { 0 };
	int top = (int)kernel->info.max_threads;

	if (limit > 0 && limit < top)
		top = limit;
	for (int threads = top; threads > 0; threads = (threads - 1) / 32 * 32) {
		size_t shared = shared_of ? shared_of(threads) : dynamic_shared;
		int blocks = gs_kernel_occupancy(kernel, (size_t)threads, shared);

		if (blocks * threads > best.blocks * best.threads)
			best = (struct block_choice){ threads, blocks };
	}
	return best;
}

CUresult CUDAAPI
cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction handle,
					  CUoccupancyB2DSize shared_of, size_t dynamic_shared,
					  int limit, unsigned int flags)
{
	struct gs_kernel *kernel;
	struct block_choice best;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!grid || !block || flags & ~(unsigned int)CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
		return CUDA_ERROR_INVALID_VALUE;
	kernel = gs_kernel_get(handle);
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	best = best_block(kernel, shared_of, dynamic_shared, limit);
	gs_kernel_put(kernel);
	*block = best.threads;
	*grid = best.blocks * gs_context_multiprocessors();
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuOccupancyMaxPotentialBlockSize(int *grid, int *block, CUfunction handle,
				 CUoccupancyB2DSize shared_of, size_t dynamic_shared, int limit)
{
	return cuOccupancyMaxPotentialBlockSizeWithFlags(
		grid, block, handle, shared_of, dynamic_shared, limit, CU_OCCUPANCY_DEFAULT);
}

/* Returns the number of multiprocessors of the stream's context. */
static CUresult
get_multiprocessors(CUstream handle, int *count)
{
	struct gs_stream *stream = gs_stream_get(handle);
	struct gs_green *green;

	if (!stream)
		return gs_stream_missing(handle);
	green = gs_stream_green(stream);
	*count = green ? (int)gs_green_partition(green)->count : gs_device_multiprocessors();
	gs_stream_put(stream);
	return CUDA_SUCCESS;
}

/* Whether the launch requests clusters of more than one block. */
static bool
has_clusters(const CUlaunchConfig *config)
{
	for (unsigned int i = 0; i < config->numAttrs; i++) {
		const CUlaunchAttribute *attr = &config->attrs[i];

		if (attr->id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION &&
		    attr->value.clusterDim.x * attr->value.clusterDim.y *
				    attr->value.clusterDim.z !=
			    1)
			return true;
	}
	return false;
}

/* A cluster is a single block on this device; larger ones are never active. cuBLAS queries this and
 * continues. */
CUresult CUDAAPI
cuOccupancyMaxActiveClusters(int *clusters, CUfunction handle, const CUlaunchConfig *config)
{
	struct gs_kernel *kernel;
	int multiprocessors = 0;
	size_t threads;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!clusters || !config)
		return CUDA_ERROR_INVALID_VALUE;
	r = get_multiprocessors(config->hStream, &multiprocessors);
	if (r)
		return r;
	kernel = gs_kernel_get(handle);
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	threads = (size_t)config->blockDimX * config->blockDimY * config->blockDimZ;
	*clusters = has_clusters(config)
			    ? 0
			    : multiprocessors *
				      gs_kernel_occupancy(kernel, threads, config->sharedMemBytes);
	gs_kernel_put(kernel);
	return CUDA_SUCCESS;
}
