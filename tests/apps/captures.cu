/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture: work, forks and joins by events, and the calls that CUDA rejects during a
 * capture. */
#include "app.h"

#include <atomic>

#define N 4096

static __global__ void
add(int *cells, int value)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < N)
		cells[i] += value;
}

static void CUDART_CB
count(void *data)
{
	++*(std::atomic<int> *)data;
}

static cudaStream_t
new_stream(void)
{
	cudaStream_t stream;

	CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	return stream;
}

static cudaEvent_t
new_event(void)
{
	cudaEvent_t event;

	CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
	return event;
}

static size_t
node_count(cudaGraph_t graph)
{
	size_t count = 0;

	CHECK(cudaGraphGetNodes(graph, nullptr, &count));
	return count;
}

/* Ends a capture that has been invalidated. */
static void
end_invalid(cudaStream_t stream)
{
	cudaStreamCaptureStatus status;
	cudaGraph_t graph = (cudaGraph_t)stream;

	CHECK(cudaStreamIsCapturing(stream, &status));
	REQUIRE(status == cudaStreamCaptureStatusInvalidated);
	EXPECT(cudaErrorStreamCaptureInvalidated, cudaStreamEndCapture(stream, &graph));
	REQUIRE(graph == nullptr);
	CHECK(cudaStreamIsCapturing(stream, &status));
	REQUIRE(status == cudaStreamCaptureStatusNone);
}

/* A fork and a join. Nothing runs before the graph is launched. */
static void
work(void)
{
	cudaStream_t stream = new_stream(), other = new_stream();
	cudaEvent_t fork = new_event(), join = new_event();
	int *a = app_malloc<int>(N), *b = app_malloc<int>(N), *pinned;
	std::atomic<int> calls(0);
	cudaStreamCaptureStatus status;
	unsigned long long id = 0;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	CHECK(cudaMallocHost(&pinned, 2 * N * sizeof(int)));
	memset(pinned, 0, 2 * N * sizeof(int));
	CHECK(cudaMemset(b, 0, N * sizeof(int)));
	/* The streams do not wait for the default stream. */
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CHECK(cudaMemsetAsync(a, 0, N * sizeof(int), stream));
	CHECK(cudaEventRecord(fork, stream));
	CHECK(cudaStreamWaitEvent(other, fork, 0));
	CHECK(cudaStreamIsCapturing(other, &status));
	REQUIRE(status == cudaStreamCaptureStatusActive);
	add<<<N / 256, 256, 0, stream>>>(a, 2);
	add<<<N / 256, 256, 0, other>>>(b, 3);
	CHECK(cudaMemcpyAsync(pinned + N, b, N * sizeof(int), cudaMemcpyDeviceToHost, other));
	CHECK(cudaEventRecord(join, other));
	CHECK(cudaStreamWaitEvent(stream, join, 0));
	add<<<N / 256, 256, 0, stream>>>(a, 4);
	CHECK(cudaMemcpyAsync(pinned, a, N * sizeof(int), cudaMemcpyDeviceToHost, stream));
	CHECK(cudaLaunchHostFunc(stream, count, &calls));
#if CUDART_VERSION >= 13000
	CHECK(cudaStreamGetCaptureInfo(stream, &status, &id));
#else
	CHECK(cudaStreamGetCaptureInfo_v2(stream, &status, &id));
#endif
	REQUIRE(status == cudaStreamCaptureStatusActive && id != 0);
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaStreamIsCapturing(other, &status));
	REQUIRE(status == cudaStreamCaptureStatusNone);
	REQUIRE(node_count(graph) == 7 && calls == 0 && pinned[0] == 0);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	for (int i = 1; i <= 3; i++) {
		CHECK(cudaGraphLaunch(exec, stream));
		CHECK(cudaStreamSynchronize(stream));
		REQUIRE(calls == i && pinned[0] == 6 && pinned[N - 1] == 6);
		REQUIRE(pinned[N] == 3 * i && pinned[2 * N - 1] == 3 * i);
	}
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFreeHost(pinned));
	CHECK(cudaFree(a));
	CHECK(cudaFree(b));
	CHECK(cudaEventDestroy(fork));
	CHECK(cudaEventDestroy(join));
	CHECK(cudaStreamDestroy(stream));
	CHECK(cudaStreamDestroy(other));
}

/* The launch of a graph cannot be captured into another one. */
static void
nested(void)
{
	cudaStream_t stream = new_stream();
	int *a = app_malloc<int>(N), seen;
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	CHECK(cudaMemset(a, 0, N * sizeof(int)));
	CHECK(cudaDeviceSynchronize());
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	add<<<N / 256, 256, 0, stream>>>(a, 1);
	CHECK(cudaStreamEndCapture(stream, &graph));
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	EXPECT(cudaErrorStreamCaptureUnsupported, cudaGraphLaunch(exec, stream));
	end_invalid(stream);
	CHECK(cudaGraphLaunch(exec, stream));
	CHECK(cudaStreamSynchronize(stream));
	CHECK(cudaMemcpy(&seen, a, sizeof(int), cudaMemcpyDeviceToHost));
	REQUIRE(seen == 1);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaFree(a));
	CHECK(cudaStreamDestroy(stream));
}

static void
refused(void)
{
	cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
	cudaStream_t stream = new_stream(), other = new_stream(), blocking;
	cudaEvent_t event = new_event(), outside = new_event();
	int *a = app_malloc<int>(N), *b = nullptr;
	cudaGraph_t graph;

	CHECK(cudaStreamCreate(&blocking));
	CHECK(cudaEventRecord(outside, other));
	EXPECT(cudaErrorIllegalState, cudaStreamEndCapture(stream, &graph));
	EXPECT(cudaErrorStreamCaptureUnsupported,
	       cudaStreamBeginCapture(cudaStreamLegacy, cudaStreamCaptureModeGlobal));
	/* Waiting for an event that was not recorded. */
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	EXPECT(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize(stream));
	end_invalid(stream);
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	EXPECT(cudaErrorStreamCaptureUnsupported, cudaDeviceSynchronize());
	end_invalid(stream);
	/* An event recorded outside of the capture. */
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	EXPECT(cudaErrorStreamCaptureIsolation, cudaStreamWaitEvent(stream, outside, 0));
	end_invalid(stream);
	/* A fork without a join. */
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CHECK(cudaEventRecord(event, stream));
	CHECK(cudaStreamWaitEvent(other, event, 0));
	add<<<N / 256, 256, 0, other>>>(a, 1);
	EXPECT(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(stream, &graph));
	/* The capture is ended on another stream. */
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CHECK(cudaEventRecord(event, stream));
	CHECK(cudaStreamWaitEvent(other, event, 0));
	EXPECT(cudaErrorStreamCaptureUnmatched, cudaStreamEndCapture(other, &graph));
	end_invalid(stream);
	/* The default stream would wait for a captured stream. */
	CHECK(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed));
	EXPECT(cudaErrorStreamCaptureImplicit, cudaMemsetAsync(a, 0, 4, cudaStreamLegacy));
	end_invalid(blocking);
	/* Allocation of memory, unless the thread has selected the relaxed capture mode. */
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	EXPECT(cudaErrorStreamCaptureUnsupported, cudaMalloc(&b, 4096));
	end_invalid(stream);
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
	CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
	CHECK(cudaMalloc(&b, 64 << 20));
	CHECK(cudaThreadExchangeStreamCaptureMode(&mode));
	REQUIRE(mode == cudaStreamCaptureModeRelaxed);
	CHECK(cudaStreamEndCapture(stream, &graph));
	REQUIRE(node_count(graph) == 0);
	CHECK(cudaGraphDestroy(graph));
	/* An event that represents graph nodes. */
	CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
	CHECK(cudaEventRecord(event, stream));
	EXPECT(cudaErrorCapturedEvent, cudaEventSynchronize(event));
	end_invalid(stream);
	CHECK(cudaFree(a));
	CHECK(cudaFree(b));
	CHECK(cudaDeviceSynchronize());
}

int
main()
{
	work();
	nested();
	refused();
	return app_ok("captures");
}
