/* SPDX-License-Identifier: Apache-2.0 */
/* Order of work: between streams, through events, and with the legacy stream. */
#include "app.h"

const int stream_count = 4;

/* Reads for some time before it stores, so that work which fails to wait for it finds the old
 * value. */
static __global__ void
store_late(volatile int *where, int value, int rounds)
{
	for (int i = 0; i < rounds; i++)
		(void)*where;
	*where = value;
}

static __global__ void
copy_plus(int *to, const int *from, int plus)
{
	*to = *from + plus;
}

static int
read(const int *device)
{
	int value;

	CHECK(cudaMemcpy(&value, device, sizeof(value), cudaMemcpyDeviceToHost));
	return value;
}

static void
order_within_each(cudaStream_t *streams, int *cells)
{
	CHECK(cudaMemset(cells, 0, stream_count * sizeof(int)));
	/* It is asynchronous, and half of the streams do not wait for the legacy stream. */
	CHECK(cudaDeviceSynchronize());
	for (int round = 0; round < 10; round++)
		for (int i = 0; i < stream_count; i++)
			copy_plus<<<1, 1, 0, streams[i]>>>(cells + i, cells + i, i + 1);
	for (int i = 0; i < stream_count; i++)
		CHECK(cudaStreamSynchronize(streams[i]));
	for (int i = 0; i < stream_count; i++)
		REQUIRE(read(cells + i) == 10 * (i + 1));
	printf("work of one stream runs in order\n");
}

static void
order_by_event(cudaStream_t first, cudaStream_t second, int *cells)
{
	cudaEvent_t event;

	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	store_late<<<1, 1, 0, first>>>(cells, 41, 3000);
	CHECK(cudaEventRecord(event, first));
	CHECK(cudaStreamWaitEvent(second, event, 0));
	copy_plus<<<1, 1, 0, second>>>(cells + 1, cells, 1);
	CHECK(cudaEventDestroy(event));
	CHECK(cudaStreamSynchronize(second));
	REQUIRE(read(cells + 1) == 42);
	printf("a stream waits for an event of another\n");
}

static void
order_by_legacy_stream(cudaStream_t blocking, int *cells)
{
	store_late<<<1, 1, 0, blocking>>>(cells, 1, 3000);
	copy_plus<<<1, 1>>>(cells + 1, cells, 1);
	store_late<<<1, 1>>>(cells + 1, 7, 3000);
	copy_plus<<<1, 1, 0, blocking>>>(cells + 2, cells + 1, 1);
	CHECK(cudaStreamSynchronize(blocking));
	REQUIRE(read(cells + 1) == 7 && read(cells + 2) == 8);

	store_late<<<1, 1, 0, blocking>>>(cells, 100, 3000);
	/* It runs on the legacy stream, so it also waits for the blocking stream. */
	REQUIRE(read(cells) == 100);
	store_late<<<1, 1, 0, blocking>>>(cells, 101, 3000);
	copy_plus<<<1, 1>>>(cells + 1, cells, 1);
	CHECK(cudaStreamSynchronize(cudaStreamLegacy));
	CHECK(cudaStreamQuery(blocking));
	REQUIRE(read(cells + 1) == 102);
	printf("the legacy stream and blocking streams wait for each other\n");
}

static void
describe_flags_and_priorities()
{
	int least, greatest, priority;
	unsigned int flags;
	cudaStream_t stream;

	CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
	REQUIRE(least >= greatest);
	for (int wanted = greatest - 1; wanted <= least + 1; wanted++) {
		CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, wanted));
		CHECK(cudaStreamGetPriority(stream, &priority));
		CHECK(cudaStreamGetFlags(stream, &flags));
		REQUIRE(flags == cudaStreamNonBlocking);
		REQUIRE(priority <= least && priority >= greatest);
		if (wanted <= least && wanted >= greatest)
			REQUIRE(priority == wanted);
		CHECK(cudaStreamDestroy(stream));
	}
	CHECK(cudaStreamCreate(&stream));
	CHECK(cudaStreamGetFlags(stream, &flags));
	REQUIRE(flags == cudaStreamDefault);
	CHECK(cudaStreamDestroy(stream));
	EXPECT(cudaErrorInvalidValue, cudaStreamCreateWithFlags(&stream, 0x80));
	printf("priorities %d to %d\n", least, greatest);
}

static void
destroy_with_work_pending(int *cells)
{
	cudaStream_t stream;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	store_late<<<1, 1, 0, stream>>>(cells + 3, 55, 3000);
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaDeviceSynchronize());
	REQUIRE(read(cells + 3) == 55);
	printf("work of a destroyed stream still runs\n");
}

int
main()
{
	cudaStream_t streams[stream_count];
	int *cells = app_malloc<int>(stream_count);

	for (int i = 0; i < stream_count; i++)
		CHECK(cudaStreamCreateWithFlags(&streams[i],
						i % 2 ? cudaStreamNonBlocking : cudaStreamDefault));
	CHECK(cudaDeviceSynchronize());
	order_within_each(streams, cells);
	order_by_event(streams[0], streams[1], cells);
	order_by_event(streams[1], streams[3], cells);
	order_by_legacy_stream(streams[2], cells);
	describe_flags_and_priorities();
	destroy_with_work_pending(cells);
	for (int i = 0; i < stream_count; i++)
		CHECK(cudaStreamDestroy(streams[i]));
	CHECK(cudaFree(cells));
	return app_ok("streams");
}
