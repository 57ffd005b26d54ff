/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses only the driver API: contexts, modules from PTX and from a fatbin, module
 * variables, launches with both ways of passing parameters, and a cooperative launch of a list with
 * one element.
 */
#define CUDA_ENABLE_DEPRECATED
#include "driver_app.h"
#include "saxpy_fatbin.h"
#include "saxpy_ptx.h"

#include <cstring>
#include <string>
#include <thread>
#include <vector>

static const int count = 1000;

static void
launch_both_ways(CUfunction function, CUdeviceptr x, CUdeviceptr y)
{
	int n = count;
	float a = 3.0f;
	void *params[] = { &n, &a, &x, &y };
	struct {
		int n;
		float a;
		CUdeviceptr x, y;
	} packed = { count, -2.0f, x, y };
	size_t size = sizeof(packed);
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE,
			  &size, CU_LAUNCH_PARAM_END };

	CHECK(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, nullptr, params, nullptr));
	/* The call has copied both. */
	n = 0;
	a = 0.0f;
	CHECK(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, nullptr, nullptr, extra));
	memset(&packed, 0, sizeof(packed));
	/* Only the first one: with n = 0 the others are not used. */
	size = sizeof(packed.n);
	CHECK(cuLaunchKernel(function, 8, 1, 1, 128, 1, 1, 0, nullptr, nullptr, extra));
}

static void
launch_list(CUfunction function, CUdeviceptr x, CUdeviceptr y)
{
	int n = count;
	float a = 4.0f;
	void *params[] = { &n, &a, &x, &y };
	CUDA_LAUNCH_PARAMS launch = { function, 8, 1, 1, 128, 1, 1, 0, nullptr, params };

	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuLaunchCooperativeKernelMultiDevice(&launch, 1, 0));
	CHECK(cuStreamCreate(&launch.hStream, CU_STREAM_DEFAULT));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchCooperativeKernelMultiDevice(&launch, 0, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchCooperativeKernelMultiDevice(nullptr, 1, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchCooperativeKernelMultiDevice(&launch, 1, 4));
	CHECK(cuLaunchCooperativeKernelMultiDevice(&launch, 1, 0));
	CHECK(cuStreamDestroy(launch.hStream));
}

static void
run_module(const void *image, const char *kind)
{
	CUmodule module;
	CUfunction function;
	CUdeviceptr x, y, offset;
	size_t offset_size;
	std::vector<float> hx(count), hy(count, 1.0f);
	const float offset_value = 0.5f;

	CHECK(cuModuleLoadData(&module, image));
	CHECK(cuModuleGetFunction(&function, module, "saxpy"));
	EXPECT(CUDA_ERROR_NOT_FOUND, cuModuleGetFunction(&function, module, "nosuch"));
	CHECK(cuModuleGetFunction(&function, module, "saxpy"));
	CHECK(cuModuleGetGlobal(&offset, &offset_size, module, "offset"));
	REQUIRE(offset_size == sizeof(float));
	CHECK(cuMemcpyHtoD(offset, &offset_value, sizeof(offset_value)));

	for (int i = 0; i < count; i++)
		hx[i] = (float)i;
	CHECK(cuMemAlloc(&x, count * sizeof(float)));
	CHECK(cuMemAlloc(&y, count * sizeof(float)));
	CHECK(cuMemcpyHtoD(x, hx.data(), count * sizeof(float)));
	CHECK(cuMemcpyHtoD(y, hy.data(), count * sizeof(float)));
	launch_both_ways(function, x, y);
	launch_list(function, x, y);
	CHECK(cuCtxSynchronize());
	CHECK(cuMemcpyDtoH(hy.data(), y, count * sizeof(float)));
	for (int i = 0; i < count; i++)
		REQUIRE(hy[i] == 3.0f * i + 1.5f - 2.0f * i + 0.5f + 4.0f * i + 0.5f);

	int threads = 0;
	CHECK(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
	REQUIRE(threads >= 128 && threads <= 1024);
	CHECK(cuMemFree(x));
	CHECK(cuMemFree(y));
	CHECK(cuModuleUnload(module));
	printf("module from %s: right\n", kind);
}

/* A module with many kernels, whose description is long. */
static void
run_one_of_many()
{
	const int kernels = 2000, chosen = 1357;
	std::string text = ".version 7.0\n.target sm_70\n.address_size 64\n";
	CUmodule module;
	CUfunction function;
	CUdeviceptr memory;
	int value = 0;

	for (int i = 0; i < kernels; i++)
		text += ".visible .entry a_kernel_with_a_long_name_and_the_number_" +
			std::to_string(i) +
			"(.param .u64 where)\n{\n"
			".reg .b64 %rd<3>;\n.reg .b32 %r<2>;\n"
			"ld.param.u64 %rd1, [where];\n"
			"cvta.to.global.u64 %rd2, %rd1;\n"
			"mov.u32 %r1, " +
			std::to_string(i) + ";\nst.global.u32 [%rd2], %r1;\nret;\n}\n";
	CHECK(cuModuleLoadData(&module, text.c_str()));
	CHECK(cuModuleGetFunction(
		&function, module,
		("a_kernel_with_a_long_name_and_the_number_" + std::to_string(chosen)).c_str()));
	CHECK(cuMemAlloc(&memory, sizeof(value)));
	void *params[] = { &memory };
	CHECK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, params, nullptr));
	CHECK(cuMemcpyDtoH(&value, memory, sizeof(value)));
	REQUIRE(value == chosen);
	CHECK(cuMemFree(memory));
	CHECK(cuModuleUnload(module));
	printf("one kernel of many: right\n");
}

/* Settings of another context, and its destruction, do not affect the first. */
static void
run_two_contexts()
{
	CUdevice device;
	CUcontext other;
	CUmodule module, others;
	CUdeviceptr offset, theirs, memory;
	size_t size;
	float value = 7.5f;

	CHECK(cuModuleLoadData(&module, saxpy_ptx));
	CHECK(cuModuleGetGlobal(&offset, &size, module, "offset"));
	CHECK(cuMemcpyHtoD(offset, &value, sizeof(value)));
	CHECK(cuMemAlloc(&memory, sizeof(value)));
	CHECK(cuCtxGetDevice(&device));
#if CUDA_VERSION >= 13000
	CHECK(cuCtxCreate(&other, nullptr, 0, device));
#else
	CHECK(cuCtxCreate(&other, 0, device));
#endif
	CHECK(cuModuleLoadData(&others, saxpy_ptx));
	CHECK(cuModuleGetGlobal(&theirs, &size, others, "offset"));
	CHECK(cuMemsetD32(theirs, 0, 1));
	CHECK(cuCtxDestroy(other));
	/* Neither side is specified as device memory. */
	CHECK(cuMemcpy(memory, offset, sizeof(value)));
	value = 0;
	CHECK(cuMemcpyDtoH(&value, memory, sizeof(value)));
	REQUIRE(value == 7.5f);
	CHECK(cuMemFree(memory));
	CHECK(cuModuleUnload(module));
	printf("two contexts: right\n");
}

/* Called by a thread without a context, like a data loader's thread that pins batches. */
static void
query_pointers(CUdeviceptr device, void *pinned)
{
	CUpointer_attribute attributes[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
					     CU_POINTER_ATTRIBUTE_CONTEXT };
	unsigned int type = 9;
	CUcontext context = nullptr;
	void *answers[] = { &type, &context };

	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
	CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device + 1));
	REQUIRE(type == CU_MEMORYTYPE_DEVICE);
	CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)pinned));
	REQUIRE(type == CU_MEMORYTYPE_HOST);
	EXPECT(CUDA_ERROR_INVALID_VALUE,
	       cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)&type));
	CHECK(cuPointerGetAttributes(2, attributes, answers, device));
	REQUIRE(type == CU_MEMORYTYPE_DEVICE && context != nullptr);
	CHECK(cuPointerGetAttributes(2, attributes, answers, (CUdeviceptr)&type));
	REQUIRE(type == 0 && context == nullptr);
}

static void
run_thread_without_context()
{
	CUdeviceptr device;
	void *pinned;

	CHECK(cuMemAlloc(&device, 100));
	CHECK(cuMemAllocHost(&pinned, 100));
	std::thread(query_pointers, device, pinned).join();
	CHECK(cuMemFreeHost(pinned));
	CHECK(cuMemFree(device));
	printf("thread without a context: told of pointers\n");
}

static void
expect_errors()
{
	CUmodule module;
	CUdeviceptr memory;
	CUdevice device;

	EXPECT(CUDA_ERROR_INVALID_DEVICE, cuDeviceGet(&device, 4096));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuMemAlloc(&memory, 0));
	EXPECT(CUDA_ERROR_INVALID_PTX, cuModuleLoadData(&module, ".version 7.0\nnonsense\n"));
	printf("errors: as documented\n");
}

int
main()
{
	CUdevice device;
	CUcontext context, current;
	int devices = 0, version = 0;
	size_t width = 0;

	EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuDeviceGetCount(&devices));
	CHECK(cuInit(0));
	CHECK(cuDriverGetVersion(&version));
	REQUIRE(version >= 12000);
	CHECK(cuDeviceGetCount(&devices));
	REQUIRE(devices >= 1);
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 4, device));
	REQUIRE(width >= 1 << 16);
	EXPECT(CUDA_ERROR_INVALID_VALUE,
	       cuDeviceGetTexture1DLinearMaxWidth(nullptr, CU_AD_FORMAT_FLOAT, 4, device));
	EXPECT(CUDA_ERROR_INVALID_DEVICE,
	       cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 4, 99));
	EXPECT(CUDA_ERROR_INVALID_CONTEXT, cuCtxSynchronize());
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxPushCurrent(context));
	CHECK(cuCtxGetCurrent(&current));
	REQUIRE(current == context);

	run_module(saxpy_ptx, "PTX");
	run_module(saxpy_fatbin, "fatbin");
	run_one_of_many();
	run_two_contexts();
	run_thread_without_context();
	expect_errors();

	CHECK(cuCtxPopCurrent(&current));
	REQUIRE(current == context);
	CHECK(cuDevicePrimaryCtxRelease(device));
	printf("driverapi: ok\n");
	return 0;
}
