/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/array/array_memory.h"

#include "server/common/base/integers.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/memory/physical_memory.h"

#include <pthread.h>

/* Maximum bytes zeroed by one copy. */
#define ZEROS_SIZE GP_ARRAY_ROW_MAX
#define PITCH_ALIGNMENT 512

static struct {
	pthread_mutex_t lock;
	CUdeviceptr zeros[GPD_DEVICES_MAX];
} shared = { .lock = PTHREAD_MUTEX_INITIALIZER };

static CUDA_ARRAY3D_DESCRIPTOR
shape_describe(const struct gp_array_shape *shape)
{
	return (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = shape->width,
		.Height = shape->height,
		.Depth = shape->depth,
		.Format = (CUarray_format)shape->format,
		.NumChannels = shape->channels,
		.Flags = shape->flags,
	};
}

static CUresult
obtain_levels(struct gpd_array *array)
{
	CUresult result = CUDA_SUCCESS;

	for (uint32_t i = 0; i < array->shape.levels && result == CUDA_SUCCESS; i++)
		result = gpd_driver.cuMipmappedArrayGetLevel(&array->levels[i], array->mipmap, i);
	if (result != CUDA_SUCCESS)
		(void)gpd_driver.cuMipmappedArrayDestroy(array->mipmap);
	return result;
}

static bool
has_sparse(void)
{
	return gpd_driver_has(cuArrayGetSparseProperties) &&
	       gpd_driver_has(cuMipmappedArrayGetSparseProperties) &&
	       gpd_driver_has(cuMemMapArrayAsync);
}

CUresult
gpd_array_obtain(struct gpd_array *array)
{
	const CUDA_ARRAY3D_DESCRIPTOR described = shape_describe(&array->shape);
	CUresult result;

	if (!gpd_driver_has(cuArray3DCreate_v2) || !gpd_driver_has(cuArrayDestroy) ||
	    !gpd_driver_has(cuMipmappedArrayCreate) || !gpd_driver_has(cuMipmappedArrayDestroy) ||
	    !gpd_driver_has(cuMipmappedArrayGetLevel) ||
	    (gpd_array_is_sparse(array) && !has_sparse()))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!array->shape.levels)
		return gpd_driver.cuArray3DCreate_v2(&array->levels[0], &described);
	result = gpd_driver.cuMipmappedArrayCreate(&array->mipmap, &described, array->shape.levels);
	return result == CUDA_SUCCESS ? obtain_levels(array) : result;
}

void
gpd_array_drop(const struct gpd_array *array)
{
	if (array->shape.levels)
		(void)gpd_driver.cuMipmappedArrayDestroy(array->mipmap);
	else
		(void)gpd_driver.cuArrayDestroy(array->levels[0]);
}

/* Returns zeroed memory to copy from, shared by all sessions and allocated with the first array. It
 * is never freed, so it may be of a kind that the driver frees like arrays. */
static CUresult
make_zeros(int device, CUdeviceptr *zeros_p)
{
	CUdeviceptr zeros;
	CUresult result;

	if (!gpd_driver_has(cuMemAlloc_v2))
		return CUDA_ERROR_NOT_SUPPORTED;
	result = gpd_driver.cuMemAlloc_v2(&zeros, ZEROS_SIZE);
	if (result == CUDA_SUCCESS)
		result = gpd_physical_zero(zeros, ZEROS_SIZE, device);
	if (result == CUDA_SUCCESS)
		*zeros_p = zeros;
	return result;
}

static CUresult
get_zeros(int device, CUdeviceptr *zeros_p)
{
	CUresult result = CUDA_SUCCESS;

	pthread_mutex_lock(&shared.lock);
	if (!shared.zeros[device])
		result = make_zeros(device, &shared.zeros[device]);
	*zeros_p = shared.zeros[device];
	pthread_mutex_unlock(&shared.lock);
	return result;
}

/* Copies whole slices if they are small, else rows. */
static CUresult
zero_level(CUarray level, struct gp_array_extent extent, CUdeviceptr zeros, CUstream stream)
{
	/* A pitch that the driver would have chosen: other pitches may not work between arrays and
	 * memory. */
	uint64_t pitch = gpd_round_up(extent.width, PITCH_ALIGNMENT);
	uint64_t rows = gpd_u64_min(extent.height, ZEROS_SIZE / pitch);
	uint64_t slices = rows < extent.height ? 1 : ZEROS_SIZE / (pitch * extent.height);
	CUresult result = CUDA_SUCCESS;

	for (uint64_t z = 0; z < extent.depth; z += slices) {
		for (uint64_t y = 0; y < extent.height && result == CUDA_SUCCESS; y += rows) {
			const CUDA_MEMCPY3D copy = {
				.srcMemoryType = CU_MEMORYTYPE_DEVICE,
				.srcDevice = zeros,
				.srcPitch = pitch,
				.srcHeight = rows,
				.dstMemoryType = CU_MEMORYTYPE_ARRAY,
				.dstArray = level,
				.dstY = y,
				.dstZ = z,
				.WidthInBytes = extent.width,
				.Height = gpd_u64_min(rows, extent.height - y),
				.Depth = gpd_u64_min(slices, extent.depth - z),
			};

			result = gpd_driver.cuMemcpy3DAsync_v2(&copy, stream);
		}
	}
	return result;
}

CUresult
gpd_array_zero(const struct gpd_array *array)
{
	uint32_t levels = array->shape.levels ? array->shape.levels : 1;
	CUdeviceptr zeros;
	CUstream stream;
	CUresult result = get_zeros(array->device, &zeros);

	if (result == CUDA_SUCCESS)
		result = gpd_physical_zero_stream(array->device, &stream);
	for (uint32_t i = 0; i < levels && result == CUDA_SUCCESS; i++)
		result = zero_level(array->levels[i], gp_array_get_level_extent(&array->shape, i),
				    zeros, stream);
	return result == CUDA_SUCCESS ? gpd_driver.cuStreamSynchronize(stream) : result;
}
