/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that NVIDIA's driver accepts although its manual seems to forbid them: a texture object
 * larger than its allocation, a surface object over an array with default flags, a stream destroyed
 * in a capture that it has joined, and changes to the parameter array that a query of a kernel node
 * returns.
 */
#include "app.h"

#include <cuda.h>

template <typename F>
static F *
driver(const char *name, F *)
{
	cudaDriverEntryPointQueryResult found;
	void *function = nullptr;

	CHECK(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found));
	REQUIRE(found == cudaDriverEntryPointSuccess);
	return reinterpret_cast<F *>(function);
}

__global__ void
fetch(cudaTextureObject_t texture, int i, float *out)
{
	float2 value = tex1Dfetch<float2>(texture, i);

	out[0] = value.x;
	out[1] = value.y;
}

__global__ void
store(cudaSurfaceObject_t surface)
{
	surf2Dwrite(make_uchar4(1, 2, 3, 4), surface, 4 * (int)threadIdx.x, (int)threadIdx.y);
}

__global__ void
add(int *p, int n)
{
	*p += n;
}

static cudaTextureObject_t
make_texture(void *memory, size_t size)
{
	cudaResourceDesc resource = {};
	cudaTextureDesc description = {};
	cudaTextureObject_t texture;

	resource.resType = cudaResourceTypeLinear;
	resource.res.linear.devPtr = memory;
	resource.res.linear.sizeInBytes = size;
	resource.res.linear.desc = cudaCreateChannelDesc<float2>();
	CHECK(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
	return texture;
}

/* NVIDIA's samples do this and never read beyond the allocation. */
static void
texture_beyond_the_end()
{
	const size_t size = 16 << 20;
	const int last = (int)(size / sizeof(float2)) - 1;
	float2 corners[2] = { { 1, -1 }, { 2, -2 } };
	cudaTextureObject_t texture;
	cudaResourceDesc told;
	float2 *memory;
	float *out, got[2];

	CHECK(cudaMalloc(&memory, size));
	CHECK(cudaMalloc(&out, sizeof(got)));
	CHECK(cudaMemcpy(memory, &corners[0], sizeof(float2), cudaMemcpyHostToDevice));
	CHECK(cudaMemcpy(memory + last, &corners[1], sizeof(float2), cudaMemcpyHostToDevice));
	texture = make_texture(memory, size + (256 << 10));
	CHECK(cudaGetTextureObjectResourceDesc(&told, texture));
	REQUIRE(told.res.linear.sizeInBytes == size + (256 << 10));
	for (int i = 0; i < 2; i++) {
		fetch<<<1, 1>>>(texture, i ? last : 0, out);
		CHECK(cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost));
		REQUIRE(got[0] == corners[i].x && got[1] == corners[i].y);
	}
	CHECK(cudaDestroyTextureObject(texture));
	CHECK(cudaFree(memory));
	CHECK(cudaFree(out));
}

static void
surface_without_flag()
{
	cudaChannelFormatDesc format = cudaCreateChannelDesc<uchar4>();
	unsigned char row[4 * 32], wanted[4] = { 1, 2, 3, 4 };
	cudaMipmappedArray_t levels;
	cudaResourceDesc resource = {};
	cudaSurfaceObject_t surface;
	cudaArray_t array;

	CHECK(cudaMallocMipmappedArray(&levels, &format, make_cudaExtent(64, 64, 0), 4));
	CHECK(cudaGetMipmappedArrayLevel(&array, levels, 1));
	resource.resType = cudaResourceTypeArray;
	resource.res.array.array = array;
	CHECK(cudaCreateSurfaceObject(&surface, &resource));
	store<<<1, dim3(32, 32)>>>(surface);
	CHECK(cudaMemcpy2DFromArray(row, sizeof(row), array, 0, 31, sizeof(row), 1,
				    cudaMemcpyDeviceToHost));
	for (int i = 0; i < 32; i++)
		REQUIRE(memcmp(row + 4 * i, wanted, 4) == 0);
	CHECK(cudaDestroySurfaceObject(surface));
	CHECK(cudaFreeMipmappedArray(levels));
}

/* The stream must be joined; otherwise the capture ends with cudaErrorStreamCaptureUnjoined. */
static void
destroy_captured_stream(bool joined)
{
	cudaStream_t one, two, three;
	cudaEvent_t fork, join;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	int *word, got;

	CHECK(cudaStreamCreate(&one));
	CHECK(cudaStreamCreate(&two));
	CHECK(cudaEventCreate(&fork));
	CHECK(cudaEventCreate(&join));
	CHECK(cudaMalloc(&word, 4));
	CHECK(cudaMemset(word, 0, 4));
	CHECK(cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal));
	add<<<1, 1, 0, one>>>(word, 1);
	CHECK(cudaEventRecord(fork, one));
	CHECK(cudaStreamWaitEvent(two, fork, 0));
	add<<<1, 1, 0, two>>>(word, 2);
	if (joined) {
		CHECK(cudaEventRecord(join, two));
		CHECK(cudaStreamWaitEvent(one, join, 0));
	}
	CHECK(cudaStreamDestroy(two));
	/* A new stream, possibly with the same handle, is not part of the capture. */
	CHECK(cudaStreamCreate(&three));
	CHECK(cudaStreamSynchronize(three));
	CHECK(cudaStreamDestroy(three));
	CHECK(cudaEventDestroy(fork));
	CHECK(cudaEventDestroy(join));
	if (joined) {
		add<<<1, 1, 0, one>>>(word, 4);
		CHECK(cudaStreamEndCapture(one, &graph));
		CHECK(cudaGraphInstantiate(&exec, graph, 0));
		CHECK(cudaGraphLaunch(exec, one));
		CHECK(cudaStreamSynchronize(one));
		CHECK(cudaMemcpy(&got, word, 4, cudaMemcpyDeviceToHost));
		REQUIRE(got == 7);
		CHECK(cudaGraphExecDestroy(exec));
		CHECK(cudaGraphDestroy(graph));
	} else {
		EXPECT(cudaErrorStreamCaptureUnjoined, cudaStreamEndCapture(one, &graph));
	}
	CHECK(cudaStreamDestroy(one));
	CHECK(cudaFree(word));
}

static void
returned_parameters_given_back()
{
	int *word, numbers[] = { 1, 10, 100, 1000 }, got;
	void *values[] = { &word, &numbers[0] };
	cudaKernelNodeParams params = {};
	CUDA_KERNEL_NODE_PARAMS told;
	cudaGraphExec_t exec;
	cudaGraphNode_t node;
	cudaGraph_t graph, clone;
	auto get = driver("cuGraphKernelNodeGetParams",
			  static_cast<decltype(cuGraphKernelNodeGetParams) *>(nullptr));
	auto set = driver("cuGraphKernelNodeSetParams",
			  static_cast<decltype(cuGraphKernelNodeSetParams) *>(nullptr));
	auto set_exec = driver("cuGraphExecKernelNodeSetParams",
			       static_cast<decltype(cuGraphExecKernelNodeSetParams) *>(nullptr));

	CHECK(cudaMalloc(&word, 4));
	CHECK(cudaMemset(word, 0, 4));
	params.func = (void *)add;
	params.gridDim = params.blockDim = dim3(1);
	params.kernelParams = values;
	CHECK(cudaGraphCreate(&graph, 0));
	CHECK(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &params));
	REQUIRE(get(node, &told) == CUDA_SUCCESS);
	told.kernelParams[1] = &numbers[1];
	REQUIRE(set(node, &told) == CUDA_SUCCESS);
	CHECK(cudaGraphInstantiate(&exec, graph, 0));
	CHECK(cudaGraphLaunch(exec, 0));
	CHECK(cudaDeviceSynchronize());
	told.kernelParams[1] = &numbers[2];
	REQUIRE(set_exec(exec, node, &told) == CUDA_SUCCESS);
	CHECK(cudaGraphLaunch(exec, 0));
	/* Changing the returned array without setting the parameters has no effect. */
	told.kernelParams[1] = &numbers[3];
	CHECK(cudaGraphClone(&clone, graph));
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphInstantiate(&exec, clone, 0));
	CHECK(cudaGraphLaunch(exec, 0));
	CHECK(cudaMemcpy(&got, word, 4, cudaMemcpyDeviceToHost));
	REQUIRE(got == 120);
	REQUIRE(get(node, &told) == CUDA_SUCCESS);
	REQUIRE(*(int *)told.kernelParams[1] == 10);
	CHECK(cudaGraphExecDestroy(exec));
	CHECK(cudaGraphDestroy(clone));
	CHECK(cudaGraphDestroy(graph));
	CHECK(cudaFree(word));
}

int
main()
{
	texture_beyond_the_end();
	surface_without_flag();
	destroy_captured_stream(true);
	destroy_captured_stream(false);
	returned_parameters_given_back();
	return app_ok("apigaps");
}
