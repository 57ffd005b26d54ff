/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: cuMemcpy*. Normalizes each copy and dispatches it by the kind of its sides. */
#include "client/copy/copy.h"

#include "client/array/array.h"
#include "client/base/container.h"
#include "client/context/context.h"
#include "client/copy/copy_between.h"
#include "client/copy/copy_in.h"
#include "client/copy/copy_out.h"
#include "client/copy/copy_region.h"
#include "client/host/coherence.h"
#include "client/host/late_copy.h"
#include "client/host/pending_copy.h"
#include "client/memory/pointer.h"
#include "client/pages/pages.h"
#include "client/session/session.h"
#include "client/stream/stream.h"
#include "client/stream/stream_managed.h"
#include "gpc_calls.h"

#include <stdlib.h>
#include <string.h>

/* The stream of a copy, and how it is executed. */
struct target {
	struct gpc_stream *stream;
	bool async;
	bool late; /* in stream order even within host memory: a copy of a batch */
};

/* A synchronous call uses the default stream. */
static CUresult
target_enter(struct target *target, CUstream hStream, bool async)
{
	target->async = async;
	target->late = false;
	return gpc_stream_enter(hStream, &target->stream);
}

static CUresult
copy_array(struct gpc_stream *stream, const struct gpc_copy *copy)
{
	const struct gpc_side *dst = &copy->dst, *src = &copy->src;
	const struct gp_args_gpArrayCopy args = {
		.stream = stream->handle.id,
		.dst_array = dst->array ? dst->array->owner->handle.id : 0,
		.dst_level = dst->array ? dst->array->level : 0,
		.dst_x = dst->x,
		.dst_y = dst->y,
		.dst_z = dst->z,
		.dst = dst->base,
		.dst_pitch = dst->pitch,
		.dst_slice = dst->slice,
		.src_array = src->array ? src->array->owner->handle.id : 0,
		.src_level = src->array ? src->array->level : 0,
		.src_x = src->x,
		.src_y = src->y,
		.src_z = src->z,
		.src = src->base,
		.src_pitch = src->pitch,
		.src_slice = src->slice,
		.width = copy->width,
		.height = copy->height,
		.depth = copy->depth,
	};
	CUresult result = gpc_post_gpArrayCopy(stream->context, &args);

	(void)gpc_session_work_mark(stream->context->scope.session);
	return result;
}

static CUresult
copy_device(struct gpc_stream *stream, const struct gpc_copy *copy)
{
	struct gp_args_gpCopyDevice args = {
		.stream = stream->handle.id,
		.dst = copy->dst.base,
		.dst_pitch = copy->dst.pitch,
		.dst_slice = copy->dst.slice,
		.src = copy->src.base,
		.src_pitch = copy->src.pitch,
		.src_slice = copy->src.slice,
		.width = copy->width,
		.height = copy->height,
		.depth = copy->depth,
	};
	CUresult result = gpc_post_gpCopyDevice(stream->context, &args);

	(void)gpc_session_work_mark(stream->context->scope.session);
	return result;
}

static void
move_rows(const struct gpc_copy *copy)
{
	for (uint64_t slice = 0; slice < copy->depth; slice++) {
		for (uint64_t copy_row = 0; copy_row < copy->height; copy_row++)
			memmove((void *)(uintptr_t)gpc_side_row(&copy->dst, slice, copy_row),
				(const void *)(uintptr_t)gpc_side_row(&copy->src, slice, copy_row),
				copy->width);
	}
}

struct late_move {
	struct gpc_late_copy late;
	struct gpc_copy copy;
};

/* The stream has reached the copy: fetches what earlier kernels have written, and makes the result
 * visible to later ones. */
static CUresult
late_move_run(struct gpc_late_copy *late)
{
	CUresult result = gpc_coherence_after_wait(late->session, NULL, CUDA_SUCCESS);

	if (result != CUDA_SUCCESS)
		return result;
	move_rows(&GPC_CONTAINER(late, struct late_move, late)->copy);
	return gpc_coherence_before_work(late->session);
}

static void
late_move_destroy(struct gpc_late_copy *late)
{
	free(GPC_CONTAINER(late, struct late_move, late));
}

static CUresult
late_move_post(struct gpc_stream *stream, const struct gpc_copy *copy)
{
	const struct gpc_side *dst = &copy->dst, *src = &copy->src;
	struct late_move *move = calloc(1, sizeof(*move));

	if (!move)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*move = (struct late_move){
		.late = { .session = stream->context->scope.session,
			  .start = src->base,
			  .end = src->base + gpc_copy_span(copy, src),
			  .start_to = dst->base,
			  .end_to = dst->base + gpc_copy_span(copy, dst),
			  .send = late_move_run,
			  .destroy = late_move_destroy },
		.copy = *copy,
	};
	return gpc_late_copy_post(&stream->context->scope, stream->handle.id, &move->late);
}

/* Waits until the stream would reach work that is given to it now. A stream that waits for the
 * default stream, but has no work of its own, would wait only before its next work: so an empty
 * copy is posted. */
static CUresult
stream_await_position(struct gpc_stream *stream)
{
	static const struct gpc_copy nothing;
	CUresult result = CUDA_SUCCESS;

	if (!stream->legacy && !(stream->flags & CU_STREAM_NON_BLOCKING) &&
	    !gpc_stream_is_known_idle(stream))
		result = late_move_post(stream, &nothing);
	return result == CUDA_SUCCESS ? gpc_stream_fence(stream) : result;
}

/*
 * The copy is complete when the call returns, and is ordered after the stream's earlier work:
 * CUDA's "API synchronization behavior" requires this for any host memory, and NVIDIA's driver
 * waits (also in cuMemcpyAsync, measured with version 580, and in the launch of a graph with such a
 * copy). Copies of other streams are not waited for, since they may depend on the caller's next
 * action. A batch in stream order does not wait, neither natively nor here.
 */
static CUresult
copy_within_host(const struct target *target, const struct gpc_copy *requested)
{
	struct gpc_stream *stream = target->stream;
	struct gpc_copy copy = *requested;
	CUresult result;

	copy.dst.base = requested->dst.host_address;
	copy.src.base = requested->src.host_address;
	if (target->late && !gpc_stream_is_known_idle(stream))
		return late_move_post(stream, &copy);
	result = stream_await_position(stream);
	if (result == CUDA_SUCCESS)
		move_rows(&copy);
	return result;
}

/* The copy itself writes no replicated memory, but earlier work may have, so its changes are
 * fetched in the same wait. */
static CUresult
copy_out_and_fetch(struct gpc_stream *stream, const struct gpc_copy *copy)
{
	struct gpc_session *session = stream->context->scope.session;
	uint64_t requested = gpc_session_issued(session);
	struct gpc_coherence_fetch *fetch = gpc_coherence_before_wait(
		session, GP_HOST_AFTER_STREAM, stream->handle.id, GP_CALL_gpCopyOut);
	CUresult result = gpc_copy_out(stream, copy);

	result = gpc_coherence_after_wait(session, fetch, result);
	if (result == CUDA_SUCCESS)
		gpc_stream_set_fetched(stream, requested + 1);
	return result;
}

static CUresult
copy_post(const struct target *target, const struct gpc_copy *copy)
{
	CUresult result;

	if (copy->src.host)
		return gpc_copy_in(target->stream, copy, !target->async);
	if (copy->dst.host && target->async && copy->dst.pinned)
		return gpc_copy_out_async(target->stream, copy);
	if (copy->dst.host)
		return copy_out_and_fetch(target->stream, copy);
	if (copy->dst.array || copy->src.array)
		return copy_array(target->stream, copy);
	result = copy_device(target->stream, copy);
	if (result == CUDA_SUCCESS && !target->async &&
	    (gpc_pointer_is_synchronous(copy->dst.base) ||
	     gpc_pointer_is_synchronous(copy->src.base)))
		result = gpc_stream_fence(target->stream);
	return result;
}

/* Synchronizes the host memory that the copy reads before it, and the host memory that it writes
 * when a synchronous copy returns. */
static CUresult
copy_run_on_device(const struct target *target, const struct gpc_copy *copy)
{
	struct gpc_session *session = target->stream->context->scope.session;
	bool device_mapped = copy->dst.device_mapped || copy->src.device_mapped;
	CUresult result = CUDA_SUCCESS;

	/* The copy may write the wait value of another stream. */
	if (device_mapped || gpc_session_awaits_host(session))
		result = gpc_pending_copy_before_work(&target->stream->context->scope,
						      target->stream->handle.id);
	if (!device_mapped)
		return result == CUDA_SUCCESS ? copy_post(target, copy) : result;
	/* The program may fill the source until it stores the word that a kernel polls. */
	if (result == CUDA_SUCCESS && copy->src.replicated && gpc_copy_kernels_may_poll(session))
		result = gpc_pending_copy_publish_when_due(&target->stream->context->scope,
							   target->stream->handle.id);
	if (result == CUDA_SUCCESS && copy->dst.device_mapped)
		result = gpc_pending_copy_order(&target->stream->context->scope,
						target->stream->handle.id);
	if (result == CUDA_SUCCESS)
		result = copy_post(target, copy);
	gpc_coherence_after_work(session);
	return result == CUDA_SUCCESS && !target->async ? gpc_stream_fence(target->stream) : result;
}

static CUresult
copy_run_plain(const struct target *requested, const struct gpc_copy *copy)
{
	struct target target = *requested;
	bool changed;
	CUresult result;

	if (copy->dst.host_address && copy->src.host_address)
		return copy_within_host(&target, copy);
	if (copy->dst.array || copy->src.array)
		result = gpc_copy_route_array(&target.stream, copy, &changed);
	else if (gpc_copy_is_between(copy))
		return gpc_copy_between(target.stream, copy);
	else
		result = gpc_copy_route(&target.stream,
					copy->dst.host ? copy->src.base : copy->dst.base, &changed);
	if (result != CUDA_SUCCESS || !changed)
		return result == CUDA_SUCCESS ? copy_run_on_device(&target, copy) : result;
	target.async = false;
	result = copy_run_on_device(&target, copy);
	return result == CUDA_SUCCESS ? gpc_stream_fence(target.stream) : result;
}

/* Returns the size of the side if any of it is managed memory, else 0. */
static uint64_t
side_get_managed_span(const struct gpc_copy *copy, const struct gpc_side *side)
{
	uint64_t size = gpc_copy_span(copy, side);

	return !side->host && !side->array && gpc_managed_contains(side->base, size) ? size : 0;
}

/* Sends the managed memory that the copy uses first. If the copy only reads it, other threads may
 * continue during the wait, because the bytes that they write here do not reach the device. A
 * synchronous copy from host memory waits for host functions and wait values before its stream,
 * before it blocks work of other threads. */
static CUresult
copy_run_managed(const struct target *target, const struct gpc_copy *copy, uint64_t dst_size,
		 uint64_t src_size)
{
	CUresult result = CUDA_SUCCESS;

	if (copy->src.host && !target->async &&
	    gpc_session_is_host_gated(target->stream->context->scope.session))
		result = gpc_stream_fence(target->stream);
	if (result == CUDA_SUCCESS)
		result = gpc_managed_begin_copy(target->stream, copy->dst.base, dst_size,
						copy->src.base, src_size);
	if (result != CUDA_SUCCESS)
		return result;
	if (dst_size == 0) {
		gpc_managed_end(NULL);
		return copy_run_plain(target, copy);
	}
	result = copy_run_plain(target, copy);
	gpc_managed_end(target->stream);
	return result;
}

/* Managed memory that the call passes as host memory follows the rules for host memory. */
static CUresult
copy_run_named(const struct target *requested, const struct gpc_copy *copy, uint64_t dst_size,
	       uint64_t src_size)
{
	struct target target = *requested;
	CUresult result;

	if (!target.async || target.late || !copy->dst.is_host_by_name ||
	    !copy->src.is_host_by_name)
		return copy_run_managed(&target, copy, dst_size, src_size);
	target.async = false;
	result = copy_run_managed(&target, copy, dst_size, src_size);
	return result == CUDA_SUCCESS ? gpc_stream_fence(target.stream) : result;
}

static CUresult
copy_run(const struct target *target, const struct gpc_copy *copy)
{
	uint64_t dst_size, src_size;

	if (copy->width == 0)
		return CUDA_SUCCESS;
	if (!gpc_pages_any())
		return copy_run_plain(target, copy);
	dst_size = side_get_managed_span(copy, &copy->dst);
	src_size = side_get_managed_span(copy, &copy->src);
	return dst_size || src_size ? copy_run_named(target, copy, dst_size, src_size)
				    : copy_run_plain(target, copy);
}

static CUresult
copy_linear(CUstream hStream, bool async, CUmemorytype dst_type, uint64_t dst,
	    CUmemorytype src_type, uint64_t src, size_t size)
{
	struct target target;
	struct gpc_copy copy;
	CUresult result = target_enter(&target, hStream, async);

	if (result == CUDA_SUCCESS)
		result = gpc_copy_linear(&copy, dst_type, dst, src_type, src, size);
	return result == CUDA_SUCCESS ? copy_run(&target, &copy) : result;
}

CUresult
gpc_cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
	return copy_linear(NULL, false, CU_MEMORYTYPE_UNIFIED, dst, CU_MEMORYTYPE_UNIFIED, src,
			   ByteCount);
}

CUresult
gpc_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
	return copy_linear(hStream, true, CU_MEMORYTYPE_UNIFIED, dst, CU_MEMORYTYPE_UNIFIED, src,
			   ByteCount);
}

CUresult
gpc_cuMemcpyHtoD_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
	return copy_linear(NULL, false, CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_HOST,
			   (uintptr_t)srcHost, ByteCount);
}

CUresult
gpc_cuMemcpyHtoDAsync_v2(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount,
			 CUstream hStream)
{
	return copy_linear(hStream, true, CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_HOST,
			   (uintptr_t)srcHost, ByteCount);
}

CUresult
gpc_cuMemcpyDtoH_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
	return copy_linear(NULL, false, CU_MEMORYTYPE_HOST, (uintptr_t)dstHost,
			   CU_MEMORYTYPE_DEVICE, srcDevice, ByteCount);
}

CUresult
gpc_cuMemcpyDtoHAsync_v2(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	return copy_linear(hStream, true, CU_MEMORYTYPE_HOST, (uintptr_t)dstHost,
			   CU_MEMORYTYPE_DEVICE, srcDevice, ByteCount);
}

CUresult
gpc_cuMemcpyDtoD_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
	return copy_linear(NULL, false, CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_DEVICE,
			   srcDevice, ByteCount);
}

CUresult
gpc_cuMemcpyDtoDAsync_v2(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount,
			 CUstream hStream)
{
	return copy_linear(hStream, true, CU_MEMORYTYPE_DEVICE, dstDevice, CU_MEMORYTYPE_DEVICE,
			   srcDevice, ByteCount);
}

static CUresult
copy_3d(CUstream hStream, bool async, const CUDA_MEMCPY3D *pCopy)
{
	struct target target;
	struct gpc_copy copy;
	CUresult result = target_enter(&target, hStream, async);

	if (result == CUDA_SUCCESS)
		result = pCopy ? gpc_copy_3d(&copy, pCopy) : CUDA_ERROR_INVALID_VALUE;
	return result == CUDA_SUCCESS ? copy_run(&target, &copy) : result;
}

CUresult
gpc_cuMemcpy2D_v2(const CUDA_MEMCPY2D *pCopy)
{
	CUDA_MEMCPY3D copy;

	return copy_3d(NULL, false, gpc_copy_2d_to_3d(&copy, pCopy));
}

CUresult
gpc_cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
	CUDA_MEMCPY3D copy;

	return copy_3d(hStream, true, gpc_copy_2d_to_3d(&copy, pCopy));
}

CUresult
gpc_cuMemcpy3D_v2(const CUDA_MEMCPY3D *pCopy)
{
	return copy_3d(NULL, false, pCopy);
}

CUresult
gpc_cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
	return copy_3d(hStream, true, pCopy);
}

/* Batched copies */

/* The access order replaces the kind of the memory: a side that may be accessed after the call is
 * treated as pinned memory, any other as pageable. */
static CUresult
copy_run_ordered(struct target *target, struct gpc_copy *copy, CUmemcpySrcAccessOrder order)
{
	bool during_call = order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
	CUresult result;

	if (copy->src.host && order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM)
		copy->src.pinned = true;
	else if (copy->src.host && during_call)
		copy->src.pinned = false;
	if (copy->dst.host && !during_call)
		copy->dst.pinned = true;
	result = copy_run(target, copy);
	/* The device reads device-mapped memory when the stream reaches the copy, so wait for
	 * that. */
	return result == CUDA_SUCCESS && during_call &&
			       (copy->src.device_mapped || side_get_managed_span(copy, &copy->src))
		       ? gpc_stream_fence(target->stream)
		       : result;
}

CUresult
gpc_copy_linear_ordered(CUdeviceptr dst, CUdeviceptr src, size_t size, CUmemcpySrcAccessOrder order,
			CUstream hStream)
{
	struct target target;
	struct gpc_copy copy;
	CUresult result = target_enter(&target, hStream, true);

	if (result == CUDA_SUCCESS)
		result = gpc_copy_linear(&copy, CU_MEMORYTYPE_UNIFIED, dst, CU_MEMORYTYPE_UNIFIED,
					 src, size);
	target.late = order != CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
	return result == CUDA_SUCCESS ? copy_run_ordered(&target, &copy, order) : result;
}

CUresult
gpc_copy_3d_ordered(const CUDA_MEMCPY3D *params, CUmemcpySrcAccessOrder order, CUstream hStream)
{
	struct target target;
	struct gpc_copy copy;
	CUresult result = target_enter(&target, hStream, true);

	if (result == CUDA_SUCCESS)
		result = gpc_copy_3d(&copy, params);
	target.late = order != CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
	return result == CUDA_SUCCESS ? copy_run_ordered(&target, &copy, order) : result;
}

CUresult
gpc_copy_node_run(const CUDA_MEMCPY3D *params, CUstream hStream)
{
	struct target target;
	struct gpc_copy copy;
	CUresult result = target_enter(&target, hStream, true);

	if (result == CUDA_SUCCESS)
		result = gpc_copy_3d(&copy, params);
	return result == CUDA_SUCCESS
		       ? copy_run_ordered(&target, &copy, CU_MEMCPY_SRC_ACCESS_ORDER_ANY)
		       : result;
}

/* Arrays: copies of one row */

static CUresult
copy_row(CUstream hStream, bool async, struct gpc_place dst, struct gpc_place src, size_t size)
{
	struct target target;
	struct gpc_copy copy;
	CUresult result = target_enter(&target, hStream, async);

	if (result == CUDA_SUCCESS)
		result = gpc_copy_row(&copy, &dst, &src, size);
	return result == CUDA_SUCCESS ? copy_run(&target, &copy) : result;
}

static struct gpc_place
place_in_array(CUarray array, size_t offset)
{
	return (struct gpc_place){ CU_MEMORYTYPE_ARRAY, array, offset };
}

static struct gpc_place
place_on_host(const void *memory)
{
	return (struct gpc_place){ CU_MEMORYTYPE_HOST, NULL, (uintptr_t)memory };
}

static struct gpc_place
place_on_device(CUdeviceptr address)
{
	return (struct gpc_place){ CU_MEMORYTYPE_DEVICE, NULL, address };
}

CUresult
gpc_cuMemcpyHtoA_v2(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount)
{
	return copy_row(NULL, false, place_in_array(dstArray, dstOffset), place_on_host(srcHost),
			ByteCount);
}

CUresult
gpc_cuMemcpyHtoAAsync_v2(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount,
			 CUstream hStream)
{
	return copy_row(hStream, true, place_in_array(dstArray, dstOffset), place_on_host(srcHost),
			ByteCount);
}

CUresult
gpc_cuMemcpyAtoH_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
	return copy_row(NULL, false, place_on_host(dstHost), place_in_array(srcArray, srcOffset),
			ByteCount);
}

CUresult
gpc_cuMemcpyAtoHAsync_v2(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount,
			 CUstream hStream)
{
	return copy_row(hStream, true, place_on_host(dstHost), place_in_array(srcArray, srcOffset),
			ByteCount);
}

CUresult
gpc_cuMemcpyDtoA_v2(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount)
{
	return copy_row(NULL, false, place_in_array(dstArray, dstOffset),
			place_on_device(srcDevice), ByteCount);
}

CUresult
gpc_cuMemcpyAtoD_v2(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
	return copy_row(NULL, false, place_on_device(dstDevice),
			place_in_array(srcArray, srcOffset), ByteCount);
}

CUresult
gpc_cuMemcpyAtoA_v2(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset,
		    size_t ByteCount)
{
	return copy_row(NULL, false, place_in_array(dstArray, dstOffset),
			place_in_array(srcArray, srcOffset), ByteCount);
}
