/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits rectangles of device memory and boxes of arrays into parts that fit into staging memory
 * (staging.h). A part is several slices, several rows of one slice, or a section of one row. On the
 * host side the rows are packed, without gaps.
 *
 * Ownership: plain values; the caller owns the memory that they describe.
 * Threads: executor only. No function blocks.
 * Units: bytes, except where a count of rows or slices is stated. Widths are in bytes, heights in
 * rows, depths in slices.
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

/* A rectangle or box that is being split, and the position of the next part. */
struct gpd_cut {
	uint64_t address, pitch;     /* linear memory: address and distance of rows */
	CUarray array;               /* array; NULL: linear memory */
	struct gp_array_box box;     /* dimensions, and with an array the offset */
	uint64_t slice, row, column; /* position of the next part; column in bytes */
	size_t largest;              /* maximum size of a part */
};

/* One side of a 3D copy. It is an array if array is set, else host memory if host is set, else
 * device memory at address. */
struct gpd_side {
	CUarray array;
	const void *host;
	uint64_t address;
	uint64_t x, y, z;     /* array: offset; x in bytes */
	uint64_t pitch, rows; /* memory: distance of rows in bytes, and of slices in rows */
};

/* One part: a box of the device's side that fits into staging. */
struct gpd_part {
	struct gpd_side side; /* the device's side of the copy */
	uint64_t width, height, depth;
	size_t size; /* bytes with packed rows */
};

/* Returns the driver's description of a copy of this size between two sides. */
CUDA_MEMCPY3D gpd_copy_params(const struct gpd_side *dst, const struct gpd_side *src,
			      uint64_t width, uint64_t height, uint64_t depth);

/* Checks that a box of these dimensions, none of them 0, at side->address lies within memory that
 * the session may access. side: in device memory, with address and pitch set. slice: distance of
 * slices in bytes; unused if depth is 1. All may come from the client unchecked. Returns
 * CUDA_SUCCESS with side->rows set. Returns CUDA_ERROR_INVALID_VALUE if the memory does not belong
 * to the session; if height is above 1 and pitch is smaller than width; or if depth is above 1 and
 * slice is smaller than a slice's bytes or not a multiple of pitch. */
CUresult gpd_side_check(struct gpd_session *session, struct gpd_side *side, uint64_t slice,
			uint64_t width, uint64_t height, uint64_t depth);

/* Starts to split a rectangle of device memory. Neither width nor height may be 0, and the caller
 * has checked the session's access to the memory (gpd_memory_check_rows(), memory/memory.h). */
void gpd_cut_init(struct gpd_cut *cut, uint64_t address, uint64_t pitch, uint64_t width,
		  uint64_t height);
/* Starts to split a box, which must not be empty and must lie inside the array. */
void gpd_cut_init_box(struct gpd_cut *cut, CUarray array, const struct gp_array_box *box);
/* Sets *part to the next part, in the order of the packed bytes, and advances the position. Returns
 * false, and sets nothing, if no part is left. */
bool gpd_cut_next(struct gpd_cut *cut, struct gpd_part *part);
/* Returns a part that is a range of device memory. */
struct gpd_part gpd_part_from_range(uint64_t address, size_t size);

/* Enqueues the copy of a part on the stream, to the device if `in` is true, else from the device.
 * gpd_stream_begin() (stream/stream.h) must have been called for the whole copy. Gives the stream a
 * new work number (stream->work), which the marker that the caller adds after the part
 * (gpd_wait_add(), stream/responder.h) reports. host: pinned memory with the packed rows, which
 * must stay valid until the stream has reached the end of the copy. Makes the stream's device
 * current. Returns CUDA_SUCCESS or the driver's error; after an error a piece of the part may be
 * enqueued. */
CUresult gpd_part_copy(struct gpd_session *session, struct gpd_stream *stream,
		       const struct gpd_part *part, void *host, bool in);

#endif /* GPD_COPY_PART_H */
