/* SPDX-License-Identifier: Apache-2.0 */
#include "client/array/array.h"

#include "base/lock.h"
#include "client/array/texture.h"
#include "client/context/context.h"
#include "client/context/device.h"
#include "client/memory/allowance.h"
#include "client/memory/memory.h"
#include "client/memory/memory_cache.h"
#include "client/session/call.h"
#include "gpc_calls.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Protects levels, which are created on request. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

CUresult
gpc_array_lookup(CUarray hArray, struct gpc_array **array_p)
{
	struct gpc_array *array = gpc_handle_from_token(GPC_KIND_ARRAY, hArray);

	if (!array)
		array = gpc_handle_from_token(GPC_KIND_LEVEL, hArray);
	if (!array || array->destroyed || array->shape.levels)
		return CUDA_ERROR_INVALID_HANDLE;
	*array_p = array;
	return CUDA_SUCCESS;
}

CUresult
gpc_array_lookup_mipmapped(CUmipmappedArray hMipmappedArray, struct gpc_array **array_p)
{
	struct gpc_array *array = gpc_handle_from_token(GPC_KIND_ARRAY, hMipmappedArray);

	if (!array || array->destroyed || !array->shape.levels)
		return CUDA_ERROR_INVALID_HANDLE;
	*array_p = array;
	return CUDA_SUCCESS;
}

CUresult
gpc_array_enter(CUarray hArray, struct gpc_array **array_p)
{
	CUresult result = gpc_enter_initialized();

	return result == CUDA_SUCCESS ? gpc_array_lookup(hArray, array_p) : result;
}

CUresult
gpc_array_enter_mipmapped(CUmipmappedArray hMipmappedArray, struct gpc_array **array_p)
{
	CUresult result = gpc_enter_initialized();

	return result == CUDA_SUCCESS ? gpc_array_lookup_mipmapped(hMipmappedArray, array_p)
				      : result;
}

static bool
shape_is_sparse(const struct gp_array_shape *shape)
{
	return shape->flags & CUDA_ARRAY3D_SPARSE;
}

static struct gp_array_shape
descriptor_to_shape(const CUDA_ARRAY3D_DESCRIPTOR *described, unsigned int levels)
{
	return (struct gp_array_shape){
		.width = described->Width,
		.height = described->Height,
		.depth = described->Depth,
		.format = (uint32_t)described->Format,
		.channels = described->NumChannels,
		.flags = described->Flags,
		.levels = levels,
	};
}

static CUresult
array_create_and_wait(const struct gpc_array *array)
{
	const struct gp_args_gpArrayCreate args = {
		.array = array->handle.id,
		.device = array->context->device->remote,
		GP_ARRAY_SHAPE(&array->shape),
	};

	return gpc_wait_gpArrayCreate(array->context, &args);
}

/* Number of arrays in this process, over all sessions. */
static atomic_uint array_count;

/* Limits common to all GPUs: for width and height; and for the depth, or for width and height of an
 * array with depth. */
#define SIDE_MAX 16384
#define DEPTH_MAX 2046

/* Returns whether the driver accepts an array of this shape, after gp_array_check(), if there is
 * memory (bench/driver/arrayfacts). */
static bool
shape_is_always_valid(const struct gp_array_shape *shape)
{
	const bool layers = shape->flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
	const uint64_t side = shape->depth && !layers ? DEPTH_MAX : SIDE_MAX;

	return !shape_is_sparse(shape) && shape->width <= side && shape->height <= side &&
	       shape->depth <= DEPTH_MAX;
}

/* Creates the array with memory from the allowance, so that it cannot fail and is posted. */
static bool
array_create_from_allowance(const struct gpc_array *array, CUresult *result_p)
{
	const struct gp_args_gpArrayMake args = {
		.array = array->handle.id,
		.device = array->context->device->remote,
		GP_ARRAY_SHAPE(&array->shape),
	};
	const struct gpc_session_facts *facts = gpc_session_facts(array->context->scope.session);

	if (!shape_is_always_valid(&array->shape) ||
	    !gpc_facts_have_call(facts, GP_CALL_gpArrayMake) ||
	    atomic_load(&array_count) > GP_ARRAYS_MAX / 2 ||
	    !gpc_allowance_acquire(array->context, gp_array_get_footprint(&array->shape)))
		return false;
	*result_p = gpc_post_gpArrayMake(array->context, &args);
	return true;
}

/* Memory cached by this client counts against its quota, and may be all that is missing. */
static CUresult
array_create_remote(const struct gpc_array *array)
{
	CUresult result;

	if (array_create_from_allowance(array, &result))
		return result;
	result = array_create_and_wait(array);
	if (result == CUDA_ERROR_OUT_OF_MEMORY &&
	    gpc_memory_reclaim(array->context) == CUDA_SUCCESS)
		result = array_create_and_wait(array);
	return result;
}

/* Under the lock, as another thread may be requesting a level. */
static void
array_drop_levels(struct gpc_array *array, bool for_ever)
{
	(void)pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < array->shape.levels; i++) {
		if (array->levels[i])
			gpc_handle_remove(&array->levels[i]->handle);
		array->levels[i] = NULL;
	}
	array->destroyed = true;
	if (for_ever) {
		array->shape.levels = 0;
		free(array->levels);
		array->levels = NULL;
	}
	(void)pthread_mutex_unlock(&lock);
}

static void
array_free(struct gpc_array *array)
{
	array_drop_levels(array, true);
	gpc_handle_remove(&array->handle);
	atomic_fetch_sub(&array_count, 1);
}

static CUresult
array_destroy_remote(struct gpc_array *array)
{
	const struct gp_args_gpArrayDestroy args = { .array = array->handle.id };
	struct gpc_context *context = array->context;
	CUresult result;

	/* Freed first, so that no texture of it can be cached after gpc_texture_drop_array(). */
	array_free(array);
	result = gpc_post_gpArrayDestroy(context, &args);
	gpc_texture_drop_array(context, args.array);
	return result;
}

static void
array_drop_cached(const struct gpc_cached *cached)
{
	(void)array_destroy_remote(cached->object);
}

static bool
array_matches_shape(const struct gpc_cached *cached, const void *shape)
{
	const struct gpc_array *array = cached->object;

	return memcmp(&array->shape, shape, sizeof(array->shape)) == 0;
}

static const struct gpc_cached_kind array_kind = {
	.matches = array_matches_shape,
	.drop = array_drop_cached,
	GPC_MEMORY_CACHE_BUDGET,
};

static CUresult
array_query_tiling(struct gpc_array *array)
{
	const struct gp_args_gpArrayTiling args = { .array = array->handle.id };
	struct gp_reply_gpArrayTiling reply;
	void *raw = NULL;
	CUresult result = gpc_wait_gpArrayTiling(array->context, &args, &reply, &raw);

	return gpc_reply_copy_bytes(result, &reply.tiling, &array->tiling, sizeof(array->tiling),
				    raw);
}

/* Reuses an array of this shape that the program has destroyed. Its contents are those of the old
 * one. */
static bool
array_reuse(struct gpc_context *context, const struct gp_array_shape *shape, void **token_p)
{
	struct gpc_array *array = gpc_memory_cache_acquire(&array_kind, context, shape);

	if (!array)
		return false;
	array->destroyed = false;
	*token_p = array->handle.token;
	return true;
}

static CUresult
array_create(struct gpc_context *context, const struct gp_array_shape *shape, void **token_p)
{
	struct gpc_array *array;
	CUresult result = gp_array_check(shape);

	if (result != CUDA_SUCCESS)
		return result;
	if (shape_is_sparse(shape) &&
	    !gpc_device_attribute(context->device, CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED))
		return CUDA_ERROR_NOT_SUPPORTED;
	/* Absurd sizes need no round trip. */
	if (!shape_is_sparse(shape) && gp_array_get_bytes(shape) > context->device->total_memory)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!shape_is_sparse(shape) && array_reuse(context, shape, token_p))
		return CUDA_SUCCESS;
	array = gpc_handle_new(GPC_KIND_ARRAY, sizeof(*array));
	if (!array)
		return CUDA_ERROR_OUT_OF_MEMORY;
	array->levels = shape->levels ? calloc(shape->levels, sizeof(struct gpc_array *)) : NULL;
	if (shape->levels && !array->levels) {
		gpc_handle_remove(&array->handle);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	atomic_fetch_add(&array_count, 1);
	array->context = context;
	array->owner = array;
	array->shape = *shape;
	result = array_create_remote(array);
	if (result != CUDA_SUCCESS) {
		array_free(array);
		return result;
	}
	if (shape_is_sparse(shape))
		result = array_query_tiling(array);
	if (result == CUDA_SUCCESS)
		*token_p = array->handle.token;
	else
		(void)array_destroy_remote(array);
	return result;
}

/* levels 0: not a mipmapped array. */
static CUresult
array_create_described(void **token_p, const CUDA_ARRAY3D_DESCRIPTOR *described,
		       unsigned int levels)
{
	struct gpc_context *context;
	struct gp_array_shape shape;
	unsigned int most;
	CUresult result = gpc_enter(&context);

	if (result != CUDA_SUCCESS)
		return result;
	if (!token_p || !described)
		return CUDA_ERROR_INVALID_VALUE;
	shape = descriptor_to_shape(described, 0);
	most = gp_array_get_levels_max(&shape);
	shape.levels = levels < most ? levels : most;
	return array_create(context, &shape, token_p);
}

CUresult
gpc_cuArray3DCreate_v2(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR *pAllocateArray)
{
	return array_create_described((void **)pHandle, pAllocateArray, 0);
}

CUresult
gpc_cuArrayCreate_v2(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR *pAllocateArray)
{
	CUDA_ARRAY3D_DESCRIPTOR described;

	if (!pAllocateArray)
		return gpc_cuArray3DCreate_v2(pHandle, NULL);
	described = (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = pAllocateArray->Width,
		.Height = pAllocateArray->Height,
		.Format = pAllocateArray->Format,
		.NumChannels = pAllocateArray->NumChannels,
	};
	return gpc_cuArray3DCreate_v2(pHandle, &described);
}

CUresult
gpc_cuMipmappedArrayCreate(CUmipmappedArray *pHandle,
			   const CUDA_ARRAY3D_DESCRIPTOR *pMipmappedArrayDesc,
			   unsigned int numMipmapLevels)
{
	return array_create_described((void **)pHandle, pMipmappedArrayDesc,
				      numMipmapLevels ? numMipmapLevels : 1);
}

/* Returns false if another thread destroys the array, or the program has destroyed it. */
static bool
array_claim(struct gpc_array *array)
{
	return !atomic_exchange(&array->destroyed, true);
}

static CUresult
array_destroy(struct gpc_array *array)
{
	if (!array_claim(array))
		return CUDA_ERROR_INVALID_HANDLE;
	array_drop_levels(array, false);
	/* The memory mapped to the tiles of a sparse array belongs to the program, so the array is
	 * not cached. */
	if (!shape_is_sparse(&array->shape) &&
	    gpc_memory_cache_put(&array_kind, array, array->context,
				 gp_array_get_bytes(&array->shape)))
		return CUDA_SUCCESS;
	return array_destroy_remote(array);
}

CUresult
gpc_cuArrayDestroy(CUarray hArray)
{
	struct gpc_array *array;
	CUresult result = gpc_array_enter(hArray, &array);

	if (result != CUDA_SUCCESS)
		return result;
	/* A level is destroyed with its mipmapped array. */
	return array->owner == array ? array_destroy(array) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult
gpc_cuMipmappedArrayDestroy(CUmipmappedArray hMipmappedArray)
{
	struct gpc_array *array;
	CUresult result = gpc_array_enter_mipmapped(hMipmappedArray, &array);

	return result == CUDA_SUCCESS ? array_destroy(array) : result;
}

static void
array_destroy_if_in_context(void *object, void *context)
{
	struct gpc_array *array = object;

	if (array->context == context && array_claim(array))
		(void)array_destroy_remote(array);
}

void
gpc_array_drop_context(struct gpc_context *context)
{
	gpc_memory_cache_drop_context(context);
	gpc_handle_each(GPC_KIND_ARRAY, array_destroy_if_in_context, context);
}

static struct gpc_array *
level_create(struct gpc_array *mipmapped, uint32_t number) GP_LOCKED(lock)
{
	struct gpc_array *level = gpc_handle_new(GPC_KIND_LEVEL, sizeof(*level));

	if (!level)
		return NULL;
	level->context = mipmapped->context;
	level->owner = mipmapped;
	level->level = number;
	level->shape = gp_array_get_level_shape(&mipmapped->shape, number);
	mipmapped->levels[number] = level;
	return level;
}

CUresult
gpc_cuMipmappedArrayGetLevel(CUarray *pLevelArray, CUmipmappedArray hMipmappedArray,
			     unsigned int level)
{
	struct gpc_array *mipmapped;
	CUresult result = gpc_array_enter_mipmapped(hMipmappedArray, &mipmapped);

	if (result != CUDA_SUCCESS)
		return result;
	if (!pLevelArray)
		return CUDA_ERROR_INVALID_VALUE;
	(void)pthread_mutex_lock(&lock);
	if (mipmapped->destroyed || level >= mipmapped->shape.levels)
		result = CUDA_ERROR_INVALID_VALUE;
	else if (!mipmapped->levels[level] && !level_create(mipmapped, level))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	else
		*pLevelArray = mipmapped->levels[level]->handle.token;
	(void)pthread_mutex_unlock(&lock);
	return result;
}

CUDA_ARRAY_DESCRIPTOR
gpc_array_get_descriptor(const struct gpc_array *array)
{
	return (CUDA_ARRAY_DESCRIPTOR){
		.Width = array->shape.width,
		.Height = array->shape.height,
		.Format = (CUarray_format)array->shape.format,
		.NumChannels = array->shape.channels,
	};
}

CUDA_ARRAY3D_DESCRIPTOR
gpc_array_get_descriptor_3d(const struct gpc_array *array)
{
	return (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = array->shape.width,
		.Height = array->shape.height,
		.Depth = array->shape.depth,
		.Format = (CUarray_format)array->shape.format,
		.NumChannels = array->shape.channels,
		.Flags = array->shape.flags,
	};
}
