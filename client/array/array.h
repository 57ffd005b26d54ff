/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA arrays of the application: plain arrays, mipmapped arrays, and their levels. A level is an
 * array to the application; on the wire it is its mipmapped array and a level number. Descriptors
 * are returned without a query to the daemon.
 *
 * Ownership: arrays have no reference count; memory of an array is reused only for another array
 * (client/base/handle.h), so a stale pointer is safe to read. A mipmapped array owns its levels.
 * Threads: any thread except the thread that reads the daemon's replies; a lock of array.c guards
 * the levels.
 * Errors: functions that return CUresult return CUDA_SUCCESS or the errors named at them; *array_p
 * is unchanged after an error.
 */
#ifndef GPC_ARRAY_H
#define GPC_ARRAY_H

#include "client/base/handle.h"
#include "protocol/array_tiles.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdint.h>

struct gpc_context;

/* An array. Constant after creation, except `levels` and `destroyed`. */
struct gpc_array {
	struct gpc_handle handle; /* a level's ID is not used on the wire */
	struct gpc_context *context;
	struct gpc_array *whole; /* for a level, its mipmapped array; otherwise the array itself */
	uint32_t level;          /* number of a level; 0 for other arrays */
	struct gp_array_shape shape; /* shape of the array or of the level */
	struct gp_array_tiling
		tiling; /* tiles of a sparse array; zero for its levels and for other arrays */
	struct gpc_array **levels; /* for a mipmapped array: its levels, by number; NULL: not yet
				      requested by the program */
	atomic_bool destroyed;     /* the program has destroyed it, and it is cached for reuse */
};

/* Looks up the array of a handle; it is borrowed until the program destroys it. Returns
 * CUDA_SUCCESS, or CUDA_ERROR_INVALID_HANDLE if the handle is invalid or the array has been
 * destroyed. */
CUresult gpc_array_lookup(CUarray hArray, struct gpc_array **array_p);
/* Looks up the mipmapped array of a handle, as gpc_array_lookup() does. */
CUresult gpc_array_lookup_mipmapped(CUmipmappedArray hMipmappedArray, struct gpc_array **array_p);

/* Starts a CUDA call on an array: calls gpc_enter_initialized(), then gpc_array_lookup(). Returns
 * CUDA_SUCCESS or an error of either. */
CUresult gpc_array_enter(CUarray hArray, struct gpc_array **array_p);
/* Starts a CUDA call on a mipmapped array, as gpc_array_enter() does. */
CUresult gpc_array_enter_mipmapped(CUmipmappedArray hMipmappedArray, struct gpc_array **array_p);

/* Returns the descriptor as cuArrayGetDescriptor() reports it. */
CUDA_ARRAY_DESCRIPTOR gpc_array_get_descriptor(const struct gpc_array *array);
/* Returns the descriptor as cuArray3DGetDescriptor() reports it. */
CUDA_ARRAY3D_DESCRIPTOR gpc_array_get_descriptor_3d(const struct gpc_array *array);

/* Destroys the arrays of a context that is being destroyed or reset, including cached arrays.
 * Called before gpContextDestroy is posted. Does not wait. */
void gpc_array_drop_context(struct gpc_context *context);

#endif /* GPC_ARRAY_H */
