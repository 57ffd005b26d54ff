/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of streams, launches and nodes for caching, synchronization and events. */
#include "driver_app.h"

#include <cstring>

static const char text[] = R"(
.version 7.0
.target sm_75
.address_size 64
.visible .entry more(.param .u64 cell)
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [cell];
	cvta.to.global.u64 %rd2, %rd1;
	ld.global.u32 %r1, [%rd2];
	add.u32 %r2, %r1, 1;
	st.global.u32 [%rd2], %r2;
	ret;
}
)";

#define SIZE ((size_t)64 << 10)

static CUfunction more;
static CUdeviceptr cells;
static int most;

static CUlaunchAttributeValue
make_window(size_t size, float ratio)
{
	CUlaunchAttributeValue value;

	memset(&value, 0, sizeof(value));
	value.accessPolicyWindow.base_ptr = reinterpret_cast<void *>(cells);
	value.accessPolicyWindow.num_bytes = size;
	value.accessPolicyWindow.hitRatio = ratio;
	value.accessPolicyWindow.hitProp = CU_ACCESS_PROPERTY_PERSISTING;
	value.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_STREAMING;
	return value;
}

static size_t
window_size(CUstream stream)
{
	CUlaunchAttributeValue value;

	CHECK(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, &value));
	return value.accessPolicyWindow.num_bytes;
}

static void
launch(CUstream stream, CUlaunchAttribute *attribute)
{
	void *params[] = { &cells };
	CUlaunchConfig config = {};

	config.gridDimX = config.gridDimY = config.gridDimZ = 1;
	config.blockDimX = config.blockDimY = config.blockDimZ = 1;
	config.hStream = stream;
	config.attrs = attribute;
	config.numAttrs = attribute ? 1 : 0;
	CHECK(cuLaunchKernelEx(&config, more, params, nullptr));
}

static void
require_cell(CUstream stream, unsigned int wanted)
{
	unsigned int seen;

	CHECK(cuStreamSynchronize(stream));
	CHECK(cuMemcpyDtoH(&seen, cells, sizeof(seen)));
	REQUIRE(seen == wanted);
}

static void
streams(CUstream stream, CUstream other)
{
	const CUlaunchAttributeID id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
	CUlaunchAttributeValue value = make_window(SIZE, 0.5f), wrong = make_window(SIZE, 2.0f);

	REQUIRE(window_size(stream) == 0);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamSetAttribute(stream, id, &wrong));
	wrong = make_window(static_cast<size_t>(most) + 1, 1.0f);
	EXPECT(CUDA_ERROR_INVALID_VALUE, cuStreamSetAttribute(stream, id, &wrong));
	CHECK(cuStreamSetAttribute(stream, id, &value));
	REQUIRE(window_size(stream) == SIZE && window_size(other) == 0);
	launch(stream, nullptr);
	require_cell(stream, 1);
	CHECK(cuStreamCopyAttributes(other, stream));
	REQUIRE(window_size(other) == SIZE);
	launch(other, nullptr);
	require_cell(other, 2);
	value.accessPolicyWindow.num_bytes = 0;
	CHECK(cuStreamSetAttribute(other, id, &value));
	REQUIRE(window_size(other) == 0);
	launch(other, nullptr);
	require_cell(other, 3);
	memset(&value, 0, sizeof(value));
	value.syncPolicy = CU_SYNC_POLICY_BLOCKING_SYNC;
	CHECK(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	value.syncPolicy = CU_SYNC_POLICY_SPIN;
	CHECK(cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value));
	REQUIRE(value.syncPolicy == CU_SYNC_POLICY_BLOCKING_SYNC);
	memset(&value, 0, sizeof(value));
	value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE;
	CHECK(cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value));
	launch(stream, nullptr);
	require_cell(stream, 4);
}

static void
launches(CUstream stream)
{
	CUlaunchAttribute attribute = {};

	attribute.id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
	attribute.value = make_window(SIZE / 2, 1.0f);
	launch(stream, &attribute);
	require_cell(stream, 5);
}

/* A captured node has the access policy window of its stream. */
static void
nodes(CUstream stream)
{
	const CUlaunchAttributeID id = CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
	CUlaunchAttributeValue value = make_window(SIZE / 4, 1.0f);
	CUgraphExec exec;
	CUgraphNode node;
	CUgraph graph;
	size_t count = 1;

	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	launch(stream, nullptr);
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphGetNodes(graph, &node, &count));
	CHECK(cuGraphKernelNodeSetAttribute(node, id, &value));
	memset(&value, 0, sizeof(value));
	CHECK(cuGraphKernelNodeGetAttribute(node, id, &value));
	REQUIRE(value.accessPolicyWindow.num_bytes == SIZE / 4);
	CHECK(cuGraphInstantiate(&exec, graph, 0));
	CHECK(cuGraphLaunch(exec, stream));
	CHECK(cuGraphLaunch(exec, stream));
	require_cell(stream, 7);
	CHECK(cuGraphExecDestroy(exec));
	CHECK(cuGraphDestroy(graph));
	CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	launch(stream, nullptr);
	CHECK(cuStreamEndCapture(stream, &graph));
	CHECK(cuGraphGetNodes(graph, &node, &count));
	CHECK(cuGraphKernelNodeGetAttribute(node, id, &value));
	REQUIRE(value.accessPolicyWindow.num_bytes == SIZE);
	CHECK(cuGraphDestroy(graph));
}

static CUlaunchAttribute
event_attribute(CUlaunchAttributeID id, CUevent event)
{
	CUlaunchAttribute attribute = {};

	attribute.id = id;
	if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) {
		attribute.value.programmaticEvent.event = event;
		attribute.value.programmaticEvent.triggerAtBlockStart = 1;
	} else {
		attribute.value.launchCompletionEvent.event = event;
	}
	return attribute;
}

/* Events at the start of kernels: another stream works on another cell, also in a capture. */
static void
events(CUstream stream, CUstream other)
{
	const CUlaunchAttributeID ids[] = { CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT,
					    CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT };
	CUdeviceptr first = cells, second = cells + 4;
	CUevent event, end;
	CUgraphExec exec;
	CUgraph graph;

	CHECK(cuMemsetD8(cells, 0, SIZE));
	CHECK(cuCtxSynchronize());
	CHECK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	CHECK(cuEventCreate(&end, CU_EVENT_DISABLE_TIMING));
	for (CUlaunchAttributeID id : ids) {
		CUlaunchAttribute attribute = event_attribute(id, event);

		for (int captured = 0; captured < 2; captured++) {
			if (captured)
				CHECK(cuStreamBeginCapture(stream,
							   CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
			launch(stream, &attribute);
			CHECK(cuStreamWaitEvent(other, event, 0));
			cells = second;
			launch(other, nullptr);
			cells = first;
			CHECK(cuEventRecord(end, other));
			CHECK(cuStreamWaitEvent(stream, end, 0));
			if (!captured)
				continue;
			CHECK(cuStreamEndCapture(stream, &graph));
			CHECK(cuGraphInstantiate(&exec, graph, 0));
			CHECK(cuGraphLaunch(exec, stream));
			CHECK(cuStreamSynchronize(stream));
			CHECK(cuGraphExecDestroy(exec));
			CHECK(cuGraphDestroy(graph));
		}
	}
	require_cell(stream, 4);
	cells = second;
	require_cell(stream, 4);
	cells = first;
	CHECK(cuEventDestroy(event));
	CHECK(cuEventDestroy(end));
}

static void
limits(CUdevice device)
{
	int persisting;
	size_t value = 0;

	CHECK(cuDeviceGetAttribute(&persisting, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE,
				   device));
	REQUIRE(persisting > 0);
	CHECK(cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, static_cast<size_t>(persisting)));
	CHECK(cuCtxGetLimit(&value, CU_LIMIT_PERSISTING_L2_CACHE_SIZE));
	REQUIRE(value == static_cast<size_t>(persisting));
	CHECK(cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, 0));
	CHECK(cuCtxResetPersistingL2Cache());
}

int
main()
{
	CUstream stream, other;
	CUcontext context;
	CUdevice device;
	CUmodule module;

	CHECK(cuInit(0));
	CHECK(cuDeviceGet(&device, 0));
	CHECK(cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cuCtxSetCurrent(context));
	CHECK(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE,
				   device));
	REQUIRE(static_cast<size_t>(most) >= SIZE);
	CHECK(cuModuleLoadData(&module, text));
	CHECK(cuModuleGetFunction(&more, module, "more"));
	CHECK(cuMemAlloc(&cells, SIZE));
	CHECK(cuMemsetD8(cells, 0, SIZE));
	CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	CHECK(cuCtxSynchronize());
	streams(stream, other);
	launches(stream);
	nodes(stream);
	events(stream, other);
	limits(device);
	CHECK(cuDevicePrimaryCtxRelease(device));
	printf("policies: ok\n");
	return 0;
}
