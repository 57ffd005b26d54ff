/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts: multiprocessors are split, kernels run on those of their context, and everything
 * but streams is shared with the primary context. greens ROUNDS: prints ROUNDS times on how many
 * multiprocessors a grid in a green context of eight runs.
 */
#include "driver_app.h"

#include <cstring>

#define SMS_MAX 1024u
#define BLOCKS 2048u

/* Each block writes the number of its multiprocessor, after a delay. */
static const char text[] = ".version 7.0\n.target sm_75\n.address_size 64\n"
			   R"(
.visible .entry place(.param .u64 out, .param .u32 rounds)
{
	.reg .pred %p;
	.reg .b32 %r<5>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [out];
	cvta.to.global.u64 %rd2, %rd1;
	ld.param.u32 %r1, [rounds];
	mov.u32 %r2, %smid;
	mul.wide.u32 %rd3, %r2, 4;
	add.u64 %rd3, %rd2, %rd3;
again:
	ld.volatile.global.u32 %r3, [%rd3];
	sub.u32 %r1, %r1, 1;
	setp.ne.u32 %p, %r1, 0;
	@%p bra again;
	mov.u32 %r4, 1;
	st.global.u32 [%rd3], %r4;
	ret;
}
)";

static CUfunction place;
static CUdevice device;
static CUcontext primary;

/* Returns the multiprocessors on which a grid runs. */
static unsigned int
run(CUstream stream, CUdeviceptr memory, unsigned char *seen)
{
	unsigned int used[SMS_MAX], rounds = 20, count = 0;
	void *params[] = { &memory, &rounds };

	CHECK(cuMemsetD8Async(memory, 0, sizeof(used), stream));
	CHECK(cuLaunchKernel(place, BLOCKS, 1, 1, 32, 1, 1, 0, stream, params, nullptr));
	CHECK(cuMemcpyDtoHAsync(used, memory, sizeof(used), stream));
	CHECK(cuStreamSynchronize(stream));
	for (unsigned int i = 0; i < SMS_MAX; i++) {
		seen[i] = used[i] != 0;
		count += seen[i];
	}
	return count;
}

static CUgreenCtx
make(CUdevResource *resources, unsigned int count)
{
	CUdevResourceDesc desc;
	CUgreenCtx green;

	CHECK(cuDevResourceGenerateDesc(&desc, resources, count));
	CHECK(cuGreenCtxCreate(&green, desc, device, CU_GREEN_CTX_DEFAULT_STREAM));
	return green;
}

static CUdevResource
split(CUdevResource *groups, unsigned int *count)
{
	unsigned int would = 0, sum;
	CUdevResource whole, rest;
	int all;

	CHECK(cuDeviceGetDevResource(device, &whole, CU_DEV_RESOURCE_TYPE_SM));
	CHECK(cuDeviceGetAttribute(&all, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device));
	REQUIRE(whole.type == CU_DEV_RESOURCE_TYPE_SM && whole.sm.smCount == (unsigned int)all);
	CHECK(cuDevSmResourceSplitByCount(nullptr, &would, &whole, nullptr, 0, 8));
	REQUIRE(would >= 2 && would <= *count);
	CHECK(cuDevSmResourceSplitByCount(groups, count, &whole, &rest, 0, 8));
	REQUIRE(*count == would);
	sum = rest.type == CU_DEV_RESOURCE_TYPE_SM ? rest.sm.smCount : 0;
	for (unsigned int i = 0; i < *count; i++) {
		REQUIRE(groups[i].type == CU_DEV_RESOURCE_TYPE_SM);
		REQUIRE(groups[i].sm.smCount == groups[0].sm.smCount);
		sum += groups[i].sm.smCount;
	}
	REQUIRE(groups[0].sm.smCount >= 8 && sum == whole.sm.smCount);
	printf("split: right\n");
	return whole;
}

/* Two green contexts of one split have no multiprocessor in common. */
static void
confine(CUgreenCtx *greens, const CUdevResource *groups)
{
	static unsigned char seen[2][SMS_MAX];
	unsigned long long ids[2];
	CUdevResource resource;
	CUdeviceptr memory;

	CHECK(cuMemAlloc(&memory, SMS_MAX * 4));
	for (int i = 0; i < 2; i++) {
		CUgreenCtx found = nullptr;
		CUcontext context, regular;
		CUstream stream;

		CHECK(cuGreenCtxGetDevResource(greens[i], &resource, CU_DEV_RESOURCE_TYPE_SM));
		REQUIRE(resource.sm.smCount == groups[i].sm.smCount);
		CHECK(cuGreenCtxGetId(greens[i], &ids[i]));
		CHECK(cuGreenCtxStreamCreate(&stream, greens[i], CU_STREAM_NON_BLOCKING, 0));
		CHECK(cuStreamGetGreenCtx(stream, &found));
		REQUIRE(found == greens[i]);
		CHECK(cuStreamGetCtx_v2(stream, &regular, &found));
		REQUIRE(regular == primary && found == greens[i]);
		CHECK(cuCtxFromGreenCtx(&context, greens[i]));
		CHECK(cuStreamGetCtx(stream, &regular));
		REQUIRE(regular == context);
		REQUIRE(run(stream, memory, seen[i]) <= resource.sm.smCount);
		CHECK(cuStreamDestroy(stream));
	}
	REQUIRE(ids[0] != ids[1]);
	for (unsigned int i = 0; i < SMS_MAX; i++)
		REQUIRE(!seen[0][i] || !seen[1][i]);
	CHECK(cuMemFree(memory));
	printf("confined: right\n");
}

/* While it is current, streams belong to it and memory to the primary context. */
static void
be_current(CUgreenCtx green)
{
	static unsigned char seen[SMS_MAX];
	CUdevResource resource, again;
	CUgreenCtx found = nullptr;
	CUcontext context, current;
	CUdeviceptr memory;
	CUstream stream;
	CUdevice ordinal;

	CHECK(cuCtxFromGreenCtx(&context, green));
	REQUIRE(context != primary);
	CHECK(cuCtxPushCurrent(context));
	CHECK(cuCtxGetCurrent(&current));
	REQUIRE(current == context);
	CHECK(cuCtxGetDevice(&ordinal));
	REQUIRE(ordinal == device);
	CHECK(cuGreenCtxGetDevResource(green, &resource, CU_DEV_RESOURCE_TYPE_SM));
	CHECK(cuCtxGetDevResource(context, &again, CU_DEV_RESOURCE_TYPE_SM));
	REQUIRE(again.sm.smCount == resource.sm.smCount);
	CHECK(cuMemAlloc(&memory, SMS_MAX * 4));
	CHECK(cuStreamGetGreenCtx(nullptr, &found));
	REQUIRE(found == green);
	REQUIRE(run(nullptr, memory, seen) <= resource.sm.smCount);
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamGetGreenCtx(stream, &found));
	REQUIRE(found == green);
	REQUIRE(run(stream, memory, seen) <= resource.sm.smCount);
	EXPECT(CUDA_ERROR_INVALID_HANDLE,
	       cuStreamGetCtx_v2(CU_STREAM_PER_THREAD, &current, &found));
	CHECK(cuCtxSynchronize());
	CHECK(cuStreamDestroy(stream));
	CHECK(cuCtxPopCurrent(&current));
	REQUIRE(current == context);
	CHECK(cuStreamGetGreenCtx(nullptr, &found));
	REQUIRE(found == nullptr);
	CHECK(cuMemFree(memory));
	printf("current: right\n");
}

static void
order(CUgreenCtx first, CUgreenCtx second)
{
	unsigned int used[SMS_MAX], rounds = 2000, any = 0;
	CUstream writer, reader;
	CUdeviceptr from, to;
	CUevent event;
	void *params[] = { &from, &rounds };

	CHECK(cuMemAlloc(&from, sizeof(used)));
	CHECK(cuMemAlloc(&to, sizeof(used)));
	CHECK(cuMemsetD8(from, 0, sizeof(used)));
	CHECK(cuCtxSynchronize());
	CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	CHECK(cuGreenCtxStreamCreate(&writer, first, CU_STREAM_NON_BLOCKING, 0));
	CHECK(cuGreenCtxStreamCreate(&reader, second, CU_STREAM_NON_BLOCKING, 0));
	CHECK(cuLaunchKernel(place, 1, 1, 1, 1, 1, 1, 0, writer, params, nullptr));
	CHECK(cuGreenCtxRecordEvent(first, event));
	CHECK(cuGreenCtxWaitEvent(second, event));
	CHECK(cuMemcpyDtoDAsync(to, from, sizeof(used), reader));
	CHECK(cuStreamSynchronize(reader));
	CHECK(cuEventQuery(event));
	CHECK(cuMemcpyDtoH(used, to, sizeof(used)));
	for (unsigned int i = 0; i < SMS_MAX; i++)
		any += used[i];
	REQUIRE(any == 1);
	CHECK(cuStreamDestroy(writer));
	CHECK(cuStreamDestroy(reader));
	CHECK(cuEventDestroy(event));
	CHECK(cuMemFree(from));
	CHECK(cuMemFree(to));
	printf("order: right\n");
}

/* The resources of a green context may be split again. */
static void
split_again(CUdevResource *groups)
{
	static unsigned char outer[SMS_MAX], inner[SMS_MAX];
	CUgreenCtx green = make(groups, 2), part;
	CUdevResource resource, halves[2];
	unsigned int count = 2;
	CUdeviceptr memory;
	CUstream stream;

	EXPECT(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION,
	       cuDevSmResourceSplitByCount(halves, &count, &groups[0], nullptr, 0, 8));
	CHECK(cuMemAlloc(&memory, SMS_MAX * 4));
	CHECK(cuGreenCtxGetDevResource(green, &resource, CU_DEV_RESOURCE_TYPE_SM));
	REQUIRE(resource.sm.smCount == 2 * groups[0].sm.smCount);
	CHECK(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
	REQUIRE(run(stream, memory, outer) <= resource.sm.smCount);
	CHECK(cuStreamDestroy(stream));
	CHECK(cuDevSmResourceSplitByCount(halves, &count, &resource, nullptr, 0, 8));
	REQUIRE(count == 2);
	part = make(&halves[1], 1);
	CHECK(cuGreenCtxDestroy(green));
	CHECK(cuGreenCtxStreamCreate(&stream, part, CU_STREAM_NON_BLOCKING, 0));
	REQUIRE(run(stream, memory, inner) <= halves[1].sm.smCount);
	CHECK(cuStreamDestroy(stream));
	CHECK(cuGreenCtxDestroy(part));
	CHECK(cuMemFree(memory));
	printf("split again: right\n");
}

static void
refuse(CUdevResource *whole)
{
	CUdevResource resource = {};
	CUdevResourceDesc desc;
	CUgreenCtx green;
	CUstream stream;

	EXPECT(CUDA_ERROR_INVALID_DEVICE,
	       cuDeviceGetDevResource(99, &resource, CU_DEV_RESOURCE_TYPE_SM));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
	       cuDeviceGetDevResource(device, nullptr, CU_DEV_RESOURCE_TYPE_SM));
	EXPECT(CUDA_ERROR_INVALID_RESOURCE_TYPE,
	       cuDeviceGetDevResource(device, &resource, CU_DEV_RESOURCE_TYPE_INVALID));
	EXPECT(CUDA_ERROR_INVALID_VALUE,
	       cuDevSmResourceSplitByCount(&resource, nullptr, whole, nullptr, 0, 8));
	CHECK(cuDevResourceGenerateDesc(&desc, whole, 1));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGreenCtxCreate(&green, desc, device, 0));
	CHECK(cuGreenCtxCreate(&green, desc, device, CU_GREEN_CTX_DEFAULT_STREAM));
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuGreenCtxStreamCreate(&stream, green, 0, 0));
	CHECK(cuGreenCtxDestroy(green));
	printf("refusals: right\n");
}

static void
watch(CUgreenCtx green, int rounds)
{
	static unsigned char seen[SMS_MAX];
	CUdeviceptr memory;
	CUstream stream;

	CHECK(cuMemAlloc(&memory, SMS_MAX * 4));
	CHECK(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
	while (rounds-- > 0) {
		printf("a grid ran on %u\n", run(stream, memory, seen));
		fflush(stdout);
	}
	CHECK(cuStreamDestroy(stream));
	CHECK(cuMemFree(memory));
}

int
main(int argc, char **argv)
{
	CUdevResource groups[64], whole;
	unsigned int count = 64;
	CUgreenCtx greens[2];
	CUmodule module;

	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&primary, device));
	CHECK(cuCtxSetCurrent(primary));
	CHECK(cuModuleLoadData(&module, text));
	CHECK(cuModuleGetFunction(&place, module, "place"));
	whole = split(groups, &count);
	greens[0] = make(&groups[0], 1);
	greens[1] = make(&groups[1], 1);
	if (argc > 1)
		watch(greens[0], atoi(argv[1]));
	confine(greens, groups);
	be_current(greens[0]);
	order(greens[0], greens[1]);
	CHECK(cuGreenCtxDestroy(greens[0]));
	CHECK(cuGreenCtxDestroy(greens[1]));
	split_again(groups);
	refuse(&whole);
	CHECK(cuDevicePrimaryCtxRelease(device));
	printf("greens: ok\n");
	return 0;
}
