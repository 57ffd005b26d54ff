/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drivercost: effect of calls of NVIDIA's driver on other work in the same context, natively.
 *
 *   drivercost IMAGE
 *       Each call while a kernel of 400 ms runs: its duration, and the longest time from launch to
 *       end of the short kernels that a third thread launches meanwhile. IMAGE is a cubin with a
 *       kernel.
 *   drivercost sparse
 *       The same for sparse arrays and for memory for their tiles.
 *   drivercost queues [THREADS [DEPTH]]
 *       Each call while THREADS (16) launch continuously, each with at most DEPTH (256) kernels in
 *       flight. Beyond 1000 the driver's queues are full, and the first call may not return.
 *   drivercost launches [COUNT]
 *       Time to launch an empty kernel with each of the launch calls, the mean of COUNT (100000);
 *       the queues never fill if the GPU is faster.
 *   drivercost copies
 *       Time of a copy of pinned memory, by the call and by how its end is awaited: memory of the
 *       driver, and memory that is shared with another process, like the worker's.
 *   drivercost threads [COUNT [MARK]]
 *       Whether an executor gains by launching from several threads: COUNT (200000) empty kernels
 *       over 1 to 64 streams of one context, by one thread in rotation and by a thread for each
 *       stream, until all are done; medians of 5 runs. With MARK each stream writes a word of host
 *       memory after every MARK launches, without a memory barrier if MARK is negative.
 */
#include "measure.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <functional>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>
#include <vector>

static __global__ void
spin(long nanoseconds)
{
	unsigned long long start, now;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
	do
		asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
	while (now - start < (unsigned long long)nanoseconds);
}

static cudaStream_t
make_stream()
{
	cudaStream_t stream;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	return stream;
}

/* Launches short kernels one after another until stopped; returns the longest time in
 * microseconds. */
static double
worst_of_short(cudaStream_t stream, const std::atomic<bool> &stopped)
{
	double worst = 0;

	CHECK(cudaSetDevice(0));
	while (!stopped) {
		double begun = now_us();

		spin<<<1, 32, 0, stream>>>(0);
		while (cudaStreamQuery(stream) == cudaErrorNotReady)
			;
		worst = std::max(worst, now_us() - begun);
		usleep(50);
	}
	return worst;
}

static void
beside_a_kernel(const char *name, const std::function<void()> &call)
{
	static cudaStream_t long_one = make_stream(), short_ones = make_stream();
	std::atomic<bool> stopped{ false };
	double worst = 0, begun, took;

	spin<<<1, 32, 0, short_ones>>>(0);
	CHECK(cudaDeviceSynchronize());
	spin<<<1, 32, 0, long_one>>>(400000000);
	std::thread third([&] { worst = worst_of_short(short_ones, stopped); });
	usleep(20000);
	begun = now_us();
	call();
	took = now_us() - begun;
	stopped = true;
	third.join();
	CHECK(cudaDeviceSynchronize());
	printf("%-44s %9.3f ms   a third's kernel %9.3f ms\n", name, took / 1e3, worst / 1e3);
}

static std::vector<char>
read_file(const char *path)
{
	std::vector<char> bytes;
	FILE *file = fopen(path, "rb");
	int c;

	if (!file) {
		perror(path);
		exit(1);
	}
	while ((c = getc(file)) != EOF)
		bytes.push_back((char)c);
	bytes.push_back(0);
	fclose(file);
	return bytes;
}

static void
loading(const char *path)
{
	std::vector<char> image = read_file(path);
	CUlibrary library, again;
	std::vector<CUkernel> kernels(1);
	CUfunction function;
	CUmodule module;

	beside_a_kernel("cuLibraryLoadData", [&] {
		CHECK(cuLibraryLoadData(&library, image.data(), NULL, NULL, 0, NULL, NULL, 0));
	});
	CHECK(cuLibraryEnumerateKernels(kernels.data(), 1, library));
	beside_a_kernel("cuKernelGetFunction, first of the library",
			[&] { CHECK(cuKernelGetFunction(&function, kernels[0])); });
	beside_a_kernel("cuKernelGetFunction, again",
			[&] { CHECK(cuKernelGetFunction(&function, kernels[0])); });
	beside_a_kernel("the same image once more, its first kernel", [&] {
		CHECK(cuLibraryLoadData(&again, image.data(), NULL, NULL, 0, NULL, NULL, 0));
		CHECK(cuLibraryEnumerateKernels(kernels.data(), 1, again));
		CHECK(cuKernelGetFunction(&function, kernels[0]));
	});
	beside_a_kernel("cuLibraryUnload", [&] { CHECK(cuLibraryUnload(library)); });
	beside_a_kernel("cuModuleLoadData",
			[&] { CHECK(cuModuleLoadData(&module, image.data())); });
	beside_a_kernel("cuModuleUnload", [&] { CHECK(cuModuleUnload(module)); });
}

static void
memory()
{
	CUDA_ARRAY_DESCRIPTOR shape = { 4096, 4096, CU_AD_FORMAT_FLOAT, 1 };
	CUdeviceptr address;
	CUarray array;
	void *host;
	size_t stack;

	beside_a_kernel("cuMemAlloc, 64 MiB", [&] { CHECK(cuMemAlloc(&address, 64 << 20)); });
	beside_a_kernel("cuMemFree", [&] { CHECK(cuMemFree(address)); });
	beside_a_kernel("cuArrayCreate, 64 MiB", [&] { CHECK(cuArrayCreate(&array, &shape)); });
	beside_a_kernel("cuArrayDestroy", [&] { CHECK(cuArrayDestroy(array)); });
	beside_a_kernel("cuMemHostAlloc, 16 MiB",
			[&] { CHECK(cuMemHostAlloc(&host, 16 << 20, 0)); });
	beside_a_kernel("cuMemFreeHost", [&] { CHECK(cuMemFreeHost(host)); });
	CHECK(cuCtxGetLimit(&stack, CU_LIMIT_STACK_SIZE));
	beside_a_kernel("cuCtxSetLimit, a larger stack",
			[&] { CHECK(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4 * stack)); });
}

/* Zeroes memory for tiles as the daemon does: through an array of one granule. */
static void
sparse_arrays()
{
	CUDA_ARRAY3D_DESCRIPTOR shape = {};
	CUDA_ARRAY_SPARSE_PROPERTIES tiles;
	CUmemAllocationProp prop = {};
	CUmemGenericAllocationHandle memory;
	CUarrayMapInfo info = {};
	CUarray array;
	cudaStream_t stream = make_stream();
	std::vector<char> seen(4);
	CUDA_MEMCPY3D copy = {};
	size_t granule;

	shape.Width = 512;
	shape.Height = 1024;
	shape.Format = CU_AD_FORMAT_UNSIGNED_INT32;
	shape.NumChannels = 1;
	shape.Flags = CUDA_ARRAY3D_SPARSE;
	prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	prop.allocFlags.usage = CU_MEM_CREATE_USAGE_TILE_POOL;
	CHECK(cuMemGetAllocationGranularity(&granule, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	beside_a_kernel("cuArray3DCreate, sparse, 2 MiB",
			[&] { CHECK(cuArray3DCreate(&array, &shape)); });
	CHECK(cuArrayGetSparseProperties(&tiles, array));
	printf("a tile is %u by %u by %u, a granule %zu bytes\n", tiles.tileExtent.width,
	       tiles.tileExtent.height, tiles.tileExtent.depth, granule);
	beside_a_kernel("cuMemCreate, tiles, 2 MiB",
			[&] { CHECK(cuMemCreate(&memory, 2 << 20, &prop, 0)); });
	info.resourceType = CU_RESOURCE_TYPE_ARRAY;
	info.resource.array = array;
	info.subresource.sparseLevel.extentWidth = 512;
	info.subresource.sparseLevel.extentHeight = 1024;
	info.subresource.sparseLevel.extentDepth = 1;
	info.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
	info.deviceBitMask = 1;
	copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.srcArray = array;
	copy.dstMemoryType = CU_MEMORYTYPE_HOST;
	copy.dstHost = seen.data();
	copy.WidthInBytes = 4;
	copy.Height = copy.Depth = 1;
	CHECK(cuMemcpy3DAsync(&copy, stream));
	CHECK(cudaStreamSynchronize(stream));
	printf("a copy out of a tile without memory sees %d\n", seen[0]);
	info.memOperationType = CU_MEM_OPERATION_TYPE_MAP;
	info.memHandle.memHandle = memory;
	beside_a_kernel("cuMemMapArrayAsync, 32 tiles",
			[&] { CHECK(cuMemMapArrayAsync(&info, 1, stream)); });
	beside_a_kernel("the same, and waiting for it", [&] {
		CHECK(cuMemMapArrayAsync(&info, 1, stream));
		CHECK(cudaStreamSynchronize(stream));
	});
	info.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
	info.memHandle.memHandle = 0;
	beside_a_kernel("cuMemMapArrayAsync, away again",
			[&] { CHECK(cuMemMapArrayAsync(&info, 1, stream)); });
	CHECK(cudaStreamSynchronize(stream));
	beside_a_kernel("cuMemRelease, tiles", [&] { CHECK(cuMemRelease(memory)); });
	beside_a_kernel("cuArrayDestroy, sparse", [&] { CHECK(cuArrayDestroy(array)); });
}

static void
green_contexts()
{
	CUdevResource all, part, rest;
	CUdevResourceDesc description;
	unsigned int count = 1;
	CUgreenCtx green;
	CUstream stream;

	CHECK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	CHECK(cuDevSmResourceSplitByCount(&part, &count, &all, &rest, 0, 32));
	CHECK(cuDevResourceGenerateDesc(&description, &part, 1));
	beside_a_kernel("cuGreenCtxCreate", [&] {
		CHECK(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	});
	beside_a_kernel("cuGreenCtxStreamCreate", [&] {
		CHECK(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0));
	});
	beside_a_kernel("cuStreamDestroy", [&] { CHECK(cuStreamDestroy(stream)); });
	beside_a_kernel("cuGreenCtxDestroy", [&] { CHECK(cuGreenCtxDestroy(green)); });
}

static void
events()
{
	CUcontext context;
	CUevent event;

	CHECK(cuCtxGetCurrent(&context));
	beside_a_kernel("cuEventCreate", [&] { CHECK(cuEventCreate(&event, 0)); });
	beside_a_kernel("cuCtxRecordEvent", [&] { CHECK(cuCtxRecordEvent(context, event)); });
}

static void
launch_all_the_time(int depth, const std::atomic<bool> &stopped)
{
	cudaStream_t stream = make_stream();
	volatile unsigned int *done;
	unsigned int launched = 0;

	CHECK(cudaMallocHost((void **)&done, sizeof(*done)));
	*done = 0;
	while (!stopped) {
		spin<<<16, 256, 0, stream>>>(80000);
		if (++launched % 32 == 0)
			CHECK(cuStreamWriteValue32(stream, (CUdeviceptr)done, launched, 0));
		while ((int)(launched - *done) >= depth && !stopped)
			usleep(20);
	}
}

static void
time_calls(const char *name, const std::function<void()> &call)
{
	std::vector<double> took;

	for (int i = 0; i < 50; i++) {
		double begun = now_us();

		call();
		took.push_back(now_us() - begun);
	}
	std::sort(took.begin(), took.end());
	printf("%-24s median %8.1f us, longest %8.1f us\n", name, took[25], took[49]);
}

static void
beside_queues(int threads, int depth)
{
	std::atomic<bool> stopped{ false };
	std::vector<std::thread> all;
	cudaStream_t stream = make_stream();
	CUcontext context;
	CUevent event;
	CUstream made;

	CHECK(cuCtxGetCurrent(&context));
	for (int i = 0; i < threads; i++)
		all.emplace_back([&] { launch_all_the_time(depth, stopped); });
	sleep(1);
	time_calls("cuEventCreate", [&] { CHECK(cuEventCreate(&event, 0)); });
	time_calls("cuEventRecord", [&] { CHECK(cuEventRecord(event, stream)); });
	time_calls("cuEventQuery", [&] { (void)cuEventQuery(event); });
	time_calls("a launch", [&] { spin<<<1, 32, 0, stream>>>(0); });
	time_calls("cuCtxRecordEvent", [&] { CHECK(cuCtxRecordEvent(context, event)); });
	time_calls("cuStreamCreate", [&] { CHECK(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING)); });
	stopped = true;
	for (auto &thread : all)
		thread.join();
}

static __global__ void
empty()
{
}

static __global__ void
with_parameters(void *, int)
{
}

static void
time_launches(const char *name, int count, const std::function<void(int)> &launch)
{
	double begun, issued, done;

	for (int i = 0; i < 1000; i++)
		launch(i);
	CHECK(cudaDeviceSynchronize());
	begun = now_us();
	for (int i = 0; i < count; i++)
		launch(i);
	issued = now_us();
	CHECK(cudaDeviceSynchronize());
	done = now_us();
	printf("%-56s %6.3f us to issue, %6.3f us with the wait\n", name, (issued - begun) / count,
	       (done - begun) / count);
}

static CUfunction
get_function(const void *kernel)
{
	cudaFunction_t function;

	CHECK(cudaGetFuncBySymbol(&function, kernel));
	return (CUfunction)function;
}

/* As the daemon does: with cuLaunchKernelEx() and a packed parameter buffer. */
static void
launch_ex(CUfunction function, CUstream stream, void **extra)
{
	CUlaunchAttribute attributes[8];
	CUlaunchConfig config = {};

	config.gridDimX = config.gridDimY = config.gridDimZ = 1;
	config.blockDimX = config.blockDimY = config.blockDimZ = 1;
	config.attrs = attributes;
	config.hStream = stream;
	CHECK(cuLaunchKernelEx(&config, function, NULL, extra));
}

static void
launches(int count)
{
	CUfunction none = get_function((const void *)empty),
		   some = get_function((const void *)with_parameters);
	CUstream blocking, stream = make_stream();
	char bytes[12] = {};
	void *pointer = NULL, *one_by_one[] = { &pointer, bytes };
	size_t size = sizeof(bytes);
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			  CU_LAUNCH_PARAM_END };
	unsigned int *done;
	CUevent event;

	CHECK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	CHECK(cudaMallocHost((void **)&done, sizeof(*done)));
	CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	time_launches("<<<>>>, legacy stream", count, [&](int) { empty<<<1, 1>>>(); });
	time_launches("<<<>>>, a stream", count, [&](int) { empty<<<1, 1, 0, stream>>>(); });
	time_launches("<<<>>>, a blocking stream", count,
		      [&](int) { empty<<<1, 1, 0, blocking>>>(); });
	time_launches("cuLaunchKernel, legacy stream", count, [&](int) {
		CHECK(cuLaunchKernel(none, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	});
	time_launches("cuLaunchKernel, a stream", count, [&](int) {
		CHECK(cuLaunchKernel(none, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL));
	});
	time_launches("cuLaunchKernel, a stream, two parameters", count, [&](int) {
		CHECK(cuLaunchKernel(some, 1, 1, 1, 1, 1, 1, 0, stream, one_by_one, NULL));
	});
	time_launches("cuLaunchKernel, a stream, two in one piece", count, [&](int) {
		CHECK(cuLaunchKernel(some, 1, 1, 1, 1, 1, 1, 0, stream, NULL, extra));
	});
	time_launches("cuLaunchKernelEx, a stream", count,
		      [&](int) { launch_ex(none, stream, NULL); });
	time_launches("cuLaunchKernelEx, a stream, two in one piece", count,
		      [&](int) { launch_ex(some, stream, extra); });
	time_launches("the same, cuStreamWriteValue32 after 64", count, [&](int i) {
		launch_ex(some, stream, extra);
		if (i % 64 == 63)
			CHECK(cuStreamWriteValue32(stream, (CUdeviceptr)done, i, 0));
	});
	time_launches("the same, cuEventRecord after 64", count, [&](int i) {
		launch_ex(some, stream, extra);
		if (i % 64 == 63)
			CHECK(cuEventRecord(event, stream));
	});
	{
		std::thread other([&] {
			CHECK(cudaSetDevice(0));
			time_launches("cuLaunchKernelEx, a stream, of another thread", count,
				      [&](int) { launch_ex(none, stream, NULL); });
		});
		other.join();
	}
}

/* The marker is polled, as by the worker. */
struct copied {
	CUstream stream;
	volatile uint32_t *marker;
	CUdeviceptr marker_there;
	uint32_t marked;
};

static double
time_copy(const std::function<void()> &give, struct copied *copied, bool polls)
{
	std::vector<double> took(301);

	for (double &one : took) {
		double start = now_us();

		give();
		if (polls) {
			CHECK(cuStreamWriteValue32(copied->stream, copied->marker_there,
						   ++copied->marked, 0));
			while (*copied->marker != copied->marked)
				;
		} else {
			CHECK(cuStreamSynchronize(copied->stream));
		}
		one = now_us() - start;
	}
	std::sort(took.begin(), took.end());
	return took[took.size() / 2];
}

static void
measure_copies(const char *name, void *host, CUdeviceptr device, struct copied *copied)
{
	CUdeviceptr there;

	CHECK(cuMemHostGetDevicePointer(&there, host, 0));
	for (size_t size : { (size_t)64 << 10, (size_t)1 << 20, (size_t)16 << 20 }) {
		const std::pair<const char *, std::function<void()>> calls[] = {
			{ "cuMemcpyHtoDAsync",
			  [&] { CHECK(cuMemcpyHtoDAsync(device, host, size, copied->stream)); } },
			{ "cuMemcpyDtoDAsync, to the device",
			  [&] { CHECK(cuMemcpyDtoDAsync(device, there, size, copied->stream)); } },
			{ "cuMemcpyDtoHAsync",
			  [&] { CHECK(cuMemcpyDtoHAsync(host, device, size, copied->stream)); } },
			{ "cuMemcpyDtoDAsync, from the device",
			  [&] { CHECK(cuMemcpyDtoDAsync(there, device, size, copied->stream)); } },
		};

		for (const auto &call : calls) {
			double waited = time_copy(call.second, copied, false);
			double polled = time_copy(call.second, copied, true);

			printf("%-15s %5zu KiB, %-34s synchronised %7.1f us, marker polled "
			       "%7.1f us\n",
			       name, size >> 10, call.first, waited, polled);
		}
	}
}

static void
copies()
{
	const size_t size = 16 << 20;
	struct copied copied = {};
	CUdeviceptr device;
	void *host, *shared, *marker;
	int fd = memfd_create("drivercost", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, size)) {
		perror("drivercost: memfd_create");
		exit(1);
	}
	shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED) {
		perror("drivercost: mmap");
		exit(1);
	}
	memset(shared, 1, size);
	CHECK(cuStreamCreate(&copied.stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuMemHostAlloc(&marker, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	CHECK(cuMemHostGetDevicePointer(&copied.marker_there, marker, 0));
	copied.marker = (volatile uint32_t *)marker;
	*copied.marker = 0;
	CHECK(cuMemAlloc(&device, size));
	CHECK(cuMemHostAlloc(&host, size, CU_MEMHOSTALLOC_DEVICEMAP));
	CHECK(cuMemHostRegister(shared, size,
				CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
	measure_copies("the driver's", host, device, &copied);
	measure_copies("shared", shared, device, &copied);
}

static unsigned int *
pinned_words(void)
{
	unsigned int *words;

	CHECK(cudaHostAlloc(&words, 4096, cudaHostAllocMapped));
	return words;
}

/* Runs threads that start together, each with its share of the streams; launches per second, until
 * all are issued and until all are done. */
struct pace {
	double issued, done;
};

static pace
launch_by(int thread_count, const std::vector<cudaStream_t> &streams, CUfunction kernel, int count,
	  int mark)
{
	static unsigned int *words = pinned_words();
	int each = count / thread_count, part = (int)streams.size() / thread_count;
	std::vector<std::thread> threads;
	std::atomic<int> ready(0);
	std::atomic<bool> go(false);
	double begin, issued;

	for (int t = 0; t < thread_count; t++) {
		threads.emplace_back([&, t] {
			CHECK(cudaSetDevice(0));
			ready++;
			while (!go)
				;
			for (int i = 0; i < each; i++) {
				cudaStream_t stream = streams[t * part + i % part];

				launch_ex(kernel, stream, NULL);
				if (mark && i % abs(mark) == 0)
					CHECK(cuStreamWriteValue32(
						stream, (CUdeviceptr)(words + 16 * t), i,
						mark < 0 ? CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER
							 : CU_STREAM_WRITE_VALUE_DEFAULT));
			}
		});
	}
	while (ready < thread_count)
		;
	begin = now_us();
	go = true;
	for (std::thread &thread : threads)
		thread.join();
	issued = now_us() - begin;
	CHECK(cudaDeviceSynchronize());
	return { each * thread_count / issued * 1e6,
		 each * thread_count / (now_us() - begin) * 1e6 };
}

static double
median(std::vector<double> values)
{
	std::sort(values.begin(), values.end());
	return values[values.size() / 2];
}

static void
several_threads(int count, int mark)
{
	CUfunction kernel = get_function((const void *)empty);
	std::vector<cudaStream_t> streams;

	printf("launches/s, issued and done; gain: done by a thread a stream, by one thread\n");
	for (int n : { 1, 2, 4, 8, 16, 64, 256 }) {
		std::vector<double> one_issued, one_done, all_issued, all_done;

		while ((int)streams.size() < n)
			streams.push_back(make_stream());
		launch_by(n, streams, kernel, 1000 * n, mark);
		for (int turn = 0; turn < 5; turn++) {
			pace one = launch_by(1, streams, kernel, count, mark);
			pace all = launch_by(n, streams, kernel, count, mark);

			one_issued.push_back(one.issued);
			one_done.push_back(one.done);
			all_issued.push_back(all.issued);
			all_done.push_back(all.done);
		}
		printf("%d streams: one thread %.0f %.0f, %d threads %.0f %.0f, gain %.2f\n", n,
		       median(one_issued), median(one_done), n, median(all_issued),
		       median(all_done), median(all_done) / median(one_done));
	}
}

int
main(int argc, char **argv)
{
	if (argc < 2 || argv[1][0] == '-') {
		fprintf(stderr, "usage: drivercost IMAGE | drivercost "
				"sparse | drivercost queues "
				"[THREADS [DEPTH]] | "
				"drivercost launches [COUNT] | drivercost "
				"copies | "
				"drivercost threads [COUNT [MARK]]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	CHECK(cudaSetDevice(0));
	CHECK(cudaFree(NULL));
	if (strcmp(argv[1], "queues") == 0) {
		beside_queues(argc > 2 ? atoi(argv[2]) : 16, argc > 3 ? atoi(argv[3]) : 256);
		return 0;
	}
	if (strcmp(argv[1], "launches") == 0) {
		launches(argc > 2 ? atoi(argv[2]) : 100000);
		return 0;
	}
	if (strcmp(argv[1], "threads") == 0) {
		several_threads(argc > 2 ? atoi(argv[2]) : 200000, argc > 3 ? atoi(argv[3]) : 0);
		return 0;
	}
	if (strcmp(argv[1], "copies") == 0) {
		copies();
		return 0;
	}
	if (strcmp(argv[1], "sparse") == 0) {
		sparse_arrays();
		return 0;
	}
	loading(argv[1]);
	memory();
	green_contexts();
	events();
	return 0;
}
