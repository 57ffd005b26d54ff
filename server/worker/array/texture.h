/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture and surface objects of a session. Each object holds a reference to its array, so that a
 * kernel that uses the object after the client has destroyed the array cannot read memory of
 * another tenant.
 *
 * Ownership: the session, through its handle table.
 * Threads: executor only.
 */
#ifndef GPD_TEXTURE_H
#define GPD_TEXTURE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_session;

/* Resource and sampling of an object, with the driver's own handles. */
struct gpd_texture_desc {
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC description; /* of a texture */
	bool surface;
	int device;
};

/* Maximum per session, because all sessions share the number that a device can have. */
#define GPD_TEXTURES_MAX 65536

/* Returns NULL if there is no such object. Valid until the object is destroyed. */
const struct gpd_texture_desc *gpd_texture_desc(const struct gpd_session *session, uint32_t id);

/* Destroys all objects at the session's end; to be called before its arrays are destroyed. */
void gpd_textures_destroy(struct gpd_session *session);

#endif /* GPD_TEXTURE_H */
