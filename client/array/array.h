/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA arrays of the application: plain arrays, mipmapped arrays, and their levels. A level is an
 * array to the application; on the wire it is its mipmapped array and a level number. Descriptors
 * are returned without a query to the daemon.
 *
 * Ownership: arrays have no reference count. The memory of a destroyed array is reused only for
 * another array (client/base/handle.h), so a stale pointer can be read, but may show that other
 * array. A mipmapped array owns its levels.
 * Threads: any thread. The lookups acquire no lock; a lock of array.c guards the levels.
 * gpc_array_drop_context() posts calls, and acquires texture.c's lock, which other threads hold
 * while they post; so it must not be called in a function that the receiver runs (done() of struct
 * gpc_request, client/session/call.h, or the handler of a note).
 * Errors: functions that return CUresult return CUDA_SUCCESS or the errors stated with the
 * function; *array_p is unchanged after an error.
 */
#ifndef GPC_ARRAY_H
#define GPC_ARRAY_H

#include "client/base/handle.h"
#include "protocol/array_tiles.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdint.h>

struct gpc_context;

/* An array. Constant after creation, except `levels`, `destroyed`, and shape.levels, which becomes
 * 0, under array.c's lock, when the array is freed; lookups read it without the lock. */
struct gpc_array {
	struct gpc_handle handle; /* its ID is the array's ID on the wire; the ID of a level is not
				     used there */
	struct gpc_context *context;
	struct gpc_array *owner;       /* for a level, the mipmapped array that owns it; for other
					    arrays, the array itself */
	uint32_t level;                /* number of a level; 0 for other arrays */
	struct gp_array_shape shape;   /* shape.levels: number of levels of a mipmapped array; 0 for
					  other arrays and for levels */
	struct gp_array_tiling tiling; /* tiles of a sparse array, as the daemon reports them; zero
					  for its levels and for other arrays */
	struct gpc_array **levels; /* list of a mipmapped array, by number; an element is NULL until
				      the program requests the level; guarded by array.c's lock */
	atomic_bool
		destroyed; /* the program has destroyed it; it is cached for reuse, or about to be
			      freed; never set for a level, whose handle becomes invalid instead */
};

/* Looks up the array or level of a handle; it is borrowed until the program destroys it. Returns
 * CUDA_SUCCESS, or CUDA_ERROR_INVALID_HANDLE if the handle is invalid, is that of a mipmapped
 * array, or the array has been destroyed. */
CUresult gpc_array_lookup(CUarray hArray, struct gpc_array **array_p);
/* Looks up the mipmapped array of a handle. Like gpc_array_lookup(), but handles of other arrays
 * and of levels are invalid. */
CUresult gpc_array_lookup_mipmapped(CUmipmappedArray hMipmappedArray, struct gpc_array **array_p);

/* First step of a CUDA function on an array: calls gpc_enter_initialized()
 * (client/context/context.h), then gpc_array_lookup(). Nothing has to be released. Returns
 * CUDA_SUCCESS or an error of either. */
CUresult gpc_array_enter(CUarray hArray, struct gpc_array **array_p);
/* Like gpc_array_enter(), for a mipmapped array. */
CUresult gpc_array_enter_mipmapped(CUmipmappedArray hMipmappedArray, struct gpc_array **array_p);

/* Returns the descriptor as cuArrayGetDescriptor() reports it. */
CUDA_ARRAY_DESCRIPTOR gpc_array_get_descriptor(const struct gpc_array *array);
/* Returns the descriptor as cuArray3DGetDescriptor() reports it. */
CUDA_ARRAY3D_DESCRIPTOR gpc_array_get_descriptor_3d(const struct gpc_array *array);

/* Destroys the arrays of a context that is being destroyed or reset, and drops all cached objects
 * of the context, of any kind (gpc_memory_cache_drop_context(), client/memory/memory_cache.h).
 * Called as unload() of struct gpc_context_part (client/context/context.h). Posts calls, and waits
 * for no reply. */
void gpc_array_drop_context(struct gpc_context *context);

#endif /* GPC_ARRAY_H */
