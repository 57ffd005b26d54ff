/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA C++ library's atomics, barriers and pipelines, which newer targets make of mbarriers. */
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/scan.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>

namespace cg = cooperative_groups;

extern "C" __global__ void
atomics(cuda::atomic<int, cuda::thread_scope_device> *sum, cuda::atomic<int> *most, int *out)
{
	sum->fetch_add(3, cuda::memory_order_relaxed);
	most->fetch_max(blockIdx.x * blockDim.x + threadIdx.x);
	out[threadIdx.x] = sum->load(cuda::memory_order_acquire) > 0;
}

extern "C" __global__ void
barriers(int *out)
{
	__shared__ cuda::barrier<cuda::thread_scope_block> barrier;
	__shared__ int shared[128];
	int t = threadIdx.x;

	out += blockIdx.x * blockDim.x;
	if (t == 0)
		init(&barrier, blockDim.x);
	__syncthreads();
	for (int round = 0; round < 5; round++) {
		shared[t] = t + round;
		barrier.arrive_and_wait();
		out[t] = shared[127 - t];
		barrier.arrive_and_wait();
	}
	if (t == 77) {
		barrier.arrive_and_drop();
		return;
	}
	auto token = barrier.arrive();
	barrier.wait(std::move(token));
	out[t] += 1000;
}

extern "C" __global__ void
asynchronous_copy(const int4 *in, int4 *out)
{
	__shared__ int4 shared[128];
	auto block = cg::this_thread_block();

	cg::memcpy_async(block, shared, in, sizeof(int4) * 128);
	cg::wait(block);
	out[threadIdx.x] = shared[127 - threadIdx.x];
}

extern "C" __global__ void
pipeline(const int *in, int *out)
{
	__shared__ int shared[2][128];
	__shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
	auto block = cg::this_thread_block();
	auto pipe = cuda::make_pipeline(block, &state);

	for (int i = 0; i < 6; i++) {
		pipe.producer_acquire();
		cuda::memcpy_async(block, shared[i & 1], in + i * 128, sizeof(int) * 128, pipe);
		pipe.producer_commit();
		pipe.consumer_wait();
		out[i * 128 + threadIdx.x] = shared[i & 1][127 - threadIdx.x];
		pipe.consumer_release();
	}
}

extern "C" __global__ void
scans(const int *in, int *out)
{
	auto tile = cg::tiled_partition<32>(cg::this_thread_block());

	out[threadIdx.x] = cg::inclusive_scan(tile, in[threadIdx.x]);
}
