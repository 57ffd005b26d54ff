/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of results and the device, for the benchmark programs of the CUDA driver's API. */
#ifndef GP_BENCH_CUDA_H
#define GP_BENCH_CUDA_H

#include "bench/bench.h"

#include <cuda.h>
#include <errno.h>
#include <stdio.h>

/* Exits with status 1 and a message about the operation `what` if the result is an error. */
static inline void
must(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr, "%s: %s: error %d\n", program_invocation_short_name, what, (int)result);
	exit(1);
}

/* Makes the primary context of device 0 current. */
static inline void
use_device(void)
{
	CUcontext context;
	CUdevice device;

	must(cuInit(0), "cuInit");
	must(cuDeviceGet(&device, 0), "cuDeviceGet");
	must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
	must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
}

#endif /* GP_BENCH_CUDA_H */
