/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of sparse arrays (cuMemMapArrayAsync), shared by the client, the worker and the software
 * device: the wire format of a mapping request, and its validation against the array's shape. A
 * sparse array consists of tiles, which are mapped to memory one by one; its small mipmap levels
 * (the mip tail) are mapped together.
 *
 * Ownership: plain values.
 * Threads: any; pure functions.
 */
#ifndef GP_ARRAY_TILES_H
#define GP_ARRAY_TILES_H

#include "protocol/array_geometry.h"

/* Maximum number of parts in a gpArrayTiles record. */
#define GP_ARRAY_TILES_MAX 1024

/* The tiling of a sparse array, as the driver reports it and gpArrayTiling returns it;
 * little-endian on the wire. */
struct gp_array_tiling {
	uint32_t width, height, depth; /* size of a tile in elements */
	uint32_t tail_level;           /* first level that belongs to the mip tail */
	uint64_t tail_size;            /* bytes of the mip tail; 0: the array has none */
	uint32_t flags;                /* 0 or CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL */
	uint32_t zero;                 /* reserved: sent as 0, not checked */
};

/* A part of an array to be mapped or unmapped by gpArrayTiles; little-endian on the wire. */
struct gp_array_tiles {
	/* session's IDs of the array and of the physical memory; memory 0: unmaps the part */
	uint32_t array, memory;
	/* 1: part of the mip tail, described by layer, tail_offset and tail_size. 0: part of a
	 * level, described by level to depth. The other members that describe a part are 0. */
	uint32_t tail;
	/* mipmap level, and layer of a layered array */
	uint32_t level, layer;
	/* position and size of the box within the level, in elements; multiples of a tile, except
	 * for a size that reaches the end of its axis. An array without depth or with layers has a
	 * z axis of length 1: z is 0 and depth 1; the layer is in `layer`. */
	uint32_t x, y, z, width, height, depth;
	uint32_t zero;                   /* reserved: sent as 0, not checked */
	uint64_t tail_offset, tail_size; /* bytes in the mip tail, multiples of a tile */
	uint64_t offset;                 /* offset in the memory in bytes, a multiple of a tile */
};

/* Returns the bytes of memory that the part occupies; 0: a sparse array of this shape and tiling
 * has no such part, or the part is empty. Validates tail, level, layer, box, tail_offset and
 * tail_size, which come from the network. The caller validates shape (gp_array_check()), the IDs,
 * and offset. */
uint64_t gp_array_tiles_get_bytes(const struct gp_array_shape *shape,
				  const struct gp_array_tiling *tiling,
				  const struct gp_array_tiles *tiles);
/* Returns the bytes of a tile; 0: the tile is empty, has a side of more than 65536 elements or more
 * than 16 MiB, or the shape's format is invalid. */
uint64_t gp_array_tile_get_bytes(const struct gp_array_shape *shape,
				 const struct gp_array_tiling *tiling);

#endif /* GP_ARRAY_TILES_H */
