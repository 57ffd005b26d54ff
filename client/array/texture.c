/* SPDX-License-Identifier: Apache-2.0 */
#include "client/array/texture.h"

#include "base/lock.h"
#include "client/array/array.h"
#include "client/context/context.h"
#include "client/memory/address.h"
#include "client/memory/memory_cache.h"
#include "gpc_calls.h"

#include <pthread.h>
#include <string.h>
#include <uthash.h>

/* Two daemons may use the same number, as may one daemon for a texture and a surface. */
struct key {
	struct gpc_session *session;
	unsigned long long object;
	unsigned long long surface; /* 1: surface; 0: texture */
};

struct texture {
	struct gpc_handle handle;
	UT_hash_handle hh;
	struct key key;
	struct gpc_context *context;
	struct gp_args_gpTextureCreate args; /* without its ID; of a surface only array and level */
	struct gpc_texture descriptors;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct texture *textures GP_GUARDED_BY(lock); /* uthash, by key */

static struct key
key_init(const struct gpc_context *context, unsigned long long object, bool surface)
{
	return (struct key){ context->scope.session, object, surface };
}

static struct texture *
texture_find(struct key key) GP_LOCKED(lock)
{
	struct texture *texture;

	HASH_FIND(hh, textures, &key, sizeof(key), texture);
	return texture;
}

/* The driver's number is authoritative; an object destroyed long ago may have had the same one. */
static void
texture_insert(struct texture *texture)
{
	(void)pthread_mutex_lock(&lock);
	HASH_ADD(hh, textures, key, sizeof(texture->key), texture);
	(void)pthread_mutex_unlock(&lock);
}

static CUresult
texture_destroy_remote(struct texture *texture)
{
	const struct gp_args_gpTextureDestroy args = { .texture = texture->handle.id };
	CUresult result = gpc_post_gpTextureDestroy(texture->context, &args);

	gpc_handle_remove(&texture->handle);
	return result;
}

static void
texture_drop_cached(const struct gpc_cached *cached)
{
	(void)texture_destroy_remote(cached->object);
}

struct wanted {
	const struct gp_args_gpTextureCreate *args;
	bool surface;
};

static bool
texture_matches(const struct gpc_cached *cached, const void *arg)
{
	const struct texture *texture = cached->object;
	const struct wanted *wanted = arg;

	return wanted->surface == texture->key.surface &&
	       memcmp(&texture->args, wanted->args, sizeof(texture->args)) == 0;
}

static const struct gpc_cached_kind texture_kind = {
	.matches = texture_matches,
	.drop = texture_drop_cached,
	GPC_MEMORY_CACHE_BUDGET,
};

static bool
texture_is_of_array(const struct gpc_cached *cached, const void *array)
{
	const struct texture *texture = cached->object;

	return cached->kind == &texture_kind && texture->args.array == *(const uint32_t *)array;
}

void
gpc_texture_drop_array(struct gpc_context *context, uint32_t array)
{
	/* Acquiring the lock waits for threads that have found the array and may cache an object of
	 * it. */
	(void)pthread_mutex_lock(&lock);
	(void)pthread_mutex_unlock(&lock);
	gpc_memory_cache_drop_if(context, texture_is_of_array, &array);
}

/* Reuses an identical object that the program has destroyed. Returns NULL if there is none. */
static struct texture *
texture_reuse(struct gpc_context *context, const struct gp_args_gpTextureCreate *args, bool surface)
{
	const struct wanted wanted = { args, surface };

	return gpc_memory_cache_acquire(&texture_kind, context, &wanted);
}

/* Sets an array, which must be on the device of the context. */
static CUresult
args_set_array(const CUDA_RESOURCE_DESC *resource, const struct gpc_context *context,
	       struct gp_args_gpTextureCreate *args)
{
	CUarray hArray = resource->res.array.hArray;
	struct gpc_array *found;
	CUresult result;

	if (resource->resType == CU_RESOURCE_TYPE_MIPMAPPED_ARRAY)
		result = gpc_array_lookup_mipmapped(resource->res.mipmap.hMipmappedArray, &found);
	else
		result = hArray ? gpc_array_lookup(hArray, &found) : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS && found->context->device != context->device)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	args->array = found->owner->handle.id;
	args->level = found->level;
	return CUDA_SUCCESS;
}

static CUresult
args_set_resource(const CUDA_RESOURCE_DESC *resource, const struct gpc_context *context,
		  struct gp_args_gpTextureCreate *args)
{
	args->type = (uint32_t)resource->resType;
	switch (resource->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		return args_set_array(resource, context, args);
	case CU_RESOURCE_TYPE_LINEAR:
		args->address = resource->res.linear.devPtr;
		args->format = (uint32_t)resource->res.linear.format;
		args->channels = resource->res.linear.numChannels;
		args->width = resource->res.linear.sizeInBytes;
		return CUDA_SUCCESS;
	case CU_RESOURCE_TYPE_PITCH2D:
		args->address = resource->res.pitch2D.devPtr;
		args->format = (uint32_t)resource->res.pitch2D.format;
		args->channels = resource->res.pitch2D.numChannels;
		args->width = resource->res.pitch2D.width;
		args->height = resource->res.pitch2D.height;
		args->pitch = resource->res.pitch2D.pitchInBytes;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static void
args_set_sampling(const CUDA_TEXTURE_DESC *from, struct gp_args_gpTextureCreate *args)
{
	args->address_mode_x = (uint32_t)from->addressMode[0];
	args->address_mode_y = (uint32_t)from->addressMode[1];
	args->address_mode_z = (uint32_t)from->addressMode[2];
	args->filter_mode = (uint32_t)from->filterMode;
	args->flags = from->flags;
	args->anisotropy = from->maxAnisotropy;
	args->mipmap_filter_mode = (uint32_t)from->mipmapFilterMode;
	args->mipmap_bias = from->mipmapLevelBias;
	args->mipmap_min = from->minMipmapLevelClamp;
	args->mipmap_max = from->maxMipmapLevelClamp;
	args->border_r = from->borderColor[0];
	args->border_g = from->borderColor[1];
	args->border_b = from->borderColor[2];
	args->border_a = from->borderColor[3];
}

static void
args_set_view(const CUDA_RESOURCE_VIEW_DESC *from, struct gp_args_gpTextureCreate *args)
{
	args->has_view = 1;
	args->view_format = (uint32_t)from->format;
	args->view_width = from->width;
	args->view_height = from->height;
	args->view_depth = from->depth;
	args->view_first_level = from->firstMipmapLevel;
	args->view_last_level = from->lastMipmapLevel;
	args->view_first_layer = from->firstLayer;
	args->view_last_layer = from->lastLayer;
}

/* Linear and pitch2D textures must use device memory; the address lookup classifies it as CUDA
 * does. */
static CUresult
args_check_memory(const struct gp_args_gpTextureCreate *args)
{
	struct gpc_address found;

	if (args->type != CU_RESOURCE_TYPE_LINEAR && args->type != CU_RESOURCE_TYPE_PITCH2D)
		return CUDA_SUCCESS;
	gpc_address_lookup(args->address, &found);
	return found.kind == GPC_ADDRESS_DEVICE ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* args: all members except the ID. */
static CUresult
texture_create_remote(struct gpc_context *context, const struct gp_args_gpTextureCreate *args,
		      bool surface, struct texture *texture)
{
	const struct gp_args_gpSurfaceCreate surface_args = { texture->handle.id, args->array,
							      args->level };
	struct gp_args_gpTextureCreate named = *args;
	struct gp_reply_gpTextureCreate reply = { 0 };
	struct gp_reply_gpSurfaceCreate made = { 0 };
	CUresult result;

	named.texture = texture->handle.id;
	result = surface ? gpc_wait_gpSurfaceCreate(context, &surface_args, &made)
			 : gpc_wait_gpTextureCreate(context, &named, &reply);
	texture->context = context;
	texture->args = *args;
	texture->key = key_init(context, surface ? made.object : reply.object, surface);
	return result;
}

/* Reuses a cached object or creates one. */
static CUresult
texture_get(struct gpc_context *context, const struct gp_args_gpTextureCreate *args, bool surface,
	    const struct gpc_texture *descriptors, unsigned long long *object_p)
{
	struct texture *texture = texture_reuse(context, args, surface);
	CUresult result = CUDA_SUCCESS;

	if (!texture) {
		texture = gpc_handle_new(GPC_KIND_TEXTURE, sizeof(*texture));
		if (!texture)
			return CUDA_ERROR_OUT_OF_MEMORY;
		result = texture_create_remote(context, args, surface, texture);
	}
	if (result != CUDA_SUCCESS) {
		gpc_handle_remove(&texture->handle);
		return result;
	}
	texture->descriptors = *descriptors;
	*object_p = texture->key.object;
	texture_insert(texture);
	return CUDA_SUCCESS;
}

CUresult
gpc_texture_create(struct gpc_context *context, const CUDA_RESOURCE_DESC *pResDesc,
		   const CUDA_TEXTURE_DESC *pTexDesc, const CUDA_RESOURCE_VIEW_DESC *pResViewDesc,
		   CUtexObject *object_p)
{
	struct gp_args_gpTextureCreate args = { 0 };
	struct gpc_texture descriptors;
	CUresult result = args_set_resource(pResDesc, context, &args);

	if (result == CUDA_SUCCESS)
		result = args_check_memory(&args);
	if (result != CUDA_SUCCESS)
		return result;
	args_set_sampling(pTexDesc, &args);
	if (pResViewDesc)
		args_set_view(pResViewDesc, &args);
	args.device = context->device->remote;
	descriptors = (struct gpc_texture){ .resource = *pResDesc, .description = *pTexDesc };
	descriptors.has_view = pResViewDesc != NULL;
	if (pResViewDesc)
		descriptors.view = *pResViewDesc;
	return texture_get(context, &args, false, &descriptors, object_p);
}

CUresult
gpc_cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc,
		      const CUDA_TEXTURE_DESC *pTexDesc,
		      const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
	struct gpc_context *context;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!pTexObject || !pResDesc || !pTexDesc || pResDesc->flags)
		return CUDA_ERROR_INVALID_VALUE;
	return gpc_texture_create(context, pResDesc, pTexDesc, pResViewDesc, pTexObject);
}

CUresult
gpc_surface_create(struct gpc_context *context, const CUDA_RESOURCE_DESC *pResDesc,
		   CUsurfObject *object_p)
{
	const struct gpc_texture descriptors = { .resource = *pResDesc };
	struct gp_args_gpTextureCreate args = { 0 };
	CUresult result = args_set_array(pResDesc, context, &args);

	return result == CUDA_SUCCESS ? texture_get(context, &args, true, &descriptors, object_p)
				      : result;
}

CUresult
gpc_cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc)
{
	struct gpc_context *context;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!pSurfObject || !pResDesc || pResDesc->flags ||
	    pResDesc->resType != CU_RESOURCE_TYPE_ARRAY)
		return CUDA_ERROR_INVALID_VALUE;
	return gpc_surface_create(context, pResDesc, pSurfObject);
}

/* An object of an array that no longer exists is not cached: it could be mistaken for one of a
 * later array. */
static CUresult
texture_destroy(struct texture *texture) GP_LOCKED(lock)
{
	uint32_t array = texture->args.array;

	HASH_DELETE(hh, textures, texture);
	if ((array == 0 || gpc_handle_from_id(GPC_KIND_ARRAY, array)) &&
	    gpc_memory_cache_put(&texture_kind, texture, texture->context, 0))
		return CUDA_SUCCESS;
	return texture_destroy_remote(texture);
}

CUresult
gpc_texture_destroy(struct gpc_context *context, unsigned long long object, bool surface)
{
	struct texture *texture;
	CUresult result;

	(void)pthread_mutex_lock(&lock);
	texture = texture_find(key_init(context, object, surface));
	result = texture ? texture_destroy(texture) : CUDA_ERROR_INVALID_HANDLE;
	(void)pthread_mutex_unlock(&lock);
	return result;
}

uint32_t
gpc_texture_to_wire(const struct gpc_context *context, unsigned long long object, bool surface)
{
	const struct texture *texture;
	uint32_t id;

	(void)pthread_mutex_lock(&lock);
	texture = texture_find(key_init(context, object, surface));
	id = texture ? texture->handle.id : 0;
	(void)pthread_mutex_unlock(&lock);
	return id;
}

static CUresult
object_destroy(unsigned long long object, bool surface)
{
	struct gpc_context *context;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS || object == 0)
		return result;
	return gpc_texture_destroy(context, object, surface);
}

CUresult
gpc_cuTexObjectDestroy(CUtexObject texObject)
{
	return object_destroy(texObject, false);
}

CUresult
gpc_cuSurfObjectDestroy(CUsurfObject surfObject)
{
	return object_destroy(surfObject, true);
}

void
gpc_texture_drop_context(struct gpc_context *context)
{
	struct texture *texture, *next;

	gpc_memory_cache_drop_context(context);
	(void)pthread_mutex_lock(&lock);
	HASH_ITER(hh, textures, texture, next)
	{
		if (texture->context != context)
			continue;
		HASH_DELETE(hh, textures, texture);
		(void)texture_destroy_remote(texture);
	}
	(void)pthread_mutex_unlock(&lock);
}

static CUresult
texture_lock(unsigned long long object, bool surface, struct gpc_texture **descriptors_p)
	GP_LOCKS(lock)
{
	struct gpc_context *context;
	struct texture *texture = NULL;
	CUresult result = gpc_enter(&context);

	(void)pthread_mutex_lock(&lock);
	if (result == CUDA_SUCCESS)
		texture = texture_find(key_init(context, object, surface));
	if (texture)
		*descriptors_p = &texture->descriptors;
	return result == CUDA_SUCCESS && !texture ? CUDA_ERROR_INVALID_HANDLE : result;
}

CUresult
gpc_texture_lock(CUtexObject object, struct gpc_texture **descriptors_p) GP_LOCKS(lock)
{
	return texture_lock(object, false, descriptors_p);
}

CUresult
gpc_surface_lock(CUsurfObject object, struct gpc_texture **descriptors_p) GP_LOCKS(lock)
{
	return texture_lock(object, true, descriptors_p);
}

CUresult
gpc_texture_unlock(CUresult result) GP_UNLOCKS(lock)
{
	(void)pthread_mutex_unlock(&lock);
	return result;
}
