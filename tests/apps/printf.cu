/* SPDX-License-Identifier: Apache-2.0 */
/* printf() on the device: many conversions, by one thread at a time, so that the order is known. */
#include "app.h"

static __global__ void
print_all(int round)
{
	const char *word = "word";

	printf("round %d: %s\n", round, word);
	printf("[%d] [%5d] [%-5d] [%05d] [%+d] [%i]\n", 42, 42, 42, 42, 42, -42);
	printf("[%u] [%x] [%X] [%#x] [%o] [%08x]\n", 4000000000u, 48879, 48879, 48879, 8, 48879);
	printf("[%lld] [%llu] [%llx] [%ld]\n", -1234567890123ll, 18446744073709551615ull,
	       0x123456789abcdefull, 77l);
	printf("[%f] [%.3f] [%10.2f] [%e] [%g] [%G]\n", 3.25, -2.0 / 3, 1e4, 12345.678, 1e-10,
	       1e20);
	printf("[%c] [%c] [%5s] [%-6s] [%.2s] [%%]\n", 'x', 'y', "ab", "cd", "truncated");
	printf("[%hd] [%a]\n", (short)-5, 1.0);
	printf("no argument and no newline; ");
	printf("a float promoted: %f\n", 0.5f);
}

static __global__ void
print_from_every_block(int *turn)
{
	/* One block after another, by a ticket. */
	while (atomicAdd(turn, 0) != (int)blockIdx.x)
		;
	printf("block %d of %d\n", blockIdx.x, gridDim.x);
	__threadfence();
	atomicAdd(turn, 1);
}

static __global__ void
stay_and_print(int number)
{
	app_stay(30000000);
	printf("before call %d\n", number);
}

/* Calls that synchronize implicitly: earlier output of any stream has been printed. */
static void
print_before_calls(cudaStream_t stream, int first)
{
	static char registered[4096];
	int *device = app_malloc<int>(1), *pinned;

	CHECK(cudaMallocHost(&pinned, 64));
	CHECK(cudaHostRegister(registered, sizeof(registered), cudaHostRegisterDefault));
	for (int call = 0; call < 3; call++) {
		stay_and_print<<<1, 1, 0, stream>>>(first + call);
		if (call == 0)
			CHECK(cudaFree(device));
		else if (call == 1)
			CHECK(cudaFreeHost(pinned));
		else
			CHECK(cudaHostUnregister(registered));
		fflush(stdout);
		printf("after call %d\n", first + call);
		fflush(stdout);
	}
}

int
main()
{
	cudaStream_t stream;
	int *turn = app_malloc<int>(1);
	size_t size;

	CHECK(cudaDeviceGetLimit(&size, cudaLimitPrintfFifoSize));
	REQUIRE(size > 0);
	printf("host before\n");
	fflush(stdout);
	for (int round = 0; round < 3; round++)
		print_all<<<1, 1>>>(round);
	CHECK(cudaDeviceSynchronize());
	fflush(stdout);
	printf("host between\n");
	fflush(stdout);
	CHECK(cudaMemset(turn, 0, sizeof(int)));
	print_from_every_block<<<4, 1>>>(turn);
	CHECK(cudaDeviceSynchronize());
	fflush(stdout);
	CHECK(cudaFree(turn));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	print_before_calls(cudaStreamLegacy, 0);
	print_before_calls(stream, 3);
	CHECK(cudaStreamDestroy(stream));
	return app_ok("printf");
}
