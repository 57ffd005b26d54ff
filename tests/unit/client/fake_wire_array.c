/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of the fake wire layer. Rows and levels are contiguous. */
#include "gpc_calls.h"
#include "protocol/array_tiles.h"
#include "protocol/frame.h"
#include "tests/unit/client/fake_wire.h"

#include <stdlib.h>
#include <string.h>

#define ARRAYS 16

static struct array {
	uint32_t id; /* 0: unused entry */
	struct gp_array_shape shape;
	uint8_t *levels[GP_ARRAY_LEVELS_MAX];
} arrays[ARRAYS];

static struct array *
find(uint32_t id)
{
	struct array *array = arrays;

	while (array < arrays + ARRAYS && array->id != id)
		array++;
	assert_true(array < arrays + ARRAYS);
	return array;
}

int
fake_wire_arrays(void)
{
	int count = 0;

	(void)fake_wire_mapped();
	for (int i = 0; i < ARRAYS; i++)
		count += arrays[i].id != 0;
	return count;
}

static uint64_t
level_size(const struct array *array, uint32_t level)
{
	struct gp_array_extent extent = gp_array_get_level_extent(&array->shape, level);

	return extent.width * extent.height * extent.depth;
}

CUresult
gpc_wait_gpArrayCreate(struct gpc_context *c, const struct gp_args_gpArrayCreate *args)
{
	const struct gp_array_shape shape = { GP_ARRAY_SHAPE(args) };
	CUresult result = gp_array_check(&shape);
	struct array *array;

	assert_int_equal(result, CUDA_SUCCESS);
	if (gp_array_get_bytes(&shape) > fake.quota)
		return CUDA_ERROR_OUT_OF_MEMORY;
	array = find(0);
	array->id = args->array;
	array->shape = shape;
	for (uint32_t i = 0; i < (args->levels ? args->levels : 1); i++)
		array->levels[i] = calloc(1, level_size(array, i));
	return CUDA_SUCCESS;
}

CUresult
gpc_post_gpArrayMake(struct gpc_context *c, const struct gp_args_gpArrayMake *args)
{
	const struct gp_args_gpArrayCreate create = {
		.array = args->array,
		.device = args->device,
		GP_ARRAY_SHAPE(args),
	};
	const struct gp_array_shape shape = { GP_ARRAY_SHAPE(args) };
	const uint64_t size = gp_array_get_footprint(&shape);

	fake.arrays_made++;
	assert_true(size <= fake.allowance);
	fake.allowance -= size;
	fake.mapped -= size;
	return gpc_wait_gpArrayCreate(c, &create);
}

/* 128 by 128 elements, and two levels with tiles. */
CUresult
gpc_wait_gpArrayTiling(struct gpc_context *c, const struct gp_args_gpArrayTiling *args,
		       struct gp_reply_gpArrayTiling *reply, void **raw)
{
	struct gp_array_tiling *tiling = calloc(1, sizeof(*tiling));

	assert_non_null(tiling);
	tiling->width = tiling->height = 128;
	tiling->depth = 1;
	if (find(args->array)->shape.levels) {
		tiling->tail_level = 2;
		tiling->tail_size = 65536;
	}
	reply->tiling = (struct gp_bytes){ tiling, sizeof(*tiling) };
	*raw = tiling;
	return CUDA_SUCCESS;
}

CUresult
gpc_wait_gpArrayTiles(struct gpc_context *c, const struct gp_args_gpArrayTiles *args)
{
	assert_int_equal(args->tiles.size % sizeof(struct gp_array_tiles), 0);
	fake.parts += (int)(args->tiles.size / sizeof(struct gp_array_tiles));
	fake.part_calls++;
	return CUDA_SUCCESS;
}

/* Tiles are ordinary device memory. */
CUresult
gpc_wait_gpTilePoolCreate(struct gpc_context *c, const struct gp_args_gpTilePoolCreate *args)
{
	const struct gp_args_gpMemoryCreate create = { args->memory, args->size, args->device };

	return gpc_wait_gpMemoryCreate(c, &create);
}

CUresult
gpc_post_gpArrayDestroy(struct gpc_context *c, const struct gp_args_gpArrayDestroy *args)
{
	struct array *array = find(args->array);

	for (int i = 0; i < GP_ARRAY_LEVELS_MAX; i++) {
		free(array->levels[i]);
		array->levels[i] = NULL;
	}
	array->id = 0;
	if (fake.array_destroyed)
		fake.array_destroyed();
	return CUDA_SUCCESS;
}

/* Returns the address of a byte of the array. The box that begins there must be in the array. */
static uint8_t *
place(uint32_t id, uint32_t level, const struct gp_array_box *box, uint64_t *pitch_p,
      uint64_t *slice_p)
{
	struct array *array = find(id);
	struct gp_array_extent extent = gp_array_get_level_extent(&array->shape, level);

	assert_true(gp_array_contains(&array->shape, level, box));
	*pitch_p = extent.width;
	*slice_p = extent.width * extent.height;
	return array->levels[level] + box->x + box->y * *pitch_p + box->z * *slice_p;
}

CUresult
gpc_post_gpArrayCopyIn(struct gpc_context *c, const struct gp_args_gpArrayCopyIn *args,
		       const struct iovec *bulk, int bulk_count)
{
	const struct gp_array_box box = { args->x,     args->y,      args->z,
					  args->width, args->height, args->depth };
	uint64_t size = args->width * args->height * args->depth, pitch, slice;
	uint8_t *to = place(args->array, args->level, &box, &pitch, &slice);
	uint8_t *packed = fake_wire_gather(bulk, bulk_count, size);

	for (uint64_t row = 0; row < args->height * args->depth; row++)
		memcpy(to + row % args->height * pitch + row / args->height * slice,
		       packed + row * args->width, args->width);
	free(packed);
	fake.copies_in++;
	fake.barriers += args->flags == GP_COPY_BARRIER;
	return CUDA_SUCCESS;
}

CUresult
gpc_start_gpArrayCopyOut(struct gpc_context *c, const struct gp_args_gpArrayCopyOut *args,
			 struct gpc_request *request)
{
	const struct gp_array_box box = { args->x,     args->y,      args->z,
					  args->width, args->height, args->depth };
	uint64_t size = args->width * args->height * args->depth, pitch, slice;
	const uint8_t *from = place(args->array, args->level, &box, &pitch, &slice);
	uint8_t *packed = malloc(size);

	for (uint64_t row = 0; row < args->height * args->depth; row++)
		memcpy(packed + row * args->width,
		       from + row % args->height * pitch + row / args->height * slice, args->width);
	fake.copies_out++;
	fake_wire_start(request, packed, size, CUDA_SUCCESS);
	return CUDA_SUCCESS;
}

CUresult
gpc_post_gpArrayCopy(struct gpc_context *c, const struct gp_args_gpArrayCopy *args)
{
	const struct gp_array_box dst_box = { args->dst_x, args->dst_y,  args->dst_z,
					      args->width, args->height, args->depth };
	const struct gp_array_box src_box = { args->src_x, args->src_y,  args->src_z,
					      args->width, args->height, args->depth };
	uint64_t dst_pitch = args->dst_pitch, dst_slice = args->dst_slice;
	uint64_t src_pitch = args->src_pitch, src_slice = args->src_slice;
	uint8_t *dst = args->dst_array ? place(args->dst_array, args->dst_level, &dst_box,
					       &dst_pitch, &dst_slice)
				       : fake_wire_at(args->dst);
	const uint8_t *src = args->src_array ? place(args->src_array, args->src_level, &src_box,
						     &src_pitch, &src_slice)
					     : fake_wire_at(args->src);

	for (uint64_t z = 0; z < args->depth; z++)
		for (uint64_t y = 0; y < args->height; y++)
			memmove(dst + z * dst_slice + y * dst_pitch,
				src + z * src_slice + y * src_pitch, args->width);
	fake.copies_device++;
	return CUDA_SUCCESS;
}

static unsigned long long objects;

CUresult
gpc_wait_gpTextureCreate(struct gpc_context *c, const struct gp_args_gpTextureCreate *args,
			 struct gp_reply_gpTextureCreate *reply)
{
	fake.objects++;
	reply->object = ++objects;
	return CUDA_SUCCESS;
}

CUresult
gpc_wait_gpSurfaceCreate(struct gpc_context *c, const struct gp_args_gpSurfaceCreate *args,
			 struct gp_reply_gpSurfaceCreate *reply)
{
	fake.objects++;
	reply->object = ++objects;
	return CUDA_SUCCESS;
}

CUresult
gpc_post_gpTextureDestroy(struct gpc_context *c, const struct gp_args_gpTextureDestroy *args)
{
	fake.objects--;
	return CUDA_SUCCESS;
}
