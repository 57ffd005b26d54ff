/* SPDX-License-Identifier: Apache-2.0 */
/* Host functions in a stream: ordered with the work around them, and with each other. */
#include "app.h"

#include <atomic>

static __global__ void
set(int *cell, int value)
{
	*cell = value;
}

struct note {
	const int *pinned;
	int seen;
	std::atomic<int> *calls;
	int order;
};

static void CUDART_CB
note_value(void *data)
{
	note *n = (note *)data;

	n->seen = *n->pinned;
	n->order = (*n->calls)++;
}

static void CUDART_CB
nothing(void *)
{
}

static void CUDART_CB
note_value_callback(cudaStream_t stream, cudaError_t status, void *data)
{
	note_value(data);
	((note *)data)->seen += status == cudaSuccess ? 1000 : 0;
}

int
main()
{
	const int rounds = 10;
	std::atomic<int> calls(0);
	note notes[rounds + 1];
	cudaStream_t stream;
	int *cell = app_malloc<int>(1);
	int *pinned;

	CHECK(cudaMallocHost(&pinned, sizeof(int)));
	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	app_skip_unless_supported(cudaLaunchHostFunc(stream, nothing, nullptr), "host functions");
	for (int i = 0; i < rounds; i++) {
		notes[i] = { pinned, -1, &calls, -1 };
		set<<<1, 1, 0, stream>>>(cell, i * 3);
		CHECK(cudaMemcpyAsync(pinned, cell, sizeof(int), cudaMemcpyDeviceToHost, stream));
		CHECK(cudaLaunchHostFunc(stream, note_value, &notes[i]));
	}
	notes[rounds] = { pinned, -1, &calls, -1 };
	CHECK(cudaStreamAddCallback(stream, note_value_callback, &notes[rounds], 0));
	CHECK(cudaStreamSynchronize(stream));
	for (int i = 0; i < rounds; i++)
		REQUIRE(notes[i].seen == i * 3 && notes[i].order == i);
	REQUIRE(notes[rounds].seen == 1027 && notes[rounds].order == rounds);

	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFree(cell));
	CHECK(cudaStreamDestroy(stream));
	return app_ok("hostfunc");
}
