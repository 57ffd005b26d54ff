/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA arrays of the application: plain arrays, mipmapped arrays, and their levels. A level is an
 * array to the application; on the wire it is its mipmapped array and a level number. Descriptors
 * are returned without a query.
 *
 * Ownership: arrays have no reference count; memory of an array is reused only for another array
 * (client/base/handle.h). Levels belong to their mipmapped array.
 * Threads: any thread may call; a lock protects the levels.
 */
#ifndef GPC_ARRAY_H
#define GPC_ARRAY_H

#include "client/base/handle.h"
#include "protocol/array_tiles.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdint.h>

struct gpc_context;

struct gpc_array {
	struct gpc_handle handle; /* its ID is not used on the wire for a level */
	struct gpc_context *context;
	struct gpc_array *whole; /* of a level: the mipmapped array; otherwise the array itself */
	uint32_t level;
	struct gp_array_shape shape;   /* of a level: that of the level */
	struct gp_array_tiling tiling; /* of a sparse array, not of its levels */
	struct gpc_array *
		*levels; /* of a mipmapped array: levels that were requested; others are NULL */
	atomic_bool destroyed; /* the program has destroyed it, and it is cached for reuse */
};

/* Return the array of a handle. CUDA_ERROR_INVALID_HANDLE: the handle is invalid or the array has
 * been destroyed. */
CUresult gpc_array_lookup(CUarray hArray, struct gpc_array **array_p);
CUresult gpc_array_lookup_mipmapped(CUmipmappedArray hMipmappedArray, struct gpc_array **array_p);

/* Start a call on an array; gpc_enter_initialized() and the lookup in one. */
CUresult gpc_array_enter(CUarray hArray, struct gpc_array **array_p);
CUresult gpc_array_enter_mipmapped(CUmipmappedArray hMipmappedArray, struct gpc_array **array_p);

/* Return the descriptor as CUDA reports it. */
CUDA_ARRAY_DESCRIPTOR gpc_array_get_descriptor(const struct gpc_array *array);
CUDA_ARRAY3D_DESCRIPTOR gpc_array_get_descriptor_3d(const struct gpc_array *array);

/* Destroys the arrays of a context that is being destroyed or reset. Called before gpContextDestroy
 * is posted. */
void gpc_array_drop_context(struct gpc_context *context);

#endif /* GPC_ARRAY_H */
