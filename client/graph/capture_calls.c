/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream calls that become nodes while their stream is captured (CAPTURE(node) in the API
 * description). Each returns GPC_NOT_CAPTURED if it is not.
 */
#include "client/api/green_context.h"
#include "client/context/context.h"
#include "client/copy/copy_region.h"
#include "client/graph/capture.h"
#include "client/graph/graph_memory.h"
#include "client/memory/pool.h"
#include "client/module/launch.h"
#include "gpc_calls.h"

#include <stddef.h>
#include <stdlib.h>

/* Calls gpc_graphs_begin() and looks up the captured stream. *captured_p is not NULL if the result
 * is CUDA_SUCCESS. */
static CUresult
captured_begin(CUstream hStream, struct gpc_captured_stream **captured_p) GP_LOCKS(gpc_graphs_lock)
{
	struct gpc_stream *stream = gpc_capture_get_stream(hStream);
	CUresult result = gpc_graphs_begin();

	*captured_p = NULL;
	if (result != CUDA_SUCCESS || !stream)
		return GPC_NOT_CAPTURED;
	*captured_p = gpc_capture_find(stream);
	if (!*captured_p)
		return gpc_capture_check_legacy(stream);
	return (*captured_p)->capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
					       : CUDA_SUCCESS;
}

/* Ends captured_begin(): adds the node unless an earlier step failed. */
static CUresult
captured_end(struct gpc_captured_stream *captured, CUresult result, struct gpc_node_params *params)
	GP_UNLOCKS(gpc_graphs_lock)
{
	if (result == CUDA_SUCCESS)
		result = gpc_capture_add(captured, params);
	return gpc_graphs_end(result);
}

/* Adds a node in the captured stream's context. any may be NULL, which is an invalid value. */
static CUresult
captured_add_node(CUstream hStream, const CUgraphNodeParams *any)
{
	struct gpc_captured_stream *captured;
	struct gpc_node_params params;
	CUresult result = captured_begin(hStream, &captured);

	if (result == CUDA_SUCCESS)
		result = gpc_node_params_parse(any, captured->stream->context, &params);
	return captured_end(captured, result, &params);
}

static CUresult
params_set_attributes(const CUlaunchConfig *config, struct gpc_node_params *params)
{
	CUresult result = CUDA_SUCCESS;

	if (config->numAttrs > 0 && !config->attrs)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < config->numAttrs && result == CUDA_SUCCESS; i++) {
		const CUlaunchAttribute *attribute = &config->attrs[i];

		/* The kernel starts when the preceding one ends, a delay that it cannot notice. */
		if (attribute->id == CU_LAUNCH_ATTRIBUTE_IGNORE ||
		    attribute->id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION ||
		    gpc_launch_get_event(attribute))
			continue;
		result = gpc_kernel_params_set_attribute(params, attribute->id, &attribute->value);
	}
	return result;
}

static CUresult
config_record_events(const CUlaunchConfig *config)
{
	CUresult result = CUDA_SUCCESS;

	for (unsigned int i = 0; i < config->numAttrs && result == CUDA_SUCCESS; i++) {
		if (gpc_launch_get_event(&config->attrs[i]))
			result = gpc_capture_cuEventRecordWithFlags(
				gpc_launch_get_event(&config->attrs[i]), config->hStream,
				CU_EVENT_RECORD_DEFAULT);
	}
	return result;
}

CUresult
gpc_capture_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams,
			     void **extra)
{
	struct gpc_captured_stream *captured;
	struct gpc_stream_launch merged;
	struct gpc_node_params params;
	CUDA_KERNEL_NODE_PARAMS given;
	CUgraphNodeParams any;
	CUresult result;

	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpc_launch_check_events(config);
	if (result != CUDA_SUCCESS)
		return result;
	result = captured_begin(config->hStream, &captured);
	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	if (atomic_load(&captured->stream->attributes_set) != 0)
		config = gpc_stream_launch(captured->stream, config, &merged);
	given = (CUDA_KERNEL_NODE_PARAMS){
		.func = f,
		.gridDimX = config->gridDimX,
		.gridDimY = config->gridDimY,
		.gridDimZ = config->gridDimZ,
		.blockDimX = config->blockDimX,
		.blockDimY = config->blockDimY,
		.blockDimZ = config->blockDimZ,
		.sharedMemBytes = config->sharedMemBytes,
		.kernelParams = kernelParams,
		.extra = extra,
		.ctx = captured->stream->context->handle.token,
	};
	result = gpc_node_params_parse(gpc_generic_params_kernel(&any, &given), NULL, &params);
	if (result == CUDA_SUCCESS) {
		result = params_set_attributes(config, &params);
		if (result != CUDA_SUCCESS)
			gpc_node_params_free(&params);
	}
	result = captured_end(captured, result, &params);
	return result == CUDA_SUCCESS ? config_record_events(config) : result;
}

CUresult
gpc_capture_cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
			   unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
			   unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
			   void **kernelParams, void **extra)
{
	const CUlaunchConfig config = { GPC_LAUNCH_SHAPE };

	return gpc_capture_cuLaunchKernelEx(&config, f, kernelParams, extra);
}

/* Its only stream cannot be captured. */
CUresult
gpc_capture_cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *launchParamsList,
						 unsigned int numDevices, unsigned int flags)
{
	return launchParamsList && numDevices == 1 ? gpc_capture_refuse(launchParamsList[0].hStream)
						   : GPC_NOT_CAPTURED;
}

CUresult
gpc_capture_cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
				      unsigned int gridDimZ, unsigned int blockDimX,
				      unsigned int blockDimY, unsigned int blockDimZ,
				      unsigned int sharedMemBytes, CUstream hStream,
				      void **kernelParams)
{
	CUlaunchAttribute cooperative = { .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
					  .value.cooperative = 1 };
	const CUlaunchConfig config = { GPC_LAUNCH_SHAPE, .attrs = &cooperative, .numAttrs = 1 };

	return gpc_capture_cuLaunchKernelEx(&config, f, kernelParams, NULL);
}

CUresult
gpc_capture_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
	CUgraphNodeParams any;

	return captured_add_node(hStream, gpc_generic_params_copy(&any, pCopy, NULL));
}

CUresult
gpc_capture_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
	CUDA_MEMCPY3D copy;

	if (!gpc_copy_2d_to_3d(&copy, pCopy))
		return CUDA_ERROR_INVALID_VALUE;
	return gpc_capture_cuMemcpy3DAsync_v2(&copy, hStream);
}

static CUresult
captured_add_row_copy(CUmemorytype dst_type, uint64_t dst, CUmemorytype src_type, uint64_t src,
		      size_t size, CUstream hStream)
{
	const CUDA_MEMCPY3D copy = {
		.srcMemoryType = src_type,
		.srcHost = src_type == CU_MEMORYTYPE_HOST ? (const void *)(uintptr_t)src : NULL,
		.srcDevice = src,
		.dstMemoryType = dst_type,
		.dstHost = dst_type == CU_MEMORYTYPE_HOST ? (void *)(uintptr_t)dst : NULL,
		.dstDevice = dst,
		.WidthInBytes = size,
		.Height = 1,
		.Depth = 1,
	};

	return gpc_capture_cuMemcpy3DAsync_v2(&copy, hStream);
}

CUresult
gpc_capture_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
	return captured_add_row_copy(CU_MEMORYTYPE_UNIFIED, dst, CU_MEMORYTYPE_UNIFIED, src,
				     ByteCount, hStream);
}

CUresult
gpc_capture_cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
				 CUstream hStream)
{
	return captured_add_row_copy(CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_HOST,
				     (uintptr_t)srcHost, ByteCount, hStream);
}

CUresult
gpc_capture_cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount,
				 CUstream hStream)
{
	return captured_add_row_copy(CU_MEMORYTYPE_HOST, (uintptr_t)dstHost, CU_MEMORYTYPE_DEVICE,
				     srcDevice, ByteCount, hStream);
}

CUresult
gpc_capture_cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
				 CUstream hStream)
{
	return captured_add_row_copy(CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_DEVICE,
				     srcDevice, ByteCount, hStream);
}

static CUresult
captured_add_memset(CUdeviceptr dst, size_t pitch, unsigned int element_size, unsigned int value,
		    size_t width, size_t height, CUstream hStream)
{
	const CUDA_MEMSET_NODE_PARAMS given = { .dst = dst,
						.pitch = pitch,
						.value = value,
						.elementSize = element_size,
						.width = width,
						.height = height };
	CUgraphNodeParams any = { .type = CU_GRAPH_NODE_TYPE_EMPTY };

	/* A memset of size 0 is captured as an empty node. */
	return captured_add_node(hStream, width > 0 && height > 0
						  ? gpc_generic_params_memset(&any, &given, NULL)
						  : &any);
}

#define MEMSET(bits, type)                                                                         \
	CUresult gpc_capture_cuMemsetD##bits##Async(CUdeviceptr dst, type value, size_t count,     \
						    CUstream hStream)                              \
	{                                                                                          \
		return captured_add_memset(dst, 0, sizeof(value), value, count, 1, hStream);       \
	}                                                                                          \
	CUresult gpc_capture_cuMemsetD2D##bits##Async(CUdeviceptr dst, size_t pitch, type value,   \
						      size_t width, size_t height,                 \
						      CUstream hStream)                            \
	{                                                                                          \
		return captured_add_memset(dst, pitch, sizeof(value), value, width, height,        \
					   hStream);                                               \
	}

MEMSET(8, unsigned char)
MEMSET(16, unsigned short)
MEMSET(32, unsigned int)

CUresult
gpc_capture_cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData)
{
	const CUDA_HOST_NODE_PARAMS given = { .fn = fn, .userData = userData };
	CUgraphNodeParams any;

	return captured_add_node(hStream, gpc_generic_params_host(&any, &given));
}

CUresult
gpc_capture_cuStreamBatchMemOp_v2(CUstream hStream, unsigned int count,
				  CUstreamBatchMemOpParams *paramArray, unsigned int flags)
{
	const CUDA_BATCH_MEM_OP_NODE_PARAMS given = { .count = count,
						      .paramArray = paramArray,
						      .flags = flags };
	CUgraphNodeParams any;

	return captured_add_node(hStream, gpc_generic_params_mem_ops(&any, &given));
}

#define DEFINE_VALUE_CALLS(name, type, which, does, member)                                        \
	CUresult gpc_capture_##name##_v2(CUstream stream, CUdeviceptr addr, type value,            \
					 unsigned int flags)                                       \
	{                                                                                          \
		CUstreamBatchMemOpParams op = { .does = { .operation = (which),                    \
							  .address = addr,                         \
							  .member = value,                         \
							  .flags = flags } };                      \
                                                                                                   \
		return gpc_capture_cuStreamBatchMemOp_v2(stream, 1, &op, 0);                       \
	}

/* gpc_capture_cuStreamWaitValue32_v2() */
DEFINE_VALUE_CALLS(cuStreamWaitValue32, cuuint32_t, CU_STREAM_MEM_OP_WAIT_VALUE_32, waitValue,
		   value)
/* gpc_capture_cuStreamWaitValue64_v2() */
DEFINE_VALUE_CALLS(cuStreamWaitValue64, cuuint64_t, CU_STREAM_MEM_OP_WAIT_VALUE_64, waitValue,
		   value64)
/* gpc_capture_cuStreamWriteValue32_v2() */
DEFINE_VALUE_CALLS(cuStreamWriteValue32, cuuint32_t, CU_STREAM_MEM_OP_WRITE_VALUE_32, writeValue,
		   value)
/* gpc_capture_cuStreamWriteValue64_v2() */
DEFINE_VALUE_CALLS(cuStreamWriteValue64, cuuint64_t, CU_STREAM_MEM_OP_WRITE_VALUE_64, writeValue,
		   value64)

/* The memory is allocated before the node is added, because the daemon may have to provide it. */
static CUresult
captured_add_alloc(int ordinal, CUdeviceptr *dptr, size_t size, CUstream hStream)
{
	const CUDA_MEM_ALLOC_NODE_PARAMS given = {
		.poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			       .location = { CU_MEM_LOCATION_TYPE_DEVICE, ordinal } },
		.bytesize = size,
	};
	struct gpc_node_params params = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC };
	struct gpc_captured_stream *captured;
	CUresult result;

	/* As outside of captures, the address is 0 and no node is created. */
	if (size == 0) {
		*dptr = 0;
		return CUDA_SUCCESS;
	}
	result = gpc_graph_memory_create(&given, &params.memory);
	if (result != CUDA_SUCCESS)
		return result;
	result = captured_begin(hStream, &captured);
	if (result == CUDA_SUCCESS)
		result = gpc_capture_add(captured, &params);
	else
		gpc_graph_memory_unref(params.memory);
	if (result == CUDA_SUCCESS)
		*dptr = gpc_graph_memory_address(params.memory);
	return gpc_graphs_end(result);
}

/* Returns the device if the stream is captured. Called without the lock, so that is checked again
 * later. */
static CUresult
captured_get_device(CUstream hStream, int *ordinal_p)
{
	struct gpc_captured_stream *captured;
	CUresult result = captured_begin(hStream, &captured);

	if (result == CUDA_SUCCESS)
		*ordinal_p = captured->stream->context->device->ordinal;
	return gpc_graphs_end(result);
}

CUresult
gpc_capture_cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	int ordinal = 0;
	CUresult result = captured_get_device(hStream, &ordinal);

	if (result == CUDA_SUCCESS && !dptr)
		result = CUDA_ERROR_INVALID_VALUE;
	return result == CUDA_SUCCESS ? captured_add_alloc(ordinal, dptr, bytesize, hStream)
				      : result;
}

/* Allocates from the pool's device: memory of graphs does not belong to pools. */
CUresult
gpc_capture_cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool,
				    CUstream hStream)
{
	const struct gpc_pool *found;
	bool elsewhere;
	int ordinal = 0;
	CUresult result = captured_get_device(hStream, &ordinal);

	if (result != CUDA_SUCCESS)
		return result;
	gpc_pools_lock();
	found = gpc_pool_get(pool);
	if (found)
		ordinal = found->device->ordinal;
	elsewhere = found && (found->host || found->created_by_program);
	gpc_pools_unlock();
	/* A node can only allocate device memory. */
	if (elsewhere)
		return CUDA_ERROR_NOT_SUPPORTED;
	return found && dptr ? captured_add_alloc(ordinal, dptr, bytesize, hStream)
			     : CUDA_ERROR_INVALID_VALUE;
}

CUresult
gpc_capture_add_free(CUdeviceptr address, CUstream hStream)
{
	struct gpc_node_params params = { .type = CU_GRAPH_NODE_TYPE_MEM_FREE };
	struct gpc_captured_stream *captured;
	struct gpc_graph_memory *memory;
	CUresult result = captured_begin(hStream, &captured);

	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	memory = gpc_graph_memory_find(address);
	if (!memory || gpc_graph_memory_is_freed(memory))
		return gpc_graphs_end(CUDA_ERROR_INVALID_VALUE);
	params.memory = gpc_graph_memory_ref(memory);
	result = gpc_capture_add(captured, &params);
	if (result == CUDA_SUCCESS)
		gpc_graph_memory_set_freed(memory, true);
	return gpc_graphs_end(result);
}

/* In a capture an event represents nodes, unless it is recorded as external. */
CUresult
gpc_capture_cuEventRecordWithFlags(CUevent hEvent, CUstream hStream, unsigned int flags)
{
	struct gpc_captured_stream *captured;
	struct gpc_node_params params;
	CUgraphNodeParams any;
	struct gpc_event *event;
	CUresult result = captured_begin(hStream, &captured);

	if (gpc_event_lookup(hEvent, &event) != CUDA_SUCCESS)
		return gpc_graphs_end(captured ? CUDA_ERROR_INVALID_HANDLE : GPC_NOT_CAPTURED);
	if (!captured) {
		gpc_capture_drop_event(event);
		return gpc_graphs_end(result);
	}
	if (result != CUDA_SUCCESS)
		return gpc_graphs_end(result);
	if (!(flags & CU_EVENT_RECORD_EXTERNAL))
		return gpc_graphs_end(gpc_capture_record(captured, event));
	result = gpc_node_params_parse(
		gpc_generic_params_event(&any, hEvent, CU_GRAPH_NODE_TYPE_EVENT_RECORD), NULL,
		&params);
	return captured_end(captured, result, &params);
}

CUresult
gpc_capture_cuEventRecord(CUevent hEvent, CUstream hStream)
{
	return gpc_capture_cuEventRecordWithFlags(hEvent, hStream, CU_EVENT_RECORD_DEFAULT);
}

CUresult
gpc_capture_cuStreamWaitEvent(CUstream hStream, CUevent hEvent, unsigned int Flags)
{
	struct gpc_captured_stream *captured;
	struct gpc_node_params params;
	CUgraphNodeParams any;
	struct gpc_stream *stream = gpc_capture_get_stream(hStream);
	struct gpc_event *event;
	CUresult result = gpc_graphs_begin();

	if (result != CUDA_SUCCESS || !stream || gpc_event_lookup(hEvent, &event) != CUDA_SUCCESS)
		return gpc_graphs_end(GPC_NOT_CAPTURED);
	captured = gpc_capture_find(stream);
	if (!captured || !(Flags & CU_EVENT_WAIT_EXTERNAL))
		return gpc_graphs_end(gpc_capture_wait(stream, event));
	result = gpc_node_params_parse(
		gpc_generic_params_event(&any, hEvent, CU_GRAPH_NODE_TYPE_WAIT_EVENT), NULL,
		&params);
	return captured_end(captured, result, &params);
}

CUresult
gpc_capture_cuStreamDestroy_v2(CUstream hStream)
{
	struct gpc_stream *stream = gpc_capture_get_stream(hStream);
	CUresult result = gpc_graphs_begin();

	if (result != CUDA_SUCCESS || !stream)
		return gpc_graphs_end(GPC_NOT_CAPTURED);
	return gpc_graphs_end(gpc_capture_destroy_stream(stream));
}

/* Rejects an event recorded in a capture, and a context with a captured stream. record: otherwise
 * the event is outside of captures from now on. */
static CUresult
context_check_event(CUcontext hCtx, CUevent hEvent, bool record)
{
	const struct gpc_nodes *nodes;
	struct gpc_capture *capture;
	struct gpc_event *event;
	CUresult result = gpc_graphs_begin();

	if (result != CUDA_SUCCESS || gpc_event_lookup(hEvent, &event) != CUDA_SUCCESS)
		return gpc_graphs_end(GPC_NOT_CAPTURED);
	result = gpc_capture_check_context(hCtx);
	capture = record ? NULL : gpc_capture_find_event(event, &nodes);
	if (capture) {
		capture->invalid = true;
		result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	if (record && result == GPC_NOT_CAPTURED)
		gpc_capture_drop_event(event);
	return gpc_graphs_end(result);
}

CUresult
gpc_capture_cuCtxRecordEvent(CUcontext hCtx, CUevent hEvent)
{
	return context_check_event(hCtx, hEvent, true);
}

CUresult
gpc_capture_cuCtxWaitEvent(CUcontext hCtx, CUevent hEvent)
{
	return context_check_event(hCtx, hEvent, false);
}

static CUresult
green_check_event(CUgreenCtx hCtx, CUevent hEvent, bool record)
{
	struct gpc_green_context *green;

	return gpc_green_context_enter(hCtx, &green) == CUDA_SUCCESS
		       ? context_check_event(green->context->handle.token, hEvent, record)
		       : GPC_NOT_CAPTURED;
}

CUresult
gpc_capture_cuGreenCtxRecordEvent(CUgreenCtx hCtx, CUevent hEvent)
{
	return green_check_event(hCtx, hEvent, true);
}

CUresult
gpc_capture_cuGreenCtxWaitEvent(CUgreenCtx hCtx, CUevent hEvent)
{
	return green_check_event(hCtx, hEvent, false);
}

/* An event recorded in a capture completes only when its graph has run, so it cannot be waited
 * for. */
static CUresult
event_refuse_captured(CUevent hEvent)
{
	const struct gpc_nodes *nodes;
	struct gpc_capture *capture = NULL;
	struct gpc_event *event;
	CUresult result = gpc_graphs_begin();

	if (result == CUDA_SUCCESS && gpc_event_lookup(hEvent, &event) == CUDA_SUCCESS)
		capture = gpc_capture_find_event(event, &nodes);
	if (!capture)
		return gpc_graphs_end(GPC_NOT_CAPTURED);
	capture->invalid = true;
	return gpc_graphs_end(CUDA_ERROR_CAPTURED_EVENT);
}

CUresult
gpc_capture_cuEventQuery(CUevent hEvent)
{
	return event_refuse_captured(hEvent);
}

CUresult
gpc_capture_cuEventSynchronize(CUevent hEvent)
{
	return event_refuse_captured(hEvent);
}
