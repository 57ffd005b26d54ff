/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Description of a tensor map as gpTensorMap sends it. All members are 64-bit numbers with the same
 * layout at both ends. Signed values are sign-extended; members that a kind or a rank does not use
 * are 0. The driver validates the values; the worker validates only kind and rank, which determine
 * the arrays' lengths.
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
	/* numbers in struct gp_tensor_shape */
	GP_TENSOR_WORDS = 41,
};

struct gp_tensor_shape {
	uint64_t kind; /* enum gp_tensor_kind */
	uint64_t type; /* CUtensorMapDataType */
	uint64_t rank;
	uint64_t address;
	uint64_t dims[GP_TENSOR_RANK_MAX];
	uint64_t strides[GP_TENSOR_RANK_MAX]; /* rank - 1 elements, in bytes */
	uint64_t element_strides[GP_TENSOR_RANK_MAX];
	uint64_t box[GP_TENSOR_RANK_MAX]; /* box size; only for GP_TENSOR_TILED */
	/* lower and upper corner; im2col: rank - 2 elements; im2col wide: one */
	uint64_t lower[GP_TENSOR_RANK_MAX];
	uint64_t upper[GP_TENSOR_RANK_MAX];
	/* channels and pixels per column: im2col; mode: only im2col wide */
	uint64_t channels, pixels, mode;
	uint64_t interleave, swizzle, l2, fill;
};

_Static_assert(sizeof(struct gp_tensor_shape) == GP_TENSOR_WORDS * 8, "words without gaps");

#endif
