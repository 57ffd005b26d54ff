/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launches COUNT: so many launches of a kernel with six parameters, on device 0, natively or
 * through a daemon.  What bench/launch_instructions.sh counts the instructions of.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry six(.param .u64 a, .param .u64 b, .param .u64 c,\n"
			  "\t.param .u32 d, .param .u32 e, .param .f32 f)\n{\n\tret;\n}\n";

static void
must(CUresult result, const char *what)
{
	if (result == CUDA_SUCCESS)
		return;
	fprintf(stderr, "launches: %s: error %d\n", what, (int)result);
	exit(1);
}

int
main(int argc, char **argv)
{
	long count = argc == 2 ? atol(argv[1]) : 0;
	unsigned long long a = 0, b = 0, c = 0;
	unsigned int d = 0, e = 0;
	float f = 0;
	void *params[] = { &a, &b, &c, &d, &e, &f };
	CUfunction function;
	CUcontext context;
	CUmodule module;
	CUdevice device;

	if (count <= 0) {
		fprintf(stderr, "usage: launches COUNT\n");
		return 2;
	}
	must(cuInit(0), "cuInit");
	must(cuDeviceGet(&device, 0), "cuDeviceGet");
	must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
	must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	must(cuModuleLoadData(&module, ptx), "cuModuleLoadData");
	must(cuModuleGetFunction(&function, module, "six"), "cuModuleGetFunction");
	for (long i = 0; i < count; i++)
		must(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL),
		     "cuLaunchKernel");
	must(cuCtxSynchronize(), "cuCtxSynchronize");
	return 0;
}
