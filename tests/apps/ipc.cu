/* SPDX-License-Identifier: Apache-2.0 */
/* Memory and events of one process in another. The processes use a buffer alternately, ordered by
 * an event alone, and notify each other over a socket that CUDA does not know of. */
#include "peer_app.h"

#include <cuda.h>

#define ROUNDS 40

struct handles {
	cudaIpcMemHandle_t large, small;
	cudaIpcEventHandle_t event;
};

static const size_t count = 1 << 20, few = 1000;

static __global__ void
step(int *data, size_t count, int expected, int next, int *wrong)
{
	for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count;
	     i += gridDim.x * blockDim.x) {
		if (data[i] != expected + (int)i)
			atomicAdd(wrong, 1);
		data[i] = next + (int)i;
	}
}

/* The processes alternate. Only the event synchronizes them. */
static void
alternate(int *data, cudaEvent_t event, bool first)
{
	int *wrong = app_malloc<int>(1);
	cudaStream_t stream;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	CHECK(cudaMemset(wrong, 0, sizeof(int)));
	CHECK(cudaDeviceSynchronize());
	for (int round = first ? 0 : 1; round < ROUNDS; round += 2) {
		if (round > 0) {
			app_await();
			CHECK(cudaStreamWaitEvent(stream, event, 0));
		}
		step<<<64, 256, 0, stream>>>(data, count, round * 3, round * 3 + 3, wrong);
		CHECK(cudaGetLastError());
		CHECK(cudaEventRecord(event, stream));
		app_nudge();
	}
	if (first)
		app_await();
	CHECK(cudaEventSynchronize(event));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(app_download(wrong, 1)[0] == 0);
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaFree(wrong));
}

static std::vector<int>
counted(size_t n, int first)
{
	std::vector<int> values(n);

	for (size_t i = 0; i < n; i++)
		values[i] = first + (int)i;
	return values;
}

static void
refuse_in_the_same_process(const handles &all)
{
	cudaEvent_t event;
	void *again;

	EXPECT(cudaErrorDeviceUninitialized,
	       cudaIpcOpenMemHandle(&again, all.large, cudaIpcMemLazyEnablePeerAccess));
	EXPECT(cudaErrorInvalidValue, cudaEventCreateWithFlags(&event, cudaEventInterprocess));
}

static int
produce()
{
	int *large = app_upload(counted(count, 0));
	int *before = app_upload(counted(few, 5000));
	int *small = app_upload(counted(few, 7000));
	cudaEvent_t event;
	handles all;

	CHECK(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
	CHECK(cudaIpcGetMemHandle(&all.large, large));
	CHECK(cudaIpcGetMemHandle(&all.small, small));
	CHECK(cudaIpcGetEventHandle(&all.event, event));
	CHECK(cudaDeviceSynchronize());
	refuse_in_the_same_process(all);
	app_put(&all, sizeof(all));
	alternate(large, event, true);
	REQUIRE(app_download(large, count) == counted(count, ROUNDS * 3));
	app_await();
	/* Value that the other process has written. */
	REQUIRE(app_download(small, few) == counted(few, 9000));
	REQUIRE(app_download(before, few) == counted(few, 5000));
	CHECK(cudaMemcpy(small, counted(few, 100).data(), few * sizeof(int), cudaMemcpyDefault));
	CHECK(cudaDeviceSynchronize());
	app_nudge();
	app_await();
	CHECK(cudaEventDestroy(event));
	CHECK(cudaFree(large));
	CHECK(cudaFree(small));
	CHECK(cudaFree(before));
	return 0;
}

static void
check_imported(int *large, const handles &all)
{
	cudaPointerAttributes attributes;
	void *again;

	CHECK(cudaPointerGetAttributes(&attributes, large));
	REQUIRE(attributes.type == cudaMemoryTypeDevice && attributes.devicePointer == large);
	CHECK(cudaIpcOpenMemHandle(&again, all.large, cudaIpcMemLazyEnablePeerAccess));
	REQUIRE(again == large);
	CHECK(cudaIpcCloseMemHandle(again));
	EXPECT(cudaErrorInvalidValue, cudaIpcOpenMemHandle(&again, all.large, 0));
	EXPECT(cudaErrorInvalidValue, cudaFree(large));
}

static int
consume()
{
	int *large, *small;
	cudaEvent_t event;
	handles all;

	CHECK(cudaSetDevice(0));
	app_get(&all, sizeof(all));
	CHECK(cudaIpcOpenMemHandle((void **)&large, all.large, cudaIpcMemLazyEnablePeerAccess));
	CHECK(cudaIpcOpenMemHandle((void **)&small, all.small, cudaIpcMemLazyEnablePeerAccess));
	CHECK(cudaIpcOpenEventHandle(&event, all.event));
	check_imported(large, all);
	alternate(large, event, false);
	REQUIRE(app_download(small, few) == counted(few, 7000));
	CHECK(cudaMemcpy(small, counted(few, 9000).data(), few * sizeof(int), cudaMemcpyDefault));
	CHECK(cudaDeviceSynchronize());
	app_nudge();
	app_await();
	REQUIRE(app_download(small, few) == counted(few, 100));
	CHECK(cudaEventDestroy(event));
	CHECK(cudaIpcCloseMemHandle(small));
	CHECK(cudaIpcCloseMemHandle(large));
	EXPECT(cudaErrorInvalidValue, cudaIpcCloseMemHandle(large));
	app_nudge();
	return 0;
}

int
main()
{
	return app_run_both("ipc", produce, consume);
}
