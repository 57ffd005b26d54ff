/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface objects of a session. Each object has a reference to its array, so that a
 * kernel that uses the object after the client has destroyed the array cannot read memory of
 * another tenant.
 *
 * Ownership: the session's handle table refers to the objects. The hooks gpd_gpTextureCreate(),
 * gpd_gpSurfaceCreate() and gpd_gpTextureDestroy() (gpd_calls.h) create and free them.
 * Threads: executor only.
 */
#ifndef GPD_TEXTURE_H
#define GPD_TEXTURE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_session;

/* Resource and sampling description of an object, with the driver's own handles. */
struct gpd_texture_desc {
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC description; /* unused for a surface object */
	bool surface;                  /* a surface object; false: a texture object */
	int device;                    /* the worker's number of its device */
};

/* Maximum number of objects per session, because all sessions share the maximum of the device. */
#define GPD_TEXTURES_MAX 65536

/* Returns the description of the object with this ID, borrowed until the object is destroyed. NULL:
 * there is none. */
const struct gpd_texture_desc *gpd_texture_desc(const struct gpd_session *session, uint32_t id);

/* Destroys all objects at the session's end, when no work is left, and drops their references to
 * arrays. To be called before gpd_arrays_destroy() (array.h). May change the current device. */
void gpd_textures_destroy(struct gpd_session *session);

#endif /* GPD_TEXTURE_H */
