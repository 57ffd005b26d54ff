/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Textures and surfaces as kernels use them: a table maps IDs to descriptions. A kernel's access
 * with an unknown ID is a fault.
 *
 * Ownership: the table copies descriptions. The texels are in the device's address range and belong
 * to the caller, which must not free them while kernels may use the texture.
 * Threads: any.
 */
#ifndef GS_TEXTURE_H
#define GS_TEXTURE_H

#include <stdbool.h>
#include <stdint.h>

#define GS_TEXTURE_LEVELS 21

enum gs_texel {
	GS_TEXEL_UINT,
	GS_TEXEL_SINT,
	GS_TEXEL_FLOAT,
	GS_TEXEL_UNORM, /* unsigned integers that are always read as fractions from 0 to 1 */
	GS_TEXEL_SNORM, /* signed integers that are always read as fractions from -1 to 1 */
};

/* Values of CUaddress_mode. */
enum gs_address_mode {
	GS_ADDRESS_WRAP,
	GS_ADDRESS_CLAMP,
	GS_ADDRESS_MIRROR,
	GS_ADDRESS_BORDER,
};

/* A mipmap level. Sizes are in texels, distances in bytes. Layers and cube faces are slices. */
struct gs_texture_level {
	uint8_t *memory;
	uint32_t width, height, depth;
	uint64_t pitch, slice; /* from one row to the next, and from one slice to the next */
};

struct gs_texture {
	struct gs_texture_level levels[GS_TEXTURE_LEVELS];
	uint32_t level_count;
	uint8_t kind; /* enum gs_texel */
	uint8_t channels;
	uint8_t channel_bytes;
	uint8_t mode[3]; /* enum gs_address_mode, per axis x, y, z */
	bool is_surface;
	bool is_normalized; /* whether coordinates are from 0 to 1 instead of in texels */
	bool is_linear;     /* whether to filter between texels */
	bool is_mip_linear; /* whether to filter between levels */
	bool as_integer;    /* whether integers are not converted to fractions */
	float border[4];    /* color outside of the texture, for GS_ADDRESS_BORDER */
	float bias, level_min, level_max; /* bias and limits of the mipmap level */
};

/* Adds a copy of a texture or surface and stores its ID for kernels in *number_p. Returns true, or
 * false if out of memory or if there are too many. */
bool gs_texture_add(const struct gs_texture *texture, uint64_t *number_p);
/* Removes a texture or surface. Kernels must not use it any more. Unknown IDs are ignored. */
void gs_texture_remove(uint64_t number);

#endif /* GS_TEXTURE_H */
