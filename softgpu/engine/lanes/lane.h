/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lane loops: a C function for each operation and type that computes all 32 lanes of a slot
 * (code.h), compiled once for each instruction set.
 *
 * Ownership: the tables are static.
 * Threads: any thread may read; gs_lanes_choose() must not be called while kernels run.
 */
#ifndef GS_LANE_H
#define GS_LANE_H

#include "softgpu/engine/lanes/code.h"

/* The operations. The suffixes of `set_` are in the order of enum gs_compare. */
#define GS_LANE_OPS(X)                                                                             \
	X(mov)                                                                                     \
	X(not )                                                                                    \
	X(cnot)                                                                                    \
	X(and)                                                                                     \
	X(or)                                                                                      \
	X(xor)                                                                                     \
	X(and_not)                                                                                 \
	X(or_not)                                                                                  \
	X(xor_not)                                                                                 \
	X(add)                                                                                     \
	X(sub)                                                                                     \
	X(add_sat)                                                                                 \
	X(sub_sat)                                                                                 \
	X(carry)                                                                                   \
	X(mad_carry)                                                                               \
	X(mul)                                                                                     \
	X(mul_hi)                                                                                  \
	X(mul_wide)                                                                                \
	X(mul24)                                                                                   \
	X(mul24_hi)                                                                                \
	X(mad)                                                                                     \
	X(mad_hi)                                                                                  \
	X(mad_hi_sat)                                                                              \
	X(mad_wide)                                                                                \
	X(mad24)                                                                                   \
	X(mad24_hi)                                                                                \
	X(div)                                                                                     \
	X(rem)                                                                                     \
	X(neg)                                                                                     \
	X(abs)                                                                                     \
	X(min)                                                                                     \
	X(max)                                                                                     \
	X(shl)                                                                                     \
	X(shr)                                                                                     \
	X(shf_left_clamp)                                                                          \
	X(shf_left_wrap)                                                                           \
	X(shf_right_clamp)                                                                         \
	X(shf_right_wrap)                                                                          \
	X(popc)                                                                                    \
	X(clz)                                                                                     \
	X(brev)                                                                                    \
	X(bfind)                                                                                   \
	X(bfind_shift)                                                                             \
	X(bfe)                                                                                     \
	X(bfi)                                                                                     \
	X(bmsk_clamp)                                                                              \
	X(bmsk_wrap)                                                                               \
	X(szext_clamp)                                                                             \
	X(szext_wrap)                                                                              \
	X(fns)                                                                                     \
	X(prmt)                                                                                    \
	X(lop3)                                                                                    \
	X(sad)                                                                                     \
	X(dp4a)                                                                                    \
	X(dp2a_lo)                                                                                 \
	X(dp2a_hi)                                                                                 \
	X(vabsdiff4)                                                                               \
	X(shl_add)                                                                                 \
	X(shr_add)                                                                                 \
	X(copysign)                                                                                \
	X(selp)                                                                                    \
	X(selp_not)                                                                                \
	X(slct)                                                                                    \
	X(slct_float)                                                                              \
	X(set_eq)                                                                                  \
	X(set_ne)                                                                                  \
	X(set_lt)                                                                                  \
	X(set_le)                                                                                  \
	X(set_gt)                                                                                  \
	X(set_ge)                                                                                  \
	X(set_equ)                                                                                 \
	X(set_neu)                                                                                 \
	X(set_ltu)                                                                                 \
	X(set_leu)                                                                                 \
	X(set_gtu)                                                                                 \
	X(set_geu)                                                                                 \
	X(set_num)                                                                                 \
	X(set_nan)                                                                                 \
	X(set_float)                                                                               \
	X(testp)                                                                                   \
	X(fma)                                                                                     \
	X(rcp)                                                                                     \
	X(sqrt)                                                                                    \
	X(rsqrt)                                                                                   \
	X(sin)                                                                                     \
	X(cos)                                                                                     \
	X(lg2)                                                                                     \
	X(ex2)                                                                                     \
	X(tanh)                                                                                    \
	X(saturate)                                                                                \
	X(convert)                                                                                 \
	X(round_nearest)                                                                           \
	X(round_zero)                                                                              \
	X(round_down)                                                                              \
	X(round_up)                                                                                \
	X(pack)                                                                                    \
	X(unpack)

enum gs_lane_op {
#define X(name) GS_LANE_##name,
	GS_LANE_OPS(X)
#undef X
	GS_LANE_COUNT
};

/* Function tables of an instruction set. NULL: the operation does not exist for the type.
 * Operations that ignore the sign are stored under U16, U32 and U64. `isa` is the name of the
 * instruction set. */
struct gs_lanes {
	const char *isa;
	gs_lane_func *op[GS_LANE_COUNT][GS_TYPE_COUNT];
	/* By result type and source type. NULL: use op[GS_LANE_convert][GS_TYPE_NONE], which
	 * handles all types. */
	gs_lane_func *convert[GS_TYPE_COUNT][GS_TYPE_COUNT];

	/* Copies the lanes of the mask, which are `width` bytes wide. */
	void (*blend)(uint8_t *dst, const uint8_t *src, uint32_t mask, unsigned int width);
	/* Returns the mask of lanes for which the predicate is true. */
	uint32_t (*pred_mask)(const uint8_t *pred);
	/* Set all lanes of a slot to a value. */
	void (*splat4)(uint8_t *dst, uint32_t value);
	void (*splat8)(uint8_t *dst, uint64_t value);
	/* Sets all lanes of each of `count` slots to the word of the same index. */
	void (*splat_words)(uint8_t *regs, const uint32_t *slots, unsigned int count,
			    const uint32_t *words);
	/* Return whether all lanes are equal, or (is_sequence) each is the previous one plus
	 * `step`. */
	bool (*is_same4)(const uint32_t *lanes);
	bool (*is_same8)(const uint64_t *lanes);
	bool (*is_sequence4)(const uint32_t *lanes, uint32_t step);
	bool (*is_sequence8)(const uint64_t *lanes, uint64_t step);
	/* Stores lane + offset for each lane. Returns nonzero if any result is outside of [base,
	 * base + limit) or misaligned (has bits of align_mask), otherwise 0. */
	uint64_t (*addresses)(const uint64_t *lanes, uint64_t offset, uint64_t base, uint64_t limit,
			      uint64_t align_mask, uint64_t *addresses);
	/* Like `addresses`, for offsets in a window that starts at base, with 32-bit wraparound;
	 * limit is exclusive. */
	uint64_t (*window4)(const uint32_t *lanes, uint32_t offset, uint64_t base, uint32_t limit,
			    uint32_t align_mask, uint64_t *addresses);
	/* Convert between 4-byte and 8-byte lanes; widen() fills with zeros. */
	void (*widen)(const uint32_t *lanes, uint64_t *wide);
	void (*narrow)(const uint64_t *lanes, uint32_t *narrow);
	/* Load each lane from its address plus offset, or (stride4) from element lane * stride of
	 * an array. */
	void (*gather4)(const uint64_t *addresses, uint32_t offset, uint8_t *dst);
	void (*gather8)(const uint64_t *addresses, uint32_t offset, uint8_t *dst);
	void (*stride4)(const uint8_t *memory, uint32_t stride, uint8_t *dst);
	/* Load and store adjacent bytes (width 1) or half words (width 2) from and to 4-byte
	 * lanes. */
	void (*load_narrow)(const uint8_t *memory, unsigned int width, bool is_signed,
			    uint8_t *dst);
	void (*store_narrow)(uint8_t *memory, unsigned int width, const uint8_t *src);
};

/* Selects the tables of an instruction set for gs_lanes(). Returns GS_OK, or GS_INVALID_VALUE if
 * the CPU does not support it; the selection is then unchanged. */
int gs_lanes_choose(enum gs_isa isa);

/* The selected tables; use gs_lanes(). */
extern struct gs_lanes gs_chosen_lanes;

static inline const struct gs_lanes *
gs_lanes(void)
{
	return &gs_chosen_lanes;
}

/* Fill in the tables of one instruction set. Defined by lane.c, which is compiled once for each. */
void gs_lanes_fill_baseline(struct gs_lanes *lanes);
void gs_lanes_fill_avx2(struct gs_lanes *lanes);
void gs_lanes_fill_avx512(struct gs_lanes *lanes);

#endif
