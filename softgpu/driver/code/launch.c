/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/driver/code/launch.h"

#include "softgpu/driver/code/binary.h"
#include "softgpu/driver/code/loading.h"
#include "softgpu/driver/context/green.h"
#include "softgpu/driver/stream/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct launch_op {
	struct gs_op op;
	struct gs_launch launch;
	struct gs_kernel *kernel; /* a reference */
	struct gs_green *green;   /* of a graph node: a reference, or NULL */
	uint8_t params[];
};

/* Parameters of a launch. */
struct request {
	uint32_t grid[3];
	uint32_t block[3];
	uint32_t dynamic_shared;
	bool cooperative;
	struct gs_partition *partition; /* partition to which the launch is confined, or NULL */
	bool in_graph;                  /* `green` determines where it runs, not the stream */
	struct gs_green *green;         /* NULL: the whole device */
	const struct gs_graphs *graphs;
	void **params;
	void **extra;
};

static void
launch_run(struct gs_op *op, struct gs_stream *stream)
{
	struct launch_op *launch = (struct launch_op *)op;
	struct gs_error error = { 0 };
	int r;

	if (!gs_loading_begin(stream))
		return;
	launch->launch.cancel = gs_stream_cancel_flag(stream);
	r = gs_launch(&launch->launch, &error);
	gs_loading_end();
	if (r && r != GS_CANCELLED)
		gs_fail((CUresult)r, launch->kernel->info.name, error.text);
}

static void
launch_release(struct gs_op *op)
{
	gs_green_put(((struct launch_op *)op)->green);
	gs_kernel_put(((struct launch_op *)op)->kernel);
	free(op);
}

static CUresult
check_block(const struct gs_kernel *kernel, const struct request *request)
{
	const uint32_t *block = request->block, *required = kernel->info.required_block;
	uint64_t threads;

	if (!block[0] || !block[1] || !block[2] || block[0] > 1024 || block[1] > 1024 ||
	    block[2] > 64)
		return CUDA_ERROR_INVALID_VALUE;
	threads = (uint64_t)block[0] * block[1] * block[2];
	if (threads > GS_BLOCK_THREADS)
		return CUDA_ERROR_INVALID_VALUE;
	if (threads * kernel->info.registers > GS_MULTIPROCESSOR_REGISTERS)
		return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
	if (threads > kernel->info.max_threads)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < 3; i++) {
		if (required[i] && required[i] != block[i])
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

static int
occupancy(const struct gs_kernel *kernel, const struct request *request)
{
	const uint32_t *block = request->block;

	return gs_kernel_occupancy(kernel, (size_t)block[0] * block[1] * block[2],
				   request->dynamic_shared);
}

/* Prints a single line for each kernel, however often it is launched. */
static CUresult
refuse_unsupported(struct gs_kernel *kernel)
{
	if (!__atomic_exchange_n(&kernel->refused, 1, __ATOMIC_RELAXED))
		fprintf(stderr, "gpupool software device: kernel %s cannot run: %s\n",
			kernel->info.name, kernel->info.unsupported);
	return CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult
check_request(struct gs_kernel *kernel, const struct request *request)
{
	const uint32_t *grid = request->grid;
	int shared_max = __atomic_load_n(&kernel->dynamic_shared_max, __ATOMIC_RELAXED);
	uint64_t resident;

	if (kernel->info.unsupported)
		return refuse_unsupported(kernel);
	if (!grid[0] || !grid[1] || !grid[2] || grid[0] > INT32_MAX || grid[1] > 65535 ||
	    grid[2] > 65535 || request->dynamic_shared > (uint32_t)shared_max)
		return CUDA_ERROR_INVALID_VALUE;
	if (check_block(kernel, request))
		return check_block(kernel, request);
	if (!request->cooperative)
		return CUDA_SUCCESS;
	resident = (uint64_t)occupancy(kernel, request) *
		   (request->partition ? request->partition->count
				       : (uint64_t)gs_device_multiprocessors());
	if ((unsigned __int128)grid[0] * grid[1] * grid[2] > resident)
		return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	return CUDA_SUCCESS;
}

/* {name, value} pairs, terminated by CU_LAUNCH_PARAM_END. */
static CUresult
copy_extra(const struct gs_function_info *info, void **extra, uint8_t *params)
{
	const void *buffer = NULL;
	size_t size = 0;

	for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
		if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
			buffer = extra[1];
		else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE)
			size = *(const size_t *)extra[1];
		else
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (size < info->param_bytes || (size && !buffer))
		return CUDA_ERROR_INVALID_VALUE;
	if (info->param_bytes)
		memcpy(params, buffer, info->param_bytes);
	return CUDA_SUCCESS;
}

static CUresult
copy_params(const struct gs_function_info *info, const struct request *request, uint8_t *params)
{
	if (request->extra && request->params)
		return CUDA_ERROR_INVALID_VALUE;
	if (request->extra)
		return copy_extra(info, request->extra, params);
	if (info->param_count && !request->params)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < info->param_count; i++) {
		if (!request->params[i])
			return CUDA_ERROR_INVALID_VALUE;
		memcpy(params + info->params[i].offset, request->params[i], info->params[i].size);
	}
	return CUDA_SUCCESS;
}

/* Saturates at UINT64_MAX. */
static uint64_t
count_threads(const struct request *request)
{
	unsigned __int128 threads = 1;

	for (unsigned int i = 0; i < 3; i++)
		threads *= (unsigned __int128)request->grid[i] * request->block[i];
	return threads < UINT64_MAX ? (uint64_t)threads : UINT64_MAX;
}

static CUresult
prepare(struct launch_op *op, struct gs_kernel *kernel, const struct request *request)
{
	struct gs_launch *launch = &op->launch;
	CUresult r = copy_params(&kernel->info, request, op->params);

	if (r)
		return r;
	launch->function = kernel->engine;
	memcpy(launch->grid, request->grid, sizeof(launch->grid));
	memcpy(launch->block, request->block, sizeof(launch->block));
	launch->dynamic_shared = request->dynamic_shared;
	launch->params = op->params;
	launch->params_size = kernel->info.param_bytes;
	launch->cooperative = request->cooperative;
	launch->multiprocessors = (uint32_t)gs_device_multiprocessors();
	launch->partition = request->partition;
	if (request->partition)
		launch->resident_blocks = (uint32_t)occupancy(kernel, request);
	launch->graphs = request->graphs;
	launch->print = gs_print_append;
	launch->print_error = gs_print_error;
	if (kernel->info.local_bytes > GS_LOCAL_FREE)
		r = gs_context_local(kernel->code->device, kernel->info.local_bytes,
				     count_threads(request));
	if (r)
		return r;
	return kernel->info.uses_heap ? gs_context_heap(&launch->heap) : CUDA_SUCCESS;
}

/* Transfers the kernel's reference to the operation, or drops it. */
static CUresult
submit(struct gs_kernel *kernel, const struct request *asked, struct gs_stream *stream)
{
	struct request request = *asked;
	struct gs_green *green = request.in_graph ? request.green : gs_stream_green(stream);
	struct launch_op *op = NULL;
	CUresult r;

	/* The stream keeps its green context alive until all its work is done. */
	if (green)
		request.partition = gs_green_partition(green);
	r = check_request(kernel, &request);
	if (!r) {
		op = calloc(1, sizeof(*op) + kernel->info.param_bytes);
		r = op ? prepare(op, kernel, &request) : CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (r) {
		free(op);
		gs_kernel_put(kernel);
		return r;
	}
	op->op.run = launch_run;
	op->op.release = launch_release;
	op->kernel = kernel;
	op->green = gs_green_ref(request.green);
	return gs_stream_submit(stream, &op->op, NULL);
}

static CUresult
launch_kernel(CUfunction function, const struct request *request, CUstream handle)
{
	struct gs_kernel *kernel;
	struct gs_stream *stream;
	CUresult r = gs_enter();

	if (r)
		return r;
	gs_loading_pass();
	kernel = gs_kernel_get(function);
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	stream = gs_stream_get(handle);
	if (!stream) {
		gs_kernel_put(kernel);
		return gs_stream_missing(handle);
	}
	r = gs_kernel_on(&kernel, gs_stream_device(stream));
	if (r)
		gs_kernel_put(kernel);
	else
		r = submit(kernel, request, stream);
	gs_stream_put(stream);
	return r;
}

CUresult CUDAAPI
cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z,
	       unsigned int block_x, unsigned int block_y, unsigned int block_z,
	       unsigned int dynamic_shared, CUstream stream, void **params, void **extra)
{
	const struct request request = { .grid = { grid_x, grid_y, grid_z },
					 .block = { block_x, block_y, block_z },
					 .dynamic_shared = dynamic_shared,
					 .params = params,
					 .extra = extra };

	return launch_kernel(function, &request, stream);
}

CUresult CUDAAPI
cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
			  unsigned int grid_z, unsigned int block_x, unsigned int block_y,
			  unsigned int block_z, unsigned int dynamic_shared, CUstream stream,
			  void **params)
{
	const struct request request = { .grid = { grid_x, grid_y, grid_z },
					 .block = { block_x, block_y, block_z },
					 .dynamic_shared = dynamic_shared,
					 .cooperative = true,
					 .params = params };

	return launch_kernel(function, &request, stream);
}

static bool
is_one_block(unsigned int x, unsigned int y, unsigned int z)
{
	return x <= 1 && y <= 1 && z <= 1;
}

static CUresult
apply_attribute(const CUlaunchAttribute *attr, struct request *request)
{
	const CUlaunchAttributeValue *value = &attr->value;

	switch (attr->id) {
	case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
		request->cooperative = value->cooperative != 0;
		return CUDA_SUCCESS;
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
		return is_one_block(value->clusterDim.x, value->clusterDim.y, value->clusterDim.z)
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_NOT_SUPPORTED;
	/* Hints, or permissions that need not be used. */
	case CU_LAUNCH_ATTRIBUTE_IGNORE:
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
	case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
	case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
	case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
	case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
	case CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

static CUresult
read_config(const CUlaunchConfig *config, void **params, void **extra, struct request *request)
{
	CUresult r = CUDA_SUCCESS;

	if (!config || (config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	*request = (struct request){
		.grid = { config->gridDimX, config->gridDimY, config->gridDimZ },
		.block = { config->blockDimX, config->blockDimY, config->blockDimZ },
		.dynamic_shared = config->sharedMemBytes,
		.params = params,
		.extra = extra,
	};
	for (unsigned int i = 0; !r && i < config->numAttrs; i++)
		r = apply_attribute(&config->attrs[i], request);
	return r;
}

CUresult CUDAAPI
cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
	struct request request;
	CUresult r = gs_enter();

	if (!r)
		r = read_config(config, params, extra, &request);
	return r ? r : launch_kernel(function, &request, config->hStream);
}

CUresult
gs_launch_node(const CUlaunchConfig *config, CUfunction function, void **extra,
	       struct gs_green *green, const struct gs_graphs *graphs)
{
	struct request request;
	CUresult r = read_config(config, NULL, extra, &request);

	request.in_graph = true;
	request.green = green;
	request.graphs = graphs;
	return r ? r : launch_kernel(function, &request, config->hStream);
}

CUresult
gs_launch_check(const CUlaunchConfig *config, CUfunction function, void **params, void **extra,
		struct gs_green *green, size_t *params_size_p)
{
	struct gs_kernel *kernel = gs_kernel_get(function);
	struct request request;
	CUresult r;

	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	*params_size_p = kernel->info.param_bytes;
	r = read_config(config, params, extra, &request);
	if (!r && green)
		request.partition = gs_green_partition(green);
	if (!r)
		r = check_request(kernel, &request);
	gs_kernel_put(kernel);
	return r;
}

CUresult
gs_launch_params(CUfunction function, void **params, void **extra, uint8_t *packed)
{
	const struct request request = { .params = params, .extra = extra };
	struct gs_kernel *kernel = gs_kernel_get(function);
	CUresult r;

	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	r = copy_params(&kernel->info, &request, packed);
	gs_kernel_put(kernel);
	return r;
}
