/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers [apart]: two devices of one machine. Copies between them with and without peer access,
 * kernels of one on the other's memory of every kind, and the results and errors of peer access
 * calls. apart: no device can access another, but copies work.
 */
#include "physical_app.h"

static const int COUNT = 100000;
static const size_t BYTES = COUNT * sizeof(int);

using ints = std::vector<int>;

static __global__ void
add(int *to, const int *from, int count, int value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		to[i] = from[i] + value;
}

/* Each kernel writes its rounds to the other's memory and waits for the other's rounds in its own;
 * -1: it timed out. */
static __global__ void
play(volatile int *mine, volatile int *others, int turns, int *result)
{
	for (int turn = 1; turn <= turns; turn++) {
		int looks = 0;

		*others = turn;
		__threadfence_system();
		while (*mine < turn && looks < 1 << 26)
			looks++;
		if (*mine < turn) {
			*result = -1;
			return;
		}
	}
	*result = turns;
}

static ints
numbers(int first)
{
	ints host(COUNT);

	for (int i = 0; i < COUNT; i++)
		host[i] = first + i;
	return host;
}

static void
check(const int *device, int first)
{
	ints back(COUNT);

	CHECK(cudaMemcpy(back.data(), device, BYTES, cudaMemcpyDefault));
	for (int i = 0; i < COUNT; i++)
		REQUIRE(back[i] == first + i);
}

/* A kernel of this device on memory that may be the other's. */
static void
run(int device, int *to, const int *from, int value)
{
	CHECK(cudaSetDevice(device));
	add<<<(COUNT + 255) / 256, 256>>>(to, from, COUNT, value);
	CHECK(cudaGetLastError());
	CHECK(cudaDeviceSynchronize());
}

/* Uses the last of `words` words of dynamic shared memory. */
static __global__ void
tall(int *result, int words)
{
	extern __shared__ int room[];

	room[words - 1] = words;
	*result = room[words - 1];
}

static int *
upload(int device, int first)
{
	CHECK(cudaSetDevice(device));
	return app_upload(numbers(first));
}

/* Checked by the device that owns the memory. */
static void
clear(int device, int *memory)
{
	int current;

	CHECK(cudaGetDevice(&current));
	CHECK(cudaSetDevice(device));
	CHECK(cudaMemset(memory, 0, BYTES));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaSetDevice(current));
}

/* Rows with a pitch to rows with another pitch. */
static void
boxes(int *const at[2])
{
	cudaMemcpy3DPeerParms box = {};

	clear(1, at[1]);
	box.srcPtr = make_cudaPitchedPtr(at[0], 400, 100, 50);
	box.srcDevice = 0;
	box.dstPtr = make_cudaPitchedPtr(at[1], 256, 64, 50);
	box.dstDevice = 1;
	box.extent = make_cudaExtent(200, 50, 1);
	CHECK(cudaMemcpy3DPeer(&box));
	ints back = app_download(at[1], 64 * 50);
	for (int row = 0; row < 50; row++) {
		for (int i = 0; i < 64; i++)
			REQUIRE(back[row * 64 + i] == (i < 50 ? row * 100 + i : 0));
	}
}

/* Copies that name two contexts cannot be captured. */
static void
not_captured(int *const at[2], cudaStream_t stream)
{
	cudaMemcpy3DPeerParms box = {};
	cudaGraph_t graph;

	box.srcPtr = make_cudaPitchedPtr(at[1], 400, 100, 50);
	box.srcDevice = 1;
	box.dstPtr = make_cudaPitchedPtr(at[0], 400, 100, 50);
	box.dstDevice = 0;
	box.extent = make_cudaExtent(400, 50, 1);
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	EXPECT(cudaErrorStreamCaptureUnsupported,
	       cudaMemcpyPeerAsync(at[1], 1, at[0], 0, BYTES, stream));
	EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	EXPECT(cudaErrorStreamCaptureUnsupported, cudaMemcpy3DPeerAsync(&box, stream));
	EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
}

/* Copies between devices in a graph that is captured. */
static void
captured(int *const at[2])
{
	cudaGraphExec_t exec;
	cudaStream_t stream;
	cudaGraph_t graph;

	CHECK(cudaStreamCreate(&stream));
	not_captured(at, stream);
	clear(1, at[1]);
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	CHECK(cudaMemcpyAsync(at[1], at[0], BYTES, cudaMemcpyDefault, stream));
	CHECK(cudaMemsetAsync(at[0], 0, BYTES, stream));
	CHECK(cudaMemcpy2DAsync(at[0], 400, at[1], 400, 400, 50, cudaMemcpyDefault, stream));
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 0; i < 3; i++) {
		ints host = numbers(i * 10);

		CHECK(cudaMemcpy(at[0], host.data(), BYTES, cudaMemcpyDefault));
		CHECK(cudaGraphLaunch(exec, stream));
		CHECK(cudaStreamSynchronize(stream));
		check(at[1], i * 10);
		ints back = app_download(at[0], COUNT);
		for (int j = 0; j < COUNT; j++)
			REQUIRE(back[j] == (j < 5000 ? i * 10 + j : 0));
	}
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaStreamDestroy(stream));
}

/* All copies, with either device current, from and to memory of either. */
static void
copies(void)
{
	int *at[2] = { upload(0, 0), upload(1, 1000) };
	cudaStream_t stream;

	for (int current = 0; current < 2; current++) {
		ints host = numbers(7 + current), back(COUNT);

		CHECK(cudaSetDevice(current));
		CHECK(cudaStreamCreate(&stream));
		CHECK(cudaMemcpyPeer(at[1], 1, at[0], 0, BYTES));
		check(at[1], 0);
		for (int i = 0; i < 2; i++) {
			CHECK(cudaMemcpyAsync(at[i], host.data(), BYTES, cudaMemcpyHostToDevice,
					      stream));
			CHECK(cudaMemcpyAsync(back.data(), at[i], BYTES, cudaMemcpyDeviceToHost,
					      stream));
			CHECK(cudaStreamSynchronize(stream));
			REQUIRE(back == host);
			clear(i, at[i]);
			CHECK(cudaMemcpyPeerAsync(at[1 - i], 1 - i, at[i], i, BYTES, stream));
			CHECK(cudaMemcpyAsync(back.data(), at[1 - i], BYTES, cudaMemcpyDefault,
					      stream));
			CHECK(cudaStreamSynchronize(stream));
			REQUIRE(back == ints(COUNT));
		}
		CHECK(cudaMemcpy2D(at[1], 400, host.data(), 400, 400, 500, cudaMemcpyHostToDevice));
		CHECK(cudaMemcpy(at[0], host.data(), BYTES, cudaMemcpyDefault));
		CHECK(cudaMemcpy(at[1], at[0], BYTES, cudaMemcpyDeviceToDevice));
		check(at[1], 7 + current);
		CHECK(cudaMemcpyPeer(at[0], 0, at[0] + 1, 0, sizeof(int)));
		CHECK(cudaMemcpy(at[0], host.data(), BYTES, cudaMemcpyDefault));
		CHECK(cudaStreamDestroy(stream));
		for (int i = 0; i < COUNT; i++)
			host[i] = i;
		CHECK(cudaMemcpy(at[0], host.data(), BYTES, cudaMemcpyDefault));
		boxes(at);
	}
	CHECK(cudaSetDevice(0));
	captured(at);
	CHECK(cudaFree(at[0]));
	CHECK(cudaFree(at[1]));
}

static void
apart(void)
{
	cudaMemPool_t pool;
	cudaMemAccessDesc access = {};
	int can;

	CHECK(cudaSetDevice(0));
	CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
	REQUIRE(!can);
	EXPECT(cudaErrorPeerAccessUnsupported, cudaDeviceEnablePeerAccess(1, 0));
	EXPECT(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(1));
	CHECK(cudaDeviceGetDefaultMemPool(&pool, 1));
	access.location.type = cudaMemLocationTypeDevice;
	access.location.id = 0;
	access.flags = cudaMemAccessFlagsProtReadWrite;
	EXPECT(cudaErrorInvalidDevice, cudaMemPoolSetAccess(pool, &access, 1));
	printf("apart\n");
}

static void
codes(void)
{
	int can, value;

	CHECK(cudaDeviceCanAccessPeer(&can, 0, 1));
	REQUIRE(can);
	CHECK(cudaDeviceCanAccessPeer(&can, 1, 0));
	REQUIRE(can);
	CHECK(cudaDeviceCanAccessPeer(&can, 1, 1));
	REQUIRE(!can);
	CHECK(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 0, 1));
	REQUIRE(value == 1);
	CHECK(cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrPerformanceRank, 0, 1));
	REQUIRE(value >= 0);
	EXPECT(cudaErrorInvalidDevice,
	       cudaDeviceGetP2PAttribute(&value, cudaDevP2PAttrAccessSupported, 1, 1));
	CHECK(cudaSetDevice(0));
	REQUIRE(cudaDeviceEnablePeerAccess(0, 0) != cudaSuccess);
	(void)cudaGetLastError();
	EXPECT(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(1));
	EXPECT(cudaErrorInvalidValue, cudaDeviceEnablePeerAccess(1, 1));
	CHECK(cudaDeviceEnablePeerAccess(1, 0));
	EXPECT(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(1, 0));
	CHECK(cudaDeviceDisablePeerAccess(1));
	EXPECT(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(1));
	CHECK(cudaDeviceEnablePeerAccess(1, 0));
	printf("codes\n");
}

/* Memory that was allocated before and after access was enabled, small and large; device 0 has
 * access. A driver gives no access to a variable of another device's module. */
static void
kernels(int *before)
{
	int *own = upload(0, 5), *after = upload(1, 50);

	run(0, own, before, 1);
	check(own, 9001);
	run(0, after, own, 1);
	check(after, 9002);
	CHECK(cudaFree(after));
	CHECK(cudaFree(own));
	printf("kernels\n");
}

/* Like libraries that reduce over devices: kernels of both run at once and wait for each other. */
static void
together(void)
{
	const int turns = 50;
	int *words[2], results[2];
	cudaStream_t streams[2];

	CHECK(cudaSetDevice(1));
	CHECK(cudaDeviceEnablePeerAccess(0, 0));
	for (int i = 0; i < 2; i++) {
		CHECK(cudaSetDevice(i));
		words[i] = app_malloc<int>(2);
		CHECK(cudaMemset(words[i], 0, 2 * sizeof(int)));
		CHECK(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
		/* Loaded before the other kernel waits for it. */
		play<<<1, 1, 0, streams[i]>>>(words[i], words[i], 0, words[i] + 1);
		CHECK(cudaDeviceSynchronize());
	}
	for (int i = 0; i < 2; i++) {
		CHECK(cudaSetDevice(i));
		play<<<1, 1, 0, streams[i]>>>(words[i], words[1 - i], turns, words[i] + 1);
		CHECK(cudaGetLastError());
	}
	for (int i = 0; i < 2; i++) {
		CHECK(cudaSetDevice(i));
		CHECK(cudaStreamSynchronize(streams[i]));
		CHECK(cudaMemcpy(&results[i], words[i] + 1, sizeof(int), cudaMemcpyDeviceToHost));
		REQUIRE(results[i] == turns);
		CHECK(cudaStreamDestroy(streams[i]));
		CHECK(cudaFree(words[i]));
	}
	printf("together\n");
}

static void
pools(void)
{
	cudaMemAccessDesc access = {};
	cudaMemAccessFlags flags;
	cudaMemPool_t pool;
	cudaStream_t stream;
	int *own = upload(1, 11), *memory;

	CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
	access.location.type = cudaMemLocationTypeDevice;
	access.location.id = 1;
	access.flags = cudaMemAccessFlagsProtReadWrite;
	CHECK(cudaMemPoolGetAccess(&flags, pool, &access.location));
	REQUIRE(flags == cudaMemAccessFlagsProtNone);
	CHECK(cudaMemPoolSetAccess(pool, &access, 1));
	CHECK(cudaMemPoolGetAccess(&flags, pool, &access.location));
	REQUIRE(flags == cudaMemAccessFlagsProtReadWrite);
	CHECK(cudaSetDevice(0));
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaMallocAsync(&memory, BYTES, stream));
	CHECK(cudaStreamSynchronize(stream));
	run(1, memory, own, 1);
	check(memory, 12);
	CHECK(cudaSetDevice(0));
	CHECK(cudaFreeAsync(memory, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaStreamDestroy(stream));
	access.flags = cudaMemAccessFlagsProtNone;
	CHECK(cudaMemPoolSetAccess(pool, &access, 1));
	CHECK(cudaMemPoolGetAccess(&flags, pool, &access.location));
	REQUIRE(flags == cudaMemAccessFlagsProtNone);
	access.location.id = 0;
	REQUIRE(cudaMemPoolSetAccess(pool, &access, 1) != cudaSuccess);
	(void)cudaGetLastError();
	CHECK(cudaFree(own));
	printf("pools\n");
}

/* Physical memory of device 1, mapped at two addresses: for its own kernels, and for those of
 * device 0. */
static void
physical(void)
{
	const CUmemAllocationProp prop = app_physical_properties(CU_MEM_LOCATION_TYPE_DEVICE, 1);
	const size_t granule = app_physical_granularity(prop);
	const size_t size = (BYTES + granule - 1) / granule * granule;
	CUmemGenericAllocationHandle handle = app_physical_create(prop, size);
	CUmemLocation who = prop.location;
	cudaPointerAttributes attributes;
	unsigned long long flags;
	CUdeviceptr at[2];
	int *own = upload(0, 21);

	for (int i = 0; i < 2; i++) {
		at[i] = app_physical_map(handle, size, i);
		who.id = i;
		DCHECK(DRIVER(cuMemGetAccess)(&flags, &who, at[i]));
		REQUIRE(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
		who.id = 1 - i;
		DCHECK(DRIVER(cuMemGetAccess)(&flags, &who, at[i]));
		REQUIRE(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE);
	}
	DCHECK(DRIVER(cuMemRelease)(handle));
	run(0, reinterpret_cast<int *>(at[0]), own, 1);
	run(1, reinterpret_cast<int *>(at[1]), reinterpret_cast<int *>(at[1]), 1);
	run(0, own, reinterpret_cast<int *>(at[0]), 1);
	check(own, 24);
	CHECK(cudaPointerGetAttributes(&attributes, reinterpret_cast<void *>(at[0])));
	REQUIRE(attributes.type == cudaMemoryTypeDevice && attributes.device == 1);
	for (int i = 0; i < 2; i++)
		app_physical_unmap(at[i], size);
	CHECK(cudaFree(own));
	printf("physical memory\n");
}

/* Access ends with the context that has it. */
static void
resets(void)
{
	CHECK(cudaSetDevice(0));
	CHECK(cudaDeviceReset());
	EXPECT(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(1));
	CHECK(cudaDeviceEnablePeerAccess(1, 0));
	printf("reset\n");
}

/* A kernel's attributes are set per device. */
static void
settings(void)
{
	const int bytes = 60 << 10;
	cudaFuncAttributes attributes;

	for (int device = 0; device < 2; device++) {
		int words = bytes / (int)sizeof(int), *result = upload(device, 0), value;

		CHECK(cudaFuncGetAttributes(&attributes, tall));
		REQUIRE(attributes.maxDynamicSharedSizeBytes < bytes);
		CHECK(cudaFuncSetAttribute(tall, cudaFuncAttributeMaxDynamicSharedMemorySize,
					   bytes));
		CHECK(cudaFuncGetAttributes(&attributes, tall));
		REQUIRE(attributes.maxDynamicSharedSizeBytes == bytes);
		tall<<<1, 1, bytes>>>(result, words);
		CHECK(cudaMemcpy(&value, result, sizeof(value), cudaMemcpyDeviceToHost));
		REQUIRE(value == words);
		CHECK(cudaFree(result));
	}
	printf("settings\n");
}

int
main(int argc, char **argv)
{
	int count, *before;

	CHECK(cudaGetDeviceCount(&count));
	if (count < 2) {
		printf("skipped: there is one device only\n");
		return 77;
	}
	copies();
	printf("copies\n");
	if (argc > 1) {
		apart();
		return app_ok("peers");
	}
	settings();
	before = upload(1, 9000);
	codes();
	kernels(before);
	together();
	pools();
	physical();
	copies();
	CHECK(cudaSetDevice(1));
	CHECK(cudaFree(before));
	printf("copies with access\n");
	resets();
	return app_ok("peers");
}
