/* SPDX-License-Identifier: Apache-2.0 */
/* Texture sampling. Pure functions, except that reading texels may fault. */
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

struct gs_place {
	enum gs_geometry geometry;
	float at[3];
	uint32_t layer;
	float lod;
};

/* Returns the mipmap level at which the texel distance matches the coordinate differences between
 * neighboring pixels, per axis. */
float gs_sample_level(const struct gs_texture *texture, enum gs_geometry geometry,
		      const float steps[2][3]);

/* Samples four channels: bits of floats, or integers. */
void gs_sample(const struct gs_texture *texture, const struct gs_place *place, uint32_t out[4]);
/* Reads the texel at integer coordinates; zeros outside. */
void gs_sample_texel(const struct gs_texture *texture, enum gs_geometry geometry,
		     const int32_t at[3], uint32_t layer, uint32_t out[4]);
/* Reads a channel of the four texels around the coordinates. */
void gs_sample_gather(const struct gs_texture *texture, const struct gs_place *place,
		      unsigned int channel, uint32_t out[4]);

#endif /* GS_SAMPLE_H */
