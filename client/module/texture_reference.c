/* SPDX-License-Identifier: Apache-2.0 */
#include "client/module/texture_reference.h"

#include "base/lock.h"
#include "client/array/array.h"
#include "client/array/texture.h"
#include "client/context/context.h"
#include "client/context/device.h"
#include "client/context/object.h"
#include "client/memory/address.h"
#include "client/module/module.h"
#include "gpc_calls.h"
#include "protocol/array_geometry.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Protects the images' lists and the bound state. The lock of a context may be held when it is
 * acquired. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The struct is compared bytewise later, so padding and unused members must be zero. */
static void
reference_set_resource(struct gpc_texture_reference *reference, CUresourcetype type)
{
	memset(&reference->resource, 0, sizeof(reference->resource));
	reference->resource.resType = type;
}

static struct gpc_texture_reference *
reference_create(enum gpc_kind kind)
{
	struct gpc_texture_reference *reference = gpc_handle_new(kind, sizeof(*reference));

	if (!reference)
		return NULL;
	reference->surface = kind == GPC_KIND_SURFREF;
	reference_set_resource(reference, GPC_TEXTURE_REFERENCE_UNBOUND);
	reference->format = CU_AD_FORMAT_FLOAT;
	reference->channels = 1;
	return reference;
}

static bool
reference_is_bound(const struct gpc_texture_reference *reference, const struct gpc_context *context)
{
	return reference->context == context &&
	       memcmp(&reference->bound_resource, &reference->resource,
		      sizeof(reference->resource)) == 0 &&
	       memcmp(&reference->bound_description, &reference->description,
		      sizeof(reference->description)) == 0;
}

/* The daemon keeps the array of an object alive as long as the object exists, so the object is
 * destroyed when it is no longer bound. */
static void
reference_drop_object(struct gpc_texture_reference *reference) GP_LOCKED(lock)
{
	if (reference->context)
		(void)gpc_texture_destroy(reference->context, reference->object,
					  reference->surface);
	reference->context = NULL;
}

static CUresult
reference_bind(struct gpc_texture_reference *reference, struct gpc_context *context) GP_LOCKED(lock)
{
	struct gp_args_gpReferenceSet args = {
		.context = context->handle.id,
		.image = reference->image->handle.id,
		.surface = reference->surface,
		.name = { reference->name, strlen(reference->name) },
	};
	unsigned long long object;
	CUresult result = reference->surface
				  ? gpc_surface_create(context, &reference->resource, &object)
				  : gpc_texture_create(context, &reference->resource,
						       &reference->description, NULL, &object);

	if (result != CUDA_SUCCESS)
		return result;
	args.texture = gpc_texture_to_wire(context, object, reference->surface);
	result = gpc_post_gpReferenceSet(context, &args);
	reference_drop_object(reference);
	reference->context = context;
	reference->object = object;
	reference->bound_resource = reference->resource;
	reference->bound_description = reference->description;
	return result;
}

static CUresult
references_bind(const struct gpc_image *image, struct gpc_context *context)
{
	CUresult result = CUDA_SUCCESS;

	(void)pthread_mutex_lock(&lock);
	for (struct gpc_texture_reference *at = image->references; at && result == CUDA_SUCCESS;
	     at = at->next) {
		if (at->resource.resType != GPC_TEXTURE_REFERENCE_UNBOUND &&
		    !reference_is_bound(at, context))
			result = reference_bind(at, context);
	}
	(void)pthread_mutex_unlock(&lock);
	return result;
}

static void
references_drop(const struct gpc_image *image)
{
	struct gpc_texture_reference *next;

	(void)pthread_mutex_lock(&lock);
	for (struct gpc_texture_reference *at = image->references; at; at = next) {
		next = at->next;
		reference_drop_object(at);
		free(at->name);
		gpc_handle_remove(&at->handle);
	}
	(void)pthread_mutex_unlock(&lock);
}

static void
reference_unbind_if_in_context(void *object, void *context)
{
	struct gpc_texture_reference *reference = object;

	if (reference->context == context)
		reference->context = NULL;
}

void
gpc_texture_reference_drop_context(struct gpc_context *context)
{
	(void)pthread_mutex_lock(&lock);
	gpc_handle_each(GPC_KIND_TEXREF, reference_unbind_if_in_context, context);
	gpc_handle_each(GPC_KIND_SURFREF, reference_unbind_if_in_context, context);
	(void)pthread_mutex_unlock(&lock);
}

static CUresult
reference_add(struct gpc_image *image, enum gpc_kind kind, const char *name, void **token_p)
	GP_LOCKED(lock)
{
	static const struct gpc_texture_reference_calls calls = {
		.bind_references = references_bind,
		.drop_references = references_drop,
	};
	struct gpc_texture_reference *reference = reference_create(kind);

	if (reference)
		reference->name = strdup(name);
	if (!reference || !reference->name) {
		if (reference)
			gpc_handle_remove(&reference->handle);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	reference->image = image;
	reference->next = image->references;
	image->references = reference;
	image->reference_calls = &calls;
	*token_p = reference->handle.token;
	return CUDA_SUCCESS;
}

static CUresult
reference_find(const struct gpc_module *module, enum gpc_kind kind, const char *name,
	       void **token_p) GP_LOCKED(lock)
{
	const struct gp_args_gpReferenceFind args = {
		.context = module->context->handle.id,
		.image = module->image->handle.id,
		.surface = kind == GPC_KIND_SURFREF,
		.name = { name, strlen(name) },
	};
	CUresult result;

	for (struct gpc_texture_reference *at = module->image->references; at; at = at->next) {
		if (at->handle.kind != kind || strcmp(at->name, name) != 0)
			continue;
		*token_p = at->handle.token;
		return CUDA_SUCCESS;
	}
	result = gpc_wait_gpReferenceFind(module->context, &args);
	return result == CUDA_SUCCESS ? reference_add(module->image, kind, name, token_p) : result;
}

static CUresult
reference_get(CUmodule hmod, enum gpc_kind kind, const char *name, void **token_p)
{
	struct gpc_module *module;
	CUresult result = gpc_enter_kind(GPC_KIND_MODULE, hmod, &module);

	if (result == CUDA_SUCCESS && (!token_p || !name))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	(void)pthread_mutex_lock(&lock);
	result = reference_find(module, kind, name, token_p);
	(void)pthread_mutex_unlock(&lock);
	return result;
}

CUresult
gpc_cuModuleGetTexRef(CUtexref *pTexRef, CUmodule hmod, const char *name)
{
	return reference_get(hmod, GPC_KIND_TEXREF, name, (void **)pTexRef);
}

CUresult
gpc_cuModuleGetSurfRef(CUsurfref *pSurfRef, CUmodule hmod, const char *name)
{
	return reference_get(hmod, GPC_KIND_SURFREF, name, (void **)pSurfRef);
}

CUresult
gpc_cuTexRefCreate(CUtexref *pTexRef)
{
	struct gpc_texture_reference *reference;
	struct gpc_context *context;
	CUresult result = gpc_enter(&context);

	if (result == CUDA_SUCCESS && !pTexRef)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	reference = reference_create(GPC_KIND_TEXREF);
	if (!reference)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*pTexRef = reference->handle.token;
	return CUDA_SUCCESS;
}

static CUresult
reference_enter(CUtexref token, struct gpc_texture_reference **reference_p)
{
	return gpc_enter_kind(GPC_KIND_TEXREF, token, reference_p);
}

CUresult
gpc_cuTexRefDestroy(CUtexref hTexRef)
{
	struct gpc_texture_reference *reference;
	CUresult result = reference_enter(hTexRef, &reference);

	if (result != CUDA_SUCCESS)
		return result;
	/* A reference of a module is freed with the module. */
	if (reference->image || !gpc_handle_claim(GPC_KIND_TEXREF, hTexRef))
		return CUDA_ERROR_INVALID_HANDLE;
	gpc_handle_remove(&reference->handle);
	return CUDA_SUCCESS;
}

CUresult
gpc_cuParamSetTexRef(CUfunction hfunc, int texunit, CUtexref hTexRef)
{
	struct gpc_texture_reference *reference;
	struct gpc_function *function;
	CUresult result = gpc_function_enter(hfunc, &function);

	if (result == CUDA_SUCCESS)
		result = reference_enter(hTexRef, &reference);
	if (result == CUDA_SUCCESS && (texunit != CU_PARAM_TR_DEFAULT || !reference->image))
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}

/* Binds the reference to an array, and sets its format to that of the array if the flags request
 * it. */
static CUresult
reference_set_array(CUtexref token, bool mipmapped, void *handle, unsigned int flags)
{
	struct gpc_texture_reference *reference;
	struct gpc_array *array;
	CUresult result = reference_enter(token, &reference);

	if (result == CUDA_SUCCESS && flags > CU_TRSA_OVERRIDE_FORMAT)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = mipmapped ? gpc_array_lookup_mipmapped(handle, &array)
				   : gpc_array_lookup(handle, &array);
	if (result != CUDA_SUCCESS)
		return result;
	reference_set_resource(reference, mipmapped ? CU_RESOURCE_TYPE_MIPMAPPED_ARRAY
						    : CU_RESOURCE_TYPE_ARRAY);
	if (mipmapped)
		reference->resource.res.mipmap.hMipmappedArray = handle;
	else
		reference->resource.res.array.hArray = handle;
	if (flags == CU_TRSA_OVERRIDE_FORMAT) {
		reference->format = (CUarray_format)array->shape.format;
		reference->channels = (int)array->shape.channels;
	}
	return CUDA_SUCCESS;
}

CUresult
gpc_cuTexRefSetArray(CUtexref hTexRef, CUarray hArray, unsigned int Flags)
{
	return reference_set_array(hTexRef, false, hArray, Flags);
}

CUresult
gpc_cuTexRefSetMipmappedArray(CUtexref hTexRef, CUmipmappedArray hMipmappedArray,
			      unsigned int Flags)
{
	return reference_set_array(hTexRef, true, hMipmappedArray, Flags);
}

/* Memory has no format of its own: it gets that of the reference. */
static void
reference_apply_format(struct gpc_texture_reference *reference)
{
	CUDA_RESOURCE_DESC *resource = &reference->resource;

	if (resource->resType == CU_RESOURCE_TYPE_LINEAR) {
		resource->res.linear.format = reference->format;
		resource->res.linear.numChannels = (unsigned int)reference->channels;
	} else if (resource->resType == CU_RESOURCE_TYPE_PITCH2D) {
		resource->res.pitch2D.format = reference->format;
		resource->res.pitch2D.numChannels = (unsigned int)reference->channels;
	}
}

/* Checks that this is device memory of the program. *offset: distance from the preceding address
 * with the alignment that textures require. */
static CUresult
memory_check_alignment(CUdeviceptr address, size_t bytes, CUdevice_attribute alignment,
		       size_t *offset)
{
	struct gpc_context *context;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	*offset = address % (unsigned int)gpc_device_attribute(context->device, alignment);
	return gpc_address_is_device(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult
gpc_cuTexRefSetAddress_v2(size_t *ByteOffset, CUtexref hTexRef, CUdeviceptr dptr, size_t bytes)
{
	struct gpc_texture_reference *reference;
	size_t offset = 0;
	CUresult result = reference_enter(hTexRef, &reference);

	if (result == CUDA_SUCCESS)
		result = memory_check_alignment(dptr, bytes, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT,
						&offset);
	if (result == CUDA_SUCCESS && offset && !ByteOffset)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	reference_set_resource(reference, CU_RESOURCE_TYPE_LINEAR);
	reference->resource.res.linear.devPtr = dptr - offset;
	reference->resource.res.linear.sizeInBytes = bytes + offset;
	reference_apply_format(reference);
	if (ByteOffset)
		*ByteOffset = offset;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuTexRefSetAddress2D_v3(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr dptr,
			    size_t Pitch)
{
	struct gpc_texture_reference *reference;
	size_t offset = 0;
	CUresult result = reference_enter(hTexRef, &reference);

	if (result == CUDA_SUCCESS && (!desc || !desc->Width || !desc->Height ||
				       !gp_array_get_element_size(desc->Format, desc->NumChannels)))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = memory_check_alignment(dptr, 1, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT,
						&offset);
	if (result == CUDA_SUCCESS && offset)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	reference_set_resource(reference, CU_RESOURCE_TYPE_PITCH2D);
	reference->resource.res.pitch2D.devPtr = dptr;
	reference->resource.res.pitch2D.width = desc->Width;
	reference->resource.res.pitch2D.height = desc->Height;
	reference->resource.res.pitch2D.pitchInBytes = Pitch;
	reference->format = desc->Format;
	reference->channels = (int)desc->NumChannels;
	reference_apply_format(reference);
	return CUDA_SUCCESS;
}

CUresult
gpc_cuTexRefSetFormat(CUtexref hTexRef, CUarray_format fmt, int NumPackedComponents)
{
	struct gpc_texture_reference *reference;
	CUresult result = reference_enter(hTexRef, &reference);

	if (result != CUDA_SUCCESS)
		return result;
	if (NumPackedComponents <= 0 ||
	    !gp_array_get_element_size((uint32_t)fmt, (uint32_t)NumPackedComponents))
		return CUDA_ERROR_INVALID_VALUE;
	reference->format = fmt;
	reference->channels = NumPackedComponents;
	reference_apply_format(reference);
	return CUDA_SUCCESS;
}

CUresult
gpc_cuTexRefSetAddressMode(CUtexref hTexRef, int dim, CUaddress_mode am)
{
	struct gpc_texture_reference *reference;
	CUresult result = reference_enter(hTexRef, &reference);

	if (result != CUDA_SUCCESS)
		return result;
	if (dim < 0 || dim > 2 || (unsigned int)am > CU_TR_ADDRESS_MODE_BORDER)
		return CUDA_ERROR_INVALID_VALUE;
	reference->description.addressMode[dim] = am;
	return CUDA_SUCCESS;
}

CUresult
gpc_cuTexRefGetAddressMode(CUaddress_mode *pam, CUtexref hTexRef, int dim)
{
	struct gpc_texture_reference *reference;
	CUresult result = reference_enter(hTexRef, &reference);

	if (result != CUDA_SUCCESS)
		return result;
	if (!pam || dim < 0 || dim > 2)
		return CUDA_ERROR_INVALID_VALUE;
	*pam = reference->description.addressMode[dim];
	return CUDA_SUCCESS;
}

CUresult
gpc_cuTexRefSetBorderColor(CUtexref hTexRef, float *pBorderColor)
{
	struct gpc_texture_reference *reference;
	CUresult result = reference_enter(hTexRef, &reference);

	if (result != CUDA_SUCCESS)
		return result;
	if (!pBorderColor)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(reference->description.borderColor, pBorderColor,
	       sizeof(reference->description.borderColor));
	return CUDA_SUCCESS;
}

CUresult
gpc_cuTexRefGetBorderColor(float *pBorderColor, CUtexref hTexRef)
{
	struct gpc_texture_reference *reference;
	CUresult result = reference_enter(hTexRef, &reference);

	if (result != CUDA_SUCCESS)
		return result;
	if (!pBorderColor)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(pBorderColor, reference->description.borderColor,
	       sizeof(reference->description.borderColor));
	return CUDA_SUCCESS;
}

CUresult
gpc_cuSurfRefSetArray(CUsurfref hSurfRef, CUarray hArray, unsigned int Flags)
{
	struct gpc_texture_reference *reference;
	struct gpc_array *array;
	CUresult result = gpc_enter_kind(GPC_KIND_SURFREF, hSurfRef, &reference);

	if (result == CUDA_SUCCESS && Flags)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = gpc_array_lookup(hArray, &array);
	if (result == CUDA_SUCCESS && !(array->shape.flags & CUDA_ARRAY3D_SURFACE_LDST))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	reference_set_resource(reference, CU_RESOURCE_TYPE_ARRAY);
	reference->resource.res.array.hArray = hArray;
	return CUDA_SUCCESS;
}
