/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/array/texture.h"

#include "gpd_calls.h"
#include "server/worker/array/array.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/responder.h"

#include <stdlib.h>

struct texture {
	struct gpd_handle handle;
	struct gpd_array *array; /* NULL: it uses linear memory */
	struct gpd_texture_desc desc;
	unsigned long long object;
};

static struct texture *
texture_get(const struct gpd_session *session, uint32_t id)
{
	return gpd_handle_get(&session->handles, GPD_KIND_TEXTURE, id);
}

const struct gpd_texture_desc *
gpd_texture_desc(const struct gpd_session *session, uint32_t id)
{
	const struct texture *texture = texture_get(session, id);

	return texture ? &texture->desc : NULL;
}

/* Finds one level of an array, or the whole of a mipmapped one. */
static CUresult
find_array(struct gpd_session *session, uint32_t id, uint32_t level, bool mipmapped,
	   CUDA_RESOURCE_DESC *resource, struct gpd_array **array_p)
{
	struct gpd_array *array = gpd_array_get(session, id);

	if (!array)
		return CUDA_ERROR_INVALID_HANDLE;
	if (mipmapped ? !array->shape.levels || level
		      : level >= (array->shape.levels ? array->shape.levels : 1))
		return CUDA_ERROR_INVALID_VALUE;
	if (mipmapped)
		resource->res.mipmap.hMipmappedArray = array->mipmap;
	else
		resource->res.array.hArray = array->levels[level];
	*array_p = array;
	return CUDA_SUCCESS;
}

/*
 * Bytes of linear memory that the object may cover. The driver does not compare the stated size
 * with that of the allocation, and programs state more. Reads beyond the object return zeros, so
 * kernels cannot read other memory through it.
 */
static uint64_t
accessible_size(struct gpd_session *session, uint64_t address, uint64_t size, uint32_t element)
{
	uint64_t most = size / element, least = 0;

	if (gpd_memory_accessible(session, address, size))
		return size;
	while (least < most) {
		uint64_t middle = most - (most - least) / 2;

		if (gpd_memory_accessible(session, address, middle * element))
			least = middle;
		else
			most = middle - 1;
	}
	return least * element;
}

/* The driver's limit on linear textures. */
static bool
is_valid_width(int device, uint64_t elements)
{
	int most = 0;

	(void)gpd_driver.cuDeviceGetAttribute(&most,
					      CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH,
					      gpd_devices.all[device].device);
	return elements > 0 && (most <= 0 || elements <= (uint64_t)most);
}

/* Checks memory in the same way as for a copy. */
static CUresult
find_memory(struct gpd_session *session, const struct gp_args_gpTextureCreate *args,
	    CUDA_RESOURCE_DESC *resource)
{
	uint32_t element = gp_array_get_element_size(args->format, args->channels);
	uint64_t row;

	if (!element)
		return CUDA_ERROR_INVALID_VALUE;
	if (args->type == CU_RESOURCE_TYPE_LINEAR) {
		const uint64_t size = accessible_size(session, args->address, args->width, element);

		if (!size || args->height || !is_valid_width(args->device, args->width / element))
			return CUDA_ERROR_INVALID_VALUE;
		resource->res.linear.devPtr = args->address;
		resource->res.linear.format = (CUarray_format)args->format;
		resource->res.linear.numChannels = args->channels;
		resource->res.linear.sizeInBytes = size;
		return CUDA_SUCCESS;
	}
	if (!args->height || __builtin_mul_overflow(args->width, element, &row) || !row ||
	    gpd_memory_check_rows(session, args->address, args->pitch, row, args->height) !=
		    CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_VALUE;
	resource->res.pitch2D.devPtr = args->address;
	resource->res.pitch2D.format = (CUarray_format)args->format;
	resource->res.pitch2D.numChannels = args->channels;
	resource->res.pitch2D.width = args->width;
	resource->res.pitch2D.height = args->height;
	resource->res.pitch2D.pitchInBytes = args->pitch;
	return CUDA_SUCCESS;
}

static CUresult
find_resource(struct gpd_session *session, const struct gp_args_gpTextureCreate *args,
	      CUDA_RESOURCE_DESC *resource, struct gpd_array **array_p)
{
	resource->resType = (CUresourcetype)args->type;
	switch (args->type) {
	case CU_RESOURCE_TYPE_ARRAY:
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		return find_array(session, args->array, args->level,
				  args->type == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY, resource,
				  array_p);
	case CU_RESOURCE_TYPE_LINEAR:
	case CU_RESOURCE_TYPE_PITCH2D:
		return find_memory(session, args, resource);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUDA_TEXTURE_DESC
texture_describe(const struct gp_args_gpTextureCreate *args)
{
	return (CUDA_TEXTURE_DESC){
		.addressMode = { (CUaddress_mode)args->address_mode_x,
				 (CUaddress_mode)args->address_mode_y,
				 (CUaddress_mode)args->address_mode_z },
		.filterMode = (CUfilter_mode)args->filter_mode,
		.flags = args->flags,
		.maxAnisotropy = args->anisotropy,
		.mipmapFilterMode = (CUfilter_mode)args->mipmap_filter_mode,
		.mipmapLevelBias = args->mipmap_bias,
		.minMipmapLevelClamp = args->mipmap_min,
		.maxMipmapLevelClamp = args->mipmap_max,
		.borderColor = { args->border_r, args->border_g, args->border_b, args->border_a },
	};
}

/* Rejects numbers outside the driver's enumerations. */
static bool
is_sound(const struct gp_args_gpTextureCreate *args)
{
	return args->address_mode_x <= CU_TR_ADDRESS_MODE_BORDER &&
	       args->address_mode_y <= CU_TR_ADDRESS_MODE_BORDER &&
	       args->address_mode_z <= CU_TR_ADDRESS_MODE_BORDER &&
	       args->filter_mode <= CU_TR_FILTER_MODE_LINEAR &&
	       args->mipmap_filter_mode <= CU_TR_FILTER_MODE_LINEAR && args->has_view <= 1 &&
	       args->view_format <= CU_RES_VIEW_FORMAT_UNSIGNED_BC7;
}

/* Whether the view's levels and layers exist in the array. */
static bool
view_fits(const struct gp_args_gpTextureCreate *args, const struct gpd_array *array)
{
	uint32_t levels = array && array->shape.levels ? array->shape.levels : 1;
	uint64_t layers = array && array->shape.depth ? array->shape.depth : 1;

	return !args->has_view ||
	       (array && args->view_first_level <= args->view_last_level &&
		args->view_last_level < levels && args->view_first_layer <= args->view_last_layer &&
		args->view_last_layer < layers);
}

static CUresult
create_texture(const struct gp_args_gpTextureCreate *args, const struct gpd_texture_desc *told,
	       CUtexObject *object_p)
{
	const CUDA_RESOURCE_VIEW_DESC view = {
		.format = (CUresourceViewFormat)args->view_format,
		.width = args->view_width,
		.height = args->view_height,
		.depth = args->view_depth,
		.firstMipmapLevel = args->view_first_level,
		.lastMipmapLevel = args->view_last_level,
		.firstLayer = args->view_first_layer,
		.lastLayer = args->view_last_layer,
	};

	return gpd_driver.cuTexObjectCreate(object_p, &told->resource, &told->description,
					    args->has_view ? &view : NULL);
}

/* The driver does not wait for the GPU here (measured). */
static void
texture_destroy(struct texture *texture)
{
	if (gpd_device_enter(texture->desc.device) == CUDA_SUCCESS)
		(void)(texture->desc.surface ? gpd_driver.cuSurfObjectDestroy(texture->object)
					     : gpd_driver.cuTexObjectDestroy(texture->object));
	free(texture);
}

/* args NULL: a surface. *object_p: the handle that kernels use. */
static CUresult
texture_add(struct gpd_session *session, uint32_t id, const struct texture *wanted,
	    const struct gp_args_gpTextureCreate *args, uint64_t *object_p)
{
	struct texture *texture = malloc(sizeof(*texture));
	CUresult result = gpd_device_enter(wanted->desc.device);

	if (!texture || session->arrays->texture_count == GPD_TEXTURES_MAX)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS) {
		*texture = *wanted;
		result = args ? create_texture(args, &texture->desc, &texture->object)
			      : gpd_driver.cuSurfObjectCreate(&texture->object,
							      &texture->desc.resource);
	}
	if (result != CUDA_SUCCESS) {
		free(texture);
		return result;
	}
	*object_p = texture->object;
	result = gpd_session_add_handle(session, GPD_KIND_TEXTURE, id, &texture->handle);
	if (result != CUDA_SUCCESS) {
		texture_destroy(texture);
		return result;
	}
	session->arrays->texture_count++;
	if (texture->array)
		texture->array->users++;
	return CUDA_SUCCESS;
}

CUresult
gpd_gpTextureCreate(struct gpd_session *session, const struct gp_args_gpTextureCreate *args,
		    struct gp_reply_gpTextureCreate *reply)
{
	struct texture texture = { .desc = { .device = args->device } };
	CUresult result;

	if (!gpd_device_get(args->device) || !gpd_account_may_use(&session->account, args->device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!gpd_driver_has(cuTexObjectCreate) || !gpd_driver_has(cuTexObjectDestroy))
		return CUDA_ERROR_NOT_SUPPORTED;
	result = find_resource(session, args, &texture.desc.resource, &texture.array);
	if (result == CUDA_SUCCESS && (!is_sound(args) || !view_fits(args, texture.array) ||
				       (texture.array && texture.array->device != args->device)))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	texture.desc.description = texture_describe(args);
	return texture_add(session, args->texture, &texture, args, &reply->object);
}

CUresult
gpd_gpSurfaceCreate(struct gpd_session *session, const struct gp_args_gpSurfaceCreate *args,
		    struct gp_reply_gpSurfaceCreate *reply)
{
	struct texture surface = { .desc = { .surface = true } };
	CUresult result;

	if (!gpd_driver_has(cuSurfObjectCreate) || !gpd_driver_has(cuSurfObjectDestroy))
		return CUDA_ERROR_NOT_SUPPORTED;
	surface.desc.resource.resType = CU_RESOURCE_TYPE_ARRAY;
	result = find_array(session, args->array, args->level, false, &surface.desc.resource,
			    &surface.array);
	if (result != CUDA_SUCCESS)
		return result;
	surface.desc.device = surface.array->device;
	return texture_add(session, args->surface, &surface, NULL, &reply->object);
}

/* Deferred because kernels launched earlier may still use it. */
static void
texture_unused(struct gpd_session *session, void *arg, CUresult result)
{
	texture_destroy(arg);
}

CUresult
gpd_gpTextureDestroy(struct gpd_session *session, const struct gp_args_gpTextureDestroy *args)
{
	struct texture *texture = texture_get(session, args->texture);
	struct gpd_array *array;
	CUresult result, released;

	if (!texture)
		return CUDA_ERROR_INVALID_HANDLE;
	array = texture->array;
	gpd_handle_remove(&session->handles, &texture->handle);
	session->arrays->texture_count--;
	/* From here on the responder owns it; its array is released after it. */
	result = gpd_wait_add_all(session, NULL, texture_unused, texture);
	if (result != CUDA_SUCCESS)
		free(texture);
	released = array ? gpd_array_release(session, array) : CUDA_SUCCESS;
	return result == CUDA_SUCCESS ? released : result;
}

void
gpd_textures_destroy(struct gpd_session *session)
{
	struct texture *texture;
	uint32_t at = 0;

	while ((texture = gpd_handle_next(&session->handles, GPD_KIND_TEXTURE, &at))) {
		struct gpd_array *array = texture->array;

		gpd_handle_remove(&session->handles, &texture->handle);
		texture_destroy(texture);
		if (array)
			gpd_array_release_at_end(session, array);
	}
}
