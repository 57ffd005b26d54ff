/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rectangles of device memory, and boxes of arrays, whose rows are packed on the host side, cut
 * into the parts in which they go through staging.  Executor only.
 */
#ifndef GPD_COPY_PART_H
#define GPD_COPY_PART_H

#include "protocol/array_geometry.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpd_session;
struct gpd_stream;

struct gpd_cut {
	uint64_t address, pitch; /* of memory */
	CUarray array;           /* NULL: memory */
	struct gp_array_box box;
	uint64_t slice, row, column; /* of the next part */
	size_t largest;
};

/* One side of a copy of boxes: of an array, of the host's memory, or of the device's. */
struct gpd_side {
	CUarray array;
	const void *host;
	uint64_t address;
	uint64_t x, y, z;     /* in the array */
	uint64_t pitch, rows; /* of memory: from row to row in bytes, from slice to slice in rows */
};

struct gpd_part {
	struct gpd_side side; /* the device's */
	uint64_t width, height, depth;
	size_t size; /* packed */
};

/* How the driver is told of a copy. */
CUDA_MEMCPY3D gpd_copy_params(const struct gpd_side *dst, const struct gpd_side *src,
			      uint64_t width, uint64_t height, uint64_t depth);

/* As gpd_memory_check_rows() for a side in device memory, whose slices are `slice` bytes apart;
 * sets side->rows. */
CUresult gpd_side_check(struct gpd_session *session, struct gpd_side *side, uint64_t slice,
			uint64_t width, uint64_t height, uint64_t depth);

/* Neither width nor height is 0. */
void gpd_cut_init(struct gpd_cut *cut, uint64_t address, uint64_t pitch, uint64_t width,
		  uint64_t height);
/* The box lies in the array. */
void gpd_cut_init_box(struct gpd_cut *cut, CUarray array, const struct gp_array_box *box);
/* false: there is none left. */
bool gpd_cut_next(struct gpd_cut *cut, struct gpd_part *part);
/* Bytes of device memory without gaps. */
struct gpd_part gpd_part_from_range(uint64_t address, size_t size);

/* Gives the part to the stream, as work of its own: in to the device, or out of it, where the host
 * has its rows packed. */
CUresult gpd_part_copy(struct gpd_session *session, struct gpd_stream *stream,
		       const struct gpd_part *part, void *host, bool in);

#endif /* GPD_COPY_PART_H */
