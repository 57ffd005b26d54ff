/* SPDX-License-Identifier: Apache-2.0 */
/* Events of whole contexts: all streams are recorded, and all streams wait, also in captures. */
#include "driver_app.h"

#define HEAD ".version 7.0\n.target sm_75\n.address_size 64\n"

static const char text[] = HEAD R"(
.visible .entry late(.param .u64 to, .param .u32 value, .param .u32 rounds)
{
	.reg .pred %p;
	.reg .b32 %r<5>;
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [to];
	cvta.to.global.u64 %rd2, %rd1;
	ld.param.u32 %r1, [value];
	ld.param.u32 %r2, [rounds];
again:
	ld.volatile.global.u32 %r3, [%rd2];
	sub.u32 %r2, %r2, 1;
	setp.ne.u32 %p, %r2, 0;
	@%p bra again;
	st.global.u32 [%rd2], %r1;
	ret;
}
)";

#define ROUNDS 200000u
#define STREAMS 3

static CUfunction late;

static void
write_late(CUstream stream, CUdeviceptr to, unsigned int value)
{
	unsigned int rounds = ROUNDS;
	void *params[] = { &to, &value, &rounds };

	CHECK(cuLaunchKernel(late, 1, 1, 1, 1, 1, 1, 0, stream, params, nullptr));
}

/* Streams of another context, including one that is created later, see the writes of all streams of
 * the first. */
static void
order(CUcontext first, CUcontext second)
{
	unsigned int seen[2][STREAMS] = {};
	CUstream writers[STREAMS], early, made_later;
	CUdeviceptr values, copies;
	CUevent event;

	CHECK(cuCtxSetCurrent(second));
	CHECK(cuMemAlloc(&copies, sizeof(seen)));
	CHECK(cuStreamCreate(&early, CU_STREAM_NON_BLOCKING));
	CHECK(cuCtxSetCurrent(first));
	CHECK(cuMemAlloc(&values, sizeof(seen[0])));
	CHECK(cuMemsetD8(values, 0, sizeof(seen[0])));
	CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	for (unsigned int i = 0; i < STREAMS; i++) {
		CHECK(cuStreamCreate(&writers[i], i ? CU_STREAM_NON_BLOCKING : 0));
		write_late(writers[i], values + 4 * i, i + 1);
	}
	CHECK(cuCtxRecordEvent(first, event));
	CHECK(cuCtxWaitEvent(second, event));
	CHECK(cuCtxSetCurrent(second));
	CHECK(cuStreamCreate(&made_later, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemcpyDtoDAsync(copies, values, sizeof(seen[0]), early));
	CHECK(cuMemcpyDtoDAsync(copies + sizeof(seen[0]), values, sizeof(seen[0]), made_later));
	CHECK(cuCtxSynchronize());
	CHECK(cuEventQuery(event));
	CHECK(cuMemcpyDtoH(seen, copies, sizeof(seen)));
	for (unsigned int i = 0; i < STREAMS; i++) {
		REQUIRE(seen[0][i] == i + 1);
		REQUIRE(seen[1][i] == i + 1);
	}
	CHECK(cuStreamDestroy(early));
	CHECK(cuStreamDestroy(made_later));
	CHECK(cuMemFree(copies));
	CHECK(cuCtxSetCurrent(first));
	for (unsigned int i = 0; i < STREAMS; i++)
		CHECK(cuStreamDestroy(writers[i]));
	CHECK(cuMemFree(values));
	CHECK(cuEventDestroy(event));
	printf("order between contexts: right\n");
}

/* Waiting for the event, or for a stream that waits for it, waits for the work. */
static void
wait_here(CUcontext context)
{
	unsigned int value = 0;
	CUstream writer, waiter;
	CUdeviceptr place;
	CUevent event;

	CHECK(cuMemAlloc(&place, sizeof(value)));
	CHECK(cuEventCreate(&event, CU_EVENT_DEFAULT));
	CHECK(cuStreamCreate(&writer, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&waiter, CU_STREAM_NON_BLOCKING));
	for (unsigned int round = 1; round < 4; round++) {
		write_late(writer, place, round);
		CHECK(cuCtxRecordEvent(context, event));
		if (round == 1)
			CHECK(cuEventSynchronize(event));
		if (round == 2)
			CHECK(cuCtxWaitEvent(context, event));
		if (round == 2)
			CHECK(cuStreamSynchronize(waiter));
		if (round == 3)
			while (cuEventQuery(event) != CUDA_SUCCESS)
				;
		CHECK(cuMemcpyDtoHAsync(&value, place, sizeof(value), waiter));
		CHECK(cuStreamSynchronize(waiter));
		REQUIRE(value == round);
	}
	CHECK(cuStreamDestroy(writer));
	CHECK(cuStreamDestroy(waiter));
	CHECK(cuMemFree(place));
	CHECK(cuEventDestroy(event));
	printf("waits: right\n");
}

static void
captures(CUcontext context)
{
	CUstream stream;
	CUgraph graph = nullptr;
	CUevent event, inside;

	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	CHECK(cuEventCreate(&inside, CU_EVENT_DISABLE_TIMING));
	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxRecordEvent(context, event));
	EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxWaitEvent(context, event));
	EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	CHECK(cuEventRecord(inside, stream));
	EXPECT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, cuCtxWaitEvent(context, inside));
	EXPECT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, cuStreamEndCapture(stream, &graph));
	CHECK(cuCtxRecordEvent(context, event));
	CHECK(cuCtxWaitEvent(context, event));
	CHECK(cuEventDestroy(inside));
	CHECK(cuEventDestroy(event));
	CHECK(cuStreamDestroy(stream));
	printf("captures: refused\n");
}

static void
refuse(CUcontext first, CUcontext second)
{
	CUevent event;

	CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuCtxRecordEvent(second, event));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuCtxRecordEvent(first, nullptr));
	EXPECT(CUDA_ERROR_INVALID_HANDLE, cuCtxWaitEvent(first, nullptr));
	/* The event was never recorded, so no stream waits. */
	CHECK(cuCtxWaitEvent(second, event));
	CHECK(cuCtxWaitEvent(first, event));
	CHECK(cuEventDestroy(event));
	printf("refusals: right\n");
}

int
main()
{
	CUcontext first, second;
	CUmodule module;
	CUdevice device;

	EXPECT(CUDA_ERROR_NOT_INITIALIZED, cuCtxWaitEvent(nullptr, nullptr));
	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuCtxCreate(&second, nullptr, 0, device));
	CHECK(cuDevicePrimaryCtxRetain(&first, device));
	CHECK(cuCtxSetCurrent(first));
	CHECK(cuModuleLoadData(&module, text));
	CHECK(cuModuleGetFunction(&late, module, "late"));
	order(first, second);
	wait_here(first);
	captures(first);
	refuse(first, second);
	CHECK(cuCtxDestroy(second));
	CHECK(cuDevicePrimaryCtxRelease(device));
	printf("contexts: ok\n");
	return 0;
}
