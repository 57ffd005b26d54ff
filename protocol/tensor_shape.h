/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Description of a tensor map (CUtensorMap) as the client sends it with gpTensorMap: the arguments
 * of cuTensorMapEncode*(). All members are 64-bit little-endian numbers. Signed values are
 * sign-extended. Members that a kind or a rank does not use are sent as 0. The worker validates
 * kind and rank, which determine the arrays' lengths; the driver validates the other values.
 *
 * Ownership: plain values.
 */
#ifndef GP_PROTOCOL_TENSOR_SHAPE_H
#define GP_PROTOCOL_TENSOR_SHAPE_H

#include <stdint.h>

enum gp_tensor_kind {
	GP_TENSOR_TILED = 0,
	GP_TENSOR_IM2COL = 1,
	GP_TENSOR_IM2COL_WIDE = 2,
};

enum {
	GP_TENSOR_RANK_MAX = 5,
	/* number of 64-bit numbers in struct gp_tensor_shape */
	GP_TENSOR_WORDS = 41,
};

struct gp_tensor_shape {
	uint64_t kind;    /* enum gp_tensor_kind */
	uint64_t type;    /* CUtensorMapDataType */
	uint64_t rank;    /* number of dimensions, from 1 to GP_TENSOR_RANK_MAX */
	uint64_t address; /* device address, of which the client sends only the low 8 bits */
	uint64_t dims[GP_TENSOR_RANK_MAX];            /* rank elements */
	uint64_t strides[GP_TENSOR_RANK_MAX];         /* rank - 1 elements; in bytes */
	uint64_t element_strides[GP_TENSOR_RANK_MAX]; /* rank elements */
	uint64_t box[GP_TENSOR_RANK_MAX]; /* rank elements: box size; only for GP_TENSOR_TILED */
	/* lower and upper corner of the pixel box; rank - 2 elements for GP_TENSOR_IM2COL, one for
	 * GP_TENSOR_IM2COL_WIDE */
	uint64_t lower[GP_TENSOR_RANK_MAX];
	uint64_t upper[GP_TENSOR_RANK_MAX];
	/* channels: per pixel, pixels: per column; both only for the two im2col kinds. mode:
	 * CUtensorMapIm2ColWideMode; only for GP_TENSOR_IM2COL_WIDE. */
	uint64_t channels, pixels, mode;
	/* interleave: CUtensorMapInterleave. swizzle: CUtensorMapSwizzle. l2:
	 * CUtensorMapL2promotion. fill: CUtensorMapFloatOOBfill. */
	uint64_t interleave, swizzle, l2, fill;
};

_Static_assert(sizeof(struct gp_tensor_shape) == GP_TENSOR_WORDS * 8, "words without gaps");

#endif
