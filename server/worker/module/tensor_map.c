/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor maps: encoded by the driver, for kernels that take them as parameters. */
#include "gpd_calls.h"
#include "protocol/tensor_shape.h"
#include "server/worker/context/context.h"
#include "server/worker/device/driver.h"
#include "server/worker/session/session.h"

#include <stdlib.h>
#include <string.h>

/* The arrays in the driver's types. */
struct narrow_shape {
	cuuint32_t box[GP_TENSOR_RANK_MAX], element_strides[GP_TENSOR_RANK_MAX];
	int lower[GP_TENSOR_RANK_MAX], upper[GP_TENSOR_RANK_MAX];
};

static struct narrow_shape
narrow_shape(const struct gp_tensor_shape *shape)
{
	struct narrow_shape narrow_shape;

	for (int i = 0; i < GP_TENSOR_RANK_MAX; i++) {
		narrow_shape.box[i] = (cuuint32_t)shape->box[i];
		narrow_shape.element_strides[i] = (cuuint32_t)shape->element_strides[i];
		narrow_shape.lower[i] = (int)(int64_t)shape->lower[i];
		narrow_shape.upper[i] = (int)(int64_t)shape->upper[i];
	}
	return narrow_shape;
}

/* The driver does not access the memory at the address. */
static CUresult
tensor_map_encode(const struct gp_tensor_shape *shape, CUtensorMap *map)
{
	struct narrow_shape n = narrow_shape(shape);
	void *address = (void *)(uintptr_t)shape->address;

	switch (shape->kind) {
	case GP_TENSOR_TILED:
		return gpd_driver.cuTensorMapEncodeTiled(
			map, shape->type, (cuuint32_t)shape->rank, address, shape->dims,
			shape->strides, n.box, n.element_strides, shape->interleave, shape->swizzle,
			shape->l2, shape->fill);
	case GP_TENSOR_IM2COL:
		return gpd_driver.cuTensorMapEncodeIm2col(
			map, shape->type, (cuuint32_t)shape->rank, address, shape->dims,
			shape->strides, n.lower, n.upper, (cuuint32_t)shape->channels,
			(cuuint32_t)shape->pixels, n.element_strides, shape->interleave,
			shape->swizzle, shape->l2, shape->fill);
	case GP_TENSOR_IM2COL_WIDE:
		return gpd_driver.cuTensorMapEncodeIm2colWide(
			map, shape->type, (cuuint32_t)shape->rank, address, shape->dims,
			shape->strides, n.lower[0], n.upper[0], (cuuint32_t)shape->channels,
			(cuuint32_t)shape->pixels, n.element_strides, shape->interleave,
			shape->mode, shape->swizzle, shape->l2, shape->fill);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult
gpd_gpTensorMap(struct gpd_session *session, const struct gp_args_gpTensorMap *args,
		struct gp_reply_gpTensorMap *reply)
{
	struct gp_tensor_shape shape;
	CUtensorMap *map;
	CUresult result = gpd_context_enter(session, args->context);

	if (result != CUDA_SUCCESS)
		return result;
	if (args->shape.size != sizeof(shape))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&shape, args->shape.data, sizeof(shape));
	if (shape.rank < 1 || shape.rank > GP_TENSOR_RANK_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	map = aligned_alloc(_Alignof(CUtensorMap), sizeof(*map));
	if (!map)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = tensor_map_encode(&shape, map);
	if (result == CUDA_SUCCESS)
		reply->map = (struct gp_bytes){ map, sizeof(*map) };
	else
		free(map);
	return result;
}
