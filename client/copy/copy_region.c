/* SPDX-License-Identifier: Apache-2.0 */
#include "client/copy/copy_region.h"

#include "client/array/array.h"
#include "client/context/context.h"
#include "client/host/host_block.h"
#include "client/memory/address.h"

/* Parameters of one side in CUDA's terms. */
struct side_params {
	CUmemorytype type;
	CUarray array;
	uint64_t host, device;
	uint64_t x, y, z;
	uint64_t pitch;  /* 0: rows are contiguous */
	uint64_t height; /* rows per slice; 0: slices are contiguous */
};

static bool
side_get_span(const struct gpc_copy *copy, const struct gpc_side *side, uint64_t *span_p)
{
	uint64_t slices, rows, sum;

	return !__builtin_mul_overflow(copy->depth - 1, side->slice, &slices) &&
	       !__builtin_mul_overflow(copy->height - 1, side->pitch, &rows) &&
	       !__builtin_add_overflow(slices, rows, &sum) &&
	       !__builtin_add_overflow(sum, copy->width, span_p);
}

uint64_t
gpc_copy_span(const struct gpc_copy *copy, const struct gpc_side *side)
{
	uint64_t size = 0;

	return side_get_span(copy, side, &size) ? size : UINT64_MAX;
}

/* Kernels of the current session can access the memory: it is copied as device memory. */
static bool
address_is_device_mapped(const struct gpc_address *found)
{
	const struct gpc_context *context = gpc_context_get_current();

	return found->device_mapped &&
	       (gpc_session_count() < 2 ||
		(context && found->context->scope.session == context->scope.session));
}

/* With unified addressing, the address decides: for example, a host address passed as a device
 * address is treated as host memory. */
static CUresult
side_find(struct gpc_side *side, CUmemorytype type, uint64_t size)
{
	struct gpc_address found;
	uint64_t end;

	if (side->base == 0 || __builtin_add_overflow(side->base, size, &end))
		return CUDA_ERROR_INVALID_VALUE;
	gpc_address_lookup(side->base, &found);
	if (found.kind == GPC_ADDRESS_INVALID)
		return CUDA_ERROR_INVALID_VALUE;
	side->host = found.kind != GPC_ADDRESS_DEVICE;
	side->is_host_by_name = side->host || type == CU_MEMORYTYPE_HOST;
	side->host_address = side->host ? side->base : 0;
	side->pinned = found.kind == GPC_ADDRESS_HOST;
	if (found.kind == GPC_ADDRESS_PAGEABLE)
		return type == CU_MEMORYTYPE_DEVICE ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	if (size > found.size - (side->base - found.base))
		return CUDA_ERROR_INVALID_VALUE;
	if (found.kind != GPC_ADDRESS_HOST)
		return CUDA_SUCCESS;
	if (!found.copied) {
		gpc_host_block_note_copied(side->base);
		gpc_address_lookup(side->base, &found);
	}
	side->device_mapped = address_is_device_mapped(&found);
	side->replicated = side->device_mapped && found.replicated;
	side->host = !side->device_mapped;
	side->host_address += found.host - found.base;
	side->base += (side->device_mapped ? found.device : found.host) - found.base;
	return CUDA_SUCCESS;
}

static CUresult
side_check(const struct gpc_copy *copy, struct gpc_side *side, CUmemorytype type)
{
	uint64_t size;

	return side_get_span(copy, side, &size) ? side_find(side, type, size)
						: CUDA_ERROR_INVALID_VALUE;
}

static CUresult
side_set_array(const struct gpc_copy *copy, struct gpc_side *side,
	       const struct side_params *side_params)
{
	const struct gp_array_box box = { side_params->x, side_params->y, side_params->z,
					  copy->width,    copy->height,   copy->depth };
	CUresult result = side_params->array ? gpc_array_lookup(side_params->array, &side->array)
					     : CUDA_ERROR_INVALID_VALUE;

	if (result != CUDA_SUCCESS)
		return result;
	side->x = side_params->x;
	side->y = side_params->y;
	side->z = side_params->z;
	return gp_array_contains(&side->array->shape, 0, &box) ? CUDA_SUCCESS
							       : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
side_set(const struct gpc_copy *copy, struct gpc_side *side, const struct side_params *side_params)
{
	uint64_t base =
		side_params->type == CU_MEMORYTYPE_HOST ? side_params->host : side_params->device;
	uint64_t least, rows, height, row, plane;

	switch (side_params->type) {
	case CU_MEMORYTYPE_HOST:
	case CU_MEMORYTYPE_DEVICE:
	case CU_MEMORYTYPE_UNIFIED:
		break;
	case CU_MEMORYTYPE_ARRAY:
		return side_set_array(copy, side, side_params);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (__builtin_add_overflow(side_params->x, copy->width, &least) ||
	    __builtin_add_overflow(side_params->y, copy->height, &rows))
		return CUDA_ERROR_INVALID_VALUE;
	side->pitch = side_params->pitch ? side_params->pitch : least;
	height = side_params->height ? side_params->height : rows;
	if (side->pitch < least || height < rows)
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_mul_overflow(side->pitch, height, &side->slice) ||
	    __builtin_mul_overflow(side_params->y, side->pitch, &row) ||
	    __builtin_mul_overflow(side_params->z, side->slice, &plane) ||
	    __builtin_add_overflow(row, plane, &row) ||
	    __builtin_add_overflow(row, side_params->x, &row))
		return CUDA_ERROR_INVALID_VALUE;
	if (base == 0 || __builtin_add_overflow(base, row, &side->base))
		return CUDA_ERROR_INVALID_VALUE;
	return side_check(copy, side, side_params->type);
}

/* Merges rows, where both sides allow it, to get fewer and longer ones. */
static void
copy_collapse_rows(struct gpc_copy *copy)
{
	struct gpc_side *dst = &copy->dst, *src = &copy->src;

	if (copy->depth > 1 && dst->slice == dst->pitch * copy->height &&
	    src->slice == src->pitch * copy->height) {
		copy->height *= copy->depth;
		copy->depth = 1;
	}
	if (copy->height == 1 || (dst->pitch == copy->width && src->pitch == copy->width)) {
		copy->width *= copy->height;
		copy->height = copy->depth;
		copy->depth = 1;
		dst->pitch = dst->slice;
		src->pitch = src->slice;
	}
	if (copy->height == 1) {
		dst->pitch = copy->width;
		src->pitch = copy->width;
	}
	if (copy->depth == 1) {
		dst->slice = dst->pitch * copy->height;
		src->slice = src->pitch * copy->height;
	}
}

static CUresult
copy_set_sides(struct gpc_copy *copy, const struct side_params *dst, const struct side_params *src)
{
	CUresult result = side_set(copy, &copy->dst, dst);

	if (result == CUDA_SUCCESS)
		result = side_set(copy, &copy->src, src);
	if (result == CUDA_SUCCESS && !copy->dst.array && !copy->src.array)
		copy_collapse_rows(copy);
	return result;
}

/* Returns whether the copy is empty. CUDA then checks nothing else. */
static bool
copy_is_empty(struct gpc_copy *copy, uint64_t width, uint64_t height, uint64_t depth)
{
	*copy = (struct gpc_copy){ .width = width, .height = height, .depth = depth };
	if (width && height && depth)
		return false;
	copy->width = 0;
	return true;
}

CUresult
gpc_copy_linear(struct gpc_copy *copy, CUmemorytype dst_type, uint64_t dst, CUmemorytype src_type,
		uint64_t src, size_t size)
{
	const struct gpc_side side = { .pitch = size, .slice = size };
	CUresult result;

	if (copy_is_empty(copy, size, 1, 1))
		return CUDA_SUCCESS;
	copy->dst = side;
	copy->src = side;
	copy->dst.base = dst;
	copy->src.base = src;
	result = side_check(copy, &copy->dst, dst_type);
	return result == CUDA_SUCCESS ? side_check(copy, &copy->src, src_type) : result;
}

static struct side_params
side_params_from_place(const struct gpc_place *place)
{
	return (struct side_params){
		.type = place->type,
		.array = place->array,
		.host = place->at,
		.device = place->at,
		.x = place->type == CU_MEMORYTYPE_ARRAY ? place->at : 0,
	};
}

CUresult
gpc_copy_row(struct gpc_copy *copy, const struct gpc_place *dst, const struct gpc_place *src,
	     size_t size)
{
	const struct side_params to = side_params_from_place(dst),
				 from = side_params_from_place(src);

	return copy_is_empty(copy, size, 1, 1) ? CUDA_SUCCESS : copy_set_sides(copy, &to, &from);
}

CUDA_MEMCPY3D *
gpc_copy_2d_to_3d(CUDA_MEMCPY3D *copy, const CUDA_MEMCPY2D *given)
{
	if (!given)
		return NULL;
	*copy = (CUDA_MEMCPY3D){
		.srcXInBytes = given->srcXInBytes,
		.srcY = given->srcY,
		.srcMemoryType = given->srcMemoryType,
		.srcHost = given->srcHost,
		.srcDevice = given->srcDevice,
		.srcArray = given->srcArray,
		.srcPitch = given->srcPitch,
		.dstXInBytes = given->dstXInBytes,
		.dstY = given->dstY,
		.dstMemoryType = given->dstMemoryType,
		.dstHost = given->dstHost,
		.dstDevice = given->dstDevice,
		.dstArray = given->dstArray,
		.dstPitch = given->dstPitch,
		.WidthInBytes = given->WidthInBytes,
		.Height = given->Height,
		.Depth = 1,
	};
	return copy;
}

/* Members of one side, src or dst. */
#define SIDE_PARAMS(params, side)                                                                  \
	.type = (params)->side##MemoryType, .array = (params)->side##Array,                        \
	.host = (uintptr_t)(params)->side##Host, .device = (params)->side##Device,                 \
	.x = (params)->side##XInBytes, .y = (params)->side##Y, .z = (params)->side##Z,             \
	.pitch = (params)->side##Pitch, .height = (params)->side##Height

CUresult
gpc_copy_3d(struct gpc_copy *copy, const CUDA_MEMCPY3D *params)
{
	const struct side_params dst = { SIDE_PARAMS(params, dst) },
				 src = { SIDE_PARAMS(params, src) };

	if (copy_is_empty(copy, params->WidthInBytes, params->Height, params->Depth))
		return CUDA_SUCCESS;
	return copy_set_sides(copy, &dst, &src);
}
