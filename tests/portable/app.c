/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program for a root that has nothing but a C library: it asks NVML for the devices, copies, runs
 * a kernel, copies back, and compares.  Prints one line.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT 65536

int nvmlInit_v2(void);
int nvmlDeviceGetCount_v2(unsigned int *count);

static const char kernel_text[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
				  ".visible .entry add_index(.param .u64 values)\n"
				  "{\n"
				  "	.reg .b32 %r<5>;\n"
				  "	.reg .b64 %rd<3>;\n"
				  "	ld.param.u64 %rd1, [values];\n"
				  "	cvta.to.global.u64 %rd1, %rd1;\n"
				  "	mov.u32 %r1, %ctaid.x;\n"
				  "	mov.u32 %r2, %ntid.x;\n"
				  "	mov.u32 %r3, %tid.x;\n"
				  "	mad.lo.s32 %r1, %r1, %r2, %r3;\n"
				  "	mul.wide.u32 %rd2, %r1, 4;\n"
				  "	add.u64 %rd1, %rd1, %rd2;\n"
				  "	ld.global.u32 %r4, [%rd1];\n"
				  "	add.u32 %r4, %r4, %r1;\n"
				  "	st.global.u32 [%rd1], %r4;\n"
				  "	ret;\n"
				  "}\n";

static void
require(CUresult result, const char *what)
{
	const char *name = "?";

	if (result == CUDA_SUCCESS)
		return;
	(void)cuGetErrorName(result, &name);
	printf("%s: %s\n", what, name);
	exit(1);
}

static unsigned int
nvml_devices(void)
{
	unsigned int count = 0;
	int r = nvmlInit_v2();

	if (r == 0)
		r = nvmlDeviceGetCount_v2(&count);
	if (r == 0)
		return count;
	printf("NVML: %d\n", r);
	exit(1);
}

int
main(void)
{
	static unsigned int values[COUNT];
	CUfunction function;
	CUdeviceptr memory;
	CUcontext context;
	CUmodule module;
	int devices = 0;
	void *params[] = { &memory };

	require(cuInit(0), "cuInit");
	require(cuDeviceGetCount(&devices), "cuDeviceGetCount");
	if ((unsigned int)devices != nvml_devices()) {
		printf("CUDA and NVML report different devices\n");
		return 1;
	}
	require(cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
	require(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	require(cuModuleLoadData(&module, kernel_text), "cuModuleLoadData");
	require(cuModuleGetFunction(&function, module, "add_index"), "cuModuleGetFunction");
	for (unsigned int i = 0; i < COUNT; i++)
		values[i] = 3 * i;
	require(cuMemAlloc(&memory, sizeof(values)), "cuMemAlloc");
	require(cuMemcpyHtoD(memory, values, sizeof(values)), "cuMemcpyHtoD");
	require(cuLaunchKernel(function, COUNT / 256, 1, 1, 256, 1, 1, 0, NULL, params, NULL),
		"cuLaunchKernel");
	require(cuMemcpyDtoH(values, memory, sizeof(values)), "cuMemcpyDtoH");
	for (unsigned int i = 0; i < COUNT; i++) {
		if (values[i] != 4 * i) {
			printf("value %u is %u\n", i, values[i]);
			return 1;
		}
	}
	printf("%d devices, %d sums\n", devices, COUNT);
	return 0;
}
