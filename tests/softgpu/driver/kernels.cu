/* SPDX-License-Identifier: Apache-2.0 */
#include <cstdio>

__device__ int counter = 7;
__constant__ int table[4] = { 1, 2, 3, 4 };

extern "C" __global__ void
vector_add(const float *a, const float *b, float *c, int n)
{
	int i = blockDim.x * blockIdx.x + threadIdx.x;

	if (i < n)
		c[i] = a[i] + b[i];
}

extern "C" __global__ void
add_one(int *p, int n)
{
	int i = blockDim.x * blockIdx.x + threadIdx.x;

	if (i < n)
		p[i]++;
}

/* Appends its argument to a list whose length is the first word. */
extern "C" __global__ void
append(int *list, int value)
{
	list[1 + list[0]++] = value;
}

/* Runs until the word is set, or forever. */
extern "C" __global__ void
spin(volatile int *word)
{
	while (*word == 0)
		;
}

extern "C" __global__ void
hello(int who)
{
	printf("hello from %d\n", who);
}

extern "C" __global__ void
wild_store(int *p)
{
	*p = 1;
}

extern "C" __global__ void
use_variables(int *out)
{
	*out = counter + table[2];
}

struct mixed {
	char c;
	double d;
};

extern "C" __global__ void
many_params(char a, double b, short c, struct mixed d, int *out)
{
	*out = a + (int)b + c + d.c + (int)d.d;
}

extern "C" __global__ void __launch_bounds__(128) bounded(int *out)
{
	extern __shared__ int dynamic[];
	__shared__ int fixed[256];

	fixed[threadIdx.x] = threadIdx.x;
	dynamic[threadIdx.x] = fixed[threadIdx.x];
	__syncthreads();
	*out = dynamic[0];
}

/* On which multiprocessor each block ran. */
extern "C" __global__ void
where(int *multiprocessors, int *count)
{
	int here, all;

	asm volatile("mov.u32 %0, %%smid;" : "=r"(here));
	asm volatile("mov.u32 %0, %%nsmid;" : "=r"(all));
	multiprocessors[blockIdx.x] = here;
	*count = all;
}

/* How many blocks there were at a time: crowd is now and at most. */
extern "C" __global__ void
gather(volatile int *crowd, int rounds)
{
	int now = atomicAdd((int *)crowd, 1) + 1;

	atomicMax((int *)crowd + 1, now);
	for (int i = 0; i < rounds; i++)
		(void)crowd[2];
	atomicSub((int *)crowd, 1);
}

extern "C" __global__ void
fetch_texel(cudaTextureObject_t texture, float x, float y, float *out)
{
	*out = tex2D<float>(texture, x, y);
}

extern "C" __global__ void
touch(cudaSurfaceObject_t surface, int x, int *out)
{
	*out = surf1Dread<int>(surface, x);
	surf1Dwrite(*out + 1, surface, x);
}
