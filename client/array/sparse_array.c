/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA driver API: sparse arrays, and the memory that the program maps to their tiles. */
#include "client/array/array.h"
#include "client/context/context.h"
#include "client/memory/physical_memory.h"
#include "client/memory/virtual_memory.h"
#include "client/stream/stream.h"
#include "gpc_calls.h"

#include <stdlib.h>
#include <string.h>

static CUresult
properties_get(CUDA_ARRAY_SPARSE_PROPERTIES *properties, const struct gpc_array *array)
{
	/* Properties are defined for the whole array, not for a level. */
	if (!properties || array->owner != array || !(array->shape.flags & CUDA_ARRAY3D_SPARSE))
		return CUDA_ERROR_INVALID_VALUE;
	*properties = (CUDA_ARRAY_SPARSE_PROPERTIES){
		.tileExtent = { array->tiling.width, array->tiling.height, array->tiling.depth },
		.miptailFirstLevel = array->tiling.tail_level,
		.miptailSize = array->tiling.tail_size,
		.flags = array->tiling.flags,
	};
	return CUDA_SUCCESS;
}

/* NVIDIA's driver reports this error before any other. */
CUresult
gpc_cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties, CUarray array)
{
	struct gpc_array *found;

	return gpc_array_enter(array, &found) == CUDA_SUCCESS
		       ? properties_get(sparseProperties, found)
		       : CUDA_ERROR_INVALID_VALUE;
}

CUresult
gpc_cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *sparseProperties,
					CUmipmappedArray mipmap)
{
	struct gpc_array *found;

	return gpc_array_enter_mipmapped(mipmap, &found) == CUDA_SUCCESS
		       ? properties_get(sparseProperties, found)
		       : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
info_find_array(const CUarrayMapInfo *info, struct gpc_array **array_p)
{
	CUresult result;

	switch (info->resourceType) {
	case CU_RESOURCE_TYPE_ARRAY:
		result = gpc_array_lookup(info->resource.array, array_p);
		break;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		result = gpc_array_lookup_mipmapped(info->resource.mipmap, array_p);
		break;
	default:
		result = CUDA_ERROR_INVALID_VALUE;
		break;
	}
	return result == CUDA_SUCCESS && (*array_p)->owner != *array_p ? CUDA_ERROR_INVALID_VALUE
								       : result;
}

static CUresult
tiles_set_place(const CUarrayMapInfo *info, struct gp_array_tiles *tiles)
{
	switch (info->subresourceType) {
	case CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL:
		tiles->level = info->subresource.sparseLevel.level;
		tiles->layer = info->subresource.sparseLevel.layer;
		tiles->x = info->subresource.sparseLevel.offsetX;
		tiles->y = info->subresource.sparseLevel.offsetY;
		tiles->z = info->subresource.sparseLevel.offsetZ;
		tiles->width = info->subresource.sparseLevel.extentWidth;
		tiles->height = info->subresource.sparseLevel.extentHeight;
		tiles->depth = info->subresource.sparseLevel.extentDepth;
		return CUDA_SUCCESS;
	case CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL:
		tiles->tail = 1;
		tiles->layer = info->subresource.miptail.layer;
		tiles->tail_offset = info->subresource.miptail.offset;
		tiles->tail_size = info->subresource.miptail.size;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* The memory must have been created for tiles and have enough room at the offset; an unmapping has
 * no memory. */
static CUresult
tiles_set_memory(const CUarrayMapInfo *info, uint64_t bytes, const struct gpc_device *device,
		 struct gp_array_tiles *tiles)
{
	const struct gpc_physical *memory;

	if (info->memOperationType == CU_MEM_OPERATION_TYPE_UNMAP)
		return info->memHandle.memHandle ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	if (info->memOperationType != CU_MEM_OPERATION_TYPE_MAP ||
	    info->memHandleType != CU_MEM_HANDLE_TYPE_GENERIC)
		return CUDA_ERROR_INVALID_VALUE;
	memory = gpc_physical_get(info->memHandle.memHandle);
	if (!memory || !gpc_physical_is_for_tiles(memory) || memory->device != device ||
	    info->offset > memory->size || bytes > memory->size - info->offset)
		return CUDA_ERROR_INVALID_VALUE;
	tiles->memory = memory->handle.id;
	tiles->offset = info->offset;
	return CUDA_SUCCESS;
}

static CUresult
tiles_init(const CUarrayMapInfo *info, const struct gpc_device *device,
	   struct gp_array_tiles *tiles)
{
	struct gpc_array *array;
	uint64_t bytes;
	CUresult result;

	memset(tiles, 0, sizeof(*tiles));
	if (info->flags || info->reserved[0] || info->reserved[1] ||
	    info->deviceBitMask != (uint64_t)1 << device->ordinal)
		return CUDA_ERROR_INVALID_VALUE;
	result = info_find_array(info, &array);
	if (result == CUDA_SUCCESS)
		result = tiles_set_place(info, tiles);
	if (result != CUDA_SUCCESS)
		return result;
	tiles->array = array->handle.id;
	bytes = gp_array_tiles_get_bytes(&array->shape, &array->tiling, tiles);
	if (bytes == 0 || array->context->device != device)
		return CUDA_ERROR_INVALID_VALUE;
	return tiles_set_memory(info, bytes, device, tiles);
}

static CUresult
tiles_init_all(const CUarrayMapInfo *infos, size_t count, const struct gpc_device *device,
	       struct gp_array_tiles *tiles)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
		result = tiles_init(&infos[i], device, &tiles[i]);
	return result;
}

static CUresult
tiles_send(struct gpc_stream *stream, const struct gp_array_tiles *tiles, size_t count)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t at = 0; at < count && result == CUDA_SUCCESS; at += GP_ARRAY_TILES_MAX) {
		const size_t part =
			count - at < GP_ARRAY_TILES_MAX ? count - at : GP_ARRAY_TILES_MAX;
		const struct gp_args_gpArrayTiles args = {
			.stream = stream->handle.id,
			.tiles = { &tiles[at], part * sizeof(*tiles) },
		};

		result = gpc_wait_gpArrayTiles(stream->context, &args);
	}
	return result;
}

/* The lock keeps memory that has been looked up valid. */
CUresult
gpc_cuMemMapArrayAsync(CUarrayMapInfo *mapInfoList, unsigned int count, CUstream hStream)
{
	struct gp_array_tiles *tiles;
	struct gpc_stream *stream;
	CUresult result = gpc_stream_enter(hStream, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	if (!mapInfoList || count == 0)
		return CUDA_ERROR_INVALID_VALUE;
	tiles = malloc(count * sizeof(*tiles));
	if (!tiles)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = gpc_virtual_memory_lock();
	if (result == CUDA_SUCCESS) {
		result = tiles_init_all(mapInfoList, count, stream->context->device, tiles);
		if (result == CUDA_SUCCESS)
			result = tiles_send(stream, tiles, count);
		result = gpc_virtual_memory_unlock(result);
	}
	free(tiles);
	return result;
}
