/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hints for managed memory and queries of them. A device without concurrent access may reject
 * prefetching and advice; then this part is skipped.
 */
#include "app.h"

#include <cuda.h>

static __global__ void
add(int *data, int count)
{
	for (int i = threadIdx.x; i < count; i += blockDim.x)
		data[i] += 1;
}

static cudaMemLocation
device(int id)
{
	cudaMemLocation location = {};

	location.type = cudaMemLocationTypeDevice;
	location.id = id;
	return location;
}

static cudaMemLocation
host()
{
	cudaMemLocation location = {};

	location.type = cudaMemLocationTypeHost;
	return location;
}

static int
attribute(const void *memory, size_t size, cudaMemRangeAttribute which)
{
	int value = 77;

	CHECK(cudaMemRangeGetAttribute(&value, sizeof(value), which, memory, size));
	return value;
}

static void
advise(char *memory, size_t size)
{
	const cudaMemRangeAttribute mostly = cudaMemRangeAttributeReadMostly;
	const cudaMemRangeAttribute preferred = cudaMemRangeAttributePreferredLocation;
	int devices[3];

	REQUIRE(attribute(memory, size, mostly) == 0);
	REQUIRE(attribute(memory, size, preferred) == cudaInvalidDeviceId);
	CHECK(cudaMemAdvise(memory, size / 2, cudaMemAdviseSetReadMostly, device(0)));
	REQUIRE(attribute(memory, size, mostly) == 0);
	REQUIRE(attribute(memory, size / 2, mostly) == 1);
	REQUIRE(attribute(memory + size / 2, size / 2, mostly) == 0);
	CHECK(cudaMemAdvise(memory + 8192, 4096, cudaMemAdviseUnsetReadMostly, device(0)));
	REQUIRE(attribute(memory, size / 2, mostly) == 0);
	REQUIRE(attribute(memory, 8192, mostly) == 1);
	REQUIRE(attribute(memory + 12288, size / 2 - 12288, mostly) == 1);
	CHECK(cudaMemAdvise(memory, size, cudaMemAdviseSetReadMostly, device(0)));
	REQUIRE(attribute(memory, size, mostly) == 1);

	CHECK(cudaMemAdvise(memory, size, cudaMemAdviseSetPreferredLocation, device(0)));
	REQUIRE(attribute(memory, size, preferred) == 0);
	CHECK(cudaMemAdvise(memory, 4096, cudaMemAdviseSetPreferredLocation, host()));
	REQUIRE(attribute(memory, size, preferred) == cudaInvalidDeviceId);
	REQUIRE(attribute(memory, 4096, preferred) == cudaCpuDeviceId);
	REQUIRE(attribute(memory + 4096, size - 4096, preferred) == 0);
	CHECK(cudaMemAdvise(memory, size, cudaMemAdviseUnsetPreferredLocation, host()));
	REQUIRE(attribute(memory + 4096, 4096, preferred) == cudaInvalidDeviceId);

	CHECK(cudaMemAdvise(memory, size, cudaMemAdviseSetAccessedBy, device(0)));
	CHECK(cudaMemRangeGetAttribute(devices, sizeof(devices), cudaMemRangeAttributeAccessedBy,
				       memory, size));
	REQUIRE(devices[0] == 0 && devices[1] == cudaInvalidDeviceId &&
		devices[2] == cudaInvalidDeviceId);
	CHECK(cudaMemAdvise(memory, size, cudaMemAdviseUnsetAccessedBy, device(0)));
	CHECK(cudaMemRangeGetAttribute(devices, sizeof(devices), cudaMemRangeAttributeAccessedBy,
				       memory, size));
	REQUIRE(devices[0] == cudaInvalidDeviceId);
	printf("advice\n");
}

static void
prefetch(int *data, int count)
{
	const size_t size = (size_t)count * sizeof(int);
	void *pointers[] = { data, data + count / 2 };
	size_t sizes[] = { size / 2, size / 2 }, begins[] = { 0, 1 };
	cudaMemLocation locations[] = { device(0), host() };
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	for (int i = 0; i < count; i++)
		data[i] = i;
	CHECK(cudaMemPrefetchAsync(data, size, device(0), 0, stream));
	REQUIRE(attribute(data, size, cudaMemRangeAttributeLastPrefetchLocation) == 0);
	add<<<1, 256, 0, stream>>>(data, count);
	CHECK(cudaMemPrefetchAsync(data, size, host(), 0, stream));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(attribute(data, size, cudaMemRangeAttributeLastPrefetchLocation) ==
		cudaCpuDeviceId);
	for (int i = 0; i < count; i++)
		REQUIRE(data[i] == i + 1);
	CHECK(cudaMemPrefetchBatchAsync(pointers, sizes, 2, locations, begins, 2, 0, stream));
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(attribute(data, size / 2, cudaMemRangeAttributeLastPrefetchLocation) == 0);
	REQUIRE(attribute(data + count / 2, size / 2, cudaMemRangeAttributeLastPrefetchLocation) ==
		cudaCpuDeviceId);
	data[3] = 500;
	add<<<1, 256, 0, stream>>>(data, count);
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(data[3] == 501 && data[4] == 6 && data[count - 1] == count + 1);
	CHECK(cudaStreamDestroy(stream));
	printf("prefetching\n");
}

static void
attach(int *data, int count)
{
	cudaStream_t stream;

	CHECK(cudaStreamCreate(&stream));
	EXPECT(cudaErrorInvalidValue,
	       cudaStreamAttachMemAsync(nullptr, data, 0, cudaMemAttachSingle));
	EXPECT(cudaErrorInvalidValue,
	       cudaStreamAttachMemAsync(stream, data, 4, cudaMemAttachSingle));
	CHECK(cudaStreamAttachMemAsync(stream, data, 0, cudaMemAttachSingle));
	CHECK(cudaStreamSynchronize(stream));
	data[0] = 41;
	add<<<1, 32, 0, stream>>>(data, count);
	CHECK(cudaStreamSynchronize(stream));
	REQUIRE(data[0] == 42);
	CHECK(cudaStreamAttachMemAsync(stream, data, 0, cudaMemAttachHost));
	CHECK(cudaStreamSynchronize(stream));
	data[0]++;
	CHECK(cudaStreamAttachMemAsync(stream, data, 0, cudaMemAttachGlobal));
	CHECK(cudaStreamSynchronize(stream));
	add<<<1, 32>>>(data, count);
	CHECK(cudaDeviceSynchronize());
	REQUIRE(data[0] == 44);
	CHECK(cudaStreamDestroy(stream));
	printf("attaching\n");
}

static void
pointers(int *data)
{
	cudaPointerAttributes attributes;
	int value = 0;

	CHECK(cudaPointerGetAttributes(&attributes, data + 5));
	REQUIRE(attributes.type == cudaMemoryTypeManaged && attributes.device == 0);
	REQUIRE(attributes.hostPointer == data + 5 && attributes.devicePointer == data + 5);
	EXPECT(cudaErrorInvalidValue,
	       cudaMemRangeGetAttribute(&value, 8, cudaMemRangeAttributeReadMostly, data, 4096));
	EXPECT(cudaErrorInvalidValue,
	       cudaMemRangeGetAttribute(&value, 4, cudaMemRangeAttributeReadMostly, &value, 4));
	printf("pointers\n");
}

int
main()
{
	const int count = 684 * 1024; /* halves of whole pages */
	int *data;

	CHECK(cudaMallocManaged(&data, count * sizeof(int)));
	cudaError_t first = cudaMemAdvise(data, 4096, cudaMemAdviseSetPreferredLocation, device(0));
	if (first == cudaErrorInvalidDevice)
		app_skip_unless_supported(cudaErrorNotSupported, "advice");
	CHECK(first);
	CHECK(cudaMemAdvise(data, 4096, cudaMemAdviseUnsetPreferredLocation, device(0)));
	advise((char *)data, (size_t)count / 1024 * 4096);
	prefetch(data, count);
	attach(data, count);
	pointers(data);
	CHECK(cudaFree(data));
	return app_ok("managedhints");
}
