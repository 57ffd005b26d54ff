/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: cuMemset*. */
#include "client/context/context.h"
#include "client/copy/copy_between.h"
#include "client/host/coherence.h"
#include "client/host/late_copy.h"
#include "client/host/pending_copy.h"
#include "client/memory/address.h"
#include "client/memory/host_memory.h"
#include "client/memory/pointer.h"
#include "client/session/session.h"
#include "client/stream/stream.h"
#include "client/stream/stream_managed.h"
#include "gpc_calls.h"

#include <stdlib.h>
#include <string.h>

/* Computes the number of bytes from the first to the last. Returns false if the range is
 * invalid. */
static bool
fill_get_span(const struct gp_args_gpFill *args, uint64_t *span_p)
{
	uint64_t width, rows;

	if (__builtin_mul_overflow(args->width, (uint64_t)args->element_size, &width))
		return false;
	if (args->height == 1) {
		*span_p = width;
		return true;
	}
	return args->pitch >= width && args->pitch % args->element_size == 0 &&
	       !__builtin_mul_overflow(args->pitch, args->height - 1, &rows) &&
	       !__builtin_add_overflow(rows, width, span_p);
}

static void
fill_row(uint8_t *row, const struct gp_args_gpFill *args)
{
	for (uint64_t i = 0; i < args->width; i++)
		memcpy(row + i * args->element_size, &args->value, args->element_size);
}

static void
fill_rows(const struct gp_args_gpFill *args)
{
	for (uint64_t y = 0; y < args->height; y++)
		fill_row((uint8_t *)(uintptr_t)args->dst + y * args->pitch, args);
}

struct late_fill {
	struct gpc_late_copy late;
	struct gp_args_gpFill args;
};

/* The stream has reached the fill. Kernels may have started to access the memory since it was
 * posted. */
static CUresult
late_fill_run(struct gpc_late_copy *late)
{
	fill_rows(&((struct late_fill *)late)->args);
	return gpc_coherence_before_work(late->session);
}

static void
late_fill_destroy(struct gpc_late_copy *late)
{
	free(late);
}

static CUresult
late_fill_post(struct gpc_stream *stream, const struct gp_args_gpFill *args, uint64_t size)
{
	struct late_fill *fill_run = calloc(1, sizeof(*fill_run));

	if (!fill_run)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*fill_run = (struct late_fill){
		.late = { .session = stream->context->scope.session,
			  .start = args->dst,
			  .end = args->dst + size,
			  .send = late_fill_run,
			  .destroy = late_fill_destroy },
		.args = *args,
	};
	return gpc_late_copy_post(&stream->context->scope, stream->handle.id, &fill_run->late);
}

/* Fills pinned memory of this process after the stream's earlier work, which may depend on the
 * caller. Copies of other streams are not waited for, since they may depend on the caller's next
 * action. */
static CUresult
fill_host(struct gpc_stream *stream, const struct gp_args_gpFill *args, uint64_t size, bool async)
{
	CUresult result;

	if (!gpc_stream_is_known_idle(stream) && (async || !stream->legacy)) {
		result = late_fill_post(stream, args, size);
		return result == CUDA_SUCCESS && !async ? gpc_stream_fence(stream) : result;
	}
	result = gpc_stream_fence(stream);
	if (result == CUDA_SUCCESS)
		fill_rows(args);
	return result;
}

static CUresult
fill_post(struct gpc_stream *stream, const struct gp_args_gpFill *args)
{
	CUresult result = gpc_post_gpFill(stream->context, args);

	(void)gpc_session_work_mark(stream->context->scope.session);
	return result;
}

static CUresult
fill_post_managed(struct gpc_stream *stream, const struct gp_args_gpFill *args, uint64_t size)
{
	CUresult result = gpc_managed_begin_copy(stream, args->dst, size, 0, 0);

	if (result != CUDA_SUCCESS)
		return result;
	result = fill_post(stream, args);
	gpc_managed_end(stream);
	return result;
}

static CUresult
fill_run(struct gpc_stream *stream, struct gp_args_gpFill *args, bool async)
{
	struct gpc_address found;
	uint64_t size;
	bool changed;
	CUresult result;

	if (args->width == 0 || args->height == 0)
		return CUDA_SUCCESS;
	if (args->dst % args->element_size != 0 || !fill_get_span(args, &size))
		return CUDA_ERROR_INVALID_VALUE;
	gpc_address_lookup(args->dst, &found);
	if ((found.kind != GPC_ADDRESS_DEVICE && found.kind != GPC_ADDRESS_HOST) ||
	    size > found.size - (args->dst - found.base))
		return CUDA_ERROR_INVALID_VALUE;
	if (found.kind == GPC_ADDRESS_HOST && !gpc_host_memory_get_device_address(&args->dst, size))
		return fill_host(stream, args, size, async);
	if (args->height > 1 && args->pitch == args->width * args->element_size) {
		args->width *= args->height;
		args->height = 1;
	}
	if (args->height == 1)
		args->pitch = args->width * args->element_size;
	result = gpc_copy_route(&stream, args->dst, &changed);
	if (result != CUDA_SUCCESS)
		return result;
	args->stream = stream->handle.id;
	/* Earlier writes of the program must not overwrite the fill later, and must be visible to
	 * work that the fill releases. */
	if (found.kind == GPC_ADDRESS_HOST ||
	    gpc_session_awaits_host(stream->context->scope.session))
		result = gpc_pending_copy_before_work(&stream->context->scope, stream->handle.id);
	if (found.kind == GPC_ADDRESS_HOST && result == CUDA_SUCCESS)
		result = gpc_pending_copy_order(&stream->context->scope, stream->handle.id);
	if (result != CUDA_SUCCESS)
		return result;
	result = found.managed ? fill_post_managed(stream, args, size) : fill_post(stream, args);
	gpc_coherence_after_work(stream->context->scope.session);
	if (result == CUDA_SUCCESS &&
	    (changed || (!async && (found.kind == GPC_ADDRESS_HOST || found.managed ||
				    gpc_pointer_is_synchronous(args->dst)))))
		result = gpc_stream_fence(stream);
	return result;
}

static CUresult
fill_memory(CUstream hStream, bool async, CUdeviceptr dst, size_t pitch, unsigned int element_size,
	    unsigned int value, size_t width, size_t height)
{
	struct gp_args_gpFill args = {
		.dst = dst,
		.pitch = pitch,
		.element_size = element_size,
		.value = value,
		.width = width,
		.height = height,
	};
	struct gpc_stream *stream;
	CUresult result = gpc_stream_enter(hStream, &stream);

	return result == CUDA_SUCCESS ? fill_run(stream, &args, async) : result;
}

/* Defines the four functions for one element type. */
#define MEMSET(bits, type)                                                                         \
	CUresult gpc_cuMemsetD##bits##_v2(CUdeviceptr dst, type value, size_t count)               \
	{                                                                                          \
		return fill_memory(NULL, false, dst, 0, sizeof(value), value, count, 1);           \
	}                                                                                          \
	CUresult gpc_cuMemsetD##bits##Async(CUdeviceptr dst, type value, size_t count,             \
					    CUstream hStream)                                      \
	{                                                                                          \
		return fill_memory(hStream, true, dst, 0, sizeof(value), value, count, 1);         \
	}                                                                                          \
	CUresult gpc_cuMemsetD2D##bits##_v2(CUdeviceptr dst, size_t pitch, type value,             \
					    size_t width, size_t height)                           \
	{                                                                                          \
		return fill_memory(NULL, false, dst, pitch, sizeof(value), value, width, height);  \
	}                                                                                          \
	CUresult gpc_cuMemsetD2D##bits##Async(CUdeviceptr dst, size_t pitch, type value,           \
					      size_t width, size_t height, CUstream hStream)       \
	{                                                                                          \
		return fill_memory(hStream, true, dst, pitch, sizeof(value), value, width,         \
				   height);                                                        \
	}

MEMSET(8, unsigned char)
MEMSET(16, unsigned short)
MEMSET(32, unsigned int)
