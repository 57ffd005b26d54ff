/* SPDX-License-Identifier: Apache-2.0 */
/* Lane loops that lane_ops.def cannot express. Included by lane.c only. */
#ifndef GS_LANE_ANY_H
#define GS_LANE_ANY_H

#include "softgpu/engine/lanes/lane_math.h"

/* Reads a lane as the source type: integers into *whole, floats into *real. Returns whether it is a
 * float. */
static inline int
convert_source(const struct gs_code *code, const uint8_t *src, int i, s64 *whole, f64 *real)
{
	u32 word = ((const u32 *)src)[i];
	u64 wide = code->width == 8 ? ((const u64 *)src)[i] : word;

	switch (code->sub) {
	case GS_TYPE_F16:
		*real = half_to_f32(word);
		return 1;
	case GS_TYPE_BF16:
		*real = bfloat_to_f32(word);
		return 1;
	case GS_TYPE_F32:
		*real = f32_of_bits(word);
		return 1;
	case GS_TYPE_F64:
		*real = f64_of_bits(wide);
		return 1;
	case GS_TYPE_S8:
		*whole = (s8)word;
		return 0;
	case GS_TYPE_U8:
		*whole = (u8)word;
		return 0;
	case GS_TYPE_S16:
		*whole = (s16)word;
		return 0;
	case GS_TYPE_U16:
		*whole = (u16)word;
		return 0;
	case GS_TYPE_S32:
		*whole = (s32)word;
		return 0;
	case GS_TYPE_U32:
		*whole = word;
		return 0;
	default:
		*whole = (s64)wide;
		return 0;
	}
}

/* Rounds to an integral value by an enum gs_rounding; other modes return the value. */
static inline f64
round_integral(f64 value, s64 mode)
{
	switch (mode) {
	case GS_ROUND_NEAREST_INT:
		return rint(value);
	case GS_ROUND_ZERO_INT:
		return trunc(value);
	case GS_ROUND_DOWN_INT:
		return floor(value);
	case GS_ROUND_UP_INT:
		return ceil(value);
	default:
		return value;
	}
}

/* Returns the bits of a result of type code->type; `narrow` is the value rounded once to f32. */
static inline u64
float_result(const struct gs_code *code, f64 value, f32 narrow)
{
	switch (code->type) {
	case GS_TYPE_F16:
		return half_of_f64(value);
	case GS_TYPE_BF16:
		return bfloat_of_f32(narrow);
	case GS_TYPE_F32:
		return bits_of_f32(narrow);
	default:
		return bits_of_f64(value);
	}
}

/* Returns the bits of a source value converted to the floating-point type code->type. is_real
 * selects `real` instead of `whole`. */
static inline u64
to_float(const struct gs_code *code, int is_real, s64 whole, f64 real)
{
	f32 narrow;

	if (is_real) {
		real = round_integral(real, code->imm);
		narrow = (f32)real;
	} else if (code->sub == GS_TYPE_U64) {
		real = (f64)(u64)whole;
		narrow = (f32)(u64)whole;
	} else {
		real = (f64)whole;
		narrow = (f32)whole;
	}
	if (code->flag) {
		real = saturate_f64(real);
		narrow = saturate_f32(narrow);
	}
	return float_result(code, real, narrow);
}

static inline u64
saturate_whole(s64 whole, int source_is_u64, u32 bits, int is_signed)
{
	if (is_signed) {
		s64 highest = (s64)low_mask(bits - 1);

		if (source_is_u64 && whole < 0)
			return (u64)highest;
		return (u64)(whole > highest        ? highest
			     : whole < -highest - 1 ? -highest - 1
						    : whole);
	}
	if (!source_is_u64 && whole < 0)
		return 0;
	return (u64)whole > low_mask(bits) ? low_mask(bits) : (u64)whole;
}

/* Extends a result that is narrower than its register, according to its type. */
static inline u64
extend_result(u64 value, int type)
{
	switch (type) {
	case GS_TYPE_S8:
		return (u64)(s64)(s8)value;
	case GS_TYPE_U8:
		return (u8)value;
	case GS_TYPE_S16:
		return (u64)(s64)(s16)value;
	case GS_TYPE_U16:
		return (u16)value;
	case GS_TYPE_S32:
		return (u64)(s64)(s32)value;
	case GS_TYPE_U32:
		return (u32)value;
	default:
		return value;
	}
}

/* type, sub: destination and source type; imm: rounding; flag: saturate; width, dst_width: lane
 * bytes. */
static void
convert_any(const struct gs_code *code, const uint8_t *regs, uint8_t *dst)
{
	int type = code->type;
	int is_float = type == GS_TYPE_F16 || type == GS_TYPE_BF16 || type == GS_TYPE_F32 ||
		       type == GS_TYPE_F64;
	int is_signed = type == GS_TYPE_S8 || type == GS_TYPE_S16 || type == GS_TYPE_S32 ||
			type == GS_TYPE_S64;
	u32 bits = code->count;

	for (int i = 0; i < GS_WARP; i++) {
		s64 whole = 0;
		f64 real = 0;
		int is_real = convert_source(code, regs + code->a, i, &whole, &real);
		u64 result;

		if (is_float)
			result = to_float(code, is_real, whole, real);
		else if (is_real && is_signed)
			result = (u64)f64_to_signed(round_integral(real, code->imm), bits);
		else if (is_real)
			result = f64_to_unsigned(round_integral(real, code->imm), bits);
		else if (code->flag)
			result = saturate_whole(whole, code->sub == GS_TYPE_U64, bits, is_signed);
		else
			result = (u64)whole;
		result = extend_result(result, type);
		if (code->dst_width == 8)
			((u64 *)dst)[i] = result;
		else
			((u32 *)dst)[i] = (u32)result;
	}
}

/* Packs count parts of width bytes each, lowest first, into a lane of dst_width bytes. */
static void
pack_any(const struct gs_code *code, const uint8_t *regs, uint8_t *dst)
{
	u32 bits = code->width * 8u;

	for (int i = 0; i < GS_WARP; i++) {
		u64 value = 0;

		for (u32 k = 0; k < code->count; k++) {
			u64 part = ((const u32 *)(regs + code->slots[k]))[i];

			value |= (part & low_mask(bits)) << (k * bits);
		}
		if (code->dst_width == 8)
			((u64 *)dst)[i] = value;
		else
			((u32 *)dst)[i] = (u32)value;
	}
}

/* Extracts count bytes from bit imm of a lane of width bytes. */
static void
unpack_any(const struct gs_code *code, const uint8_t *regs, uint8_t *dst)
{
	const uint8_t *src = regs + code->a;

	for (int i = 0; i < GS_WARP; i++) {
		u64 value = code->width == 8 ? ((const u64 *)src)[i] : ((const u32 *)src)[i];

		value = value >> code->imm & low_mask(code->count * 8u);
		if (code->dst_width == 8)
			((u64 *)dst)[i] = value;
		else
			((u32 *)dst)[i] = (u32)value;
	}
}

/* imm: 1 carry in, 2 carry out, 4 subtract; d: slot of the carry */
#define CARRY(type, T, W)                                                                          \
	FUNCTION(carry, type)                                                                      \
	{                                                                                          \
		const T *a = (const T *)(regs + code->a);                                          \
		const T *b = (const T *)(regs + code->b);                                          \
		u32 *carry = (u32 *)(uintptr_t)(regs + code->d);                                   \
		T *result = (T *)dst;                                                              \
		for (int i = 0; i < GS_WARP; i++) {                                                \
			W in = code->imm & 1 ? carry[i] : 0;                                       \
			W sum = code->imm & 4 ? (W)a[i] - b[i] - in : (W)a[i] + b[i] + in;         \
			result[i] = (T)sum;                                                        \
			if (code->imm & 2)                                                         \
				carry[i] = (u32)(sum >> (sizeof(T) * 8)) & 1;                      \
		}                                                                                  \
	}                                                                                          \
	/* 8: the high half of the product */                                                      \
	FUNCTION(mad_carry, type)                                                                  \
	{                                                                                          \
		const T *a = (const T *)(regs + code->a);                                          \
		const T *b = (const T *)(regs + code->b);                                          \
		const T *c = (const T *)(regs + code->c);                                          \
		u32 *carry = (u32 *)(uintptr_t)(regs + code->d);                                   \
		T *result = (T *)dst;                                                              \
		for (int i = 0; i < GS_WARP; i++) {                                                \
			W product = (W)a[i] * b[i];                                                \
			W in = code->imm & 1 ? carry[i] : 0;                                       \
			W sum = (T)(code->imm & 8 ? product >> (sizeof(T) * 8) : product);         \
			sum += (W)c[i] + in;                                                       \
			result[i] = (T)sum;                                                        \
			if (code->imm & 2)                                                         \
				carry[i] = (u32)(sum >> (sizeof(T) * 8)) & 1;                      \
		}                                                                                  \
	}

CARRY(U32, u32, u64)
CARRY(U64, u64, unsigned __int128)

/* imm: class to test for: finite, infinite, number, notanumber, normal, subnormal */
static int
test_class(s64 what, int class)
{
	switch (what) {
	case 0:
		return class != FP_NAN && class != FP_INFINITE;
	case 1:
		return class == FP_INFINITE;
	case 2:
		return class != FP_NAN;
	case 3:
		return class == FP_NAN;
	case 4:
		return class == FP_NORMAL;
	default:
		return class == FP_SUBNORMAL;
	}
}

FUNCTION(testp, F32)
{
	for (int i = 0; i < GS_WARP; i++) {
		f32 value = ((const f32 *)(regs + code->a))[i];

		((s32 *)dst)[i] = test_class(code->imm, fpclassify(value)) ? -1 : 0;
	}
}

FUNCTION(testp, F64)
{
	for (int i = 0; i < GS_WARP; i++) {
		f64 value = ((const f64 *)(regs + code->a))[i];

		((s32 *)dst)[i] = test_class(code->imm, fpclassify(value)) ? -1 : 0;
	}
}

#endif
