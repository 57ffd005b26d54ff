/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manydevices [N]: uses all devices, whose number must be N (default: any number): the same kernel
 * and variable on each, copies between them, and events across them.
 */
#include "app.h"

#include <vector>

static const int COUNT = 100000;

__device__ int offset_of_device;

static __global__ void
add(int *data, int count, int value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		data[i] += value + offset_of_device;
}

struct place {
	int *data;
	cudaStream_t stream;
	cudaEvent_t done;
};

static void
launch(const struct place *place, int value)
{
	add<<<(COUNT + 255) / 256, 256, 0, place->stream>>>(place->data, COUNT, value);
	CHECK(cudaGetLastError());
}

static void
check(const int *host, int value)
{
	for (int i = 0; i < COUNT; i++)
		REQUIRE(host[i] == i + value);
}

int
main(int argc, char **argv)
{
	std::vector<int> host(COUNT), back(COUNT);
	std::vector<place> places;
	char bus[32], other[32];
	int count, current;

	CHECK(cudaGetDeviceCount(&count));
	REQUIRE(argc < 2 || atoi(argv[1]) == count);
	for (int i = 0; i < COUNT; i++)
		host[i] = i;
	places.resize(count);
	for (int i = 0; i < count; i++) {
		int offset = 1000 * i;

		CHECK(cudaSetDevice(i));
		CHECK(cudaMalloc(&places[i].data, COUNT * sizeof(int)));
		CHECK(cudaStreamCreate(&places[i].stream));
		CHECK(cudaEventCreate(&places[i].done));
		CHECK(cudaMemcpyToSymbol(offset_of_device, &offset, sizeof(offset)));
		CHECK(cudaMemcpy(places[i].data, host.data(), COUNT * sizeof(int),
				 cudaMemcpyHostToDevice));
		launch(&places[i], 1);
		CHECK(cudaEventRecord(places[i].done, places[i].stream));
	}
	/* While another device is current. */
	CHECK(cudaSetDevice(0));
	for (int i = 0; i < count; i++) {
		cudaPointerAttributes attributes;

		CHECK(cudaEventSynchronize(places[i].done));
		CHECK(cudaMemcpy(back.data(), places[i].data, COUNT * sizeof(int),
				 cudaMemcpyDeviceToHost));
		check(back.data(), 1 + 1000 * i);
		CHECK(cudaPointerGetAttributes(&attributes, places[i].data));
		REQUIRE(attributes.device == i);
		CHECK(cudaDeviceGetPCIBusId(bus, sizeof(bus), i));
		if (i > 0)
			REQUIRE(strcmp(bus, other) != 0);
		strcpy(other, bus);
	}
	printf("each has its own variable and memory\n");

	/* Around the ring, each copy after the previous one. */
	for (int i = 0; i < count; i++) {
		int next = (i + 1) % count;

		CHECK(cudaSetDevice(i));
		launch(&places[i], 5);
		CHECK(cudaEventRecord(places[i].done, places[i].stream));
		CHECK(cudaSetDevice(next));
		CHECK(cudaStreamWaitEvent(places[next].stream, places[i].done, 0));
		CHECK(cudaMemcpyAsync(places[next].data, places[i].data, COUNT * sizeof(int),
				      cudaMemcpyDefault, places[next].stream));
		CHECK(cudaStreamSynchronize(places[next].stream));
	}
	CHECK(cudaMemcpy(back.data(), places[0].data, COUNT * sizeof(int), cudaMemcpyDefault));
	check(back.data(), 1 + 5 * count + 1000 * (count * (count - 1) / 2));
	printf("copies between them\n");

	for (int i = 0; i < count; i++) {
		CHECK(cudaSetDevice(i));
		CHECK(cudaMemset(places[i].data, 0, COUNT * sizeof(int)));
		CHECK(cudaMemcpy(back.data(), places[i].data, COUNT * sizeof(int),
				 cudaMemcpyDefault));
		REQUIRE(back[0] == 0 && back[COUNT - 1] == 0);
	}
	CHECK(cudaGetDevice(&current));
	for (int i = 0; i < count; i++)
		CHECK(cudaFree(places[i].data));
	return app_ok("manydevices");
}
