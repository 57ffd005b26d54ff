/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface objects. The application's handles are the driver's own numbers, because
 * kernels receive them as plain arguments. So creating an object takes a round trip, unless an
 * identical destroyed object is cached. Descriptors are returned without a query to the daemon.
 *
 * Ownership: an object belongs to its context and is destroyed with it. The array or memory that it
 * uses belongs to the program.
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note). texture.c has one lock for all objects. Every
 * function acquires it, except gpc_texture_unlock(); so none may be called between
 * gpc_texture_lock() or gpc_surface_lock() and gpc_texture_unlock().
 * Errors: functions that return CUresult return CUDA_SUCCESS or the errors stated with the
 * function.
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
	CUDA_RESOURCE_VIEW_DESC view;  /* all zero unless has_view is set */
	bool has_view;
};

/* First step of a CUDA function that reads the descriptors of a texture object, which belongs to
 * any context of the current context's session: acquires the lock and stores a pointer to the
 * descriptors, which are borrowed until gpc_texture_unlock(). Errors, after which *descriptors_p is
 * unchanged: CUDA_ERROR_INVALID_HANDLE if there is no such object, and those of gpc_enter()
 * (client/context/context.h). The lock is held after errors, too, so gpc_texture_unlock() must
 * always follow. */
CUresult gpc_texture_lock(CUtexObject object, struct gpc_texture **descriptors_p);
/* Like gpc_texture_lock(), for a surface object. */
CUresult gpc_surface_lock(CUsurfObject object, struct gpc_texture **descriptors_p);
/* Releases the lock of gpc_texture_lock() or gpc_surface_lock(). Returns its argument, the result
 * of the CUDA function. */
CUresult gpc_texture_unlock(CUresult result);

/* Implements cuTexObjectCreate() in a given context, which must be active, and stores the object's
 * handle. pResViewDesc may be NULL; the other pointers must not. Descriptors are copied. Waits for
 * the daemon unless an identical object is cached. Errors, after which *object_p is unchanged:
 * CUDA_ERROR_INVALID_VALUE for an invalid descriptor, an array of another device, or an address
 * that is not device memory; CUDA_ERROR_INVALID_HANDLE if an array is invalid;
 * CUDA_ERROR_OUT_OF_MEMORY; the error of the daemon; the session's error. */
CUresult gpc_texture_create(struct gpc_context *context, const CUDA_RESOURCE_DESC *pResDesc,
			    const CUDA_TEXTURE_DESC *pTexDesc,
			    const CUDA_RESOURCE_VIEW_DESC *pResViewDesc, CUtexObject *object_p);
/* Implements cuSurfObjectCreate() in a given context; pResDesc->resType is CU_RESOURCE_TYPE_ARRAY.
 * Otherwise like gpc_texture_create(). */
CUresult gpc_surface_create(struct gpc_context *context, const CUDA_RESOURCE_DESC *pResDesc,
			    CUsurfObject *object_p);
/* Destroys an object of the context's session for the program: caches it for reuse, or destroys it
 * in the daemon without waiting. surface: whether it is a surface object. Errors:
 * CUDA_ERROR_INVALID_HANDLE if there is no such object; the session's error. */
CUresult gpc_texture_destroy(struct gpc_context *context, unsigned long long object, bool surface);
/* Returns the wire ID of an object of the context's session, or 0 if there is no such object.
 * surface: as for gpc_texture_destroy(). */
uint32_t gpc_texture_to_wire(const struct gpc_context *context, unsigned long long object,
			     bool surface);

/* Destroys the objects of a context that is being destroyed or reset, and drops all cached objects
 * of the context, of any kind. Called as unload() of struct gpc_context_part
 * (client/context/context.h). Posts calls, and waits for no reply. */
void gpc_texture_drop_context(struct gpc_context *context);

/* Drops the cached objects of the context's session that use the array with this wire ID. Called by
 * array.c when the array is destroyed, because a later array may have the same ID. Posts calls, and
 * waits for no reply. */
void gpc_texture_drop_array(struct gpc_context *context, uint32_t array);

#endif /* GPC_TEXTURE_H */
