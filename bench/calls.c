/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Latency of CUDA calls that wait for a reply: calls [COUNT], on device 0, natively or through a
 * daemon. Prints a result per line: name, median, minimum, unit.
 *
 * cuMemGetInfo only queries the daemon; cuCtxSynchronize waits for the GPU, which has no work; a
 * copy of 8 bytes goes to the device and back.
 */
#include "bench/bench_cuda.h"

#define WARM_UP 100

static CUdeviceptr memory;

static CUresult
get_info(void)
{
	size_t free_bytes, total;

	return cuMemGetInfo(&free_bytes, &total);
}

static CUresult
copy_out(void)
{
	long long value;

	return cuMemcpyDtoH(&value, memory, sizeof(value));
}

static void
measure(const char *name, CUresult (*call)(void), double *times, long count)
{
	double middle;

	for (long i = -WARM_UP; i < count; i++) {
		double begin = now();

		must(call(), name);
		if (i >= 0)
			times[i] = (now() - begin) * 1e6;
	}
	middle = median(times, (size_t)count);
	printf("%s %.1f %.1f us\n", name, middle, times[0]);
}

int
main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 10000;
	double *times = count > 0 ? malloc((size_t)count * sizeof(*times)) : NULL;

	if (!times || argc > 2) {
		fprintf(stderr, "usage: calls [COUNT]\n");
		return 2;
	}
	use_device();
	must(cuMemAlloc(&memory, sizeof(long long)), "cuMemAlloc");
	must(cuMemsetD8(memory, 0, sizeof(long long)), "cuMemsetD8");
	measure("cuMemGetInfo", get_info, times, count);
	measure("cuCtxSynchronize", cuCtxSynchronize, times, count);
	measure("cuMemcpyDtoH", copy_out, times, count);
	free(times);
	return 0;
}
