/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Textures and surfaces as kernels use them: a table maps numbers to descriptions; unknown numbers
 * fault.
 *
 * Ownership: the memory is in the device's address range and belongs to the caller, which must keep
 * it while kernels may use the texture.
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
	GS_TEXEL_UNORM, /* integers that are always read as fractions */
	GS_TEXEL_SNORM,
};

/* Values of CUaddress_mode. */
enum gs_address_mode {
	GS_ADDRESS_WRAP,
	GS_ADDRESS_CLAMP,
	GS_ADDRESS_MIRROR,
	GS_ADDRESS_BORDER,
};

/* Sizes in texels, distances in bytes. Layers and faces are slices. */
struct gs_texture_level {
	uint8_t *memory;
	uint32_t width, height, depth;
	uint64_t pitch, slice;
};

struct gs_texture {
	struct gs_texture_level levels[GS_TEXTURE_LEVELS];
	uint32_t level_count;
	uint8_t kind; /* enum gs_texel */
	uint8_t channels;
	uint8_t channel_bytes;
	uint8_t mode[3]; /* enum gs_address_mode, per axis */
	bool is_surface;
	bool is_normalized; /* coordinates from 0 to 1 */
	bool is_linear;     /* filters between texels */
	bool is_mip_linear; /* filters between levels */
	bool as_integer;    /* integers are not converted to fractions */
	float border[4];
	float bias, level_min, level_max;
};

/* Adds a texture and returns its number for kernels. Returns false if out of memory, or if there
 * are too many. */
bool gs_texture_add(const struct gs_texture *texture, uint64_t *number_p);
void gs_texture_remove(uint64_t number);

#endif /* GS_TEXTURE_H */
