/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels for what is hard about running threads in lockstep. */
#include <cassert>
#include <cooperative_groups.h>
#include <cstdio>

namespace cg = cooperative_groups;

extern "C" __global__ void
divergent_barrier(int *out)
{
	__shared__ int shared[64];
	int t = threadIdx.x;

	shared[t] = t;
	if (t % 2) {
		__syncthreads();
		out[t] = shared[63 - t];
	} else {
		__syncthreads();
		out[t] = shared[63 - t] + 1000;
	}
}

extern "C" __global__ void
spin_lock(int *lock, int *count)
{
	while (atomicCAS(lock, 0, 1) != 0)
		;
	int value = *(volatile int *)count;
	*(volatile int *)count = value + 1;
	__threadfence();
	atomicExch(lock, 0);
}

extern "C" __global__ void
spin_lock_in_loop(int *lock, int *count)
{
	bool done = false;

	while (!done) {
		if (atomicCAS(lock, 0, 1) == 0) {
			int value = *(volatile int *)count;
			*(volatile int *)count = value + 1;
			__threadfence();
			atomicExch(lock, 0);
			done = true;
		}
	}
}

extern "C" __global__ void
producer_consumer(volatile int *work, int *out)
{
	__shared__ volatile int flag;

	if (threadIdx.x == 0)
		flag = 0;
	__syncthreads();
	if (threadIdx.x < 32) {
		while (flag == 0)
			;
		out[threadIdx.x] = flag;
	} else if (threadIdx.x == 32) {
		for (int i = 0; i < 1000; i++)
			work[0] = i;
		flag = 7;
	}
}

/* Each thread sleeps `rounds` times; the first warp until the last thread of the block ends it. */
extern "C" __global__ void
sleeping(int *out, int rounds)
{
	__shared__ volatile int flag;
	int last = (int)blockDim.x - 1;

	if (threadIdx.x == 0)
		flag = 0;
	__syncthreads();
	for (int i = 0; i < rounds || (threadIdx.x < 32 && !flag); i++)
		__nanosleep(1000000);
	if ((int)threadIdx.x == last)
		flag = 5;
	if (threadIdx.x < 32)
		out[threadIdx.x] = flag;
}

extern "C" __global__ void
endless_sleep(int *out)
{
	while (!*(volatile int *)out)
		__nanosleep(2000000000u);
}

__device__ __noinline__ int
fibonacci(int n)
{
	return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

extern "C" __global__ void
recursion(int *out)
{
	out[threadIdx.x] = fibonacci(threadIdx.x % 12);
}

__device__ __noinline__ int
endless_recursion(int n, int *out)
{
	int values[16];

	for (int i = 0; i < 16; i++)
		values[i] = n + i;
	out[n & 63] = values[n & 15];
	return endless_recursion(n + 1, out) + values[n & 7];
}

extern "C" __global__ void
stack_overflow(int *out)
{
	out[0] = endless_recursion(threadIdx.x, out);
}

struct Base {
	__device__ virtual int f(int x)
	{
		return x;
	}
};

struct Twice : Base {
	__device__ int f(int x) override
	{
		return x * 2;
	}
};

struct Plus : Base {
	__device__ int f(int x) override
	{
		return x + 100;
	}
};

extern "C" __global__ void
virtual_calls(int *out)
{
	int t = threadIdx.x;
	Base *object = t % 3 == 0 ? new Base : t % 3 == 1 ? (Base *)new Twice : (Base *)new Plus;

	out[t] = object ? object->f(t) : -1;
	delete object;
}

__device__ int
add_one(int x)
{
	return x + 1;
}

__device__ int
square(int x)
{
	return x * x;
}

__device__ int (*const functions[2])(int) = { add_one, square };

extern "C" __global__ void
function_pointers(int *out, int which)
{
	out[threadIdx.x] = functions[(threadIdx.x + which) & 1](threadIdx.x);
}

extern "C" __global__ void
barrier_reductions(int *out)
{
	int t = threadIdx.x;

	out[t] = __syncthreads_count(t % 3 == 0) + 1000 * __syncthreads_and(t < 128) +
		 10000 * __syncthreads_or(t == 77);
}

extern "C" __global__ void
early_exit(int *out, int n)
{
	__shared__ int shared[128];
	int t = threadIdx.x;

	if (t >= n)
		return;
	shared[t] = t;
	__syncthreads();
	out[t] = shared[n - 1 - t];
}

extern "C" __global__ void
grid_sync(int *values, int *out)
{
	cg::grid_group grid = cg::this_grid();
	int t = grid.thread_rank();

	values[t] = t;
	grid.sync();
	out[t] = values[grid.size() - 1 - t];
	grid.sync();
	atomicAdd(&out[0], 1);
}

extern "C" __global__ void
coalesced_groups(int *out)
{
	int t = threadIdx.x;

	if (t & 4) {
		cg::coalesced_group group = cg::coalesced_threads();

		out[t] = group.size() * 100 + group.thread_rank();
	} else {
		cg::coalesced_group group = cg::coalesced_threads();

		out[t] = group.shfl(t, 0) + group.size() * 1000;
	}
}

/* Both arms mean the whole warp. */
extern "C" __global__ void
shuffle_in_both_arms(int *out)
{
	int t = threadIdx.x;
	int value;

	if (t < 16)
		value = __shfl_sync(0xffffffffu, t * 10, 20) + 1;
	else
		value = __shfl_sync(0xffffffffu, t * 10, 3) + 2;
	out[t] = value;
}

extern "C" __global__ void
warp_functions(int *out)
{
	int t = threadIdx.x;
	int up = __shfl_up_sync(0xffffffffu, t, 2);
	int down = __shfl_down_sync(0xffffffffu, t, 3, 16);
	int cross = __shfl_xor_sync(0xffffffffu, t, 5);
	unsigned int ballot = __ballot_sync(0xffffffffu, t & 1);
	int all = __all_sync(0xffffffffu, t < 32);
	int any = __any_sync(0xffffffffu, t == 31);
	unsigned int match = __match_any_sync(0xffffffffu, t / 8);
	int agree;
	unsigned int match_all = __match_all_sync(0xffffffffu, 5, &agree);

	out[t * 8 + 0] = up;
	out[t * 8 + 1] = down;
	out[t * 8 + 2] = cross;
	out[t * 8 + 3] = ballot;
	out[t * 8 + 4] = all * 2 + any;
	out[t * 8 + 5] = match;
	out[t * 8 + 6] = match_all;
	out[t * 8 + 7] = agree;
}

/* Warps arrive with unequal counts of iterations. */
extern "C" __global__ void
divergent_loop(int *out)
{
	int t = threadIdx.x;
	int sum = 0;

	for (int i = 0; i < t; i++)
		sum += i % 7 == 3 ? 2 : 1;
	out[t] = sum + 100 * __popc(__activemask());
}

extern "C" __global__ void
wild_store(int *out)
{
	out[threadIdx.x] = 1;
	((volatile int *)0x1234)[threadIdx.x] = 3;
}

extern "C" __global__ void
store_at(int *out)
{
	*(volatile int *)out = 3;
}

extern "C" __global__ void
shared_out_of_bounds(void)
{
	extern __shared__ int dynamic[];

	((volatile int *)dynamic)[threadIdx.x * 1000] = 1;
}

extern "C" __global__ void
misaligned(char *out)
{
	*(volatile int *)(out + 1) = 3;
}

extern "C" __global__ void
traps(int *out)
{
	if (threadIdx.x == 40)
		__trap();
	out[threadIdx.x] = 1;
}

extern "C" __global__ void
deadlock(volatile int *out)
{
	if (threadIdx.x < 32)
		asm volatile("barrier.sync 1, 64;");
	else
		asm volatile("barrier.sync 2, 64;");
	out[threadIdx.x] = 1;
}

extern "C" __global__ void
named_barriers(int *out)
{
	__shared__ int shared[96];
	int t = threadIdx.x;

	if (t < 32) {
		shared[t] = t + 5;
		asm volatile("barrier.arrive 3, 96;" ::: "memory");
	} else {
		asm volatile("barrier.sync 3, 96;" ::: "memory");
		out[t] = shared[t % 32];
	}
}

extern "C" __global__ void
endless(volatile int *out)
{
	while (*out == 0)
		;
}

extern "C" __global__ void
prints(int *out, float x)
{
	if (threadIdx.x == 3)
		out[0] = printf("%d %5.2f|%-6s|%c|%llu|%x|%%|%p|%*d\n", -7, x, "abc", 'z',
				1ull << 40, 255, (void *)0x110000001000ull, 4, 9);
}

extern "C" __global__ void
asserts(int limit)
{
	assert((int)threadIdx.x < limit);
}

extern "C" __global__ void
allocates(unsigned long long *out, size_t size)
{
	char *memory = (char *)malloc(size);

	if (memory)
		memory[threadIdx.x % size] = 1;
	out[threadIdx.x] = (unsigned long long)memory;
}

extern "C" __global__ void
frees(unsigned long long *in)
{
	free((void *)in[threadIdx.x]);
}

__constant__ int table[4] = { 3, 1, 4, 1 };
__device__ int counter = 40;
__device__ int *pointer = &counter;
__device__ const char *text = "hello";

extern "C" __global__ void
variables(int *out)
{
	out[threadIdx.x] = table[threadIdx.x & 3] + *pointer + text[1];
	if (threadIdx.x == 0)
		counter++;
}

extern "C" __global__ void
order_of_blocks(unsigned int *next, unsigned int *out)
{
	if (threadIdx.x == 0)
		out[atomicAdd(next, 1)] = blockIdx.x;
}

extern "C" __global__ void
switches(int *out)
{
	int t = threadIdx.x;

	switch (t % 9) {
	case 0:
		out[t] = 5;
		break;
	case 1:
		out[t] = t * 3;
		break;
	case 2:
		out[t] = t ^ 77;
		break;
	case 3:
		out[t] = -t;
		break;
	case 4:
		out[t] = t * t;
		break;
	case 5:
		out[t] = t << 3;
		break;
	case 6:
		out[t] = 1000 - t;
		break;
	default:
		out[t] = 1;
		break;
	}
}

struct Large {
	int values[60];
};

extern "C" __global__ void
large_parameter(Large large, int *out, char tail)
{
	out[threadIdx.x] = large.values[threadIdx.x % 60] + tail;
}

extern "C" __global__ void
local_array(int *out, int n)
{
	int values[32];

	for (int i = 0; i < 32; i++)
		values[i] = i * (int)threadIdx.x;
	out[threadIdx.x] = values[(threadIdx.x + n) & 31];
}

extern "C" __global__ void
vectors(const int4 *in, int4 *out, const double2 *in2, double2 *out2, const uchar4 *in3,
	uchar4 *out3)
{
	int t = threadIdx.x;
	int4 a = in[t];
	double2 b = in2[63 - t];
	uchar4 c = in3[t];

	out[t] = make_int4(a.w, a.z, a.y, a.x);
	out2[t] = make_double2(b.y, b.x);
	out3[63 - t] = make_uchar4(c.w, c.x, c.y, c.z);
}

extern "C" __global__ void
block_index(int *out)
{
	int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
	int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);

	out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
}
