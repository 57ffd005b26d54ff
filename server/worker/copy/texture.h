/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface objects of a session.  Each keeps the array that it is of: a kernel that uses
 * an object whose array the client has destroyed must not find another tenant's memory.  Executor
 * only.
 */
#ifndef GPD_TEXTURE_H
#define GPD_TEXTURE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_session;

/* What one is of, and how it is read: with the driver's own handles. */
struct gpd_texture_desc {
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC description; /* of a texture */
	bool surface;
	int device;
};

/* Of a session; what a device has of them is shared by all. */
#define GPD_TEXTURES_MAX 65536

/* NULL: there is no such object. */
const struct gpd_texture_desc *gpd_texture_desc(const struct gpd_session *session, uint32_t id);

/* At the session's end, before its arrays go. */
void gpd_textures_destroy(struct gpd_session *session);

#endif /* GPD_TEXTURE_H */
