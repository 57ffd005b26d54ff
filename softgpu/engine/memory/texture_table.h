/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table of textures and surfaces by number.
 *
 * Threads: any.
 */
#ifndef GS_TEXTURE_TABLE_H
#define GS_TEXTURE_TABLE_H

#include "softgpu/engine/lanes/texture.h"

struct gs_texture_entry {
	struct gs_texture texture;
	uint64_t number; /* 0: unused entry */
	uint64_t uses;
};

/* Returns NULL for an unknown number. */
const struct gs_texture *gs_texture_find(uint64_t number);

#endif /* GS_TEXTURE_TABLE_H */
