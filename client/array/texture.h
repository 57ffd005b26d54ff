/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface objects. The application's handles are the driver's own numbers, because
 * kernels receive them as plain arguments. So creating an object takes a round trip, unless an
 * identical destroyed one is cached. Descriptors are returned without a query.
 *
 * Threads: any thread may call. Objects are accessed only with a lock held.
 */
#ifndef GPC_TEXTURE_H
#define GPC_TEXTURE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_context;

/* Descriptors with which the application created an object. */
struct gpc_texture {
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC description;
	CUDA_RESOURCE_VIEW_DESC view;
	bool has_view;
};

/* Start a call that reads the descriptors of an object. Errors: CUDA_ERROR_INVALID_HANDLE, and
 * those of gpc_enter(). In any case the lock is held afterwards, and gpc_texture_unlock() must
 * follow; it returns its argument. */
CUresult gpc_texture_lock(CUtexObject object, struct gpc_texture **descriptors_p);
CUresult gpc_surface_lock(CUsurfObject object, struct gpc_texture **descriptors_p);
CUresult gpc_texture_unlock(CUresult result);

/* Implement cuTexObjectCreate() and so on, in a given context. The pointers must not be NULL.
 * Errors: CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_OUT_OF_MEMORY, and those
 * of the call. */
CUresult gpc_texture_create(struct gpc_context *context, const CUDA_RESOURCE_DESC *pResDesc,
			    const CUDA_TEXTURE_DESC *pTexDesc,
			    const CUDA_RESOURCE_VIEW_DESC *pResViewDesc, CUtexObject *object_p);
CUresult gpc_surface_create(struct gpc_context *context, const CUDA_RESOURCE_DESC *pResDesc,
			    CUsurfObject *object_p);
CUresult gpc_texture_destroy(struct gpc_context *context, unsigned long long object, bool surface);
/* Returns the wire ID of an object, or 0 if it does not exist. */
uint32_t gpc_texture_to_wire(const struct gpc_context *context, unsigned long long object,
			     bool surface);

/* Destroys the objects of a context that is being destroyed or reset. Called before
 * gpContextDestroy is posted. */
void gpc_texture_drop_context(struct gpc_context *context);

/* Drops cached objects of this array, which the daemon is about to destroy. */
void gpc_texture_drop_array(struct gpc_context *context, uint32_t array);

#endif /* GPC_TEXTURE_H */
