/* SPDX-License-Identifier: Apache-2.0 */
#include "client/module/launch.h"

#include "client/base/config.h"
#include "client/base/stats.h"
#include "client/base/unsupported_feature.h"
#include "client/context/device.h"
#include "client/host/coherence.h"
#include "client/host/pending_copy.h"
#include "client/memory/host_memory.h"
#include "client/module/image.h"
#include "client/module/launch_shape.h"
#include "client/pages/pages.h"
#include "client/session/session.h"
#include "client/stream/event.h"
#include "client/stream/stream.h"
#include "client/stream/stream_managed.h"
#include "gpc_calls.h"
#include "protocol/frame.h"
#include "protocol/image_info.h"

#include <stdlib.h>
#include <string.h>

/* All flags of cuLaunchCooperativeKernelMultiDevice(). */
#define LIST_FLAGS_ALL                                                                             \
	(CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC |                                 \
	 CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC)

/* Maximum size of parameters packed on the stack; larger ones use the heap. */
#define PARAMS_SMALL 4096

/* The packed parameters of one launch. */
struct params {
	struct gp_bytes bytes;
	void *heap;
	uint64_t small[PARAMS_SMALL / 8];
};

/* Most parameters have 4 or 8 bytes; for these memcpy() is inlined. */
static inline void
param_copy(char *to, const void *from, size_t size)
{
	if (size == 8)
		memcpy(to, from, 8);
	else if (size == 4)
		memcpy(to, from, 4);
	else
		memcpy(to, from, size);
}

/* The end of the last parameter; parameters are sorted by offset (protocol/image_info.h). */
static size_t
params_size(const struct gp_kernel_info *info)
{
	const struct gp_param_info *last;

	if (info->param_count == 0)
		return 0;
	last = &info->params[info->param_count - 1];
	return (size_t)last->offset + last->size;
}

static CUresult
params_pack(struct params *params, const struct gp_kernel_info *info, void **values)
{
	size_t size = params_size(info), at = 0;
	char *buffer = (char *)params->small;

	if (size == 0)
		return CUDA_SUCCESS;
	if (size > GP_LAUNCH_PARAMS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	if (size > sizeof(params->small)) {
		params->heap = malloc(size);
		if (!params->heap)
			return CUDA_ERROR_OUT_OF_MEMORY;
		buffer = params->heap;
	}
	for (uint32_t i = 0; i < info->param_count; i++) {
		const struct gp_param_info *param = &info->params[i];

		if (!values[i])
			return CUDA_ERROR_INVALID_VALUE;
		while (at < param->offset)
			buffer[at++] = 0;
		param_copy(buffer + at, values[i], param->size);
		at += param->size;
	}
	params->bytes = (struct gp_bytes){ buffer, size };
	return CUDA_SUCCESS;
}

/* Copies parameters that the program has packed itself. That buffer must not be modified, and it
 * may be managed memory, which must not be accessed while a launch is being posted. Missing bytes
 * become zero. */
static CUresult
params_make_private(struct params *params, size_t least)
{
	size_t packed = params->bytes.size;
	char *copy;

	if (params->heap || params->bytes.data == params->small)
		return CUDA_SUCCESS;
	copy = calloc(1, (packed > least ? packed : least) + 1);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(copy, params->bytes.data, packed);
	params->heap = copy;
	params->bytes = (struct gp_bytes){ copy, packed > least ? packed : least };
	return CUDA_SUCCESS;
}

/* cuLaunchKernel's extra: the application has packed the parameters itself, perhaps only the first
 * of them. NCCL's kernels have 4 KiB of parameters, of which it packs those it uses. */
static CUresult
params_parse_extra(struct params *params, const struct gp_kernel_info *info, void **extra)
{
	size_t wanted = params_size(info);
	const size_t *size = NULL;
	const void *buffer = NULL;

	for (int i = 0; extra[i] != CU_LAUNCH_PARAM_END; i += 2) {
		if (extra[i] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[i + 1];
		else if (extra[i] == CU_LAUNCH_PARAM_BUFFER_SIZE)
			size = extra[i + 1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (!buffer || !size || *size > GP_LAUNCH_PARAMS_MAX || wanted > GP_LAUNCH_PARAMS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	params->bytes = (struct gp_bytes){ buffer, *size };
	return *size < wanted || gpc_pages_any() ? params_make_private(params, wanted)
						 : CUDA_SUCCESS;
}

static CUresult
params_parse(struct params *params, const struct gp_kernel_info *info, void **values, void **extra)
{
	params->bytes = (struct gp_bytes){ 0 };
	params->heap = NULL;
	/* cuLaunchKernel allows kernelParams or extra, not both. */
	if (values && extra)
		return CUDA_ERROR_INVALID_VALUE;
	if (extra)
		return params_parse_extra(params, info, extra);
	if (!values)
		return info->param_count > 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	return params_pack(params, info, values);
}

CUresult
gpc_launch_params_pack(const struct gp_kernel_info *info, void **values, void **extra,
		       void **packed_p, size_t *size_p)
{
	struct params params;
	CUresult result = params_parse(&params, info, values, extra);

	*packed_p = params.heap;
	*size_p = params.bytes.size;
	if (result != CUDA_SUCCESS || params.heap || params.bytes.size == 0)
		return result;
	*packed_p = malloc(params.bytes.size);
	if (!*packed_p)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(*packed_p, params.bytes.data, params.bytes.size);
	return CUDA_SUCCESS;
}

static bool
dimension_is_valid(const struct gpc_device *device, unsigned int value, CUdevice_attribute limit)
{
	return value > 0 && value <= (unsigned int)gpc_device_attribute(device, limit);
}

/* The error for a block that exceeds the kernel's limit: the driver distinguishes exceeded
 * registers (701) from exceeded launch bounds (1). */
static CUresult
block_size_error(const struct gpc_device *device, const struct gpc_function *function,
		 uint64_t threads)
{
	uint64_t available =
		(uint64_t)gpc_device_attribute(device, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK);
	int registers;

	if (gpc_function_get_attribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS, &registers) &&
	    threads * (uint64_t)registers > available)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	return CUDA_ERROR_INVALID_VALUE;
}

/* Checks only what the driver refuses at once and what is known here. */
CUresult
gpc_launch_check(const struct gpc_device *device, const struct gpc_function *function,
		 const CUlaunchConfig *config)
{
	uint64_t threads = (uint64_t)config->blockDimX * config->blockDimY * config->blockDimZ;
	CUresult result = gpc_function_check_supported(function);
	int most;

	if (result != CUDA_SUCCESS)
		return result;
	if (!dimension_is_valid(device, config->gridDimX, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) ||
	    !dimension_is_valid(device, config->gridDimY, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y) ||
	    !dimension_is_valid(device, config->gridDimZ, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z) ||
	    !dimension_is_valid(device, config->blockDimX, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X) ||
	    !dimension_is_valid(device, config->blockDimY, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y) ||
	    !dimension_is_valid(device, config->blockDimZ, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z) ||
	    threads > (uint64_t)gpc_device_attribute(device,
						     CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; config->attrs && i < config->numAttrs; i++) {
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW &&
		    !gpc_access_window_is_valid(device, &config->attrs[i].value.accessPolicyWindow))
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (gpc_function_get_attribute(function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &most) &&
	    threads > (uint64_t)most)
		return block_size_error(device, function, threads);
	if (gpc_function_get_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
				       &most) &&
	    config->sharedMemBytes > (unsigned int)most)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUevent
gpc_launch_get_event(const CUlaunchAttribute *attribute)
{
	switch ((unsigned int)attribute->id) {
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
		return attribute->value.programmaticEvent.event;
	case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
		return attribute->value.launchCompletionEvent.event;
	default:
		return NULL;
	}
}

CUresult
gpc_launch_check_events(const CUlaunchConfig *config)
{
	CUresult result = CUDA_SUCCESS;
	struct gpc_event *event;

	if (config->numAttrs > GPC_STREAM_LAUNCH_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; config->attrs && i < config->numAttrs && result == CUDA_SUCCESS;
	     i++) {
		if (gpc_launch_get_event(&config->attrs[i]))
			result = gpc_event_lookup(gpc_launch_get_event(&config->attrs[i]), &event);
	}
	return result;
}

static CUresult
events_record(const CUlaunchConfig *config)
{
	CUresult result = CUDA_SUCCESS;

	for (unsigned int i = 0; i < config->numAttrs && result == CUDA_SUCCESS; i++) {
		if (gpc_launch_get_event(&config->attrs[i]))
			result = gpc_cuEventRecordWithFlags(gpc_launch_get_event(&config->attrs[i]),
							    config->hStream,
							    CU_EVENT_RECORD_DEFAULT);
	}
	return result;
}

/* Extracts the attributes for which the driver may refuse a launch. */
static CUresult
attribute_parse(struct gpc_launch_attributes *attributes, const CUlaunchAttribute *attribute)
{
	const CUlaunchAttributeValue *value = &attribute->value;

	switch ((unsigned int)attribute->id) {
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		attributes->cooperative = value->cooperative != 0;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
		attributes->cluster[0] = value->clusterDim.x;
		attributes->cluster[1] = value->clusterDim.y;
		attributes->cluster[2] = value->clusterDim.z;
		attributes->clustered = true;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
		attributes->preferred[0] = value->preferredClusterDim.x;
		attributes->preferred[1] = value->preferredClusterDim.y;
		attributes->preferred[2] = value->preferredClusterDim.z;
		attributes->clustered = true;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
		attributes->policy = (uint32_t)value->clusterSchedulingPolicyPreference;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
		attributes->carveout = 1 + value->sharedMemCarveout;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
		return CUDA_SUCCESS;
	default:
		return gpc_not_supported(GPC_UNSUPPORTED_LAUNCH_ATTRIBUTE);
	}
}

CUresult
gpc_launch_attributes_encode(const CUlaunchConfig *config, struct gpc_launch_attributes *attributes)
{
	struct gp_enc enc;
	CUresult result = CUDA_SUCCESS;

	memset(attributes, 0, offsetof(struct gpc_launch_attributes, memory));
	if (config->numAttrs > 0 && !config->attrs)
		return CUDA_ERROR_INVALID_VALUE;
	gp_enc_init(&enc, attributes->memory, sizeof(attributes->memory));
	for (unsigned int i = 0; i < config->numAttrs && result == CUDA_SUCCESS; i++) {
		uint64_t value[8];

		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_IGNORE ||
		    gpc_launch_get_event(&config->attrs[i]))
			continue;
		result = attribute_parse(attributes, &config->attrs[i]);
		_Static_assert(sizeof(config->attrs[i].value) == sizeof(value),
			       "a launch attribute is 64 bytes");
		memcpy(value, &config->attrs[i].value, sizeof(value));
		gp_enc_u32(&enc, config->attrs[i].id);
		gp_enc_u32(&enc, 0);
		for (int word = 0; word < 8; word++)
			gp_enc_u64(&enc, value[word]);
	}
	if (result == CUDA_SUCCESS && enc.bad)
		result = CUDA_ERROR_INVALID_VALUE;
	attributes->bytes = (struct gp_bytes){ attributes->memory, gp_enc_size(&enc) };
	return result;
}

/* With CUDA_LAUNCH_BLOCKING (finish) the kernel has completed when the launch returns. */
static CUresult
launch_submit_and_wait(struct gpc_context *context, const struct gp_args_gpLaunch *args,
		       bool finish)
{
	struct gp_args_cuStreamSynchronize stream = { .hStream = args->stream };
	struct gpc_session *session = context->scope.session;
	struct gpc_coherence_fetch *fetch;
	CUresult result;

	_Static_assert(sizeof(struct gp_args_gpLaunch) == sizeof(struct gp_args_gpLaunchChecked),
		       "the two launches have the same arguments");
	result = gpc_wait_gpLaunchChecked(context, (const struct gp_args_gpLaunchChecked *)args);
	if (result != CUDA_SUCCESS || !finish)
		return result;
	fetch = gpc_coherence_before_wait(session, GP_HOST_AFTER_STREAM, args->stream,
					  GP_CALL_cuStreamSynchronize);
	result = gpc_wait_cuStreamSynchronize(context, &stream);
	return gpc_coherence_after_wait(session, fetch, result);
}

static CUresult
params_translate(struct gpc_context *context, struct params *params,
		 const struct gp_kernel_info *kernel)
{
	CUresult result = params_make_private(params, 0);

	return result == CUDA_SUCCESS
		       ? gpc_host_memory_translate(context, (void *)(uintptr_t)params->bytes.data,
						   params->bytes.size, kernel)
		       : result;
}

/* Synchronizes the host memory that the kernel can access with what the program has written. */
static CUresult
launch_prepare(struct gpc_context *context, uint32_t stream, struct params *params,
	       const struct gp_kernel_info *kernel)
{
	CUresult result = gpc_host_memory_scan_parameters(context, params->bytes.data,
							  params->bytes.size, kernel);

	if (result == CUDA_SUCCESS &&
	    gpc_host_memory_must_translate(params->bytes.data, params->bytes.size, kernel))
		result = params_translate(context, params, kernel);
	return result == CUDA_SUCCESS ? gpc_pending_copy_before_work(&context->scope, stream)
				      : result;
}

static CUresult
launch_submit(struct gpc_context *context, const struct gp_args_gpLaunch *args, bool wait,
	      bool finish)
{
	CUresult result = wait ? launch_submit_and_wait(context, args, finish)
			       : gpc_post_gpLaunch(context, args);

	/* Marked after posting: a fence sent in between does not cover the launch. */
	(void)gpc_session_work_mark(context->scope.session);
	return result;
}

/* Sends the managed memory that the kernel may use before the launch. */
static CUresult
launch_submit_managed(struct gpc_stream *stream, const struct gp_args_gpLaunch *args, bool wait,
		      bool finish)
{
	CUresult result = gpc_managed_begin(stream->context->scope.session);

	if (result != CUDA_SUCCESS)
		return result;
	result = launch_submit(stream->context, args, wait, finish);
	gpc_managed_end(stream);
	return result;
}

static CUresult
kernel_launch(const CUlaunchConfig *config, CUfunction f, void **values, void **extra)
{
	struct gpc_launch_attributes attributes;
	struct gpc_stream_launch merged;
	struct gp_args_gpLaunch args;
	struct gpc_function *function;
	struct gpc_context *context;
	struct gpc_stream *stream;
	struct params params;
	struct gpc_launch_shape check;
	bool blocking = gpc_config_launch_blocking();
	CUresult result = gpc_enter(&context);

	if (result == CUDA_SUCCESS)
		result = gpc_function_lookup(NULL, f, &function);
	if (result == CUDA_SUCCESS)
		result = gpc_stream_lookup(context, config->hStream, &stream);
	if (result == CUDA_SUCCESS) {
		context = stream->context;
		args.stream = stream->handle.id;
		if (__builtin_expect(atomic_load_explicit(&stream->attributes_set,
							  memory_order_relaxed) != 0,
				     0))
			config = gpc_stream_launch(stream, config, &merged);
		result = gpc_function_get_twin(function, context, &function);
	}
	/* The parameter layout of an absent kernel is unknown. */
	if (result == CUDA_SUCCESS && function->info->absent)
		result = CUDA_ERROR_INVALID_IMAGE;
	if (result == CUDA_SUCCESS)
		result = gpc_launch_check_events(config);
	if (result == CUDA_SUCCESS)
		result = gpc_launch_check(context->device, function, config);
	if (result == CUDA_SUCCESS)
		result = gpc_launch_attributes_encode(config, &attributes);
	if (result == CUDA_SUCCESS && __builtin_expect(function->image->reference_calls != NULL, 0))
		result =
			function->image->reference_calls->bind_references(function->image, context);
	if (result != CUDA_SUCCESS)
		return result;
	args.kernel = GP_KERNEL(function->image->handle.id, function->index);
	args.grid_x = config->gridDimX;
	args.grid_y = config->gridDimY;
	args.grid_z = config->gridDimZ;
	args.block_x = config->blockDimX;
	args.block_y = config->blockDimY;
	args.block_z = config->blockDimZ;
	args.shared = config->sharedMemBytes;
	args.attributes = attributes.bytes;
	result = params_parse(&params, function->info, values, extra);
	if (result == CUDA_SUCCESS)
		result = launch_prepare(context, args.stream, &params, function->info);
	args.params = params.bytes;
	if (result == CUDA_SUCCESS) {
		gpc_stats_launch();
		gpc_launch_shape_init(&check, context, function, config, &attributes,
				      stream->green ? stream->green->handle.id : 0);
		gpc_launch_shape_query(&check);
		result = gpc_pages_any() ? launch_submit_managed(stream, &args,
								 check.needed || blocking, blocking)
					 : launch_submit(context, &args, check.needed || blocking,
							 blocking);
		if (result == CUDA_SUCCESS && __builtin_expect(check.needed, 0))
			gpc_launch_shape_store(&check);
		if (function->image->info->prints)
			gpc_session_note_visible(context->scope.session);
		gpc_coherence_after_work(context->scope.session);
	}
	free(params.heap);
	return result == CUDA_SUCCESS ? events_record(config) : result;
}

CUresult
gpc_cuLaunchKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
		   unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
		   unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
		   void **kernelParams, void **extra)
{
	const CUlaunchConfig config = { GPC_LAUNCH_SHAPE };

	return kernel_launch(&config, f, kernelParams, extra);
}

CUresult
gpc_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
	return config ? kernel_launch(config, f, kernelParams, extra) : CUDA_ERROR_INVALID_VALUE;
}

CUresult
gpc_cuLaunchCooperativeKernel(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
			      unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
			      unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
			      void **kernelParams)
{
	CUlaunchAttribute cooperative = { .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
					  .value.cooperative = 1 };
	const CUlaunchConfig config = { GPC_LAUNCH_SHAPE, .attrs = &cooperative, .numAttrs = 1 };

	return kernel_launch(&config, f, kernelParams, NULL);
}

CUresult
gpc_cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *launchParamsList,
					 unsigned int numDevices, unsigned int flags)
{
	const CUDA_LAUNCH_PARAMS *one = launchParamsList;
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS)
		return result;
	if (!one || numDevices == 0 || flags > LIST_FLAGS_ALL)
		return CUDA_ERROR_INVALID_VALUE;
	if (numDevices > 1)
		return gpc_not_supported(GPC_UNSUPPORTED_SEVERAL_DEVICES);
	if (!one->function || !one->hStream)
		return CUDA_ERROR_INVALID_HANDLE;
	if (one->hStream == CU_STREAM_LEGACY || one->hStream == CU_STREAM_PER_THREAD)
		return CUDA_ERROR_INVALID_VALUE;
	return gpc_cuLaunchCooperativeKernel(one->function, one->gridDimX, one->gridDimY,
					     one->gridDimZ, one->blockDimX, one->blockDimY,
					     one->blockDimZ, one->sharedMemBytes, one->hStream,
					     one->kernelParams);
}
