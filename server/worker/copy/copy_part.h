/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits rectangles of device memory and boxes of arrays into parts that fit into staging. On the
 * host side the rows are packed.
 *
 * Ownership: plain values; the caller owns the memory that they describe.
 * Threads: executor only.
 * Units: bytes, except where a count of rows or slices is stated.
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

/* A rectangle or box and the position of the next part. */
struct gpd_cut {
	uint64_t address, pitch; /* of linear memory */
	CUarray array;           /* NULL: linear memory */
	struct gp_array_box box;
	uint64_t slice, row, column; /* of the next part */
	size_t largest;
};

/* One side of a 3D copy: an array, host memory or device memory. */
struct gpd_side {
	CUarray array;
	const void *host;
	uint64_t address;
	uint64_t x, y, z;     /* offset in the array */
	uint64_t pitch, rows; /* of memory: pitch of rows in bytes, of slices in rows */
};

/* One part: a box of the device's side that fits into staging. */
struct gpd_part {
	struct gpd_side side; /* the device's side */
	uint64_t width, height, depth;
	size_t size; /* in bytes, rows packed */
};

/* Returns the driver's description of a copy of this size between two sides. */
CUDA_MEMCPY3D gpd_copy_params(const struct gpd_side *dst, const struct gpd_side *src,
			      uint64_t width, uint64_t height, uint64_t depth);

/* As gpd_memory_check_rows() for a side in device memory, whose slices are `slice` bytes apart;
 * sets side->rows. */
CUresult gpd_side_check(struct gpd_session *session, struct gpd_side *side, uint64_t slice,
			uint64_t width, uint64_t height, uint64_t depth);

/* Starts to split a rectangle. Neither width nor height may be 0. */
void gpd_cut_init(struct gpd_cut *cut, uint64_t address, uint64_t pitch, uint64_t width,
		  uint64_t height);
/* Starts to split a box, which must lie inside the array. */
void gpd_cut_init_box(struct gpd_cut *cut, CUarray array, const struct gp_array_box *box);
/* Returns the next part; false: no part is left. */
bool gpd_cut_next(struct gpd_cut *cut, struct gpd_part *part);
/* Returns a part of contiguous device memory. */
struct gpd_part gpd_part_from_range(uint64_t address, size_t size);

/* Enqueues the copy of a part as a separate operation of the stream: to the device if in, else from
 * it. `host` contains the packed rows. */
CUresult gpd_part_copy(struct gpd_session *session, struct gpd_stream *stream,
		       const struct gpd_part *part, void *host, bool in);

#endif /* GPD_COPY_PART_H */
