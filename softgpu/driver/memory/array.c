/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/driver/memory/array.h"

#include "softgpu/driver/code/loading.h"
#include "softgpu/driver/memory/space.h"
#include "softgpu/driver/stream/stream.h"

#include <stdlib.h>
#include <sys/mman.h>

#define ALIGNMENT ((size_t)64 << 10)

/* Limits of an H200, by the number of dimensions, and for layered arrays. */
struct limit {
	uint64_t width, height, depth;
};

static const struct limit limits[] = {
	{ 131072, 0, 0 },   { 131072, 65536, 0 },   { 16384, 16384, 16384 },
	{ 32768, 0, 2048 }, { 32768, 32768, 2048 },
};
enum {
	LAYERED_1D = 3,
	LAYERED_2D = 4
};

static const struct limit *
get_limit(const struct gp_array_shape *shape)
{
	if (shape->flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP))
		return &limits[shape->height ? LAYERED_2D : LAYERED_1D];
	return &limits[shape->depth ? 2 : shape->height ? 1 : 0];
}

static CUresult
check(const struct gp_array_shape *shape)
{
	const struct limit *limit;
	CUresult r = gp_array_check(shape);

	if (r)
		return r;
	limit = get_limit(shape);
	return shape->width <= limit->width && shape->height <= limit->height &&
			       shape->depth <= limit->depth
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

static bool
is_sparse(const struct gp_array_shape *shape)
{
	return shape->flags & CUDA_ARRAY3D_SPARSE;
}

static size_t
get_pitch(const struct gp_array_shape *shape)
{
	const size_t width = gp_array_get_level_extent(shape, 0).width;

	return is_sparse(shape) ? (width + GS_TILE_SIZE - 1) & ~(GS_TILE_SIZE - 1) : width;
}

size_t
gs_array_level_size(const struct gp_array_shape *shape)
{
	const struct gp_array_extent extent = gp_array_get_level_extent(shape, 0);

	return get_pitch(shape) * extent.height * extent.depth;
}

static size_t
get_size(const struct gp_array_shape *shape)
{
	size_t sum = 0;

	for (uint32_t i = 0; i < (shape->levels ? shape->levels : 1); i++) {
		const struct gp_array_shape level = gp_array_get_level_shape(shape, i);

		sum += gs_array_level_size(&level);
	}
	return gs_space_pages(sum);
}

/* Memory charged to the device; that of a sparse array belongs to the program. */
static size_t
get_charge(const struct gp_array_shape *shape)
{
	return is_sparse(shape) ? 0 : get_size(shape);
}

/* Returns NULL on failure. */
static uint8_t *
map(size_t size)
{
	struct gs_span span = { .size = size, .use = GS_SPAN_ARRAY };
	bool done = false;

	pthread_rwlock_wrlock(&gs_space.lock);
	span.base = gs_space_find(size, ALIGNMENT, 0, PROT_READ | PROT_WRITE);
	if (span.base)
		done = gs_spans_insert(&gs_space.reserved, &span);
	if (span.base && !done)
		munmap((void *)span.base, size); /* NOLINT(performance-no-int-to-ptr) */
	pthread_rwlock_unlock(&gs_space.lock);
	return done ? (uint8_t *)span.base : NULL; /* NOLINT(performance-no-int-to-ptr) */
}

static void
unmap(uint8_t *memory, size_t size)
{
	struct gs_span *span;

	pthread_rwlock_wrlock(&gs_space.lock);
	span = gs_spans_at(&gs_space.reserved, (uint64_t)(uintptr_t)memory);
	if (span)
		gs_spans_remove(&gs_space.reserved, span);
	munmap(memory, size);
	pthread_rwlock_unlock(&gs_space.lock);
}

static void
array_destroy(struct gs_object *object)
{
	struct gs_array *array = (struct gs_array *)object;

	unmap(array->memory, array->size);
	gs_space_discharge(array->device, get_charge(&array->shape));
	free(array->levels);
	free(array);
}

static void
place(struct gs_array *array, const struct gp_array_shape *shape, uint8_t *memory)
{
	array->shape = *shape;
	array->extent = gp_array_get_level_extent(shape, 0);
	array->memory = memory;
	array->pitch = get_pitch(shape);
	array->slice = array->pitch * array->extent.height;
}

static CUresult
make_levels(struct gs_array *array)
{
	uint32_t count = array->shape.levels;
	uint8_t *memory = array->memory;

	array->levels = calloc(count, sizeof(*array->levels));
	if (!array->levels)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint32_t i = 0; i < count; i++) {
		struct gs_array *level = &array->levels[i];
		struct gp_array_shape shape = gp_array_get_level_shape(&array->shape, i);

		place(level, &shape, memory);
		memory += gs_array_level_size(&shape);
		gs_object_init(&level->object, GS_KIND_ARRAY, &array->object, NULL);
	}
	return CUDA_SUCCESS;
}

static CUresult
create(const CUDA_ARRAY3D_DESCRIPTOR *described, unsigned int levels, enum gs_kind kind,
       void **handle_p)
{
	struct gp_array_shape shape = {
		.width = described->Width,
		.height = described->Height,
		.depth = described->Depth,
		.format = (uint32_t)described->Format,
		.channels = described->NumChannels,
		.flags = described->Flags,
		.levels = levels,
	};
	struct gs_array *array;
	int device = gs_device_current();
	CUresult r = check(&shape);
	size_t size;
	uint8_t *memory;

	if (r)
		return r;
	size = get_size(&shape);
	if (get_charge(&shape) > gs_device_memory() || !gs_space_charge(device, get_charge(&shape)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	memory = map(size);
	array = memory ? calloc(1, sizeof(*array)) : NULL;
	if (!array) {
		if (memory)
			unmap(memory, size);
		gs_space_discharge(device, get_charge(&shape));
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	gs_object_init(&array->object, kind, NULL, array_destroy);
	array->device = device;
	place(array, &shape, memory);
	array->size = size;
	r = levels ? make_levels(array) : CUDA_SUCCESS;
	if (r) {
		gs_object_put(&array->object);
		return r;
	}
	gs_object_publish(&array->object);
	for (unsigned int i = 0; i < levels; i++)
		gs_object_publish(&array->levels[i].object);
	*handle_p = array;
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuArray3DCreate_v2(CUarray *handle, const CUDA_ARRAY3D_DESCRIPTOR *described)
{
	void *made;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!handle || !described)
		return CUDA_ERROR_INVALID_VALUE;
	r = create(described, 0, GS_KIND_ARRAY, &made);
	if (!r)
		*handle = made;
	return r;
}

CUresult CUDAAPI
cuMipmappedArrayCreate(CUmipmappedArray *handle, const CUDA_ARRAY3D_DESCRIPTOR *described,
		       unsigned int levels)
{
	struct gp_array_shape shape;
	unsigned int most;
	void *made;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!handle || !described)
		return CUDA_ERROR_INVALID_VALUE;
	shape = (struct gp_array_shape){ .width = described->Width,
					 .height = described->Height,
					 .depth = described->Depth,
					 .flags = described->Flags };
	most = gp_array_get_levels_max(&shape);
	levels = levels < most ? levels : most;
	r = create(described, levels ? levels : 1, GS_KIND_MIPMAPPED_ARRAY, &made);
	if (!r)
		*handle = made;
	return r;
}

struct gs_array *
gs_array_get(CUarray handle)
{
	return gs_object_get(handle, GS_KIND_ARRAY);
}

struct gs_array *
gs_array_get_mipmapped(CUmipmappedArray handle)
{
	return gs_object_get(handle, GS_KIND_MIPMAPPED_ARRAY);
}

void
gs_array_put(struct gs_array *array)
{
	gs_object_put(&array->object);
}

/* Destroys an array that was found. Like NVIDIA's driver, and like the memory calls here, waits for
 * all work. */
static CUresult
destroy(struct gs_array *array, enum gs_kind kind)
{
	CUresult r = gs_stream_synchronize_all(NULL, -1);

	gs_loading_wait();
	if (!r && !gs_object_retire(array, kind))
		r = CUDA_ERROR_INVALID_HANDLE;
	for (uint32_t i = 0; !r && i < array->shape.levels; i++)
		(void)gs_object_retire(&array->levels[i], GS_KIND_ARRAY);
	if (!r)
		gs_array_put(array);
	gs_array_put(array);
	return r;
}

CUresult CUDAAPI
cuArrayDestroy(CUarray handle)
{
	struct gs_array *array;
	CUresult r = gs_enter();

	if (r)
		return r;
	array = gs_array_get(handle);
	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	if (array->object.owner) {
		gs_array_put(array);
		return CUDA_ERROR_INVALID_HANDLE;
	}
	return destroy(array, GS_KIND_ARRAY);
}

CUresult CUDAAPI
cuMipmappedArrayDestroy(CUmipmappedArray handle)
{
	struct gs_array *array;
	CUresult r = gs_enter();

	if (r)
		return r;
	array = gs_array_get_mipmapped(handle);
	return array ? destroy(array, GS_KIND_MIPMAPPED_ARRAY) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult CUDAAPI
cuMipmappedArrayGetLevel(CUarray *level_p, CUmipmappedArray handle, unsigned int level)
{
	struct gs_array *array;
	CUresult r = gs_enter();

	if (r)
		return r;
	array = gs_array_get_mipmapped(handle);
	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!level_p || level >= array->shape.levels)
		r = CUDA_ERROR_INVALID_VALUE;
	else
		*level_p = (CUarray)&array->levels[level];
	gs_array_put(array);
	return r;
}

CUresult CUDAAPI
cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *described, CUarray handle)
{
	struct gs_array *array;
	CUresult r = gs_enter();

	if (r)
		return r;
	array = gs_array_get(handle);
	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	if (described)
		*described = (CUDA_ARRAY3D_DESCRIPTOR){
			.Width = array->shape.width,
			.Height = array->shape.height,
			.Depth = array->shape.depth,
			.Format = (CUarray_format)array->shape.format,
			.NumChannels = array->shape.channels,
			.Flags = array->shape.flags,
		};
	gs_array_put(array);
	return described ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void
gs_array_destroy_all(void)
{
	struct gs_array *array;

	while ((array = gs_object_retire_any(GS_KIND_MIPMAPPED_ARRAY))) {
		for (uint32_t i = 0; i < array->shape.levels; i++)
			(void)gs_object_retire(&array->levels[i], GS_KIND_ARRAY);
		gs_array_put(array);
	}
	while ((array = gs_object_retire_any(GS_KIND_ARRAY)))
		gs_array_put(array);
}
