/* SPDX-License-Identifier: Apache-2.0 */
/*
 * harm KIND: a kernel that does what ends a context, after one that does not.
 *
 * Prints "first: MS", how long the process waited for its first kernel, then "KIND: ERROR", what
 * the harmful kernel returned. KIND: none, illegal, assertion, trap, misaligned, stack (it
 * overflows), endless (prints "running", and does not end), read ADDRESS (prints the word there),
 * write ADDRESS, pinned PIECES (allocates as many pieces of 64 MiB of pinned memory, and uses each
 * in a kernel, until that fails). Exit status 0 if the kernel returned an error, or with none, read
 * and write if it returned none.
 */
#undef NDEBUG
#include "../driver/measure.h"

#include <cassert>
#include <cstring>
#include <cuda_runtime.h>

#define PIECE ((size_t)64 << 20)
#define DEPTH 1000000

static __global__ void
add_one(int *value)
{
	*value += 1;
}

static __global__ void
read_word(unsigned long long address, unsigned long long *word)
{
	*word = *(volatile unsigned long long *)address;
}

static __global__ void
write_word(unsigned long long address)
{
	*(volatile unsigned long long *)address = 0xbadbadbadbadbadull;
}

static __global__ void
fail_assertion(int *value)
{
	assert(*value < 0);
}

static __global__ void
execute_trap()
{
	asm volatile("trap;");
}

static __global__ void
spin(volatile int *stop)
{
	while (!*stop)
		;
}

static __device__ __noinline__ int
descend(int depth, int *out)
{
	volatile int frame[64];

	for (int i = 0; i < 64; i++)
		frame[i] = depth + i;
	if (depth > 0)
		frame[depth % 64] = descend(depth - 1, out) + 1;
	*out = frame[5];
	return frame[depth % 64];
}

static __global__ void
overflow_stack(int *out, int depth)
{
	*out = descend(depth, out);
}

static int
allocate_pinned(long most)
{
	void *piece;
	long pieces = 0;
	cudaError_t error = cudaSuccess;

	while (pieces < most && (error = cudaMallocHost(&piece, PIECE)) == cudaSuccess) {
		memset(piece, 1, PIECE);
		add_one<<<1, 1>>>((int *)piece);
		error = cudaDeviceSynchronize();
		if (error != cudaSuccess)
			break;
		pieces++;
	}
	printf("pinned: %s after %ld MiB\n", cudaGetErrorName(error), pieces * (long)(PIECE >> 20));
	return 0;
}

int
main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "none";
	unsigned long long address = argc > 2 ? strtoull(argv[2], NULL, 0) : 0, *word, read = 0;
	double begin = now_us();
	cudaError_t error;
	int *value;

	if (cudaMalloc(&value, 256) != cudaSuccess || cudaMemset(value, 0, 256) != cudaSuccess)
		return 2;
	word = (unsigned long long *)(value + 8);
	add_one<<<1, 1>>>(value);
	if (cudaDeviceSynchronize() != cudaSuccess)
		return 2;
	printf("first: %.1f\n", (now_us() - begin) / 1000);
	fflush(stdout);
	if (!strcmp(kind, "pinned"))
		return allocate_pinned((long)address);
	if (!strcmp(kind, "illegal"))
		write_word<<<1, 1>>>(0x10);
	else if (!strcmp(kind, "misaligned"))
		write_word<<<1, 1>>>((unsigned long long)value + 1);
	else if (!strcmp(kind, "assertion"))
		fail_assertion<<<1, 1>>>(value);
	else if (!strcmp(kind, "trap"))
		execute_trap<<<1, 1>>>();
	else if (!strcmp(kind, "stack"))
		overflow_stack<<<1, 32>>>(value, DEPTH);
	else if (!strcmp(kind, "endless"))
		spin<<<1, 1>>>(value + 1);
	else if (!strcmp(kind, "read"))
		read_word<<<1, 1>>>(address, word);
	else if (!strcmp(kind, "write"))
		write_word<<<1, 1>>>(address);
	else if (strcmp(kind, "none"))
		return 2;
	if (!strcmp(kind, "endless")) {
		printf("running\n");
		fflush(stdout);
	}
	error = cudaDeviceSynchronize();
	if (error == cudaSuccess && !strcmp(kind, "read"))
		error = cudaMemcpy(&read, word, sizeof(read), cudaMemcpyDeviceToHost);
	printf("%s: %s 0x%llx\n", kind, cudaGetErrorName(error), read);
	if (!strcmp(kind, "none") || !strcmp(kind, "read") || !strcmp(kind, "write"))
		return error != cudaSuccess;
	return error == cudaSuccess;
}
