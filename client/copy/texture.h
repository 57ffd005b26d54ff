/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface objects.  The application has the numbers that the daemon's driver gave them,
 * for kernels take them as plain arguments; so making one is a round trip, unless one that was
 * destroyed is just the same.  What they are of is answered from here.  Any thread.  They are
 * looked at under a lock, and nobody is given one.
 */
#ifndef GPC_TEXTURE_H
#define GPC_TEXTURE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_context;

/* What the application said when it made one. */
struct gpc_texture {
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC description;
	CUDA_RESOURCE_VIEW_DESC view;
	bool has_view;
};

/* Begin a call that asks for it; gpc_texture_unlock() follows in any case, and returns result. */
CUresult gpc_texture_lock(CUtexObject object, struct gpc_texture **descriptors_p);
CUresult gpc_surface_lock(CUsurfObject object, struct gpc_texture **descriptors_p);
CUresult gpc_texture_unlock(CUresult result);

/* The calls of the same names, in a context; all that they need is checked. */
CUresult gpc_texture_create(struct gpc_context *context, const CUDA_RESOURCE_DESC *pResDesc,
			    const CUDA_TEXTURE_DESC *pTexDesc,
			    const CUDA_RESOURCE_VIEW_DESC *pResViewDesc, CUtexObject *object_p);
CUresult gpc_surface_create(struct gpc_context *context, const CUDA_RESOURCE_DESC *pResDesc,
			    CUsurfObject *object_p);
CUresult gpc_texture_destroy(struct gpc_context *context, unsigned long long object, bool surface);
/* Its name on the wire; 0: there is none. */
uint32_t gpc_texture_to_wire(const struct gpc_context *context, unsigned long long object,
			     bool surface);

/* Those of a context that is being destroyed or reset; before gpContextDestroy is posted. */
void gpc_texture_drop_context(struct gpc_context *context);

/* Objects that are kept and are of this array, which the daemon is about to destroy. */
void gpc_texture_drop_array(struct gpc_context *context, uint32_t array);

#endif /* GPC_TEXTURE_H */
