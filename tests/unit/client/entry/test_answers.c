/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the client answers alone, by functions that are generated out of what it holds: each writes
 * what is held, refuses NULL and what is no handle of it, and finds nothing before cuInit.
 */
#include "client/context/device.h"
#include "client/context/lifecycle.h"
#include "client/entry/context_parts.h"
#include "client/module/image.h"
#include "client/module/module.h"
#include "client/stream/stream.h"
#include "gpc_calls.h"
#include "tests/test.h"
#include "tests/unit/client/fake_daemon.h"

#include <stdlib.h>
#include <string.h>

#define CU(call) assert_int_equal(call, CUDA_SUCCESS)
#define IS(call, code) assert_int_equal(call, code)
#define INVALID(call) assert_int_equal(call, CUDA_ERROR_INVALID_VALUE)
#define NO_HANDLE(call) assert_int_equal(call, CUDA_ERROR_INVALID_HANDLE)
#define NONE ((void *)0x1234)

static struct fake_daemon daemon_end;
static struct gpc_session *session;
static CUcontext context;

/* Texture objects have numbers of the driver's. */
static int
answer(struct fake_daemon *daemon, const struct gp_header *header, const void *fields, size_t size)
{
	static const uint64_t object = 4711;

	if (header->call != GP_CALL_gpTextureCreate && header->call != GP_CALL_gpSurfaceCreate)
		return fake_daemon_answer(daemon, header, fields, size);
	fake_daemon_reply(daemon, header, CUDA_SUCCESS, &object, sizeof(object));
	return 0;
}

static int
set_up(void **state)
{
	static int32_t attributes[CU_DEVICE_ATTRIBUTE_MAX];
	static uint8_t uuid[16] = { 1, 2 };
	struct gpc_device_source sources[2];
	Gpupool__Device devices[2];

	daemon_end = (struct fake_daemon){ .answer = answer };
	fake_daemon_start(&daemon_end, "tcp", 100, &session);
	attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = 9;
	attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = 3;
	for (int i = 0; i < 2; i++) {
		gpupool__device__init(&devices[i]);
		devices[i].name = (char *)"a device";
		devices[i].uuid = (ProtobufCBinaryData){ 16, uuid };
		devices[i].total_memory = (uint64_t)1 << 30;
		devices[i].attributes = attributes;
		devices[i].n_attributes = 100;
		devices[i].priority_greatest = -5;
		devices[i].ordinal = i;
		sources[i] =
			(struct gpc_device_source){ .device = &devices[i], .session = session };
	}
	gpc_context_parts_set();
	assert_int_equal(gpc_devices_create(sources, 2), 0);
	atomic_store(&gpc_lifecycle, CUDA_SUCCESS);
	CU(gpc_cuCtxCreate_v2(&context, CU_CTX_SCHED_YIELD, 1));
	return 0;
}

static int
tear_down(void **state)
{
	atomic_store(&gpc_lifecycle, CUDA_SUCCESS);
	CU(gpc_cuCtxDestroy_v2(context));
	atomic_store(&gpc_lifecycle, CUDA_ERROR_NOT_INITIALIZED);
	fake_daemon_stop(&daemon_end, session);
	gpc_devices_destroy();
	return 0;
}

#define TEST(test) UNIT_TEST_WITH(test, set_up, tear_down)

TEST(contexts_tell_what_they_are)
{
	CUsharedconfig shared;
	unsigned int number;
	CUfunc_cache cache;
	int least, greatest;
	CUdevice device;

	CU(gpc_cuCtxGetDevice(&device));
	assert_int_equal(device, 1);
	CU(gpc_cuCtxGetDevice_v2(&device, context));
	assert_int_equal(device, 1);
	IS(gpc_cuCtxGetDevice_v2(&device, NONE), CUDA_ERROR_INVALID_CONTEXT);
	INVALID(gpc_cuCtxGetDevice(NULL));
	CU(gpc_cuCtxGetFlags(&number));
	assert_int_equal(number, CU_CTX_SCHED_YIELD);
	CU(gpc_cuCtxGetApiVersion(context, &number));
	assert_int_equal(number, 3020);
	INVALID(gpc_cuCtxGetApiVersion(context, NULL));
	CU(gpc_cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_EQUAL));
	INVALID(gpc_cuCtxSetCacheConfig((CUfunc_cache)(CU_FUNC_CACHE_PREFER_EQUAL + 1)));
	INVALID(gpc_cuCtxSetCacheConfig((CUfunc_cache)-1));
	CU(gpc_cuCtxGetCacheConfig(&cache));
	assert_int_equal(cache, CU_FUNC_CACHE_PREFER_EQUAL);
	CU(gpc_cuCtxSetSharedMemConfig(CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE));
	CU(gpc_cuCtxGetSharedMemConfig(&shared));
	assert_int_equal(shared, CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE);
	CU(gpc_cuCtxGetStreamPriorityRange(&least, &greatest));
	assert_int_equal(greatest, -5);
	CU(gpc_cuCtxGetStreamPriorityRange(NULL, NULL));
	CU(gpc_cuCtxResetPersistingL2Cache());
	CU(gpc_cuProfilerStart());
	atomic_store(&gpc_lifecycle, CUDA_ERROR_NOT_INITIALIZED);
	IS(gpc_cuCtxGetDevice(&device), CUDA_ERROR_NOT_INITIALIZED);
	IS(gpc_cuCtxGetCacheConfig(&cache), CUDA_ERROR_NOT_INITIALIZED);
	IS(gpc_cuProfilerStop(), CUDA_ERROR_NOT_INITIALIZED);
}

TEST(devices_tell_what_they_are)
{
	unsigned int mask;
	int major, minor;
	char text[32];
	CUuuid uuid;

	CU(gpc_cuDeviceComputeCapability(&major, &minor, 0));
	assert_int_equal(major * 10 + minor, 93);
	INVALID(gpc_cuDeviceComputeCapability(&major, NULL, 0));
	CU(gpc_cuDeviceGetUuid_v2(&uuid, 1));
	assert_int_equal(uuid.bytes[1], 2);
	IS(gpc_cuDeviceGetUuid_v2(&uuid, 2), CUDA_ERROR_INVALID_DEVICE);
	INVALID(gpc_cuDeviceGetName(text, 0, 0));
	INVALID(gpc_cuDeviceGetName(text, -1, 0));
	INVALID(gpc_cuDeviceGetName(NULL, 8, 0));
	IS(gpc_cuDeviceGetLuid(text, &mask, 0), CUDA_ERROR_NOT_SUPPORTED);
	INVALID(gpc_cuDeviceGetAttribute(&major, (CUdevice_attribute)0, 0));
	INVALID(gpc_cuDeviceGetAttribute(&major, (CUdevice_attribute)1024, 0));
	INVALID(gpc_cuDeviceGetAttribute(&major, (CUdevice_attribute)-1, 0));
	CU(gpc_cuDeviceGetExecAffinitySupport(&major, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
	assert_int_equal(major, 0);
	CU(gpc_cuDeviceGetExecAffinitySupport(&major, CU_EXEC_AFFINITY_TYPE_MAX, 0));
	INVALID(gpc_cuDeviceGetExecAffinitySupport(NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT, 0));
	INVALID(gpc_cuDeviceGetPCIBusId(text, 12, 0));
	CU(gpc_cuDeviceGetPCIBusId(text, 13, 0));
	CU(gpc_cuDeviceCanAccessPeer(&minor, 0, 1));
	assert_int_equal(minor, 0);
	IS(gpc_cuDeviceCanAccessPeer(&minor, 0, 2), CUDA_ERROR_INVALID_DEVICE);
	IS(gpc_cuDeviceGet(&major, 2), CUDA_ERROR_INVALID_DEVICE);
	CU(gpc_cuDeviceGet(&major, 1));
	assert_int_equal(major, 1);
}

TEST(streams_tell_what_they_are)
{
	CUstreamAttrValue value = { 0 };
	unsigned long long first, second;
	unsigned int flags;
	CUcontext of;
	CUdevice device;
	CUstream stream;
	int priority;

	CU(gpc_cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -9));
	CU(gpc_cuStreamGetPriority(stream, &priority));
	assert_int_equal(priority, -5);
	CU(gpc_cuStreamGetFlags(stream, &flags));
	assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
	CU(gpc_cuStreamGetId(stream, &first));
	CU(gpc_cuStreamGetId(NULL, &second));
	assert_int_not_equal(first, second);
	CU(gpc_cuStreamGetCtx(stream, &of));
	assert_ptr_equal(of, context);
	CU(gpc_cuStreamGetDevice(stream, &device));
	assert_int_equal(device, 1);
	INVALID(gpc_cuStreamGetCtx(stream, NULL));
	NO_HANDLE(gpc_cuStreamGetId(NONE, &first));
	CU(gpc_cuStreamCopyAttributes(stream, NULL));
	NO_HANDLE(gpc_cuStreamCopyAttributes(stream, NONE));
	INVALID(gpc_cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, NULL));
	IS(gpc_cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value),
	   CUDA_ERROR_NOT_SUPPORTED);
	INVALID(gpc_cuStreamSetAttribute(stream, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value));
	INVALID(gpc_cuStreamGetAttribute(stream, CU_LAUNCH_ATTRIBUTE_IGNORE, &value));
	CU(gpc_cuStreamDestroy_v2(stream));
	NO_HANDLE(gpc_cuStreamGetPriority(stream, &priority));
}

/* What functions check first. */
TEST(a_stream_lends_its_context)
{
	CUcontext of;
	CUstream stream;

	CU(gpc_cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, 0));
	CU(gpc_context_require());
	CU(gpc_cuCtxPopCurrent_v2(&of));
	assert_ptr_equal(of, context);
	IS(gpc_context_require(), CUDA_ERROR_INVALID_CONTEXT);
	IS(gpc_stream_push_context(NULL), CUDA_ERROR_INVALID_CONTEXT);
	IS(gpc_stream_push_context(CU_STREAM_LEGACY), CUDA_ERROR_INVALID_CONTEXT);
	IS(gpc_stream_push_context(NONE), CUDA_ERROR_INVALID_CONTEXT);
	CU(gpc_stream_push_context(stream));
	assert_ptr_equal(gpc_context_get_current()->handle.token, context);
	(void)gpc_context_pop();
	assert_null(gpc_context_get_current());
	CU(gpc_cuCtxPushCurrent_v2(context));
	CU(gpc_cuStreamDestroy_v2(stream));
}

TEST(a_context_is_of_a_version)
{
	unsigned int version;
	CUcontext old;

	IS(gpc_context_require_v1(context), CUDA_ERROR_INVALID_CONTEXT);
	IS(gpc_context_require_v1(NULL), CUDA_ERROR_INVALID_CONTEXT);
	CU(gpc_cuCtxCreate(&old, 0, 1));
	CU(gpc_context_require_v1(old));
	CU(gpc_cuCtxGetApiVersion(old, &version));
	assert_int_equal(version, 3010);
	CU(gpc_cuCtxDestroy_v2(old));
	IS(gpc_context_require_v1(old), CUDA_ERROR_INVALID_CONTEXT);
	atomic_store(&gpc_lifecycle, CUDA_ERROR_NOT_INITIALIZED);
	IS(gpc_context_require(), CUDA_ERROR_NOT_INITIALIZED);
	IS(gpc_context_require_v1(context), CUDA_ERROR_NOT_INITIALIZED);
}

TEST(kernels_and_modules_tell_what_they_are)
{
	struct gp_kernel_info info = { .name = (char *)"a kernel" };
	struct gp_image_info images = { .kernel_count = 3, .kernels = &info };
	struct gpc_image image = { .info = &images, .owner = NONE };
	struct gpc_function *kernel = gpc_handle_new(GPC_KIND_KERNEL, sizeof(*kernel));
	struct gpc_module *module = gpc_handle_new(GPC_KIND_MODULE, sizeof(*module));
	CUfunctionLoadingState loading;
	CUmoduleLoadingMode mode;
	CUlibrary library;
	const char *name;
	unsigned int count;

	kernel->image = module->image = &image;
	kernel->info = &info;
	CU(gpc_cuKernelGetName(&name, kernel->handle.token));
	assert_string_equal(name, "a kernel");
	CU(gpc_cuFuncGetName(&name, kernel->handle.token));
	INVALID(gpc_cuFuncGetName(NULL, kernel->handle.token));
	NO_HANDLE(gpc_cuFuncGetName(&name, NONE));
	CU(gpc_cuKernelGetLibrary(&library, kernel->handle.token));
	assert_ptr_equal(library, NONE);
	NO_HANDLE(gpc_cuKernelGetLibrary(&library, module->handle.token));
	CU(gpc_cuFuncIsLoaded(&loading, kernel->handle.token));
	assert_int_equal(loading, CU_FUNCTION_LOADING_STATE_LOADED);
	CU(gpc_cuFuncLoad(kernel->handle.token));
	NO_HANDLE(gpc_cuFuncLoad(NONE));
	INVALID(gpc_cuFuncSetSharedMemConfig(kernel->handle.token, (CUsharedconfig)3));
	CU(gpc_cuFuncSetSharedMemConfig(kernel->handle.token, (CUsharedconfig)2));
	CU(gpc_cuModuleGetFunctionCount(&count, module->handle.token));
	assert_int_equal(count, 3);
	NO_HANDLE(gpc_cuLibraryGetKernelCount(&count, module->handle.token));
	CU(gpc_cuModuleGetLoadingMode(&mode));
	gpc_handle_remove(&kernel->handle);
	gpc_handle_remove(&module->handle);
}

TEST(arrays_and_textures_tell_what_they_are)
{
	CUDA_ARRAY_DESCRIPTOR shape = { 20, 30, CU_AD_FORMAT_FLOAT, 1 }, told;
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_ARRAY }, seen;
	CUDA_TEXTURE_DESC texture = { .maxAnisotropy = 7 }, texture_seen;
	CUDA_RESOURCE_VIEW_DESC view = { .width = 20 }, view_seen;
	CUDA_ARRAY_MEMORY_REQUIREMENTS needs;
	CUtexObject object;
	CUsurfObject surface;
	CUarray array;

	CU(gpc_cuArrayCreate_v2(&array, &shape));
	CU(gpc_cuArrayGetDescriptor_v2(&told, array));
	assert_int_equal(told.Height, 30);
	INVALID(gpc_cuArray3DGetDescriptor_v2(NULL, array));
	INVALID(gpc_cuArrayGetMemoryRequirements(&needs, array, 0));
	resource.res.array.hArray = array;
	CU(gpc_cuTexObjectCreate(&object, &resource, &texture, NULL));
	CU(gpc_cuSurfObjectCreate(&surface, &resource));
	CU(gpc_cuTexObjectGetResourceDesc(&seen, object));
	assert_ptr_equal(seen.res.array.hArray, array);
	CU(gpc_cuTexObjectGetTextureDesc(&texture_seen, object));
	assert_int_equal(texture_seen.maxAnisotropy, 7);
	INVALID(gpc_cuTexObjectGetResourceViewDesc(&view_seen, object));
	INVALID(gpc_cuTexObjectGetTextureDesc(NULL, object));
	CU(gpc_cuSurfObjectGetResourceDesc(&seen, surface));
	NO_HANDLE(gpc_cuSurfObjectGetResourceDesc(&seen, surface + 1));
	CU(gpc_cuTexObjectDestroy(object));
	NO_HANDLE(gpc_cuTexObjectGetTextureDesc(&texture_seen, object));
	CU(gpc_cuTexObjectCreate(&object, &resource, &texture, &view));
	CU(gpc_cuTexObjectGetResourceViewDesc(&view_seen, object));
	assert_int_equal(view_seen.width, 20);
}

static void
nothing(void *data)
{
}

TEST(nodes_of_graphs_tell_what_they_are)
{
	CUDA_HOST_NODE_PARAMS host = { .fn = nothing, .userData = NONE }, seen;
	CUDA_MEMSET_NODE_PARAMS fill;
	CUDA_MEMCPY3D copy;
	CUgraphNode node, child, wait;
	CUgraphNodeType type;
	CUgraph graph, inner;
	CUevent event, found;

	CU(gpc_cuEventCreate(&event, 0));
	CU(gpc_cuGraphCreate(&graph, 0));
	CU(gpc_cuGraphCreate(&inner, 0));
	CU(gpc_cuGraphAddHostNode(&node, graph, NULL, 0, &host));
	CU(gpc_cuGraphAddChildGraphNode(&child, graph, NULL, 0, inner));
	CU(gpc_cuGraphAddEventWaitNode(&wait, graph, NULL, 0, event));
	CU(gpc_cuGraphNodeGetType(node, &type));
	assert_int_equal(type, CU_GRAPH_NODE_TYPE_HOST);
	CU(gpc_cuGraphHostNodeGetParams(node, &seen));
	assert_ptr_equal(seen.userData, NONE);
	INVALID(gpc_cuGraphHostNodeGetParams(node, NULL));
	INVALID(gpc_cuGraphHostNodeGetParams(child, &seen));
	INVALID(gpc_cuGraphMemsetNodeGetParams(node, &fill));
	INVALID(gpc_cuGraphMemcpyNodeGetParams(node, &copy));
	CU(gpc_cuGraphEventWaitNodeGetEvent(wait, &found));
	assert_ptr_equal(found, event);
	INVALID(gpc_cuGraphEventRecordNodeGetEvent(wait, &found));
	INVALID(gpc_cuGraphChildGraphNodeGetGraph(node, &inner));
	CU(gpc_cuGraphChildGraphNodeGetGraph(child, &inner));
	INVALID(gpc_cuGraphDestroy(inner)); /* the child's own */
	CU(gpc_cuGraphDestroy(graph));
	INVALID(gpc_cuGraphNodeGetType(node, &type));
}

int
main(void)
{
	(void)unsetenv("CUDA_VISIBLE_DEVICES");
	return unit_tests_run(NULL, NULL);
}
