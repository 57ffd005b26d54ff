/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface references of images, by name. Only an image with a library of its own has
 * any (gpd_variables). Settings are passed to the driver by separate calls and apply to later
 * launches. The client keeps the object that a reference is bound to alive while it is bound.
 */
#include "gpd_calls.h"
#include "server/worker/array/texture.h"
#include "server/worker/context/context.h"
#include "server/worker/device/driver.h"
#include "server/worker/module/image.h"
#include "server/worker/module/image_library.h"
#include "server/worker/module/library.h"
#include "server/worker/session/session.h"

#include <stdlib.h>
#include <string.h>

/* A reference of a module. */
struct reference {
	CUtexref texture;
	CUsurfref surface;
};

static CUresult
module_find_reference(CUmodule module, bool surface, struct gp_bytes text,
		      struct reference *reference)
{
	char *name = strndup(text.data ? text.data : "", text.size);
	CUresult result;

	if (!name)
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = surface ? gpd_driver.cuModuleGetSurfRef(&reference->surface, module, name)
			 : gpd_driver.cuModuleGetTexRef(&reference->texture, module, name);
	free(name);
	return result;
}

static CUresult
reference_find(struct gpd_session *session, uint32_t context, uint32_t id, bool surface,
	       struct gp_bytes name, struct reference *reference)
{
	struct gpd_image *image = gpd_image_get(session, id);
	CUmodule module = NULL;
	CUresult result;

	if (!image)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!gpd_driver_has(cuLibraryGetModule))
		return CUDA_ERROR_NOT_SUPPORTED;
	result = gpd_context_enter(session, context);
	if (result == CUDA_SUCCESS)
		result = gpd_image_refresh(session, image, gpd_context_device(session, context));
	/* Settings in a shared library would affect other sessions' launches. */
	if (result == CUDA_SUCCESS && image->library->shared)
		result = CUDA_ERROR_NOT_FOUND;
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuLibraryGetModule(&module, image->library->driver);
	return result == CUDA_SUCCESS ? module_find_reference(module, surface, name, reference)
				      : result;
}

CUresult
gpd_gpReferenceFind(struct gpd_session *session, const struct gp_args_gpReferenceFind *args)
{
	struct reference reference;

	return reference_find(session, args->context, args->image, args->surface, args->name,
			      &reference);
}

static CUresult
set_resource(CUtexref reference, const CUDA_RESOURCE_DESC *resource)
{
	CUDA_ARRAY_DESCRIPTOR shape;
	size_t offset;
	CUresult result;

	switch (resource->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		return gpd_driver.cuTexRefSetArray(reference, resource->res.array.hArray,
						   CU_TRSA_OVERRIDE_FORMAT);
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		return gpd_driver.cuTexRefSetMipmappedArray(
			reference, resource->res.mipmap.hMipmappedArray, CU_TRSA_OVERRIDE_FORMAT);
	case CU_RESOURCE_TYPE_LINEAR:
		result = gpd_driver.cuTexRefSetFormat(reference, resource->res.linear.format,
						      (int)resource->res.linear.numChannels);
		if (result != CUDA_SUCCESS)
			return result;
		return gpd_driver.cuTexRefSetAddress_v2(&offset, reference,
							resource->res.linear.devPtr,
							resource->res.linear.sizeInBytes);
	default:
		shape = (CUDA_ARRAY_DESCRIPTOR){
			.Width = resource->res.pitch2D.width,
			.Height = resource->res.pitch2D.height,
			.Format = resource->res.pitch2D.format,
			.NumChannels = resource->res.pitch2D.numChannels,
		};
		return gpd_driver.cuTexRefSetAddress2D_v3(reference, &shape,
							  resource->res.pitch2D.devPtr,
							  resource->res.pitch2D.pitchInBytes);
	}
}

static CUresult
set_mipmap(CUtexref reference, const CUDA_TEXTURE_DESC *description)
{
	CUresult result =
		gpd_driver.cuTexRefSetMipmapFilterMode(reference, description->mipmapFilterMode);

	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuTexRefSetMipmapLevelBias(reference,
							       description->mipmapLevelBias);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuTexRefSetMipmapLevelClamp(reference,
								description->minMipmapLevelClamp,
								description->maxMipmapLevelClamp);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuTexRefSetMaxAnisotropy(reference, description->maxAnisotropy);
	return result;
}

static CUresult
set_description(CUtexref reference, const CUDA_TEXTURE_DESC *description)
{
	float color[4];
	CUresult result = CUDA_SUCCESS;

	_Static_assert(sizeof(color) == sizeof(description->borderColor), "four channels");
	memcpy(color, description->borderColor, sizeof(color));
	for (int i = 0; i < 3 && result == CUDA_SUCCESS; i++)
		result = gpd_driver.cuTexRefSetAddressMode(reference, i,
							   description->addressMode[i]);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuTexRefSetFilterMode(reference, description->filterMode);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuTexRefSetBorderColor(reference, color);
	if (result == CUDA_SUCCESS)
		result = gpd_driver.cuTexRefSetFlags(reference, description->flags);
	return result == CUDA_SUCCESS ? set_mipmap(reference, description) : result;
}

CUresult
gpd_gpReferenceSet(struct gpd_session *session, const struct gp_args_gpReferenceSet *args)
{
	const struct gpd_texture_desc *desc = gpd_texture_desc(session, args->texture);
	struct reference reference;
	CUresult result;

	if (!desc)
		return CUDA_ERROR_INVALID_HANDLE;
	if (desc->surface != args->surface ||
	    desc->device != gpd_context_device(session, args->context))
		return CUDA_ERROR_INVALID_VALUE;
	result = reference_find(session, args->context, args->image, desc->surface, args->name,
				&reference);
	if (result != CUDA_SUCCESS)
		return result;
	if (desc->surface)
		return gpd_driver.cuSurfRefSetArray(reference.surface,
						    desc->resource.res.array.hArray, 0);
	result = set_resource(reference.texture, &desc->resource);
	return result == CUDA_SUCCESS ? set_description(reference.texture, &desc->description)
				      : result;
}
