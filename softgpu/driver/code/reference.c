/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/driver/code/reference.h"

#include "protocol/array_geometry.h"
#include "softgpu/driver/code/binary.h"
#include "softgpu/driver/memory/array.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 512
#define NOTHING ((CUresourcetype)0xff)

struct gs_reference {
	struct gs_object object; /* GS_KIND_TEXTURE_REFERENCE or GS_KIND_SURFACE_REFERENCE */
	struct gs_reference *next;
	uint64_t *place; /* address of the variable with the number */
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC description;
	CUarray_format format;
	unsigned int channels;
};

/* Protects all references. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void
drop_number(const struct gs_reference *reference)
{
	if (*reference->place && reference->object.kind == GS_KIND_SURFACE_REFERENCE)
		(void)cuSurfObjectDestroy(*reference->place);
	else if (*reference->place)
		(void)cuTexObjectDestroy(*reference->place);
	*reference->place = 0;
}

void
gs_references_retire(struct gs_binary *code)
{
	pthread_mutex_lock(&lock);
	for (struct gs_reference *at = code->references; at; at = at->next)
		(void)gs_object_retire(&at->object, at->object.kind);
	pthread_mutex_unlock(&lock);
}

void
gs_references_free(struct gs_binary *code)
{
	while (code->references) {
		struct gs_reference *next = code->references->next;

		drop_number(code->references);
		free(code->references);
		code->references = next;
	}
}

/* Called with the lock held. */
static struct gs_reference *
obtain(struct gs_binary *code, enum gs_kind kind, uint64_t *place)
{
	struct gs_reference *reference = code->references;

	while (reference && reference->place != place)
		reference = reference->next;
	if (reference)
		return reference;
	reference = calloc(1, sizeof(*reference));
	if (!reference)
		return NULL;
	gs_object_init(&reference->object, kind, &code->object, NULL);
	gs_object_publish(&reference->object);
	reference->place = place;
	reference->resource.resType = NOTHING;
	reference->format = CU_AD_FORMAT_FLOAT;
	reference->channels = 1;
	reference->next = code->references;
	code->references = reference;
	return reference;
}

static CUresult
find(struct gs_object *module, enum gs_kind kind, const char *name, void **handle_p)
{
	struct gs_binary *code = (struct gs_binary *)module->owner;
	struct gs_reference *reference;
	uint64_t place;

	if (gs_module_reference(code->engine, name, kind == GS_KIND_SURFACE_REFERENCE, &place) !=
	    GS_OK)
		return CUDA_ERROR_NOT_FOUND;
	pthread_mutex_lock(&lock);
	reference = obtain(code, kind, (uint64_t *)place); /* NOLINT(performance-no-int-to-ptr) */
	pthread_mutex_unlock(&lock);
	*handle_p = reference;
	return reference ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
get(CUmodule handle, enum gs_kind kind, const char *name, void **handle_p)
{
	struct gs_object *module;
	CUresult r = gs_enter();

	if (r)
		return r;
	if (!handle_p || !name || !name[0])
		return CUDA_ERROR_INVALID_VALUE;
	module = gs_object_get(handle, GS_KIND_MODULE);
	if (!module)
		module = gs_object_get(handle, GS_KIND_LIBRARY_MODULE);
	if (!module)
		return CUDA_ERROR_INVALID_HANDLE;
	r = find(module, kind, name, handle_p);
	gs_object_put(module);
	return r;
}

CUresult CUDAAPI
cuModuleGetTexRef(CUtexref *reference_p, CUmodule module, const char *name)
{
	return get(module, GS_KIND_TEXTURE_REFERENCE, name, (void **)reference_p);
}

CUresult CUDAAPI
cuModuleGetSurfRef(CUsurfref *reference_p, CUmodule module, const char *name)
{
	return get(module, GS_KIND_SURFACE_REFERENCE, name, (void **)reference_p);
}

/* Begins a setter; on success the lock is held. */
static CUresult
begin(const void *handle, enum gs_kind kind, struct gs_reference **reference_p)
{
	CUresult r = gs_enter();

	if (r)
		return r;
	*reference_p = gs_object_get(handle, kind);
	if (!*reference_p)
		return CUDA_ERROR_INVALID_HANDLE;
	r = cuCtxSynchronize();
	if (r)
		gs_object_put(&(*reference_p)->object);
	else
		pthread_mutex_lock(&lock);
	return r;
}

static CUresult
begin_texture(CUtexref handle, struct gs_reference **reference_p)
{
	return begin(handle, GS_KIND_TEXTURE_REFERENCE, reference_p);
}

static void
set_format(struct gs_reference *reference)
{
	if (reference->resource.resType == CU_RESOURCE_TYPE_LINEAR) {
		reference->resource.res.linear.format = reference->format;
		reference->resource.res.linear.numChannels = reference->channels;
	} else if (reference->resource.resType == CU_RESOURCE_TYPE_PITCH2D) {
		reference->resource.res.pitch2D.format = reference->format;
		reference->resource.res.pitch2D.numChannels = reference->channels;
	}
}

/* Ends a setter. While the parameters are incomplete, kernels find no valid number. */
static CUresult
end(struct gs_reference *reference)
{
	unsigned long long number = 0;
	CUresult r = CUDA_ERROR_INVALID_VALUE;

	drop_number(reference);
	set_format(reference);
	if (reference->object.kind == GS_KIND_SURFACE_REFERENCE)
		r = cuSurfObjectCreate(&number, &reference->resource);
	else if (reference->resource.resType != NOTHING)
		r = cuTexObjectCreate(&number, &reference->resource, &reference->description, NULL);
	*reference->place = r ? 0 : number;
	pthread_mutex_unlock(&lock);
	gs_object_put(&reference->object);
	return CUDA_SUCCESS;
}

CUresult CUDAAPI
cuTexRefSetArray(CUtexref handle, CUarray array, unsigned int flags)
{
	struct gs_reference *reference;
	CUresult r = flags == CU_TRSA_OVERRIDE_FORMAT ? begin_texture(handle, &reference)
						      : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	reference->resource = (CUDA_RESOURCE_DESC){ .resType = CU_RESOURCE_TYPE_ARRAY };
	reference->resource.res.array.hArray = array;
	return end(reference);
}

CUresult CUDAAPI
cuTexRefSetMipmappedArray(CUtexref handle, CUmipmappedArray array, unsigned int flags)
{
	struct gs_reference *reference;
	CUresult r = flags == CU_TRSA_OVERRIDE_FORMAT ? begin_texture(handle, &reference)
						      : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	reference->resource = (CUDA_RESOURCE_DESC){ .resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY };
	reference->resource.res.mipmap.hMipmappedArray = array;
	return end(reference);
}

CUresult CUDAAPI
cuTexRefSetAddress(size_t *offset_p, CUtexref handle, CUdeviceptr address, size_t bytes)
{
	const size_t offset = address % ALIGNMENT;
	struct gs_reference *reference;
	CUresult r =
		offset && !offset_p ? CUDA_ERROR_INVALID_VALUE : begin_texture(handle, &reference);

	if (r)
		return r;
	reference->resource = (CUDA_RESOURCE_DESC){ .resType = CU_RESOURCE_TYPE_LINEAR };
	reference->resource.res.linear.devPtr = address - offset;
	reference->resource.res.linear.sizeInBytes = bytes + offset;
	if (offset_p)
		*offset_p = offset;
	return end(reference);
}

CUresult CUDAAPI
cuTexRefSetAddress2D(CUtexref handle, const CUDA_ARRAY_DESCRIPTOR *shape, CUdeviceptr address,
		     size_t pitch)
{
	struct gs_reference *reference;
	CUresult r = shape && address % ALIGNMENT == 0 ? begin_texture(handle, &reference)
						       : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	reference->resource = (CUDA_RESOURCE_DESC){ .resType = CU_RESOURCE_TYPE_PITCH2D };
	reference->resource.res.pitch2D.devPtr = address;
	reference->resource.res.pitch2D.width = shape->Width;
	reference->resource.res.pitch2D.height = shape->Height;
	reference->resource.res.pitch2D.pitchInBytes = pitch;
	reference->format = shape->Format;
	reference->channels = shape->NumChannels;
	return end(reference);
}

CUresult CUDAAPI
cuTexRefSetFormat(CUtexref handle, CUarray_format format, int channels)
{
	struct gs_reference *reference;
	CUresult r = channels > 0 && gp_array_get_element_size(format, (uint32_t)channels)
			     ? begin_texture(handle, &reference)
			     : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	reference->format = format;
	reference->channels = (unsigned int)channels;
	return end(reference);
}

CUresult CUDAAPI
cuTexRefSetAddressMode(CUtexref handle, int dimension, CUaddress_mode mode)
{
	struct gs_reference *reference;
	CUresult r = dimension >= 0 && dimension < 3 ? begin_texture(handle, &reference)
						     : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	reference->description.addressMode[dimension] = mode;
	return end(reference);
}

CUresult CUDAAPI
cuTexRefSetBorderColor(CUtexref handle, float *color)
{
	struct gs_reference *reference;
	CUresult r = color ? begin_texture(handle, &reference) : CUDA_ERROR_INVALID_VALUE;

	if (r)
		return r;
	memcpy(reference->description.borderColor, color,
	       sizeof(reference->description.borderColor));
	return end(reference);
}

CUresult CUDAAPI
cuTexRefSetMipmapLevelClamp(CUtexref handle, float least, float most)
{
	struct gs_reference *reference;
	CUresult r = begin_texture(handle, &reference);

	if (r)
		return r;
	reference->description.minMipmapLevelClamp = least;
	reference->description.maxMipmapLevelClamp = most;
	return end(reference);
}

/* Setter of a member of the description. */
#define SETTER(name, type, member)                                                                 \
	CUresult CUDAAPI name(CUtexref handle, type value)                                         \
	{                                                                                          \
		struct gs_reference *reference;                                                    \
		CUresult r = begin_texture(handle, &reference);                                    \
                                                                                                   \
		if (r)                                                                             \
			return r;                                                                  \
		reference->description.member = value;                                             \
		return end(reference);                                                             \
	}

SETTER(cuTexRefSetFilterMode, CUfilter_mode, filterMode)
SETTER(cuTexRefSetMipmapFilterMode, CUfilter_mode, mipmapFilterMode)
SETTER(cuTexRefSetMipmapLevelBias, float, mipmapLevelBias)
SETTER(cuTexRefSetMaxAnisotropy, unsigned int, maxAnisotropy)
SETTER(cuTexRefSetFlags, unsigned int, flags)

CUresult CUDAAPI
cuSurfRefSetArray(CUsurfref handle, CUarray array, unsigned int flags)
{
	struct gs_reference *reference;
	CUresult r = flags ? CUDA_ERROR_INVALID_VALUE
			   : begin(handle, GS_KIND_SURFACE_REFERENCE, &reference);

	if (r)
		return r;
	reference->resource = (CUDA_RESOURCE_DESC){ .resType = CU_RESOURCE_TYPE_ARRAY };
	reference->resource.res.array.hArray = array;
	return end(reference);
}
