/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sparse arrays. A tile is 64 KiB of a single row, so that the memory of a tile is a mapping:
 * writes through one array are visible in all arrays with the same memory. An unmapped part reads
 * as zeros, but retains what is written to it until memory is mapped there.
 */
#include "softgpu/driver/memory/allocation.h"
#include "softgpu/driver/memory/array.h"
#include "softgpu/driver/memory/space.h"
#include "softgpu/driver/stream/stream.h"

#include <stdlib.h>
#include <sys/mman.h>

/* A 3D level with fewer slices belongs entirely to the mip tail, as with NVIDIA's driver, whose
 * tiles have this depth. */
#define SHALLOW 16

struct tiles_op {
	struct gs_op op;
	struct gs_array *array;
	struct gs_allocation *allocation; /* NULL: unmaps the part */
	struct gp_array_tiles tiles;
};

static const struct gs_array *
get_level(const struct gs_array *array, uint32_t level)
{
	return array->levels ? &array->levels[level] : array;
}

static uint32_t
get_level_count(const struct gs_array *array)
{
	return array->levels ? array->shape.levels : 1;
}

/* Whether the level is smaller than a tile, and thus part of the mip tail. */
static bool
is_small(const struct gp_array_shape *level, uint32_t tile_width)
{
	bool layered = level->flags & CUDA_ARRAY3D_LAYERED;

	return level->width < tile_width || (level->depth && !layered && level->depth < SHALLOW);
}

/* Returns the bytes of a level in the mip tail: for a single layer, or for all layers. */
static size_t
tail_part(const struct gs_array *level, bool single)
{
	bool layered = level->shape.flags & CUDA_ARRAY3D_LAYERED;

	return layered && !single ? level->slice : gs_array_level_size(&level->shape);
}

/* If all levels are in the mip tail, a single mip tail contains all layers. */
static struct gp_array_tiling
get_tiling(const struct gs_array *array)
{
	const struct gp_array_shape *shape = &array->shape;
	struct gp_array_tiling tiling = {
		.width = GS_TILE_SIZE / gp_array_get_element_size(shape->format, shape->channels),
		.height = 1,
		.depth = 1,
	};
	uint32_t first = 0;
	const uint32_t count = get_level_count(array);

	while (first < count && !is_small(&get_level(array, first)->shape, tiling.width))
		first++;
	for (uint32_t i = first; i < count; i++)
		tiling.tail_size += tail_part(get_level(array, i), first == 0);
	tiling.tail_level = array->levels ? first : 0;
	if (first == 0)
		tiling.flags = CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL;
	return tiling;
}

static CUresult
describe(CUDA_ARRAY_SPARSE_PROPERTIES *properties, const struct gs_array *array)
{
	struct gp_array_tiling tiling;

	if (!properties || array->object.owner || !(array->shape.flags & CUDA_ARRAY3D_SPARSE))
		return CUDA_ERROR_INVALID_VALUE;
	tiling = get_tiling(array);
	*properties = (CUDA_ARRAY_SPARSE_PROPERTIES){
		.tileExtent = { tiling.width, tiling.height, tiling.depth },
		.miptailFirstLevel = tiling.tail_level,
		.miptailSize = tiling.tail_size,
		.flags = tiling.flags,
	};
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *properties, CUarray handle)
{
	struct gs_array *array = gs_array_get(handle);
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	if (array) {
		r = describe(properties, array);
		gs_array_put(array);
	}
	return r;
}

CUresult CUDAAPI
cuMipmappedArrayGetSparseProperties(CUDA_ARRAY_SPARSE_PROPERTIES *properties,
				    CUmipmappedArray handle)
{
	struct gs_array *array = gs_array_get_mipmapped(handle);
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	if (array) {
		r = describe(properties, array);
		gs_array_put(array);
	}
	return r;
}

static bool
map_run(const struct tiles_op *tiles, uint8_t *at, size_t size, uint64_t offset)
{
	const int mapped = MAP_SHARED | MAP_FIXED;
	const int free = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
	const int fd = tiles->allocation ? gs_allocation_fd(tiles->allocation) : -1;

	return mmap(at, size, PROT_READ | PROT_WRITE, fd < 0 ? free : mapped, fd,
		    fd < 0 ? 0 : (off_t)offset) != MAP_FAILED;
}

/* Levels follow each other in the mip tail. */
static bool
map_tail(const struct tiles_op *op)
{
	const struct gp_array_tiling tiling = get_tiling(op->array);
	const struct gp_array_tiles *tiles = &op->tiles;
	const uint64_t end = tiles->tail_offset + tiles->tail_size;
	uint64_t at = 0;

	for (uint32_t i = tiling.tail_level; i < get_level_count(op->array); i++) {
		const struct gs_array *level = get_level(op->array, i);
		const size_t size = tail_part(level, tiling.flags);
		const uint64_t from = at > tiles->tail_offset ? at : tiles->tail_offset;
		const uint64_t to = at + size < end ? at + size : end;

		if (from < to &&
		    !map_run(op, level->memory + tiles->layer * level->slice + (from - at),
			     to - from, tiles->offset + (from - tiles->tail_offset)))
			return false;
		at += size;
	}
	return true;
}

static bool
map_level(const struct tiles_op *op)
{
	const struct gs_array *array = op->array;
	const struct gp_array_tiles *tiles = &op->tiles;
	const struct gs_array *level = get_level(array, tiles->level);
	const uint32_t tile = get_tiling(array).width;
	const size_t run = (tiles->width + (size_t)tile - 1) / tile * GS_TILE_SIZE;
	uint64_t offset = tiles->offset;

	for (uint64_t z = tiles->z + tiles->layer; z < tiles->z + tiles->layer + tiles->depth;
	     z++) {
		for (uint64_t y = tiles->y; y < (uint64_t)tiles->y + tiles->height; y++) {
			uint8_t *at = level->memory + z * level->slice + y * level->pitch +
				      tiles->x / tile * GS_TILE_SIZE;

			if (!map_run(op, at, run, offset))
				return false;
			offset += run;
		}
	}
	return true;
}

static void
run(struct gs_op *op, struct gs_stream *stream)
{
	const struct tiles_op *tiles = (const struct tiles_op *)op;
	bool done;

	pthread_rwlock_wrlock(&gs_space.lock);
	done = tiles->tiles.tail ? map_tail(tiles) : map_level(tiles);
	pthread_rwlock_unlock(&gs_space.lock);
	if (!done)
		gs_fail(CUDA_ERROR_OUT_OF_MEMORY, "cuMemMapArrayAsync", "no tiles could be mapped");
}

static void
release(struct gs_op *op)
{
	struct tiles_op *tiles = (struct tiles_op *)op;

	if (tiles->array)
		gs_array_put(tiles->array);
	if (tiles->allocation)
		gs_allocation_put(tiles->allocation);
	free(tiles);
}

static void
read_place(const CUarrayMapInfo *info, struct gp_array_tiles *tiles)
{
	if (info->subresourceType == CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL) {
		tiles->tail = 1;
		tiles->layer = info->subresource.miptail.layer;
		tiles->tail_offset = info->subresource.miptail.offset;
		tiles->tail_size = info->subresource.miptail.size;
		return;
	}
	tiles->level = info->subresource.sparseLevel.level;
	tiles->layer = info->subresource.sparseLevel.layer;
	tiles->x = info->subresource.sparseLevel.offsetX;
	tiles->y = info->subresource.sparseLevel.offsetY;
	tiles->z = info->subresource.sparseLevel.offsetZ;
	tiles->width = info->subresource.sparseLevel.extentWidth;
	tiles->height = info->subresource.sparseLevel.extentHeight;
	tiles->depth = info->subresource.sparseLevel.extentDepth;
}

static CUresult
read_memory(const CUarrayMapInfo *info, uint64_t bytes, struct tiles_op *op)
{
	if (info->memOperationType == CU_MEM_OPERATION_TYPE_UNMAP)
		return info->memHandle.memHandle ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
	if (info->memOperationType != CU_MEM_OPERATION_TYPE_MAP)
		return CUDA_ERROR_INVALID_VALUE;
	op->tiles.offset = info->offset;
	op->allocation = gs_allocation_get(info->memHandle.memHandle);
	if (!op->allocation || !gs_allocation_is_for_tiles(op->allocation) ||
	    info->offset % GS_TILE_SIZE || info->offset > gs_allocation_size(op->allocation) ||
	    bytes > gs_allocation_size(op->allocation) - info->offset)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult
read_info(const CUarrayMapInfo *info, struct tiles_op *op)
{
	struct gp_array_tiling tiling;
	uint64_t bytes;

	op->array = info->resourceType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
			    ? gs_array_get_mipmapped(info->resource.mipmap)
			    : gs_array_get(info->resource.array);
	if (!op->array)
		return CUDA_ERROR_INVALID_HANDLE;
	if (op->array->object.owner || info->flags || info->deviceBitMask != 1)
		return CUDA_ERROR_INVALID_VALUE;
	read_place(info, &op->tiles);
	tiling = get_tiling(op->array);
	bytes = gp_array_tiles_get_bytes(&op->array->shape, &tiling, &op->tiles);
	return bytes ? read_memory(info, bytes, op) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
submit(struct gs_stream *stream, const CUarrayMapInfo *info)
{
	struct tiles_op *op = calloc(1, sizeof(*op));
	CUresult r;

	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	op->op.run = run;
	op->op.release = release;
	r = read_info(info, op);
	if (!r)
		return gs_stream_submit(stream, &op->op, NULL);
	release(&op->op);
	return r;
}

CUresult CUDAAPI
cuMemMapArrayAsync(CUarrayMapInfo *infos, unsigned int count, CUstream handle)
{
	struct gs_stream *stream;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!infos || !count)
		return CUDA_ERROR_INVALID_VALUE;
	stream = gs_stream_get(handle);
	if (!stream)
		return gs_stream_missing(handle);
	for (unsigned int i = 0; i < count && !r; i++)
		r = submit(stream, &infos[i]);
	gs_stream_put(stream);
	return r;
}
