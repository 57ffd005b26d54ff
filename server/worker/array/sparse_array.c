/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/array/sparse_array.h"

#include "base/lock.h"
#include "gpd_calls.h"
#include "server/worker/array/array.h"
#include "server/worker/array/array_memory.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/memory/physical_memory.h"
#include "server/worker/memory/shared_physical.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* Width, in tiles, of the array through which memory is zeroed. */
#define CLEARED_ACROSS 4
#define PROBE_SIDE 1024
#define CLEARED_FORMAT CU_AD_FORMAT_UNSIGNED_INT32

struct gpd_tiles_use {
	struct gpd_tiles_use *next;
	struct gpd_shared_physical *memory;
};

/* Memory for tiles has no address, so it is zeroed through an array; one per device. */
static struct {
	pthread_mutex_t lock;
	struct gpd_array arrays[GPD_DEVICES_MAX];
} cleared = { .lock = PTHREAD_MUTEX_INITIALIZER };

static CUresult
tiling_query(const struct gpd_array *array, CUDA_ARRAY_SPARSE_PROPERTIES *properties)
{
	return array->shape.levels
		       ? gpd_driver.cuMipmappedArrayGetSparseProperties(properties, array->mipmap)
		       : gpd_driver.cuArrayGetSparseProperties(properties, array->levels[0]);
}

CUresult
gpd_tiles_query_tiling(struct gpd_array *array)
{
	CUDA_ARRAY_SPARSE_PROPERTIES properties = { 0 };
	CUresult result = tiling_query(array, &properties);

	if (result != CUDA_SUCCESS)
		return result;
	array->tiling = (struct gp_array_tiling){
		.width = properties.tileExtent.width,
		.height = properties.tileExtent.height,
		.depth = properties.tileExtent.depth,
		.tail_level = properties.miptailFirstLevel,
		.tail_size = properties.miptailSize,
		.flags = properties.flags,
	};
	return gp_array_tile_get_bytes(&array->shape, &array->tiling) ? CUDA_SUCCESS
								      : CUDA_ERROR_NOT_SUPPORTED;
}

/* Zeroing. */

static CUresult
map_whole(const struct gpd_array *array, CUmemGenericAllocationHandle memory, uint64_t offset,
	  CUstream stream)
{
	CUarrayMapInfo info = {
		.resourceType = CU_RESOURCE_TYPE_ARRAY,
		.resource.array = array->levels[0],
		.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL,
		.subresource.sparseLevel = { .extentWidth = (unsigned int)array->shape.width,
					     .extentHeight = (unsigned int)array->shape.height,
					     .extentDepth = 1 },
		.memOperationType =
			memory ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP,
		.memHandleType = CU_MEM_HANDLE_TYPE_GENERIC,
		.memHandle.memHandle = memory,
		.offset = offset,
		.deviceBitMask = 1U << array->device,
	};

	return gpd_driver.cuMemMapArrayAsync(&info, 1, stream);
}

static CUresult
make_cleared(struct gpd_array *array, uint64_t width, uint64_t height, int device)
{
	CUresult result;

	memset(array, 0, sizeof(*array));
	array->device = device;
	array->shape = (struct gp_array_shape){ .width = width,
						.height = height,
						.format = CLEARED_FORMAT,
						.channels = 1,
						.flags = CUDA_ARRAY3D_SPARSE };
	result = gpd_array_obtain(array);
	if (result != CUDA_SUCCESS)
		return result;
	result = gpd_tiles_query_tiling(array);
	if (result != CUDA_SUCCESS)
		gpd_array_drop(array);
	return result;
}

/* Returns an array of exactly one granule of memory. A probe array shows the size of a tile. The
 * probe takes no memory and is never destroyed, because that would wait for the kernels of all
 * sessions. */
static CUresult
get_cleared(int device, struct gpd_array **array_p) GP_LOCKED(cleared.lock)
{
	const uint64_t granule = gpd_device_get(device)->granularity;
	struct gpd_array *array = &cleared.arrays[device], probe;
	uint64_t tile, down;
	CUresult result;

	*array_p = array;
	if (array->levels[0])
		return CUDA_SUCCESS;
	result = make_cleared(&probe, PROBE_SIDE, PROBE_SIDE, device);
	if (result != CUDA_SUCCESS)
		return result;
	tile = gp_array_tile_get_bytes(&probe.shape, &probe.tiling);
	down = granule / tile / CLEARED_ACROSS;
	if (down * CLEARED_ACROSS * tile != granule)
		return CUDA_ERROR_NOT_SUPPORTED;
	result = make_cleared(array, (uint64_t)probe.tiling.width * CLEARED_ACROSS,
			      probe.tiling.height * down, device);
	if (result != CUDA_SUCCESS)
		memset(array, 0, sizeof(*array));
	return result;
}

static CUresult
clear_granule(const struct gpd_array *array, CUmemGenericAllocationHandle memory, uint64_t offset,
	      CUstream stream)
{
	CUresult result = map_whole(array, memory, offset, stream), end;

	if (result != CUDA_SUCCESS)
		return result;
	result = gpd_array_zero(array);
	end = map_whole(array, 0, 0, stream);
	return result == CUDA_SUCCESS ? end : result;
}

static CUresult
pool_memory_clear(CUmemGenericAllocationHandle memory, uint64_t size, int device)
{
	const uint64_t granule = gpd_device_get(device)->granularity;
	struct gpd_array *array;
	CUstream stream;
	CUresult result = gpd_physical_zero_stream(device, &stream);

	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&cleared.lock);
	result = get_cleared(device, &array);
	for (uint64_t at = 0; at < size && result == CUDA_SUCCESS; at += granule)
		result = clear_granule(array, memory, at, stream);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuStreamSynchronize(stream);
	pthread_mutex_unlock(&cleared.lock);
	return result;
}

static CUresult
pool_memory_obtain(uint64_t size, int device, CUmemGenericAllocationHandle *handle_p)
{
	const CUmemAllocationProp property = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE,
			      .id = gpd_device_get(device)->device },
		.allocFlags = { .usage = CU_MEM_CREATE_USAGE_TILE_POOL },
	};
	CUresult result = gpd_device_enter(device);

	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuMemCreate(handle_p, size, &property, 0);
	if (result != CUDA_SUCCESS)
		return result;
	result = pool_memory_clear(*handle_p, size, device);
	if (result != CUDA_SUCCESS)
		(void)gpd_driver.cuMemRelease(*handle_p);
	return result;
}

CUresult
gpd_gpTilePoolCreate(struct gpd_session *session, const struct gp_args_gpTilePoolCreate *args)
{
	return gpd_physical_create_tile_pool(session, args->memory, args->size, args->device,
					     pool_memory_obtain);
}

/* Mapping. */

static CUresult
tiles_add_use(struct gpd_session *session, struct gpd_array *array,
	      struct gpd_shared_physical *memory)
{
	struct gpd_tiles_use *made;

	LL_SEARCH_SCALAR(array->tiles, made, memory, memory);
	if (made)
		return CUDA_SUCCESS;
	made = malloc(sizeof(*made));
	if (!made || !gpd_shared_physical_ref(memory, &session->account)) {
		free(made);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	made->memory = memory;
	LL_PREPEND(array->tiles, made);
	return CUDA_SUCCESS;
}

void
gpd_tiles_unref(struct gpd_array *array, const struct gpd_account *account)
{
	while (array->tiles) {
		struct gpd_tiles_use *left = array->tiles;

		array->tiles = left->next;
		gpd_shared_physical_unref(left->memory, account);
		free(left);
	}
}

static void
fill_place(CUarrayMapInfo *info, const struct gpd_array *array, const struct gp_array_tiles *tiles)
{
	info->resourceType =
		array->shape.levels ? CU_RESOURCE_TYPE_MIPMAPPED_ARRAY : CU_RESOURCE_TYPE_ARRAY;
	if (array->shape.levels)
		info->resource.mipmap = array->mipmap;
	else
		info->resource.array = array->levels[0];
	if (tiles->tail) {
		info->subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
		info->subresource.miptail.layer = tiles->layer;
		info->subresource.miptail.offset = tiles->tail_offset;
		info->subresource.miptail.size = tiles->tail_size;
		return;
	}
	info->subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL;
	info->subresource.sparseLevel.level = tiles->level;
	info->subresource.sparseLevel.layer = tiles->layer;
	info->subresource.sparseLevel.offsetX = tiles->x;
	info->subresource.sparseLevel.offsetY = tiles->y;
	info->subresource.sparseLevel.offsetZ = tiles->z;
	info->subresource.sparseLevel.extentWidth = tiles->width;
	info->subresource.sparseLevel.extentHeight = tiles->height;
	info->subresource.sparseLevel.extentDepth = tiles->depth;
}

/* All tiles of the request are checked before any of them is passed to the driver. */
static CUresult
tiles_check(struct gpd_session *session, const struct gp_array_tiles *tiles, int device,
	    CUarrayMapInfo *info)
{
	struct gpd_array *array = gpd_array_get(session, tiles->array);
	const struct gpd_physical *physical;
	uint64_t bytes;

	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	bytes = gp_array_tiles_get_bytes(&array->shape, &array->tiling, tiles);
	if (bytes == 0 || array->device != device || (!tiles->memory && tiles->offset))
		return CUDA_ERROR_INVALID_VALUE;
	memset(info, 0, sizeof(*info));
	fill_place(info, array, tiles);
	info->memHandleType = CU_MEM_HANDLE_TYPE_GENERIC;
	info->deviceBitMask = 1U << device;
	info->memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
	if (!tiles->memory)
		return CUDA_SUCCESS;
	physical = gpd_physical_tiles(session, tiles->memory);
	if (!physical)
		return CUDA_ERROR_INVALID_HANDLE;
	if (physical->device != device || tiles->offset > physical->size ||
	    bytes > physical->size - tiles->offset ||
	    tiles->offset % gp_array_tile_get_bytes(&array->shape, &array->tiling))
		return CUDA_ERROR_INVALID_VALUE;
	info->memOperationType = CU_MEM_OPERATION_TYPE_MAP;
	info->memHandle.memHandle = physical->allocation;
	info->offset = tiles->offset;
	return tiles_add_use(session, array, physical->shared);
}

static CUresult
tiles_map(struct gpd_session *session, const struct gp_args_gpArrayTiles *args,
	  CUarrayMapInfo *infos, size_t count)
{
	const struct gpd_stream *at = gpd_stream_get(session, args->stream);
	struct gpd_stream *stream;
	CUresult result = CUDA_SUCCESS;

	if (!at)
		return CUDA_ERROR_INVALID_HANDLE;
	for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
		struct gp_array_tiles tiles;

		memcpy(&tiles, (const uint8_t *)args->tiles.data + i * sizeof(tiles),
		       sizeof(tiles));
		result = tiles_check(session, &tiles, at->device, &infos[i]);
	}
	if (result == CUDA_SUCCESS)
		result = gpd_stream_begin(session, args->stream, &stream);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuMemMapArrayAsync(infos, (unsigned int)count, stream->driver);
	return result;
}

CUresult
gpd_gpArrayTiles(struct gpd_session *session, const struct gp_args_gpArrayTiles *args)
{
	const size_t count = args->tiles.size / sizeof(struct gp_array_tiles);
	CUarrayMapInfo *infos;
	CUresult result;

	if (count == 0 || count > GP_ARRAY_TILES_MAX ||
	    args->tiles.size % sizeof(struct gp_array_tiles))
		return CUDA_ERROR_INVALID_VALUE;
	infos = calloc(count, sizeof(*infos));
	if (!infos)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = tiles_map(session, args, infos, count);
	free(infos);
	return result;
}

CUresult
gpd_gpArrayTiling(struct gpd_session *session, const struct gp_args_gpArrayTiling *args,
		  struct gp_reply_gpArrayTiling *reply)
{
	const struct gpd_array *array = gpd_array_get(session, args->array);
	struct gp_array_tiling *tiling;

	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!gpd_array_is_sparse(array))
		return CUDA_ERROR_INVALID_VALUE;
	tiling = malloc(sizeof(*tiling));
	if (!tiling)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*tiling = array->tiling;
	reply->tiling = (struct gp_bytes){ tiling, sizeof(*tiling) };
	return CUDA_SUCCESS;
}
