/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA driver API: tensor maps (cuTensorMap*), descriptors by which kernels of compute capability
 * 9.0 and later copy tiles. Only the driver knows their encoding, so the daemon encodes them, once
 * for each shape: the first eight bytes of a map are the tensor's address, and the rest does not
 * depend on it. Any thread may call.
 */
#include "client/base/query_cache.h"
#include "client/context/context.h"
#include "client/context/device.h"
#include "gpc_calls.h"
#include "protocol/tensor_shape.h"

#include <stdlib.h>
#include <string.h>

enum {
	ADDRESS_ALIGNMENT = 16, /* of a tensor */
	/* The bits of an address that a shape may depend on: its alignment. */
	ADDRESS_BITS = 0xff,
};

struct query {
	const struct gpc_device *device;
	struct gp_tensor_shape shape; /* its address has only the ADDRESS_BITS */
};

static struct gpc_query_cache cache = GPC_QUERY_CACHE(1024);

static CUresult
tensor_map_query(struct gpc_context *context, const struct gp_tensor_shape *shape, CUtensorMap *map)
{
	struct gp_args_gpTensorMap args = { .context = context->handle.id,
					    .shape = { shape, sizeof(*shape) } };
	struct gp_reply_gpTensorMap reply;
	void *raw = NULL;
	CUresult result = gpc_wait_gpTensorMap(context, &args, &reply, &raw);

	if (result == CUDA_SUCCESS && reply.map.size != sizeof(*map))
		result = CUDA_ERROR_UNKNOWN;
	if (result == CUDA_SUCCESS)
		memcpy(map, reply.map.data, sizeof(*map));
	free(raw);
	return result;
}

/*
 * Encodes the map for the tensor of this shape. The target may have any alignment: NVIDIA's driver
 * does not require that of its type.
 */
static CUresult
tensor_map_encode(void *target, const struct gp_tensor_shape *shape)
{
	struct gpc_context *context;
	CUtensorMap map;
	struct query query;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!target)
		return CUDA_ERROR_INVALID_VALUE;
	memset(&query, 0, sizeof(query));
	query.device = context->device;
	query.shape = *shape;
	query.shape.address &= ADDRESS_BITS;
	if (!gpc_query_cache_find(&cache, &query, sizeof(query), &map, sizeof(map))) {
		result = tensor_map_query(context, shape, &map);
		if (result != CUDA_SUCCESS)
			return result;
		gpc_query_cache_put(&cache, &query, sizeof(query), &map, sizeof(map));
	}
	map.opaque[0] = shape->address;
	memcpy(target, &map, sizeof(map));
	return CUDA_SUCCESS;
}

/* Parameters common to all kinds of maps. */
struct common {
	CUtensorMapDataType type;
	cuuint32_t rank;
	void *address;
	const cuuint64_t *dims, *strides;
	const cuuint32_t *element_strides;
	CUtensorMapInterleave interleave;
	CUtensorMapSwizzle swizzle;
	CUtensorMapL2promotion l2;
	CUtensorMapFloatOOBfill fill;
};

static CUresult
shape_init(struct gp_tensor_shape *shape, enum gp_tensor_kind kind, const struct common *common)
{
	if (common->rank < 1 || common->rank > GP_TENSOR_RANK_MAX || !common->dims ||
	    (!common->strides && common->rank > 1) || !common->element_strides)
		return CUDA_ERROR_INVALID_VALUE;
	memset(shape, 0, sizeof(*shape));
	shape->kind = kind;
	shape->type = common->type;
	shape->rank = common->rank;
	shape->address = (uintptr_t)common->address;
	shape->interleave = common->interleave;
	shape->swizzle = common->swizzle;
	shape->l2 = common->l2;
	shape->fill = common->fill;
	for (cuuint32_t i = 0; i < common->rank; i++) {
		shape->dims[i] = common->dims[i];
		shape->element_strides[i] = common->element_strides[i];
	}
	for (cuuint32_t i = 0; i + 1 < common->rank; i++)
		shape->strides[i] = common->strides[i];
	return CUDA_SUCCESS;
}

#define COMMON                                                                                     \
	{                                                                                          \
		tensorDataType, tensorRank, globalAddress, globalDim, globalStrides,               \
			elementStrides, interleave, swizzle, l2Promotion, oobFill                  \
	}

CUresult
gpc_cuTensorMapEncodeTiled(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType,
			   cuuint32_t tensorRank, void *globalAddress, const cuuint64_t *globalDim,
			   const cuuint64_t *globalStrides, const cuuint32_t *boxDim,
			   const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
			   CUtensorMapSwizzle swizzle, CUtensorMapL2promotion l2Promotion,
			   CUtensorMapFloatOOBfill oobFill)
{
	struct gp_tensor_shape shape;
	CUresult result = shape_init(&shape, GP_TENSOR_TILED, &(struct common)COMMON);

	if (result != CUDA_SUCCESS || !boxDim)
		return CUDA_ERROR_INVALID_VALUE;
	for (cuuint32_t i = 0; i < tensorRank; i++)
		shape.box[i] = boxDim[i];
	return tensor_map_encode(tensorMap, &shape);
}

CUresult
gpc_cuTensorMapEncodeIm2col(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType,
			    cuuint32_t tensorRank, void *globalAddress, const cuuint64_t *globalDim,
			    const cuuint64_t *globalStrides, const int *pixelBoxLowerCorner,
			    const int *pixelBoxUpperCorner, cuuint32_t channelsPerPixel,
			    cuuint32_t pixelsPerColumn, const cuuint32_t *elementStrides,
			    CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
			    CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
	struct gp_tensor_shape shape;
	CUresult result = shape_init(&shape, GP_TENSOR_IM2COL, &(struct common)COMMON);

	if (result != CUDA_SUCCESS || !pixelBoxLowerCorner || !pixelBoxUpperCorner)
		return CUDA_ERROR_INVALID_VALUE;
	for (cuuint32_t i = 0; i + 2 < tensorRank; i++) {
		shape.lower[i] = (uint64_t)(int64_t)pixelBoxLowerCorner[i];
		shape.upper[i] = (uint64_t)(int64_t)pixelBoxUpperCorner[i];
	}
	shape.channels = channelsPerPixel;
	shape.pixels = pixelsPerColumn;
	return tensor_map_encode(tensorMap, &shape);
}

CUresult
gpc_cuTensorMapEncodeIm2colWide(CUtensorMap *tensorMap, CUtensorMapDataType tensorDataType,
				cuuint32_t tensorRank, void *globalAddress,
				const cuuint64_t *globalDim, const cuuint64_t *globalStrides,
				int pixelBoxLowerCornerWidth, int pixelBoxUpperCornerWidth,
				cuuint32_t channelsPerPixel, cuuint32_t pixelsPerColumn,
				const cuuint32_t *elementStrides, CUtensorMapInterleave interleave,
				CUtensorMapIm2ColWideMode mode, CUtensorMapSwizzle swizzle,
				CUtensorMapL2promotion l2Promotion, CUtensorMapFloatOOBfill oobFill)
{
	struct gp_tensor_shape shape;
	CUresult result = shape_init(&shape, GP_TENSOR_IM2COL_WIDE, &(struct common)COMMON);

	if (result != CUDA_SUCCESS)
		return result;
	shape.lower[0] = (uint64_t)(int64_t)pixelBoxLowerCornerWidth;
	shape.upper[0] = (uint64_t)(int64_t)pixelBoxUpperCornerWidth;
	shape.channels = channelsPerPixel;
	shape.pixels = pixelsPerColumn;
	shape.mode = mode;
	return tensor_map_encode(tensorMap, &shape);
}

CUresult
gpc_cuTensorMapReplaceAddress(CUtensorMap *tensorMap, void *globalAddress)
{
	CUresult result = gpc_enter_initialized();

	if (result != CUDA_SUCCESS)
		return result;
	if (!tensorMap || !globalAddress || (uintptr_t)globalAddress % ADDRESS_ALIGNMENT)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy((void *)tensorMap, &globalAddress, sizeof(globalAddress));
	return CUDA_SUCCESS;
}
