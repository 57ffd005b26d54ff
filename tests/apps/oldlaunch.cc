/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches as they were before CUDA 4: block, shared memory and parameters are set one by one, and
 * the function keeps them.
 */
#define CUDA_ENABLE_DEPRECATED
#include "driver_app.h"

#include <cstring>
#include <vector>

static const unsigned int block = 64, grid_width = 3, grid_height = 2;
static const unsigned int count = block * grid_width * grid_height;

/* to[i] = scale * i + more, the sum by way of dynamic shared memory; i counts blocks of a plane. */
static const char text[] = R"(
.version 7.0
.target sm_75
.address_size 64

.extern .shared .align 4 .b8 room[];

.visible .entry line(.param .u64 to, .param .f32 scale, .param .u32 more)
{
	.reg .b32 %r<12>;
	.reg .f32 %f<5>;
	.reg .b64 %rd<5>;

	ld.param.u64 %rd1, [to];
	ld.param.f32 %f1, [scale];
	ld.param.u32 %r1, [more];
	cvta.to.global.u64 %rd2, %rd1;
	mov.u32 %r2, %ctaid.y;
	mov.u32 %r3, %nctaid.x;
	mov.u32 %r4, %ctaid.x;
	mad.lo.u32 %r5, %r2, %r3, %r4;
	mov.u32 %r6, %ntid.x;
	mov.u32 %r7, %tid.x;
	mad.lo.u32 %r8, %r5, %r6, %r7;
	mov.u32 %r9, room;
	shl.b32 %r10, %r7, 2;
	add.u32 %r9, %r9, %r10;
	st.shared.u32 [%r9], %r1;
	ld.shared.u32 %r11, [%r9];
	cvt.rn.f32.u32 %f2, %r8;
	cvt.rn.f32.u32 %f3, %r11;
	fma.rn.f32 %f4, %f1, %f2, %f3;
	mul.wide.u32 %rd3, %r8, 4;
	add.u64 %rd4, %rd2, %rd3;
	st.global.f32 [%rd4], %f4;
	ret;
}

.visible .entry nothing()
{
	ret;
}
)";

static CUdeviceptr memory;

/* What the kernel has left of so many elements; the others are as before. */
static void
expect_line(float scale, unsigned int more, unsigned int elements, int line)
{
	std::vector<float> values(count);
	bool right = true;

	CHECK(cuMemcpyDtoH(values.data(), memory, count * sizeof(float)));
	for (unsigned int i = 0; i < count; i++)
		right = right && values[i] == (i < elements ? scale * (float)i + (float)more : 0);
	require(right, "the kernel's values", line);
	CHECK(cuMemsetD32(memory, 0, count));
	CHECK(cuCtxSynchronize());
}
#define EXPECT_LINE(scale, more, elements) expect_line(scale, more, elements, __LINE__)

static void
set_all(CUfunction function)
{
	CHECK(cuFuncSetBlockShape(function, (int)block, 1, 1));
	CHECK(cuFuncSetSharedSize(function, block * 4));
	CHECK(cuParamSetv(function, 0, &memory, sizeof(memory)));
	CHECK(cuParamSetf(function, 8, 0.5f));
	CHECK(cuParamSeti(function, 12, 7));
	CHECK(cuParamSetSize(function, 16));
}

static void
run_launches(CUfunction function, CUstream stream)
{
	set_all(function);
	CHECK(cuLaunch(function));
	EXPECT_LINE(0.5f, 7, block);
	CHECK(cuLaunchGrid(function, (int)grid_width, (int)grid_height));
	EXPECT_LINE(0.5f, 7, count);
	/* What is not set anew is as it was. */
	CHECK(cuParamSetf(function, 8, 2.0f));
	CHECK(cuLaunchGridAsync(function, 2, 1, stream));
	CHECK(cuParamSetf(function, 8, 100.0f));
	CHECK(cuStreamSynchronize(stream));
	EXPECT_LINE(2.0f, 7, 2 * block);
	printf("launches: right\n");
}

static void
run_refusals(CUfunction function, CUfunction nothing, CUstream stream)
{
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(function, 0, 1, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(function, 1, -1, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuFuncSetBlockShape(function, 1, 1, 65));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchGrid(function, 0, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchGridAsync(function, 1, -1, stream));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuFuncSetSharedSize(function, 1 << 30));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuFuncSetSharedSize(function, 48 * 1024 + 1));
	CHECK(cuLaunch(function));
	EXPECT_LINE(100.0f, 7, block);
	/* Another function has its own: none is set, so it is one thread. */
	CHECK(cuLaunch(nothing));
	CHECK(cuFuncSetBlockShape(nothing, 1, 1, 1));
	CHECK(cuLaunch(nothing));
	CHECK(cuCtxSynchronize());
	printf("refusals: right\n");
}

static CUresult
launch_as(int how, CUfunction function, CUstream stream)
{
	switch (how) {
	case 0:
		return cuLaunch(function);
	case 1:
		return cuLaunchGrid(function, 1, 1);
	default:
		return cuLaunchGridAsync(function, 1, 1, stream);
	}
}

/* No capture has them: a relaxed one lets them pass, any other is invalid from then on. */
static void
run_capture(CUfunction function, CUstream stream, CUstreamCaptureMode mode, int how)
{
	const bool relaxed = mode == CU_STREAM_CAPTURE_MODE_RELAXED;
	CUstreamCaptureStatus status;
	CUgraph graph = nullptr;
	size_t nodes = 1;

	CHECK(cuStreamBeginCapture(stream, mode));
	EXPECT(relaxed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
	       launch_as(how, function, stream));
	CHECK(cuStreamIsCapturing(stream, &status));
	REQUIRE(status ==
		(relaxed ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED));
	EXPECT(relaxed ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
	       cuStreamEndCapture(stream, &graph));
	REQUIRE((graph != nullptr) == relaxed);
	if (relaxed) {
		CHECK(cuGraphGetNodes(graph, nullptr, &nodes));
		REQUIRE(nodes == 0);
		CHECK(cuGraphDestroy(graph));
	}
	CHECK(cuCtxSynchronize());
	EXPECT_LINE(3.0f, 7, relaxed ? block : 0);
}

static void
run_captures(CUfunction function, CUstream stream)
{
	CHECK(cuParamSetf(function, 8, 3.0f));
	for (int how = 0; how < 3; how++) {
		run_capture(function, stream, CU_STREAM_CAPTURE_MODE_GLOBAL, how);
		run_capture(function, stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, how);
		run_capture(function, stream, CU_STREAM_CAPTURE_MODE_RELAXED, how);
	}
	printf("in captures: right\n");
}

/* A cooperative launch on several devices, of which there is one. */
static void
run_devices(CUfunction function, CUstream stream)
{
	float scale = 4.0f;
	unsigned int more = 9;
	void *params[] = { &memory, &scale, &more };
	CUDA_LAUNCH_PARAMS launch = { function, 2, 1, 1, block, 1, 1, block * 4, stream, params };

	CHECK(cuLaunchCooperativeKernelMultiDevice(&launch, 1, 0));
	CHECK(cuStreamSynchronize(stream));
	EXPECT_LINE(4.0f, 9, 2 * block);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchCooperativeKernelMultiDevice(&launch, 0, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchCooperativeKernelMultiDevice(nullptr, 1, 0));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuLaunchCooperativeKernelMultiDevice(&launch, 1, 4));
	launch.hStream = nullptr;
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuLaunchCooperativeKernelMultiDevice(&launch, 1, 0));
	printf("a cooperative launch of a list: right\n");
}

int
main()
{
	CUdevice device;
	CUcontext context;
	CUmodule module;
	CUfunction function, nothing;
	CUstream stream;

	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuModuleLoadData(&module, text));
	CHECK(cuModuleGetFunction(&function, module, "line"));
	CHECK(cuModuleGetFunction(&nothing, module, "nothing"));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemAlloc(&memory, count * sizeof(float)));
	CHECK(cuMemsetD32(memory, 0, count));
	CHECK(cuCtxSynchronize());
	run_launches(function, stream);
	run_refusals(function, nothing, stream);
	run_captures(function, stream);
	run_devices(function, stream);
	CHECK(cuMemFree(memory));
	CHECK(cuStreamDestroy(stream));
	CHECK(cuModuleUnload(module));
	CHECK(cuDevicePrimaryCtxRelease(device));
	printf("oldlaunch: ok\n");
	return 0;
}
