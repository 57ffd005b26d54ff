/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled once for each instruction set, with GS_LANES_FILL and GS_LANES_ISA set. */
#include "softgpu/engine/lanes/lane.h"

#include "softgpu/engine/lanes/lane_math.h"

#ifdef __AVX2__
#include <immintrin.h>
#endif

#ifdef __clang__
#define LANES _Pragma("clang loop vectorize(assume_safety)") for (int i = 0; i < GS_WARP; i++)
#else
#define LANES _Pragma("GCC ivdep") for (int i = 0; i < GS_WARP; i++)
#endif

#define FUNCTION(op, type)                                                                         \
	static void op##_##type(const struct gs_code *code, const uint8_t *regs, uint8_t *dst)

#define LOOP1(D, A, ...)                                                                           \
	{                                                                                          \
		const A *a_lanes = (const A *)(regs + code->a);                                    \
		D *result = (D *)dst;                                                              \
		LANES                                                                              \
		{                                                                                  \
			A a = a_lanes[i];                                                          \
			result[i] = (D)(__VA_ARGS__);                                              \
		}                                                                                  \
	}

#define LOOP2(D, A, B, ...)                                                                        \
	{                                                                                          \
		const A *a_lanes = (const A *)(regs + code->a);                                    \
		const B *b_lanes = (const B *)(regs + code->b);                                    \
		D *result = (D *)dst;                                                              \
		LANES                                                                              \
		{                                                                                  \
			A a = a_lanes[i];                                                          \
			B b = b_lanes[i];                                                          \
			result[i] = (D)(__VA_ARGS__);                                              \
		}                                                                                  \
	}

#define LOOP3(D, A, B, C, ...)                                                                     \
	{                                                                                          \
		const A *a_lanes = (const A *)(regs + code->a);                                    \
		const B *b_lanes = (const B *)(regs + code->b);                                    \
		const C *c_lanes = (const C *)(regs + code->c);                                    \
		D *result = (D *)dst;                                                              \
		LANES                                                                              \
		{                                                                                  \
			A a = a_lanes[i];                                                          \
			B b = b_lanes[i];                                                          \
			C c = c_lanes[i];                                                          \
			result[i] = (D)(__VA_ARGS__);                                              \
		}                                                                                  \
	}

#define LOOP4(D, A, B, C, E, ...)                                                                  \
	{                                                                                          \
		const A *a_lanes = (const A *)(regs + code->a);                                    \
		const B *b_lanes = (const B *)(regs + code->b);                                    \
		const C *c_lanes = (const C *)(regs + code->c);                                    \
		const E *d_lanes = (const E *)(regs + code->d);                                    \
		D *result = (D *)dst;                                                              \
		LANES                                                                              \
		{                                                                                  \
			A a = a_lanes[i];                                                          \
			B b = b_lanes[i];                                                          \
			C c = c_lanes[i];                                                          \
			E d = d_lanes[i];                                                          \
			result[i] = (D)(__VA_ARGS__);                                              \
		}                                                                                  \
	}

#define SET(op, type, T, ...) FUNCTION(set_##op, type) LOOP2(s32, T, T, (__VA_ARGS__) ? -1 : 0)
#define COMPARE(type, T, x, y)                                                                     \
	SET(eq, type, T, (x) == (y))                                                               \
	SET(ne, type, T, (x) != (y))                                                               \
	SET(lt, type, T, (x) < (y))                                                                \
	SET(le, type, T, (x) <= (y))                                                               \
	SET(gt, type, T, (x) > (y))                                                                \
	SET(ge, type, T, (x) >= (y))
/* ne is false for a NaN; the "u" comparisons are true. */
#define COMPARE_FLOAT(type, T, x, y)                                                               \
	SET(eq, type, T, (x) == (y))                                                               \
	SET(ne, type, T, (x) < (y) || (x) > (y))                                                   \
	SET(lt, type, T, (x) < (y))                                                                \
	SET(le, type, T, (x) <= (y))                                                               \
	SET(gt, type, T, (x) > (y))                                                                \
	SET(ge, type, T, (x) >= (y))                                                               \
	SET(equ, type, T, !((x) < (y)) && !((x) > (y)))                                            \
	SET(neu, type, T, !((x) == (y)))                                                           \
	SET(ltu, type, T, !((x) >= (y)))                                                           \
	SET(leu, type, T, !((x) > (y)))                                                            \
	SET(gtu, type, T, !((x) <= (y)))                                                           \
	SET(geu, type, T, !((x) < (y)))                                                            \
	SET(num, type, T, (x) == (x) && (y) == (y))                                                \
	SET(nan, type, T, (x) != (x) || (y) != (y))

#define UNARY(op, type, D, A, ...) FUNCTION(op, type) LOOP1(D, A, __VA_ARGS__)
#define BINARY(op, type, D, A, B, ...) FUNCTION(op, type) LOOP2(D, A, B, __VA_ARGS__)
#define TERNARY(op, type, D, A, B, C, ...) FUNCTION(op, type) LOOP3(D, A, B, C, __VA_ARGS__)
#define QUATERNARY(op, type, D, A, B, C, E, ...)                                                   \
	FUNCTION(op, type) LOOP4(D, A, B, C, E, __VA_ARGS__)
#define CONVERT(to, from, D, A, ...) FUNCTION(convert_##to, from) LOOP1(D, A, __VA_ARGS__)

#define HALF2(op, expression)                                                                      \
	static inline u32 op##_half(u32 a, u32 b)                                                  \
	{                                                                                          \
		f32 x = half_to_f32(a);                                                            \
		f32 y = half_to_f32(b);                                                            \
		return half_of_f32(expression);                                                    \
	}                                                                                          \
	static inline u32 op##_bfloat(u32 a, u32 b)                                                \
	{                                                                                          \
		f32 x = bfloat_to_f32(a);                                                          \
		f32 y = bfloat_to_f32(b);                                                          \
		return bfloat_of_f32(expression);                                                  \
	}                                                                                          \
	BINARY(op, F16, u32, u32, u32, op##_half(a, b))                                            \
	BINARY(op, F16X2, u32, u32, u32, op##_half(a, b) | op##_half(a >> 16, b >> 16) << 16)      \
	BINARY(op, BF16, u32, u32, u32, op##_bfloat(a, b))                                         \
	BINARY(op, BF16X2, u32, u32, u32, op##_bfloat(a, b) | op##_bfloat(a >> 16, b >> 16) << 16)

#include "softgpu/engine/lanes/lane_any.h"
#include "softgpu/engine/lanes/lane_ops.def"

static void
blend(uint8_t *dst, const uint8_t *src, uint32_t mask, unsigned int width)
{
	if (width == 8) {
		LANES
		{
			u64 keep = 0 - (u64)(mask >> i & 1);

			((u64 *)dst)[i] =
				(((const u64 *)src)[i] & keep) | (((u64 *)dst)[i] & ~keep);
		}
	} else {
		LANES
		{
			u32 keep = 0 - (mask >> i & 1);

			((u32 *)dst)[i] =
				(((const u32 *)src)[i] & keep) | (((u32 *)dst)[i] & ~keep);
		}
	}
}

static uint32_t
pred_mask(const uint8_t *pred)
{
	u32 mask = 0;
#ifdef __AVX2__
	for (int i = 0; i < 4; i++) {
		__m256 lanes = _mm256_load_ps((const float *)pred + i * 8);

		mask |= (u32)_mm256_movemask_ps(lanes) << (i * 8);
	}
#else
	for (int i = 0; i < GS_WARP; i++)
		mask |= (((const u32 *)pred)[i] & 1) << i;
#endif
	return mask;
}

static void
splat4(uint8_t *dst, uint32_t value)
{
	LANES((u32 *)dst)[i] = value;
}

static void
splat8(uint8_t *dst, uint64_t value)
{
	LANES((u64 *)dst)[i] = value;
}

static void
splat_words(uint8_t *regs, const uint32_t *slots, unsigned int count, const uint32_t *words)
{
	for (unsigned int k = 0; k < count; k++) {
		u32 *dst = (u32 *)(regs + slots[k]);
		u32 word = words[k];

		LANES dst[i] = word;
	}
}

static bool
is_same4(const uint32_t *lanes)
{
	u32 differ = 0;

	LANES differ |= lanes[i] ^ lanes[0];
	return !differ;
}

static bool
is_same8(const uint64_t *lanes)
{
	u64 differ = 0;

	LANES differ |= lanes[i] ^ lanes[0];
	return !differ;
}

static bool
is_sequence4(const uint32_t *lanes, uint32_t step)
{
	u32 differ = 0;

	LANES differ |= lanes[i] ^ (lanes[0] + (u32)i * step);
	return !differ;
}

static bool
is_sequence8(const uint64_t *lanes, uint64_t step)
{
	u64 differ = 0;

	LANES differ |= lanes[i] ^ (lanes[0] + (u64)(u32)((u32)i * (u32)step));
	return !differ;
}

static uint64_t
addresses(const uint64_t *lanes, uint64_t offset, uint64_t base, uint64_t limit,
	  uint64_t align_mask, uint64_t *result)
{
	u64 bad = 0;

	LANES
	{
		u64 address = lanes[i] + offset;

		result[i] = address;
		bad |= (u64)(address - base >= limit) | (address & align_mask);
	}
	return bad;
}

static uint64_t
window4(const uint32_t *lanes, uint32_t offset, uint64_t base, uint32_t limit, uint32_t align_mask,
	uint64_t *result)
{
	u32 bad = 0;

	LANES
	{
		u32 at = lanes[i] + offset;

		result[i] = base + at;
		bad |= (u32)(at >= limit) | (at & align_mask);
	}
	return bad;
}

static void
widen(const uint32_t *lanes, uint64_t *wide)
{
	LANES wide[i] = lanes[i];
}

static void
narrow(const uint64_t *lanes, uint32_t *result)
{
	LANES result[i] = (u32)lanes[i];
}

static void
gather4(const uint64_t *from, uint32_t offset, uint8_t *dst)
{
	LANES((u32 *)dst)[i] = *(const u32 *)(uintptr_t)(from[i] + offset);
}

static void
gather8(const uint64_t *from, uint32_t offset, uint8_t *dst)
{
	LANES((u64 *)dst)[i] = *(const u64 *)(uintptr_t)(from[i] + offset);
}

/* Loads every stride-th word, such as members of an array of structs. */
static void
stride4(const uint8_t *memory, uint32_t stride, uint8_t *dst)
{
	LANES((u32 *)dst)[i] = ((const u32 *)memory)[(u32)i * stride];
}

static void
load_narrow(const uint8_t *memory, unsigned int width, bool is_signed, uint8_t *dst)
{
	u32 *result = (u32 *)dst;

	if (width == 1 && is_signed)
		LANES result[i] = (u32)(s32)(s8)memory[i];
	else if (width == 1)
		LANES result[i] = memory[i];
	else if (is_signed)
		LANES result[i] = (u32)(s32)((const s16 *)memory)[i];
	else
		LANES result[i] = ((const u16 *)memory)[i];
}

static void
store_narrow(uint8_t *memory, unsigned int width, const uint8_t *src)
{
	const u32 *lanes = (const u32 *)src;

	if (width == 1)
		LANES memory[i] = (u8)lanes[i];
	else
		LANES((u16 *)memory)[i] = (u16)lanes[i];
}

#undef SET
#undef UNARY
#undef BINARY
#undef TERNARY
#undef QUATERNARY
#undef CONVERT
#undef HALF2
#define ENTRY(name, type) lanes->op[GS_LANE_##name][GS_TYPE_##type] = name##_##type;
#define SET(name, type, T, ...) ENTRY(set_##name, type)
#define UNARY(name, type, ...) ENTRY(name, type)
#define BINARY(name, type, ...) ENTRY(name, type)
#define TERNARY(name, type, ...) ENTRY(name, type)
#define QUATERNARY(name, type, ...) ENTRY(name, type)
#define CONVERT(to, from, ...) lanes->convert[GS_TYPE_##to][GS_TYPE_##from] = convert_##to##_##from;
#define HALF2(name, ...) ENTRY(name, F16) ENTRY(name, F16X2) ENTRY(name, BF16) ENTRY(name, BF16X2)

void
GS_LANES_FILL(struct gs_lanes *lanes)
{
	*lanes = (struct gs_lanes){
		.isa = GS_LANES_ISA,
		.blend = blend,
		.pred_mask = pred_mask,
		.splat4 = splat4,
		.splat8 = splat8,
		.splat_words = splat_words,
		.is_same4 = is_same4,
		.is_same8 = is_same8,
		.is_sequence4 = is_sequence4,
		.is_sequence8 = is_sequence8,
		.addresses = addresses,
		.window4 = window4,
		.widen = widen,
		.narrow = narrow,
		.gather4 = gather4,
		.gather8 = gather8,
		.stride4 = stride4,
		.load_narrow = load_narrow,
		.store_narrow = store_narrow,
	};
#include "softgpu/engine/lanes/lane_ops.def"
	ENTRY(carry, U32)
	ENTRY(carry, U64)
	ENTRY(mad_carry, U32)
	ENTRY(mad_carry, U64)
	ENTRY(testp, F32)
	ENTRY(testp, F64)
	lanes->op[GS_LANE_convert][GS_TYPE_NONE] = convert_any;
	lanes->op[GS_LANE_pack][GS_TYPE_NONE] = pack_any;
	lanes->op[GS_LANE_unpack][GS_TYPE_NONE] = unpack_any;
}
