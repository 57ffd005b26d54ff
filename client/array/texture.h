/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface objects. The application's handles are the driver's own numbers, because
 * kernels receive them as plain arguments. So creating an object takes a round trip, unless an
 * identical destroyed object is cached. Descriptors are returned without a query to the daemon.
 *
 * Ownership: an object belongs to its context and is destroyed with it. The array or memory that it
 * uses belongs to the program.
 * Threads: any thread except the thread that reads the daemon's replies. Objects are accessed only
 * with a lock of texture.c held, which the functions acquire.
 * Errors: functions that return CUresult return CUDA_SUCCESS or the errors named at them.
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
	CUDA_TEXTURE_DESC description; /* zero for a surface */
	CUDA_RESOURCE_VIEW_DESC view;  /* defined if has_view is set */
	bool has_view;
};

/* Starts a CUDA call that reads the descriptors of a texture object of the current context:
 * acquires the lock and stores the descriptors in *descriptors_p, which are borrowed until
 * gpc_texture_unlock(). Returns CUDA_ERROR_INVALID_HANDLE if there is no such object, or an error
 * of gpc_enter(); *descriptors_p is then unchanged. The lock is held after errors too, and
 * gpc_texture_unlock() must follow. */
CUresult gpc_texture_lock(CUtexObject object, struct gpc_texture **descriptors_p);
/* Starts a CUDA call that reads the descriptors of a surface object, as gpc_texture_lock() does. */
CUresult gpc_surface_lock(CUsurfObject object, struct gpc_texture **descriptors_p);
/* Releases the lock. Returns its argument. */
CUresult gpc_texture_unlock(CUresult result);

/* Implements cuTexObjectCreate() in a given context, and stores the object's handle in *object_p.
 * pResViewDesc may be NULL; the other pointers must not. Descriptors are copied. Waits for the
 * daemon unless an identical object is cached. Returns CUDA_ERROR_INVALID_VALUE;
 * CUDA_ERROR_INVALID_HANDLE if an array is invalid; CUDA_ERROR_OUT_OF_MEMORY; the error of the
 * daemon; or the session's error. *object_p is unchanged after an error. */
CUresult gpc_texture_create(struct gpc_context *context, const CUDA_RESOURCE_DESC *pResDesc,
			    const CUDA_TEXTURE_DESC *pTexDesc,
			    const CUDA_RESOURCE_VIEW_DESC *pResViewDesc, CUtexObject *object_p);
/* Implements cuSurfObjectCreate() in a given context, as gpc_texture_create() does. */
CUresult gpc_surface_create(struct gpc_context *context, const CUDA_RESOURCE_DESC *pResDesc,
			    CUsurfObject *object_p);
/* Caches or destroys an object of the context. Does not wait. Returns CUDA_ERROR_INVALID_HANDLE
 * if there is no such object, or the session's error. */
CUresult gpc_texture_destroy(struct gpc_context *context, unsigned long long object, bool surface);
/* Returns the wire ID of an object of the context. Returns 0 if there is no such object. */
uint32_t gpc_texture_to_wire(const struct gpc_context *context, unsigned long long object,
			     bool surface);

/* Destroys the objects of a context that is being destroyed or reset, including cached objects.
 * Called before gpContextDestroy is posted. Does not wait. */
void gpc_texture_drop_context(struct gpc_context *context);

/* Drops the context's cached objects of the array with this wire ID, which the daemon is about to
 * destroy. Does not wait. Called without the lock. */
void gpc_texture_drop_array(struct gpc_context *context, uint32_t array);

#endif /* GPC_TEXTURE_H */
