/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Latency of CUDA calls that wait for a reply: calls [COUNT], on device 0, natively or through a
 * daemon. Prints a result per line: name, median, minimum, unit.
 *
 * cuMemGetInfo only queries the daemon; cuCtxSynchronize waits for the GPU, which has no work; a
 * copy of 8 bytes goes to the device and back.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define WARM_UP 100

static CUdeviceptr memory;

static void
must(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr, "calls: %s: error %d\n", what, (int)result);
	exit(1);
}

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

static int
compare(const void *a, const void *b)
{
	double left = *(const double *)a, right = *(const double *)b;

	return left < right ? -1 : left > right;
}

static double
now_usec(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

static void
measure(const char *name, CUresult (*call)(void), double *times, long count)
{
	for (long i = -WARM_UP; i < count; i++) {
		double begin = now_usec();

		must(call(), name);
		if (i >= 0)
			times[i] = now_usec() - begin;
	}
	qsort(times, (size_t)count, sizeof(*times), compare);
	printf("%s %.1f %.1f us\n", name, times[count / 2], times[0]);
}

int
main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 10000;
	double *times = count > 0 ? malloc((size_t)count * sizeof(*times)) : NULL;
	CUcontext context;
	CUdevice device;

	if (!times || argc > 2) {
		fprintf(stderr, "usage: calls [COUNT]\n");
		return 2;
	}
	must(cuInit(0), "cuInit");
	must(cuDeviceGet(&device, 0), "cuDeviceGet");
	must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
	must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	must(cuMemAlloc(&memory, sizeof(long long)), "cuMemAlloc");
	must(cuMemsetD8(memory, 0, sizeof(long long)), "cuMemsetD8");
	measure("cuMemGetInfo", get_info, times, count);
	measure("cuCtxSynchronize", cuCtxSynchronize, times, count);
	measure("cuMemcpyDtoH", copy_out, times, count);
	free(times);
	return 0;
}
