/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texture sampling: addressing, filtering and conversion of texels.
 *
 * Threads: any; the functions have no state. Reading texels may fault (fault.h).
 * Errors: coordinates, layers and levels outside of the texture are not errors.
 */
#ifndef GS_SAMPLE_H
#define GS_SAMPLE_H

#include "softgpu/engine/lanes/texture.h"

/* Dimensionality named by an instruction. */
enum gs_geometry {
	GS_GEOMETRY_1D,
	GS_GEOMETRY_2D,
	GS_GEOMETRY_3D,
	GS_GEOMETRY_1D_LAYERED,
	GS_GEOMETRY_2D_LAYERED,
	GS_GEOMETRY_CUBE,
	GS_GEOMETRY_CUBE_LAYERED,
};

/* Place at which to sample. */
struct gs_place {
	enum gs_geometry geometry;
	float at[3]; /* coordinates x, y, z, in texels or from 0 to 1 (is_normalized) */
	uint32_t layer;
	float lod; /* mipmap level */
};

/* Returns the mipmap level for given differences of the coordinates between neighboring pixels in x
 * (steps[0]) and y (steps[1]). */
float gs_sample_level(const struct gs_texture *texture, enum gs_geometry geometry,
		      const float steps[2][3]);

/* Samples the texture and stores four channels: bits of floats, or integers. */
void gs_sample(const struct gs_texture *texture, const struct gs_place *place, uint32_t out[4]);
/* Reads the texel at integer coordinates of level 0 and stores four channels; zeros outside of the
 * texture. */
void gs_sample_texel(const struct gs_texture *texture, enum gs_geometry geometry,
		     const int32_t at[3], uint32_t layer, uint32_t out[4]);
/* Reads a channel (0 to 3) of the four texels around the coordinates, in the order of tld4. */
void gs_sample_gather(const struct gs_texture *texture, const struct gs_place *place,
		      unsigned int channel, uint32_t out[4]);

#endif /* GS_SAMPLE_H */
