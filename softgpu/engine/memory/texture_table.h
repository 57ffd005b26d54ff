/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table of textures and surfaces by ID; gs_texture_add() and gs_texture_remove() (lanes/texture.h)
 * change it.
 *
 * Threads: any; lookups need no lock.
 */
#ifndef GS_TEXTURE_TABLE_H
#define GS_TEXTURE_TABLE_H

#include "softgpu/engine/lanes/texture.h"

/* An entry. It is reused but never freed. */
struct gs_texture_entry {
	struct gs_texture texture;
	uint64_t number; /* ID; 0: unused entry */
	/* number of IDs that the entry has had, a part of the next ID, so that stale IDs are
	 * detected */
	uint64_t uses;
};

/* Returns the texture or surface, or NULL for an unknown ID. It is valid until
 * gs_texture_remove(). */
const struct gs_texture *gs_texture_find(uint64_t number);

#endif /* GS_TEXTURE_TABLE_H */
