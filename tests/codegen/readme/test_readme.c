/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The example of codegen/README.md, generated whole, from the application's call to the driver's
 * function and back: stub, record, dispatcher and reply are the generator's; the session between
 * the two ends and the driver are this test's.
 */
#include "client/context/object.h"
#include "client/module/function.h"
#include "client/session/call.h"
#include "client/stream/event.h"
#include "client/stream/stream.h"
#include "gpc_calls.h"
#include "gpd_calls.h"
#include "protocol/frame.h"
#include "server/worker/context/context.h"
#include "server/worker/context/object.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/module/image.h"
#include "server/worker/schedule/schedule.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/event.h"
#include "server/worker/stream/stream.h"
#include "server/worker/trace/gpu_trace.h"
#include "tests/codegen/readme/example.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STREAM ((CUstream)0x51)
#define DRIVER_STREAM ((CUstream)0xd51)
#define CONTEXT ((CUcontext)0xc7)
#define DRIVER_CONTEXT ((CUcontext)0xdc7)

struct gpd_driver gpd_driver;
struct gpd_devices gpd_devices;
static struct gpd_session daemon_session;
static struct gpc_device device = { .ordinal = 0, .remote = 1, .session = (void *)1 };
static struct gpc_context context = { .device = &device };
static struct gpd_context daemon_context = { .device = 1 };
static struct gpd_stream daemon_stream = { .driver = DRIVER_STREAM };
static _Alignas(8) uint8_t record[1 << 16];
static uint8_t *reply_fields;
static size_t reply_size;
static CUresult reply_result;
static char asked[400]; /* the last call of the driver */
static bool violated;

/* The client's session: one record at a time, carried out at once. */
CUresult
gpc_call_begin(struct gpc_call *call, const struct gpc_scope *scope, uint16_t number, size_t size,
	       uint32_t stream)
{
	assert_true(size <= sizeof(record));
	memset(record, 0, sizeof(record));
	call->number = number;
	gp_enc_init(&call->enc, record, sizeof(record));
	return CUDA_SUCCESS;
}

static int
dispatch(struct gpc_call *call, uint32_t request)
{
	struct gp_header header = { .call = call->number, .request = request, .context = 5 };

	gp_enc_pad(&call->enc);
	assert_false(call->enc.bad);
	daemon_session.current.context = header.context;
	return gpd_dispatch(&daemon_session, &header, record, gp_enc_size(&call->enc));
}

CUresult
gpc_call_post(struct gpc_call *call, const struct iovec *bulk, int bulk_count)
{
	assert_int_equal(dispatch(call, 0), 0);
	return CUDA_SUCCESS;
}

CUresult
gpc_call_start(struct gpc_call *call, struct gpc_request *request, const struct iovec *bulk,
	       int bulk_count)
{
	assert_int_equal(dispatch(call, 1), 0);
	request->reply = reply_fields;
	request->reply_size = reply_size;
	request->result = reply_result;
	return CUDA_SUCCESS;
}

CUresult
gpc_request_wait(struct gpc_request *request)
{
	return request->result;
}

int
gpd_session_reply(struct gpd_session *session, uint16_t call, uint32_t request, CUresult result,
		  const void *fields, size_t size)
{
	reply_fields = malloc(size + 1);
	if (size)
		memcpy(reply_fields, fields, size);
	reply_size = size;
	reply_result = result;
	return 0;
}

void
gpc_session_fail(struct gpc_session *session, CUresult result, const char *reason)
{
	fail_msg("%s", reason);
}

void
gpc_session_defer(struct gpc_session *session, CUresult result)
{
	fail();
}

/* The client's objects that are not the example's. */
CUresult
gpc_enter(struct gpc_context **context_p)
{
	*context_p = &context;
	return CUDA_SUCCESS;
}

CUresult
gpc_enter_initialized(void)
{
	return CUDA_SUCCESS;
}

int
gpc_device_count(void)
{
	return 1;
}

struct gpc_device *
gpc_device_get(CUdevice ordinal)
{
	return ordinal == 0 ? &device : NULL;
}

CUresult
gpc_context_lookup(CUcontext handle, struct gpc_context **context_p)
{
	*context_p = &context;
	return handle == CONTEXT ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult
gpc_context_activate(struct gpc_context *given)
{
	return CUDA_SUCCESS;
}

static struct gpc_stream held_stream = { .priority = -3 };

CUresult
gpc_stream_enter(CUstream token, struct gpc_stream **stream_p)
{
	*stream_p = &held_stream;
	return token == STREAM ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult
gpc_device_enter(CUdevice ordinal, struct gpc_device **device_p)
{
	*device_p = gpc_device_get(ordinal);
	return *device_p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

int
gpc_device_attribute(const struct gpc_device *given, CUdevice_attribute attribute)
{
	return (int)attribute + 1000;
}

static struct example example;
static int begun; /* examples that are not ended */

CUresult
example_begin(CUuserObject object, struct example **example_p)
{
	begun++;
	*example_p = &example;
	return object ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult
example_end(CUresult result)
{
	begun--;
	return result;
}

CUresult
gpc_stream_id(struct gpc_context **context_p, CUstream stream, uint32_t *id_p)
{
	*id_p = 51;
	return stream == STREAM ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult
gpc_event_id(CUevent event, uint32_t *id_p)
{
	return CUDA_ERROR_INVALID_HANDLE;
}

CUresult
gpc_function_to_wire(struct gpc_context *given, CUfunction function, uint64_t *kernel_p)
{
	return CUDA_ERROR_INVALID_HANDLE;
}

/* The daemon's. */
CUresult
gpd_context_enter(const struct gpd_session *session, uint32_t id)
{
	return CUDA_SUCCESS;
}

struct gpd_device *
gpd_device_get(int ordinal)
{
	return ordinal >= 0 && ordinal < gpd_devices.count ? &gpd_devices.all[ordinal] : NULL;
}

CUresult
gpd_device_enter(int ordinal)
{
	return CUDA_SUCCESS;
}

bool
gpd_account_may_use(const struct gpd_account *account, int ordinal)
{
	return ordinal == 1;
}

void
gpd_account_throttle_all(struct gpd_account *account, size_t bytes)
{
	fail_msg("%zu bytes in fields of the example", bytes);
}

void
gpd_account_uncharge_code(struct gpd_account *account, uint64_t bytes)
{
	fail_msg("%llu bytes of code of an object of the example", (unsigned long long)bytes);
}

void
gpd_account_launch(struct gpd_account *account)
{
}

void
gpd_stream_launch(struct gpd_session *session, uint32_t stream)
{
}

uint64_t
gpd_trace_begin(const struct gpd_session *session)
{
	return 0;
}

void
gpd_trace_record(struct gpd_session *session, const struct gpd_trace_operation *work)
{
}

struct gpd_context *
gpd_context_get(const struct gpd_session *session, uint32_t id)
{
	return &daemon_context;
}

struct gpd_stream *
gpd_stream_get(const struct gpd_session *session, uint32_t id)
{
	return NULL;
}

CUresult
gpd_stream_begin(struct gpd_session *session, uint32_t id, struct gpd_stream **stream_p)
{
	*stream_p = &daemon_stream;
	return id == 51 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

struct gpd_event *
gpd_event_get(const struct gpd_session *session, uint32_t id)
{
	return NULL;
}

struct gpd_event_ref *
gpd_event_get_ref(const struct gpd_event *event)
{
	return NULL;
}

void
gpd_event_unref(struct gpd_event_ref *ref)
{
}

CUresult
gpd_function_get(struct gpd_session *session, uint64_t kernel, CUfunction *function_p)
{
	return CUDA_ERROR_INVALID_HANDLE;
}

bool
gpd_handle_memory_add(struct gpd_handle_memory *memory, uint64_t bytes)
{
	memory->used += bytes;
	return true;
}

void
gpd_handle_memory_remove(struct gpd_handle_memory *memory, uint64_t bytes)
{
	memory->used -= bytes;
}

void
gpd_handle_memory_fini(struct gpd_handle_memory *memory)
{
}

void
gpd_session_violation(struct gpd_session *session, const char *format, ...)
{
	violated = true;
}

void
gpd_session_poison(struct gpd_session *session, CUresult result)
{
	fail();
}

void
gpd_session_defer(struct gpd_session *session, CUresult result, uint16_t call)
{
	reply_result = result;
}

bool
gpd_driver_is_sticky(CUresult result)
{
	return false;
}

/* The driver: graphs are numbers. */
static uintptr_t next_graph = 0x6000;
static CUresult driver_result;

static CUresult
max_width(size_t *width, CUarray_format format, unsigned int channels, CUdevice dev)
{
	snprintf(asked, sizeof(asked), "format %d channels %u device %d", (int)format, channels,
		 dev);
	*width = 4711;
	return driver_result;
}

static CUresult
graph_create(CUgraph *graph, unsigned int flags)
{
	*graph = (CUgraph)(next_graph += 0x10);
	return driver_result;
}

static CUresult
graph_clone(CUgraph *graph, CUgraph original)
{
	snprintf(asked, sizeof(asked), "clone %#lx", (unsigned long)original);
	return graph_create(graph, 0);
}

static CUresult
graph_destroy(CUgraph graph)
{
	snprintf(asked, sizeof(asked), "destroy %#lx", (unsigned long)graph);
	return driver_result;
}

static CUresult
map_resources(unsigned int count, CUgraphicsResource *resources, CUstream stream)
{
	assert_ptr_equal(stream, DRIVER_STREAM);
	snprintf(asked, sizeof(asked), "map %u, last %#lx", count,
		 (unsigned long)(count ? resources[count - 1] : NULL));
	return driver_result;
}

static CUresult
end_resource(CUgraphicsResource resource)
{
	snprintf(asked, sizeof(asked), "end %#lx", (unsigned long)resource);
	return CUDA_SUCCESS;
}

static CUresult
get_capabilities(unsigned int *capabilities, const CUatomicOperation *operations,
		 unsigned int count, CUdevice source, CUdevice destination)
{
	snprintf(asked, sizeof(asked), "%u operations from %d to %d", count, source, destination);
	for (unsigned int i = 0; i < count; i++)
		capabilities[i] = 100 + operations[i];
	return driver_result;
}

static CUresult
exchange_mode(CUstreamCaptureMode *mode)
{
	snprintf(asked, sizeof(asked), "mode %d", (int)*mode);
	*mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	return driver_result;
}

static CUresult
print(CUgraph graph, const char *path, unsigned int flags)
{
	snprintf(asked, sizeof(asked), "print to '%s'", path);
	return CUDA_SUCCESS;
}

static CUresult
get_name(char *name, int length, CUdevice dev)
{
	snprintf(name, (size_t)length, "a device");
	return CUDA_SUCCESS;
}

static CUresult
link_create(unsigned int count, CUjit_option *options, void **values, CUlinkState *state)
{
	snprintf(asked, sizeof(asked), "%u options, the last %d = %zu", count,
		 (int)options[count - 1], (size_t)values[count - 1]);
	*state = (CUlinkState)0x9000;
	return CUDA_SUCCESS;
}

static CUresult
link_destroy(CUlinkState state)
{
	snprintf(asked, sizeof(asked), "end linker");
	return CUDA_SUCCESS;
}

static int
begin(void **state)
{
	void *lacks = (void *)gpd_driver_unsupported;

	for (size_t i = 0; i < gpd_driver_function_count; i++)
		memcpy((char *)&gpd_driver + gpd_driver_functions[i].offset, &lacks, sizeof(lacks));
	gpd_driver.cuDeviceGetTexture1DLinearMaxWidth = max_width;
	gpd_driver.cuGraphCreate = graph_create;
	gpd_driver.cuGraphClone = graph_clone;
	gpd_driver.cuGraphDestroy = graph_destroy;
	gpd_driver.cuGraphicsMapResources = map_resources;
	gpd_driver.cuGraphicsUnregisterResource = end_resource;
	gpd_driver.cuDeviceGetP2PAtomicCapabilities = get_capabilities;
	gpd_driver.cuThreadExchangeStreamCaptureMode = exchange_mode;
	gpd_driver.cuGraphDebugDotPrint = print;
	gpd_driver.cuDeviceGetName = get_name;
	gpd_driver.cuLinkCreate_v2 = link_create;
	gpd_driver.cuLinkDestroy = link_destroy;
	gpd_devices.count = 2;
	gpd_devices.all[1].device = 11;
	gpd_devices.all[1].primary = DRIVER_CONTEXT;
	device.primary = &context;
	violated = false;
	driver_result = CUDA_SUCCESS;
	reply_result = CUDA_SUCCESS;
	return 0;
}

static int
end(void **state)
{
	gpd_objects_destroy_all(&daemon_session);
	assert_int_equal(daemon_session.handles.memory.used % GPD_HANDLE_CHUNK, 0);
	gpd_handle_fini(&daemon_session.handles);
	return 0;
}

UNIT_TEST_WITH(a_device_is_the_daemons, begin, end)
{
	size_t width = 0;

	assert_int_equal(gpc_cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_HALF, 4, 0),
			 0);
	assert_int_equal(width, 4711);
	assert_string_equal(asked, "format 16 channels 4 device 11");
	assert_int_equal(gpc_cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_HALF, 4, 1),
			 CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(gpc_cuDeviceGetTexture1DLinearMaxWidth(NULL, CU_AD_FORMAT_HALF, 4, 0),
			 CUDA_ERROR_INVALID_VALUE);
	device.remote = 0; /* the session may not use it */
	assert_int_equal(gpc_cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_HALF, 4, 0),
			 CUDA_ERROR_INVALID_DEVICE);
	device.remote = 1;
}

UNIT_TEST_WITH(a_call_missing_in_the_driver_is_not_supported, begin, end)
{
	size_t width = 0;

	gpd_driver.cuDeviceGetTexture1DLinearMaxWidth = (void *)gpd_driver_unsupported;
	assert_int_equal(gpc_cuDeviceGetTexture1DLinearMaxWidth(&width, CU_AD_FORMAT_HALF, 4, 0),
			 CUDA_ERROR_NOT_SUPPORTED);
}

UNIT_TEST_WITH(an_object_is_made_used_and_dropped, begin, end)
{
	CUgraph graph, clone;

	assert_int_equal(gpc_cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphClone(&clone, graph), CUDA_SUCCESS);
	assert_string_equal(asked, "clone 0x6010");
	assert_int_equal(gpc_cuGraphDestroy(graph), CUDA_SUCCESS);
	assert_string_equal(asked, "destroy 0x6010");
	assert_int_equal(gpc_cuGraphDestroy(graph), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(gpc_cuGraphClone(&graph, (CUgraph)STREAM), CUDA_ERROR_INVALID_HANDLE);
	driver_result = CUDA_ERROR_OUT_OF_MEMORY;
	assert_int_equal(gpc_cuGraphCreate(&graph, 0), CUDA_ERROR_OUT_OF_MEMORY);
	driver_result = CUDA_SUCCESS;
	gpd_objects_destroy_all(&daemon_session);
	assert_string_equal(asked, "destroy 0x6020");
	/* The daemon's is gone; a client that does not know it gets an error. */
	assert_int_equal(gpc_cuGraphDestroy(clone), CUDA_ERROR_INVALID_HANDLE);
}

static CUgraphicsResource
make_resource(uintptr_t driver)
{
	struct gpc_object *object;

	assert_int_equal(gpc_object_create(GPC_KIND_RESOURCE, &context, &object), CUDA_SUCCESS);
	assert_int_equal(gpd_object_add(&daemon_session, GPD_KIND_RESOURCE, object->handle.id,
					(void *)driver),
			 CUDA_SUCCESS);
	assert_int_equal(gpd_object_id(&daemon_session, GPD_KIND_RESOURCE, (void *)driver),
			 object->handle.id);
	assert_ptr_equal(gpc_object_from_wire(GPC_KIND_RESOURCE, object->handle.id),
			 object->handle.token);
	return object->handle.token;
}

UNIT_TEST_WITH(lists_of_handles_are_translated, begin, end)
{
	CUgraphicsResource resources[2] = { make_resource(0x7010), make_resource(0x7020) };
	CUgraph graph;

	assert_int_equal(gpc_cuGraphicsMapResources(2, resources, STREAM), CUDA_SUCCESS);
	assert_string_equal(asked, "map 2, last 0x7020");
	assert_int_equal(gpc_cuGraphicsMapResources(0, NULL, STREAM), CUDA_SUCCESS);
	assert_string_equal(asked, "map 0, last 0");
	assert_int_equal(gpc_cuGraphicsMapResources(1, NULL, STREAM), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	resources[1] = (CUgraphicsResource)graph;
	assert_int_equal(gpc_cuGraphicsMapResources(2, resources, STREAM),
			 CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(gpc_cuGraphDestroy(graph), CUDA_SUCCESS);
	gpc_objects_drop_context(&context);
	gpd_objects_destroy_all(&daemon_session);
	assert_string_equal(asked, "end 0x7020");
	assert_int_equal(gpc_cuGraphicsMapResources(1, resources, STREAM),
			 CUDA_ERROR_INVALID_HANDLE);
}

UNIT_TEST_WITH(lists_of_numbers_travel_both_ways, begin, end)
{
	CUatomicOperation operations[] = { CU_ATOMIC_OPERATION_INTEGER_MAX,
					   CU_ATOMIC_OPERATION_EXCHANGE };
	unsigned int capabilities[2] = { 0 };

	assert_int_equal(gpc_cuDeviceGetP2PAtomicCapabilities(capabilities, operations, 2, 0, 0),
			 0);
	assert_string_equal(asked, "2 operations from 11 to 11");
	assert_int_equal(capabilities[0], 100 + CU_ATOMIC_OPERATION_INTEGER_MAX);
	assert_int_equal(capabilities[1], 100 + CU_ATOMIC_OPERATION_EXCHANGE);
	assert_int_equal(gpc_cuDeviceGetP2PAtomicCapabilities(NULL, operations, 2, 0, 0),
			 CUDA_ERROR_INVALID_VALUE);
}

/* The vocabulary's 1 MiB: in the client for a list in, in the daemon for a list out. */
UNIT_TEST_WITH(an_array_that_is_too_large_is_refused, begin, end)
{
	unsigned int many = ((1 << 20) / sizeof(uint64_t)) + 1;
	CUatomicOperation *operations = calloc(many, sizeof(*operations));
	unsigned int *capabilities = calloc(many, sizeof(*capabilities));
	struct gp_args_cuDeviceGetP2PAtomicCapabilities args = { .count = 1 << 20 };
	struct gp_reply_cuDeviceGetP2PAtomicCapabilities reply;
	void *raw;

	assert_int_equal(gpc_cuDeviceGetP2PAtomicCapabilities(capabilities, operations, many, 0, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuDeviceGetP2PAtomicCapabilities(capabilities, operations, 100, 0, 0),
			 CUDA_SUCCESS);
	assert_int_equal(gpc_wait_cuDeviceGetP2PAtomicCapabilities(&context, &args, &reply, &raw),
			 CUDA_ERROR_INVALID_VALUE);
	assert_false(violated);
	free(raw);
	free(capabilities);
	free(operations);
}

UNIT_TEST_WITH(a_number_is_read_and_written, begin, end)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;

	assert_int_equal(gpc_cuThreadExchangeStreamCaptureMode(&mode), CUDA_SUCCESS);
	assert_string_equal(asked, "mode 1");
	assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
	assert_int_equal(gpc_cuThreadExchangeStreamCaptureMode(NULL), CUDA_ERROR_INVALID_VALUE);
	driver_result = CUDA_ERROR_NOT_INITIALIZED;
	mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
	assert_int_equal(gpc_cuThreadExchangeStreamCaptureMode(&mode), CUDA_ERROR_NOT_INITIALIZED);
	assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

UNIT_TEST_WITH(strings_and_bytes_travel, begin, end)
{
	CUgraph graph;
	char name[20];

	assert_int_equal(gpc_cuGraphCreate(&graph, 0), CUDA_SUCCESS);
	assert_int_equal(gpc_cuGraphDebugDotPrint(graph, "a file", 0), CUDA_SUCCESS);
	assert_string_equal(asked, "print to 'a file'");
	assert_int_equal(gpc_cuGraphDestroy(graph), CUDA_SUCCESS);
	assert_int_equal(gpc_cuDeviceGetName(name, sizeof(name), 0), CUDA_SUCCESS);
	assert_string_equal(name, "a device");
}

UNIT_TEST_WITH(options_are_numbers, begin, end)
{
	CUjit_option options[] = { CU_JIT_MAX_REGISTERS, CU_JIT_OPTIMIZATION_LEVEL };
	void *values[] = { (void *)32, (void *)3 };
	CUcontext of;
	CUlinkState linker;

	assert_int_equal(gpc_cuLinkCreate_v2(2, options, values, &linker), CUDA_SUCCESS);
	assert_string_equal(asked, "2 options, the last 7 = 3");
	context.handle.token = CONTEXT;
	assert_int_equal(gpc_cuLinkGetContext(linker, &of), CUDA_SUCCESS);
	assert_ptr_equal(of, CONTEXT);
	assert_int_equal(gpc_cuLinkGetContext((CUlinkState)STREAM, &of), CUDA_ERROR_INVALID_HANDLE);
	options[0] = CU_JIT_WALL_TIME;
	assert_int_equal(gpc_cuLinkCreate_v2(2, options, values, &linker), CUDA_SUCCESS);
	assert_string_equal(asked, "1 options, the last 7 = 3");
	assert_int_equal(gpc_cuLinkCreate_v2(257, options, values, &linker),
			 CUDA_ERROR_INVALID_VALUE);
	options[1] = CU_JIT_INFO_LOG_BUFFER;
	assert_int_equal(gpc_cuLinkCreate_v2(2, options, values, &linker),
			 CUDA_ERROR_NOT_SUPPORTED);
	gpd_objects_destroy_context(&daemon_session, &daemon_context);
	assert_string_equal(asked, "end linker");
}

UNIT_TEST_WITH(the_client_answers_alone_what_it_holds, begin, end)
{
	CUstreamAttrValue value = { 0 };
	char text[8] = "";
	int number;

	assert_int_equal(gpc_cuStreamGetPriority(STREAM, &number), CUDA_SUCCESS);
	assert_int_equal(number, -3);
	assert_int_equal(gpc_cuStreamGetPriority(STREAM, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuStreamGetPriority(NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
	strcpy(device.pci_bus_id, "0000:3B:00.0");
	assert_int_equal(gpc_cuDeviceGetPCIBusId(text, sizeof(text), 0), CUDA_SUCCESS);
	assert_string_equal(text, "0000:3B");
	assert_int_equal(gpc_cuDeviceGetPCIBusId(text, 0, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuDeviceGetPCIBusId(text, 8, 1), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(gpc_cuDeviceGetAttribute(&number, (CUdevice_attribute)23, 0), 0);
	assert_int_equal(number, 1023);
	assert_int_equal(gpc_cuDeviceGetWarpSize(&number, 0), CUDA_SUCCESS);
	assert_int_equal(number, 1000 + CU_DEVICE_ATTRIBUTE_WARP_SIZE);
	assert_int_equal(gpc_cuDeviceGetWarpSize(&number, 1), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(gpc_cuDeviceGetAttribute(&number, (CUdevice_attribute)1024, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpc_cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_EQUAL), CUDA_SUCCESS);
	assert_int_equal(context.cache_config, CU_FUNC_CACHE_PREFER_EQUAL);
	assert_int_equal(gpc_cuCtxSetCacheConfig((CUfunc_cache)7), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(context.cache_config, CU_FUNC_CACHE_PREFER_EQUAL);
	assert_int_equal(gpc_cuStreamSetAttribute(STREAM, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value),
			 CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(gpc_cuStreamSetAttribute(STREAM, CU_LAUNCH_ATTRIBUTE_PRIORITY, NULL),
			 CUDA_ERROR_INVALID_VALUE);
}

UNIT_TEST_WITH(what_begins_with_a_lock_ends_with_it, begin, end)
{
	int number, seven = 0;

	example.kind.number = 2;
	assert_int_equal(gpc_cuUserObjectGetNumber((CUuserObject)&example, &number, &seven), 0);
	assert_int_equal(number + seven, 9);
	assert_int_equal(gpc_cuUserObjectGetNumber((CUuserObject)&example, &number, NULL), 0);
	assert_int_equal(gpc_cuUserObjectGetNumber(NULL, &number, &seven),
			 CUDA_ERROR_INVALID_HANDLE);
	example.kind.number = 3;
	assert_int_equal(gpc_cuUserObjectGetNumber((CUuserObject)&example, &number, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(begun, 0);
}

UNIT_TEST_WITH(the_daemon_checks_options_itself, begin, end)
{
	uint64_t cells[] = { CU_JIT_MAX_REGISTERS, 32, CU_JIT_WALL_TIME, 1, 7, 3 };
	const struct gp_bytes all = { cells, sizeof(cells) };
	CUjit_option options[2];
	unsigned int count = 0;
	void *values[2];

	assert_int_equal(gpd_options_decode_CUjit_option(all, options, values, 2, &count),
			 CUDA_SUCCESS);
	assert_int_equal(count, 2);
	assert_int_equal(options[1], CU_JIT_OPTIMIZATION_LEVEL);
	assert_ptr_equal(values[1], (void *)3);
	assert_int_equal(gpd_options_decode_CUjit_option(all, options, values, 1, &count),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(gpd_options_decode_CUjit_option((struct gp_bytes){ cells, 8 }, options,
							 values, 2, &count),
			 CUDA_ERROR_INVALID_VALUE);
	cells[0] = CU_JIT_INFO_LOG_BUFFER; /* the client's address */
	assert_int_equal(gpd_options_decode_CUjit_option(all, options, values, 2, &count),
			 CUDA_ERROR_NOT_SUPPORTED);
	cells[0] = CU_JIT_MAX_REGISTERS | 1ull << 32;
	assert_int_equal(gpd_options_decode_CUjit_option(all, options, values, 2, &count),
			 CUDA_ERROR_NOT_SUPPORTED);
}

/* A list whose length differs from that in the record. */
UNIT_TEST_WITH(a_hostile_length_ends_the_session, begin, end)
{
	uint64_t cells[1] = { 0 };
	struct gp_args_cuGraphicsMapResources args = { .count = 2,
						       .resources = { cells, sizeof(cells) },
						       .hStream = 51 };

	assert_false(violated);
	assert_int_equal(gpc_post_cuGraphicsMapResources(&context, &args), CUDA_SUCCESS);
	assert_true(violated);
}

UNIT_TEST_MAIN(NULL, NULL)
