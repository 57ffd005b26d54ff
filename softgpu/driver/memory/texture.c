/* SPDX-License-Identifier: Apache-2.0 */
/* Texture and surface objects: translates descriptions for the engine, which assigns numbers. */
#include "softgpu/engine/lanes/texture.h"

#include "softgpu/driver/memory/array.h"
#include "softgpu/driver/memory/space.h"

#include <stdlib.h>
#include <string.h>

#define LINEAR_ALIGNMENT 512
#define PITCH_ALIGNMENT 32
#define LINEAR_WIDTH_MAX ((uint64_t)1 << 27)
#define PITCHED_WIDTH_MAX 131072
#define PITCHED_HEIGHT_MAX 65000
#define FLAGS                                                                                      \
	(CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES |                                \
	 CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION)
#define FLAGS_NOT_SUPPORTED (CU_TRSF_SRGB | CU_TRSF_SEAMLESS_CUBEMAP)

/* The handle is the engine's number. */
struct object {
	struct gs_object object;
	struct gs_array *array; /* a reference; NULL: uses linear or pitched memory */
	uint64_t number;
};

static void
object_destroy(struct gs_object *object)
{
	struct object *of = (struct object *)object;

	gs_texture_remove(of->number);
	if (of->array)
		gs_array_put(of->array);
	free(of);
}

/* Takes ownership of the reference to the array. */
static CUresult
publish(const struct gs_texture *texture, struct gs_array *array, enum gs_kind kind,
	unsigned long long *number_p)
{
	struct object *object = calloc(1, sizeof(*object));

	if (!object || !gs_texture_add(texture, &object->number)) {
		free(object);
		if (array)
			gs_array_put(array);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	object->array = array;
	gs_object_init(&object->object, kind, NULL, object_destroy);
	/* NOLINTNEXTLINE(performance-no-int-to-ptr) */
	object->object.handle = (const void *)object->number;
	gs_object_publish(&object->object);
	*number_p = object->number;
	return CUDA_SUCCESS;
}

static CUresult
retire(unsigned long long number, enum gs_kind kind)
{
	const void *handle = (const void *)number; /* NOLINT(performance-no-int-to-ptr) */
	struct gs_object *object;
	CUresult r = gs_enter();

	if (r)
		return r;
	object = gs_object_get(handle, kind);
	if (!object)
		return CUDA_ERROR_INVALID_HANDLE;
	if (gs_object_retire(handle, kind))
		gs_object_put(object);
	gs_object_put(object);
	return CUDA_SUCCESS;
}

/* Sets the element format; returns false if textures do not support it. */
static bool
set_format(struct gs_texture *texture, uint32_t format, uint32_t channels)
{
	uint32_t element = gp_array_get_element_size(format, channels);

	if (!element)
		return false;
	texture->channels = (uint8_t)channels;
	texture->channel_bytes = (uint8_t)(element / channels);
	if (format == CU_AD_FORMAT_FLOAT || format == CU_AD_FORMAT_HALF)
		texture->kind = GS_TEXEL_FLOAT;
	else if (format >= CU_AD_FORMAT_SNORM_INT8X1)
		texture->kind = GS_TEXEL_SNORM;
	else if (format >= CU_AD_FORMAT_UNORM_INT8X1)
		texture->kind = GS_TEXEL_UNORM;
	else if (format >= CU_AD_FORMAT_SIGNED_INT8)
		texture->kind = GS_TEXEL_SINT;
	else
		texture->kind = GS_TEXEL_UINT;
	return true;
}

static struct gs_texture_level
get_level(const struct gs_array *array)
{
	uint32_t element = gp_array_get_element_size(array->shape.format, array->shape.channels);

	return (struct gs_texture_level){
		.memory = array->memory,
		.width = (uint32_t)(array->extent.width / element),
		.height = (uint32_t)array->extent.height,
		.depth = (uint32_t)array->extent.depth,
		.pitch = array->pitch,
		.slice = array->slice,
	};
}

static void
set_levels(struct gs_texture *texture, const struct gs_array *array)
{
	texture->level_count = array->shape.levels ? array->shape.levels : 1;
	for (uint32_t i = 0; i < texture->level_count; i++)
		texture->levels[i] = get_level(array->shape.levels ? &array->levels[i] : array);
}

static bool
is_memory(CUdeviceptr address, size_t size)
{
	return address % LINEAR_ALIGNMENT == 0 &&
	       gs_space_is_device(address, size, false, gs_device_current());
}

static CUresult
set_linear(struct gs_texture *texture, const CUDA_RESOURCE_DESC *resource)
{
	uint32_t element = gp_array_get_element_size(resource->res.linear.format,
						     resource->res.linear.numChannels);
	size_t size = resource->res.linear.sizeInBytes;

	if (!set_format(texture, resource->res.linear.format, resource->res.linear.numChannels) ||
	    size < element || size / element > LINEAR_WIDTH_MAX ||
	    !is_memory(resource->res.linear.devPtr, size))
		return CUDA_ERROR_INVALID_VALUE;
	texture->level_count = 1;
	texture->levels[0] = (struct gs_texture_level){
		.memory = (uint8_t *)resource->res.linear.devPtr, /* NOLINT */
		.width = (uint32_t)(size / element),
		.height = 1,
		.depth = 1,
		.pitch = size,
		.slice = size,
	};
	return CUDA_SUCCESS;
}

static CUresult
set_pitched(struct gs_texture *texture, const CUDA_RESOURCE_DESC *resource)
{
	uint32_t element = gp_array_get_element_size(resource->res.pitch2D.format,
						     resource->res.pitch2D.numChannels);
	size_t width = resource->res.pitch2D.width, height = resource->res.pitch2D.height;
	size_t pitch = resource->res.pitch2D.pitchInBytes;

	if (!set_format(texture, resource->res.pitch2D.format, resource->res.pitch2D.numChannels) ||
	    width == 0 || width > PITCHED_WIDTH_MAX || height == 0 || height > PITCHED_HEIGHT_MAX ||
	    pitch < width * element || pitch > INT32_MAX || pitch % PITCH_ALIGNMENT ||
	    !is_memory(resource->res.pitch2D.devPtr, pitch * (height - 1) + width * element))
		return CUDA_ERROR_INVALID_VALUE;
	texture->level_count = 1;
	texture->levels[0] = (struct gs_texture_level){
		.memory = (uint8_t *)resource->res.pitch2D.devPtr, /* NOLINT */
		.width = (uint32_t)width,
		.height = (uint32_t)height,
		.depth = 1,
		.pitch = pitch,
		.slice = pitch * height,
	};
	return CUDA_SUCCESS;
}

/* *array_p: a reference if the resource is an array. */
static CUresult
set_resource(struct gs_texture *texture, const CUDA_RESOURCE_DESC *resource,
	     struct gs_array **array_p)
{
	switch (resource->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		*array_p = gs_array_get(resource->res.array.hArray);
		break;
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		*array_p = gs_array_get_mipmapped(resource->res.mipmap.hMipmappedArray);
		break;
	case CU_RESOURCE_TYPE_LINEAR:
		return set_linear(texture, resource);
	case CU_RESOURCE_TYPE_PITCH2D:
		return set_pitched(texture, resource);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!*array_p)
		return CUDA_ERROR_INVALID_HANDLE;
	set_levels(texture, *array_p);
	(void)set_format(texture, (*array_p)->shape.format, (*array_p)->shape.channels);
	return CUDA_SUCCESS;
}

static bool
is_mode(CUfilter_mode mode)
{
	return mode == CU_TR_FILTER_MODE_POINT || mode == CU_TR_FILTER_MODE_LINEAR;
}

static CUresult
set_sampling(struct gs_texture *texture, const CUDA_TEXTURE_DESC *description)
{
	if ((description->flags & ~(unsigned int)(FLAGS | FLAGS_NOT_SUPPORTED)) ||
	    !is_mode(description->filterMode) || !is_mode(description->mipmapFilterMode))
		return CUDA_ERROR_INVALID_VALUE;
	if (description->flags & FLAGS_NOT_SUPPORTED)
		return CUDA_ERROR_NOT_SUPPORTED;
	for (unsigned int i = 0; i < 3; i++) {
		if ((unsigned int)description->addressMode[i] > CU_TR_ADDRESS_MODE_BORDER)
			return CUDA_ERROR_INVALID_VALUE;
		texture->mode[i] = (uint8_t)description->addressMode[i];
	}
	texture->is_normalized = description->flags & CU_TRSF_NORMALIZED_COORDINATES;
	texture->as_integer = description->flags & CU_TRSF_READ_AS_INTEGER;
	texture->is_linear = description->filterMode == CU_TR_FILTER_MODE_LINEAR;
	texture->is_mip_linear = description->mipmapFilterMode == CU_TR_FILTER_MODE_LINEAR;
	texture->bias = description->mipmapLevelBias;
	texture->level_min = description->minMipmapLevelClamp;
	texture->level_max = description->maxMipmapLevelClamp;
	memcpy(texture->border, description->borderColor, sizeof(texture->border));
	return CUDA_SUCCESS;
}

/* View formats come in groups of three (1, 2 and 4 channels), in this order. */
static CUresult
set_view_format(struct gs_texture *texture, CUresourceViewFormat format)
{
	static const struct {
		uint8_t kind, bytes;
	} kinds[] = {
		{ GS_TEXEL_UINT, 1 },  { GS_TEXEL_SINT, 1 },  { GS_TEXEL_UINT, 2 },
		{ GS_TEXEL_SINT, 2 },  { GS_TEXEL_UINT, 4 },  { GS_TEXEL_SINT, 4 },
		{ GS_TEXEL_FLOAT, 2 }, { GS_TEXEL_FLOAT, 4 },
	};
	unsigned int index = (unsigned int)format - CU_RES_VIEW_FORMAT_UINT_1X8;
	unsigned int element = texture->channels * texture->channel_bytes;

	if (format == CU_RES_VIEW_FORMAT_NONE)
		return CUDA_SUCCESS;
	if (index / 3 >= sizeof(kinds) / sizeof(kinds[0]))
		return format <= CU_RES_VIEW_FORMAT_UNSIGNED_BC7 ? CUDA_ERROR_NOT_SUPPORTED
								 : CUDA_ERROR_INVALID_VALUE;
	if ((kinds[index / 3].bytes << index % 3) != (int)element)
		return CUDA_ERROR_INVALID_VALUE;
	texture->kind = kinds[index / 3].kind;
	texture->channel_bytes = kinds[index / 3].bytes;
	texture->channels = (uint8_t)(1u << index % 3);
	return CUDA_SUCCESS;
}

static CUresult
set_view(struct gs_texture *texture, const struct gs_array *array,
	 const CUDA_RESOURCE_VIEW_DESC *view)
{
	bool layers = array && (array->shape.flags & CUDA_ARRAY3D_LAYERED);
	unsigned int first = view->firstMipmapLevel, last = view->lastMipmapLevel;

	if (!array || first > last || last >= texture->level_count ||
	    view->firstLayer > view->lastLayer ||
	    view->lastLayer >= (layers ? texture->levels[0].depth : 1))
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i <= last - first; i++) {
		struct gs_texture_level *level = &texture->levels[i];

		*level = texture->levels[first + i];
		if (!layers)
			continue;
		level->memory += view->firstLayer * level->slice;
		level->depth = view->lastLayer - view->firstLayer + 1;
	}
	texture->level_count = last - first + 1;
	return set_view_format(texture, view->format);
}

CUresult CUDAAPI
cuTexObjectCreate(CUtexObject *number_p, const CUDA_RESOURCE_DESC *resource,
		  const CUDA_TEXTURE_DESC *description, const CUDA_RESOURCE_VIEW_DESC *view)
{
	struct gs_texture texture = { 0 };
	struct gs_array *array = NULL;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!number_p || !resource || !description || resource->flags)
		return CUDA_ERROR_INVALID_VALUE;
	r = set_resource(&texture, resource, &array);
	if (!r)
		r = set_sampling(&texture, description);
	/* Integers cannot be interpolated. */
	if (!r && texture.is_linear && resource->resType != CU_RESOURCE_TYPE_LINEAR &&
	    texture.kind <= GS_TEXEL_SINT && (texture.as_integer || texture.channel_bytes == 4))
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && resource->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY && !texture.is_normalized)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r && view)
		r = set_view(&texture, array, view);
	if (!r)
		return publish(&texture, array, GS_KIND_TEXTURE, number_p);
	if (array)
		gs_array_put(array);
	return r;
}

CUresult CUDAAPI
cuTexObjectDestroy(CUtexObject number)
{
	return retire(number, GS_KIND_TEXTURE);
}

CUresult CUDAAPI
cuSurfObjectCreate(CUsurfObject *number_p, const CUDA_RESOURCE_DESC *resource)
{
	struct gs_texture surface = { .is_surface = true };
	struct gs_array *array;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!number_p || !resource || resource->flags ||
	    resource->resType != CU_RESOURCE_TYPE_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	array = gs_array_get(resource->res.array.hArray);
	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	set_levels(&surface, array);
	(void)set_format(&surface, array->shape.format, array->shape.channels);
	return publish(&surface, array, GS_KIND_SURFACE, number_p);
}

CUresult CUDAAPI
cuSurfObjectDestroy(CUsurfObject number)
{
	return retire(number, GS_KIND_SURFACE);
}

CUresult CUDAAPI
cuDeviceGetTexture1DLinearMaxWidth(size_t *width, CUarray_format format, unsigned int channels,
				   CUdevice dev)
{
	CUresult r = gs_check_device(dev);

	if (r)
		return r;
	if (!width || !gp_array_get_element_size(format, channels))
		return CUDA_ERROR_INVALID_VALUE;
	*width = LINEAR_WIDTH_MAX;
	return CUDA_SUCCESS;
}

void
gs_texture_destroy_all(void)
{
	struct gs_object *object;

	while ((object = gs_object_retire_any(GS_KIND_TEXTURE)))
		gs_object_put(object);
	while ((object = gs_object_retire_any(GS_KIND_SURFACE)))
		gs_object_put(object);
}
