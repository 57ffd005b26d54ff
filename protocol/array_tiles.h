/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of sparse arrays (cuMemMapArrayAsync), as client, daemon and software device reckon with
 * them: what the client asks for, and whether the array has such a part.  Pure functions.
 */
#ifndef GP_ARRAY_TILES_H
#define GP_ARRAY_TILES_H

#include "protocol/array_geometry.h"

/* So many in one gpArrayTiles. */
#define GP_ARRAY_TILES_MAX 1024

/* How an array is cut into tiles; of gpArrayTiling, little-endian. */
struct gp_array_tiling {
	uint32_t width, height, depth; /* elements of a tile */
	uint32_t tail_level;           /* the first one that is part of the mip tail */
	uint64_t tail_size;            /* bytes; 0: there is no mip tail */
	uint32_t flags;                /* CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL */
	uint32_t zero;
};

/* One part; of gpArrayTiles, little-endian. */
struct gp_array_tiles {
	uint32_t array, memory; /* names; memory 0: nothing is there from now on */
	uint32_t tail;          /* 1: of the mip tail, else of a level; the others are 0 then */
	uint32_t level, layer;
	uint32_t x, y, z, width, height, depth; /* elements of the level */
	uint32_t zero;
	uint64_t tail_offset, tail_size; /* bytes of the mip tail */
	uint64_t offset;                 /* in the memory */
};

/* Bytes of memory that the part takes; 0: a sparse array of this shape has no such part. */
uint64_t gp_array_tiles_get_bytes(const struct gp_array_shape *shape,
				  const struct gp_array_tiling *tiling,
				  const struct gp_array_tiles *tiles);
/* Bytes of one tile; 0: the tiling is none of such an array, or of absurd size. */
uint64_t gp_array_tile_get_bytes(const struct gp_array_shape *shape,
				 const struct gp_array_tiling *tiling);

#endif /* GP_ARRAY_TILES_H */
