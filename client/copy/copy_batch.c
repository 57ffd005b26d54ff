/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA driver API: batched copies. The copies of a batch are issued one after the other in the
 * stream: CUDA leaves their order undefined, so stream order is allowed.
 */
#include "client/array/array.h"
#include "client/copy/copy.h"
#include "client/stream/stream.h"
#include "gpc_calls.h"
#include "protocol/array_geometry.h"

#include <stddef.h>

static bool
access_order_is_valid(CUmemcpySrcAccessOrder order)
{
	return order >= CU_MEMCPY_SRC_ACCESS_ORDER_STREAM &&
	       order <= CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

/* Every copy needs attributes: entry i of attrs applies from copy attrsIdxs[i] on. */
static bool
attributes_are_valid(const CUmemcpyAttributes *attrs, const size_t *begins, size_t number,
		     size_t count)
{
	if (!attrs || !begins || number == 0 || number > count || begins[0] != 0)
		return false;
	for (size_t i = 0; i < number; i++) {
		if (!access_order_is_valid(attrs[i].srcAccessOrder) || begins[i] >= count ||
		    (i > 0 && begins[i] <= begins[i - 1]))
			return false;
	}
	return true;
}

CUresult
gpc_cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
			  CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
			  CUstream hStream)
{
	struct gpc_stream *stream;
	CUresult result = gpc_stream_enter(hStream, &stream);
	size_t run = 0;

	if (result != CUDA_SUCCESS)
		return result;
	if (!dsts || !srcs || !sizes || count == 0 || stream->legacy ||
	    !attributes_are_valid(attrs, attrsIdxs, numAttrs, count))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
		if (sizes[i] == 0)
			return CUDA_ERROR_INVALID_VALUE;
		while (run + 1 < numAttrs && attrsIdxs[run + 1] <= i)
			run++;
		result = gpc_copy_linear_ordered(dsts[i], srcs[i], sizes[i],
						 attrs[run].srcAccessOrder, hStream);
	}
	return result;
}

/* The version before CUDA 13.0. Which copy failed is not reported. */
CUresult
gpc_cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
		       CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs,
		       size_t *failIdx, CUstream hStream)
{
	if (failIdx)
		*failIdx = SIZE_MAX;
	return gpc_cuMemcpyBatchAsync_v2(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs,
					 hStream);
}

/* Sets *element to the element size of an array operand; for memory *element is unchanged. */
static CUresult
operand_get_element_size(const CUmemcpy3DOperand *operand, uint32_t *element)
{
	struct gpc_array *array;
	uint32_t size;
	CUresult result;

	if (operand->type == CU_MEMCPY_OPERAND_TYPE_POINTER)
		return CUDA_SUCCESS;
	if (operand->type != CU_MEMCPY_OPERAND_TYPE_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	result = gpc_array_lookup(operand->op.array.array, &array);
	if (result != CUDA_SUCCESS)
		return result;
	size = gp_array_get_element_size(array->shape.format, array->shape.channels);
	if (*element && *element != size)
		return CUDA_ERROR_INVALID_VALUE;
	*element = size;
	return CUDA_SUCCESS;
}

/* One side of a copy, in terms of CUDA_MEMCPY3D. For memory only address, pitch and height are
 * used. */
struct side {
	CUmemorytype type;
	CUdeviceptr address;
	CUarray array;
	size_t x, y, z;
	size_t pitch, height;
};

static bool
side_init(struct side *side, const CUmemcpy3DOperand *operand, const CUextent3D *extent,
	  uint32_t element)
{
	size_t row = operand->op.ptr.rowLength, rows = operand->op.ptr.layerHeight;

	if (operand->type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
		*side = (struct side){
			.type = CU_MEMORYTYPE_ARRAY,
			.array = operand->op.array.array,
			.y = operand->op.array.offset.y,
			.z = operand->op.array.offset.z,
		};
		return !__builtin_mul_overflow(operand->op.array.offset.x, element, &side->x);
	}
	*side = (struct side){
		.type = CU_MEMORYTYPE_UNIFIED,
		.address = operand->op.ptr.ptr,
		.height = rows ? rows : extent->height,
	};
	return (!row || row >= extent->width) && (!rows || rows >= extent->height) &&
	       !__builtin_mul_overflow(row ? row : extent->width, element, &side->pitch);
}

static CUresult
op_to_memcpy3d(const CUDA_MEMCPY3D_BATCH_OP *op, CUDA_MEMCPY3D *copy)
{
	uint32_t element = 0;
	struct side dst, src;
	size_t width;
	CUresult result = operand_get_element_size(&op->dst, &element);

	if (result == CUDA_SUCCESS)
		result = operand_get_element_size(&op->src, &element);
	if (result != CUDA_SUCCESS)
		return result;
	if (element == 0)
		element = 1;
	if (!access_order_is_valid(op->srcAccessOrder) ||
	    op->flags > CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE || !op->extent.width ||
	    !op->extent.height || !op->extent.depth ||
	    __builtin_mul_overflow(op->extent.width, element, &width) ||
	    !side_init(&dst, &op->dst, &op->extent, element) ||
	    !side_init(&src, &op->src, &op->extent, element))
		return CUDA_ERROR_INVALID_VALUE;
	*copy = (CUDA_MEMCPY3D){
		.srcXInBytes = src.x,
		.srcY = src.y,
		.srcZ = src.z,
		.srcMemoryType = src.type,
		.srcDevice = src.address,
		.srcArray = src.array,
		.srcPitch = src.pitch,
		.srcHeight = src.height,
		.dstXInBytes = dst.x,
		.dstY = dst.y,
		.dstZ = dst.z,
		.dstMemoryType = dst.type,
		.dstDevice = dst.address,
		.dstArray = dst.array,
		.dstPitch = dst.pitch,
		.dstHeight = dst.height,
		.WidthInBytes = width,
		.Height = op->extent.height,
		.Depth = op->extent.depth,
	};
	return CUDA_SUCCESS;
}

/* The version before CUDA 13.0. */
CUresult
gpc_cuMemcpy3DBatchAsync(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,
			 unsigned long long flags, CUstream hStream)
{
	struct gpc_stream *stream;
	CUDA_MEMCPY3D copy;
	CUresult result = gpc_stream_enter(hStream, &stream);

	if (failIdx)
		*failIdx = SIZE_MAX;
	if (result != CUDA_SUCCESS)
		return result;
	if (!opList || numOps == 0 || flags || stream->legacy)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < numOps; i++) {
		result = op_to_memcpy3d(&opList[i], &copy);
		if (result == CUDA_SUCCESS)
			result = gpc_copy_3d_ordered(&copy, opList[i].srcAccessOrder, hStream);
		if (result == CUDA_SUCCESS)
			continue;
		if (failIdx)
			*failIdx = i;
		return result;
	}
	return CUDA_SUCCESS;
}
