/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Repeats typical steps of programs: steps KIND COUNT.
 *
 *   train    input to the device, kernels on two streams that wait for one another, memory in a
 *            stream's order, and the loss read at the end
 *   mapped   the same with input in pinned memory, in a program with words that kernels reach, as
 *            cuDNN has them
 *   token    kernels, and one number read with its stream synchronised, through pinned memory
 *   objects  streams, events and queries about kernels and memory, as a library makes them
 *   order    work that nothing is read of
 *   again    one wait for all, then waits and queries whose results are known by then
 *   read     one number read, then the same
 *   poll     work, and queries until it is complete
 *   times    runs that are timed by events, and the times read at the end
 *   buffers  memory that is had for a result that is read, and given back
 *   frees    memory that kernels use and that is given back, over and over
 *   limits   limits of the context that it has already
 *   sizes    large memory, which stays
 *   physical physical memory, which stays mapped
 *   arrays   arrays of ever new sizes, plain and mipmapped; some go
 *   textures a texture and a surface of an array, all of which go
 *   constants queries whose results do not change
 */
#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNELS 30
#define INPUT 4096
#define TIMED 8

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
			  ".visible .entry increase(.param .u64 where)\n{\n"
			  "\t.reg .u64 %rd<2>;\n\t.reg .u32 %r<2>;\n"
			  "\tld.param.u64 %rd1, [where];\n"
			  "\tld.global.u32 %r1, [%rd1];\n\tadd.u32 %r1, %r1, 1;\n"
			  "\tst.global.u32 [%rd1], %r1;\n\tret;\n}\n";

struct program {
	CUmodule module;
	CUfunction increase;
	CUstream streams[2];
	CUevent events[2];
	CUdeviceptr number, input;
	uint32_t *pinned;
	uint32_t expected;
};

static void
require(CUresult result, const char *what)
{
	const char *name = "?";

	if (result == CUDA_SUCCESS)
		return;
	(void)cuGetErrorName(result, &name);
	printf("%s: %s (%d)\n", what, name, (int)result);
	exit(1);
}

static void
prepare(struct program *p)
{
	require(cuModuleLoadData(&p->module, ptx), "cuModuleLoadData");
	require(cuModuleGetFunction(&p->increase, p->module, "increase"), "cuModuleGetFunction");
	for (int i = 0; i < 2; i++) {
		require(cuStreamCreate(&p->streams[i], CU_STREAM_NON_BLOCKING), "cuStreamCreate");
		require(cuEventCreate(&p->events[i], CU_EVENT_DISABLE_TIMING), "cuEventCreate");
	}
	require(cuMemAlloc(&p->number, sizeof(uint32_t)), "cuMemAlloc");
	require(cuMemAlloc(&p->input, INPUT), "cuMemAlloc");
	require(cuMemHostAlloc((void **)&p->pinned, sizeof(uint32_t), 0), "cuMemHostAlloc");
	require(cuMemsetD32(p->number, 0, 1), "cuMemsetD32");
	require(cuCtxSynchronize(), "cuCtxSynchronize");
}

static void
launch(struct program *p, CUstream stream)
{
	void *params[] = { &p->number };

	require(cuLaunchKernel(p->increase, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL),
		"cuLaunchKernel");
	p->expected++;
}

/* Later work of the one stream waits for the work of the other. */
static void
order(struct program *p, int behind)
{
	require(cuEventRecord(p->events[!behind], p->streams[!behind]), "cuEventRecord");
	require(cuStreamWaitEvent(p->streams[behind], p->events[!behind], 0), "cuStreamWaitEvent");
}

static void
work(struct program *p)
{
	char input[INPUT];
	CUdeviceptr scratch;

	memset(input, 1, sizeof(input));
	require(cuMemcpyHtoDAsync(p->input, input, sizeof(input), p->streams[0]),
		"cuMemcpyHtoDAsync");
	require(cuMemAllocAsync(&scratch, INPUT, p->streams[0]), "cuMemAllocAsync");
	require(cuMemcpyDtoDAsync(scratch, p->input, INPUT, p->streams[0]), "cuMemcpyDtoDAsync");
	require(cuMemsetD8Async(scratch, 0, INPUT, p->streams[0]), "cuMemsetD8Async");
	for (int i = 0; i < KERNELS; i++) {
		launch(p, p->streams[i % 2]);
		order(p, (i + 1) % 2);
	}
	require(cuMemFreeAsync(scratch, p->streams[0]), "cuMemFreeAsync");
}

static void
check(const struct program *p, uint32_t number)
{
	if (number == p->expected)
		return;
	printf("%u where %u should be\n", number, p->expected);
	exit(1);
}

static void
train(struct program *p)
{
	uint32_t loss;

	work(p);
	require(cuMemcpyDtoHAsync(&loss, p->number, sizeof(loss), p->streams[0]),
		"cuMemcpyDtoHAsync");
	require(cuStreamSynchronize(p->streams[0]), "cuStreamSynchronize");
	check(p, loss);
}

static void
mapped(struct program *p)
{
	static void *words, *input;

	if (!words) {
		require(cuMemHostAlloc(&words, 8, CU_MEMHOSTALLOC_DEVICEMAP), "cuMemHostAlloc");
		require(cuMemHostAlloc(&input, INPUT, 0), "cuMemHostAlloc");
	}
	require(cuMemcpyHtoDAsync(p->input, input, INPUT, p->streams[1]), "cuMemcpyHtoDAsync");
	train(p);
}

static void
token(struct program *p)
{
	for (int i = 0; i < KERNELS; i++)
		launch(p, p->streams[0]);
	require(cuMemcpyDtoHAsync(p->pinned, p->number, sizeof(*p->pinned), p->streams[0]),
		"cuMemcpyDtoHAsync");
	require(cuStreamSynchronize(p->streams[0]), "cuStreamSynchronize");
	check(p, *p->pinned);
}

static void
objects(struct program *p)
{
	CUfunction function;
	CUdeviceptr base;
	CUstream stream;
	CUevent event;
	size_t size;
	int value;

	require(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0),
		"cuStreamCreateWithPriority");
	require(cuEventCreate(&event, CU_EVENT_DEFAULT), "cuEventCreate");
	require(cuEventRecord(event, stream), "cuEventRecord");
	require(cuModuleGetFunction(&function, p->module, "increase"), "cuModuleGetFunction");
	require(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function),
		"cuFuncGetAttribute");
	require(cuMemGetAddressRange(&base, &size, p->input), "cuMemGetAddressRange");
	require(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p->input),
		"cuPointerGetAttribute");
	require(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0),
		"cuDeviceGetAttribute");
	require(cuEventDestroy(event), "cuEventDestroy");
	require(cuStreamDestroy(stream), "cuStreamDestroy");
}

/* Of what has been waited for. */
static void
query_again(struct program *p)
{
	for (int i = 0; i < 2; i++) {
		require(cuEventQuery(p->events[i]), "cuEventQuery");
		require(cuEventSynchronize(p->events[i]), "cuEventSynchronize");
		require(cuStreamQuery(p->streams[i]), "cuStreamQuery");
		require(cuStreamSynchronize(p->streams[i]), "cuStreamSynchronize");
	}
	require(cuStreamSynchronize(NULL), "cuStreamSynchronize");
	require(cuCtxSynchronize(), "cuCtxSynchronize");
}

static void
again(struct program *p)
{
	for (int i = 0; i < 2; i++) {
		launch(p, p->streams[0]);
		require(cuEventRecord(p->events[i], p->streams[0]), "cuEventRecord");
	}
	require(cuCtxSynchronize(), "cuCtxSynchronize");
	query_again(p);
}

static void
read_number(struct program *p)
{
	uint32_t number;

	for (int i = 0; i < 2; i++) {
		launch(p, NULL);
		require(cuEventRecord(p->events[i], NULL), "cuEventRecord");
	}
	require(cuMemcpyDtoH(&number, p->number, sizeof(number)), "cuMemcpyDtoH");
	check(p, number);
	query_again(p);
}

static void
poll_event(struct program *p)
{
	CUresult result;

	launch(p, p->streams[0]);
	require(cuEventRecord(p->events[0], p->streams[0]), "cuEventRecord");
	while ((result = cuEventQuery(p->events[0])) == CUDA_ERROR_NOT_READY)
		;
	require(result, "cuEventQuery");
}

static void
times(struct program *p)
{
	CUevent marks[2 * TIMED];
	float ms;

	for (int i = 0; i < 2 * TIMED; i++)
		require(cuEventCreate(&marks[i], CU_EVENT_DEFAULT), "cuEventCreate");
	for (int i = 0; i < 2 * TIMED; i += 2) {
		require(cuEventRecord(marks[i], p->streams[0]), "cuEventRecord");
		launch(p, p->streams[0]);
		require(cuEventRecord(marks[i + 1], p->streams[0]), "cuEventRecord");
	}
	require(cuStreamSynchronize(p->streams[0]), "cuStreamSynchronize");
	for (int i = 0; i < 2 * TIMED; i += 2) {
		require(cuEventElapsedTime(&ms, marks[i], marks[i + 1]), "cuEventElapsedTime");
		if (!(ms >= 0 && ms < 1e6f))
			require(CUDA_ERROR_UNKNOWN, "a time between events");
	}
	for (int i = 0; i < 2 * TIMED; i++)
		require(cuEventDestroy(marks[i]), "cuEventDestroy");
}

static void
buffers(struct program *p)
{
	CUdeviceptr large, small;
	uint32_t number;

	require(cuMemAlloc(&large, 8 << 20), "cuMemAlloc");
	require(cuMemAlloc(&small, 4096), "cuMemAlloc");
	launch(p, NULL);
	require(cuMemcpyDtoD(large, p->number, sizeof(number)), "cuMemcpyDtoD");
	require(cuMemcpyDtoD(small, large, sizeof(number)), "cuMemcpyDtoD");
	require(cuMemcpyDtoH(&number, small, sizeof(number)), "cuMemcpyDtoH");
	check(p, number);
	require(cuMemFree(large), "cuMemFree");
	require(cuMemFree(small), "cuMemFree");
}

static void
set_limits(struct program *p)
{
	(void)p;
	require(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096), "cuCtxSetLimit");
	require(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 2 << 20), "cuCtxSetLimit");
	require(cuCtxSetLimit(CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 64), "cuCtxSetLimit");
}

#define LARGE ((size_t)2 << 20)
#define STEPS_MAX 64

static void
sizes(struct program *p)
{
	static size_t step;
	CUdeviceptr large;
	uint32_t number;

	if (++step > STEPS_MAX)
		require(CUDA_ERROR_INVALID_VALUE, "more steps than there are sizes");
	require(cuMemAlloc(&large, LARGE * (step % 4 + 1) - 4096 * step), "cuMemAlloc");
	require(cuMemcpyDtoD(large, p->number, sizeof(number)), "cuMemcpyDtoD");
}

static void
physical(struct program *p)
{
	static size_t step;
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
	};
	const CUmemAccessDesc access = {
		.location = prop.location,
		.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
	};
	static CUdeviceptr address;
	CUmemGenericAllocationHandle handle;
	const size_t size = LARGE * (++step % 4 + 1);

	if (step == 1)
		require(cuMemAddressReserve(&address, STEPS_MAX * LARGE * 4, 0, 0, 0),
			"cuMemAddressReserve");
	require(cuMemCreate(&handle, size, &prop, 0), "cuMemCreate");
	require(cuMemMap(address, size, 0, handle, 0), "cuMemMap");
	require(cuMemSetAccess(address, size, &access, 1), "cuMemSetAccess");
	require(cuMemRelease(handle), "cuMemRelease");
	require(cuMemcpyDtoD(address, p->number, sizeof(uint32_t)), "cuMemcpyDtoD");
	address += size;
}

static void
arrays(struct program *p)
{
	static size_t step;
	const size_t side = 8 * ++step;
	const CUDA_ARRAY_DESCRIPTOR flat = {
		.Width = side, .Height = side, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1
	};
	const CUDA_ARRAY3D_DESCRIPTOR levels = {
		.Width = side, .Height = side, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1
	};
	CUmipmappedArray mipmapped;
	CUarray array;

	require(cuArrayCreate(&array, &flat), "cuArrayCreate");
	require(cuMemcpyDtoA(array, 0, p->number, sizeof(uint32_t)), "cuMemcpyDtoA");
	require(cuMipmappedArrayCreate(&mipmapped, &levels, 3), "cuMipmappedArrayCreate");
	if (step % 2) {
		require(cuArrayDestroy(array), "cuArrayDestroy");
		require(cuMipmappedArrayDestroy(mipmapped), "cuMipmappedArrayDestroy");
	}
}

static void
get_constants(struct program *p)
{
	CUdevResource all, groups[2];
	unsigned int count = 2;
	size_t width;

	(void)p;
	require(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_FLOAT, 1, 0),
		"cuDeviceGetTexture1DLinearMaxWidth");
	require(cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_HALF, 4, 0),
		"cuDeviceGetTexture1DLinearMaxWidth");
	require(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource");
	require(cuDevSmResourceSplitByCount(groups, &count, &all, NULL, 0, 8),
		"cuDevSmResourceSplitByCount");
}

static void
textures(struct program *p)
{
	const CUDA_ARRAY3D_DESCRIPTOR described = { .Width = 64,
						    .Height = 64,
						    .Format = CU_AD_FORMAT_FLOAT,
						    .NumChannels = 1,
						    .Flags = CUDA_ARRAY3D_SURFACE_LDST };
	const CUDA_TEXTURE_DESC sampling = { .filterMode = CU_TR_FILTER_MODE_POINT };
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_ARRAY };
	CUsurfObject surface;
	CUtexObject texture;
	CUarray array;

	(void)p;
	require(cuArray3DCreate(&array, &described), "cuArray3DCreate");
	resource.res.array.hArray = array;
	require(cuTexObjectCreate(&texture, &resource, &sampling, NULL), "cuTexObjectCreate");
	require(cuSurfObjectCreate(&surface, &resource), "cuSurfObjectCreate");
	require(cuSurfObjectDestroy(surface), "cuSurfObjectDestroy");
	require(cuTexObjectDestroy(texture), "cuTexObjectDestroy");
	require(cuArrayDestroy(array), "cuArrayDestroy");
}

/* The result is not visible outside of the device, so no thread waits for it. */
static void
frees(struct program *p)
{
	for (int i = 0; i < 4; i++) {
		CUdeviceptr scratch;

		require(cuMemAlloc(&scratch, INPUT), "cuMemAlloc");
		require(cuMemsetD8Async(scratch, 0, INPUT, p->streams[i % 2]), "cuMemsetD8Async");
		launch(p, p->streams[i % 2]);
		require(cuMemFree(scratch), "cuMemFree");
	}
}

int
main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*step)(struct program *program);
	} kinds[] = {
		{ "train", train },       { "token", token },       { "objects", objects },
		{ "order", work },        { "again", again },       { "read", read_number },
		{ "limits", set_limits }, { "poll", poll_event },   { "times", times },
		{ "buffers", buffers },   { "sizes", sizes },       { "physical", physical },
		{ "arrays", arrays },     { "textures", textures }, { "constants", get_constants },
		{ "frees", frees },       { "mapped", mapped },
	};
	struct program program = { 0 };
	void (*step)(struct program * program) = NULL;
	CUcontext context;
	CUdevice device;

	for (size_t i = 0; argc == 3 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(argv[1], kinds[i].name) == 0)
			step = kinds[i].step;
	}
	if (!step) {
		fprintf(stderr,
			"usage: steps "
			"train|mapped|token|objects|order|again|read|poll|times|buffers|limits|"
			"sizes|physical|arrays|textures|constants|frees COUNT\n");
		return 2;
	}
	require(cuInit(0), "cuInit");
	require(cuDeviceGet(&device, 0), "cuDeviceGet");
	require(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
	require(cuCtxSetCurrent(context), "cuCtxSetCurrent");
	prepare(&program);
	for (int i = 0; i < atoi(argv[2]); i++)
		step(&program);
	require(cuCtxSynchronize(), "cuCtxSynchronize");
	printf("steps: ok\n");
	return 0;
}
