/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lane loops: a C loop for each operation and type, compiled once for each instruction set.
 * gs_lanes() returns the set selected by gs_lanes_choose(), which must not change while kernels
 * run.
 */
#ifndef GS_LANE_H
#define GS_LANE_H

#include "softgpu/engine/lanes/code.h"

/* The suffixes of `set_` are in the order of enum gs_compare. */
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

/* Function tables of an instruction set. Operations that ignore the sign are stored under U16, U32
 * and U64. */
struct gs_lanes {
	const char *isa;
	gs_lane_func *op[GS_LANE_COUNT][GS_TYPE_COUNT];
	/* [to][from], if a simple loop suffices; otherwise op[GS_LANE_convert][GS_TYPE_NONE]. */
	gs_lane_func *convert[GS_TYPE_COUNT][GS_TYPE_COUNT];

	void (*blend)(uint8_t *dst, const uint8_t *src, uint32_t mask, unsigned int width);
	uint32_t (*pred_mask)(const uint8_t *pred);
	void (*splat4)(uint8_t *dst, uint32_t value);
	void (*splat8)(uint8_t *dst, uint64_t value);
	/* Broadcasts each of count words to all lanes of its slot. */
	void (*splat_words)(uint8_t *regs, const uint32_t *slots, unsigned int count,
			    const uint32_t *words);
	bool (*is_same4)(const uint32_t *lanes);
	bool (*is_same8)(const uint64_t *lanes);
	bool (*is_sequence4)(const uint32_t *lanes, uint32_t step);
	bool (*is_sequence8)(const uint64_t *lanes, uint64_t step);
	/* Computes addresses; returns nonzero if any lane is outside of base..base+limit or
	 * misaligned. */
	uint64_t (*addresses)(const uint64_t *lanes, uint64_t offset, uint64_t base, uint64_t limit,
			      uint64_t align_mask, uint64_t *addresses);
	/* The same for offsets in a window, with 32-bit wraparound. */
	uint64_t (*window4)(const uint32_t *lanes, uint32_t offset, uint64_t base, uint32_t limit,
			    uint32_t align_mask, uint64_t *addresses);
	void (*widen)(const uint32_t *lanes, uint64_t *wide);
	void (*narrow)(const uint64_t *lanes, uint32_t *narrow);
	void (*gather4)(const uint64_t *addresses, uint32_t offset, uint8_t *dst);
	void (*gather8)(const uint64_t *addresses, uint32_t offset, uint8_t *dst);
	void (*stride4)(const uint8_t *memory, uint32_t stride, uint8_t *dst);
	/* Adjacent bytes (width 1) or half words (2) from and to 4-byte lanes. */
	void (*load_narrow)(const uint8_t *memory, unsigned int width, bool is_signed,
			    uint8_t *dst);
	void (*store_narrow)(uint8_t *memory, unsigned int width, const uint8_t *src);
};

int gs_lanes_choose(enum gs_isa isa);

extern struct gs_lanes gs_chosen_lanes;

static inline const struct gs_lanes *
gs_lanes(void)
{
	return &gs_chosen_lanes;
}

void gs_lanes_fill_baseline(struct gs_lanes *lanes);
void gs_lanes_fill_avx2(struct gs_lanes *lanes);
void gs_lanes_fill_avx512(struct gs_lanes *lanes);

#endif
