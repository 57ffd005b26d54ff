/* SPDX-License-Identifier: Apache-2.0 */
/* Arithmetic of single lanes where C's operators differ from PTX. Included by lane.c only. */
#ifndef GS_LANE_MATH_H
#define GS_LANE_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __F16C__
#include <immintrin.h>
#endif

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64;

static inline u32
bits_of_f32(f32 value)
{
	u32 bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static inline f32
f32_of_bits(u32 bits)
{
	f32 value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static inline u64
bits_of_f64(f64 value)
{
	u64 bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static inline f64
f64_of_bits(u64 bits)
{
	f64 value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static inline u64
mul_hi_u64(u64 a, u64 b)
{
	return (u64)(((unsigned __int128)a * b) >> 64);
}

static inline s64
mul_hi_s64(s64 a, s64 b)
{
	return (s64)(((__int128)a * b) >> 64);
}

/* The device does not trap: x/0 is all ones, x%0 is x. */
static inline s32
div_s32(s32 a, s32 b)
{
	return b == 0 ? -1 : b == -1 ? (s32)(0u - (u32)a) : a / b;
}

static inline s32
rem_s32(s32 a, s32 b)
{
	return b == 0 ? a : b == -1 ? 0 : a % b;
}

static inline s64
div_s64(s64 a, s64 b)
{
	return b == 0 ? -1 : b == -1 ? (s64)(0ull - (u64)a) : a / b;
}

static inline s64
rem_s64(s64 a, s64 b)
{
	return b == 0 ? a : b == -1 ? 0 : a % b;
}

static inline s32
clamp_s32(s64 value)
{
	return value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (s32)value;
}

/* A number is preferred to a NaN, and -0 is less than +0. */
static inline f32
min_f32(f32 a, f32 b)
{
	f32 equal = f32_of_bits(bits_of_f32(a) | bits_of_f32(b));

	return a != a ? b : b != b ? a : a < b ? a : b < a ? b : equal;
}

static inline f32
max_f32(f32 a, f32 b)
{
	f32 equal = f32_of_bits(bits_of_f32(a) & bits_of_f32(b));

	return a != a ? b : b != b ? a : a > b ? a : b > a ? b : equal;
}

static inline f64
min_f64(f64 a, f64 b)
{
	f64 equal = f64_of_bits(bits_of_f64(a) | bits_of_f64(b));

	return a != a ? b : b != b ? a : a < b ? a : b < a ? b : equal;
}

static inline f64
max_f64(f64 a, f64 b)
{
	f64 equal = f64_of_bits(bits_of_f64(a) & bits_of_f64(b));

	return a != a ? b : b != b ? a : a > b ? a : b > a ? b : equal;
}

#ifdef __FMA__
static inline f32
fma_f32(f32 a, f32 b, f32 c)
{
	return __builtin_fmaf(a, b, c);
}
#else
/*
 * The product is exact in double. Double rounding of the sum is wrong only if the first result is
 * exactly in the middle between two floats; the remaining error then decides.
 */
static inline f32
fma_f32(f32 a, f32 b, f32 c)
{
	f64 product = (f64)a * b;
	f64 sum = product + c;
	f64 part = sum - product;
	f64 error = (product - (sum - part)) + ((f64)c - part);
	f64 nearest = (f32)sum;
	f64 distance = sum - nearest;
	f64 other = (f32)(nearest + 2 * distance);
	f64 is_wrong = other - sum == distance ? error * distance : 0;

	return (f32)(is_wrong > 0 ? other : nearest);
}
#endif

static inline f64
fma_f64(f64 a, f64 b, f64 c)
{
	return __builtin_fma(a, b, c);
}

static inline u32
brev_u32(u32 v)
{
	v = (v >> 1 & 0x55555555u) | (v & 0x55555555u) << 1;
	v = (v >> 2 & 0x33333333u) | (v & 0x33333333u) << 2;
	v = (v >> 4 & 0x0f0f0f0fu) | (v & 0x0f0f0f0fu) << 4;
	return __builtin_bswap32(v);
}

static inline u32
bfind_u64(u64 v)
{
	return v ? 63u - (u32)__builtin_clzll(v) : ~0u;
}

static inline u64
low_mask(u32 len)
{
	return len >= 64 ? ~0ull : (1ull << len) - 1;
}

static inline u64
bfe_any(u64 a, u32 pos, u32 len, u32 width, int is_signed)
{
	u64 field;
	u32 have;
	u32 sign_at;

	pos &= 255;
	len &= 255;
	field = pos > 63 ? 0 : (a >> pos) & low_mask(len);
	if (!is_signed || !len)
		return field;
	sign_at = pos + len - 1 >= width ? width - 1 : pos + len - 1;
	have = pos >= width ? 0 : len < width - pos ? len : width - pos;
	if ((a >> sign_at & 1) && have < 64)
		field |= ~0ull << have;
	return field;
}

static inline u64
bfi_any(u64 a, u64 b, u32 pos, u32 len, u32 width)
{
	u64 mask;

	pos &= 255;
	len &= 255;
	if (pos >= width)
		return b;
	mask = low_mask(len) << pos;
	return (b & ~mask) | ((a << pos) & mask);
}

static inline u32
szext_any(u32 a, u32 bits, int is_signed)
{
	u32 shift;

	if (bits == 0)
		return 0;
	if (bits >= 32)
		return a;
	shift = 32 - bits;
	return is_signed ? (u32)((s32)(a << shift) >> shift) : a << shift >> shift;
}

static inline u32
bmsk_any(u32 pos, u32 len)
{
	return pos > 31 || !len ? 0 : (len >= 32 ? ~0u : (1u << len) - 1) << pos;
}

/* Returns the position of the offset-th set bit at or above (offset > 0) or at or below (< 0) the
 * base. */
static inline u32
fns_any(u32 mask, u32 base, s32 offset)
{
	s32 at = (s32)(base & 31);
	s32 step = offset < 0 ? -1 : 1;
	s32 left = offset < 0 ? -offset : offset;

	if (!offset)
		return mask >> at & 1 ? (u32)at : ~0u;
	for (; at >= 0 && at < 32; at += step) {
		if ((mask >> at & 1) && --left == 0)
			return (u32)at;
	}
	return ~0u;
}

static inline u32
prmt_any(u32 a, u32 b, u32 selector)
{
	u64 bytes = (u64)b << 32 | a;
	u32 result = 0;

	for (int k = 0; k < 4; k++) {
		u32 pick = selector >> (4 * k);
		u32 byte = (u32)(bytes >> (8 * (pick & 7))) & 0xff;

		if (pick & 8)
			byte = byte & 0x80 ? 0xff : 0;
		result |= byte << (8 * k);
	}
	return result;
}

static inline u32
lop3_any(u32 a, u32 b, u32 c, u32 table)
{
	u32 result = 0;

	result |= table & 1 ? ~a & ~b & ~c : 0;
	result |= table & 2 ? ~a & ~b & c : 0;
	result |= table & 4 ? ~a & b & ~c : 0;
	result |= table & 8 ? ~a & b & c : 0;
	result |= table & 16 ? a & ~b & ~c : 0;
	result |= table & 32 ? a & ~b & c : 0;
	result |= table & 64 ? a & b & ~c : 0;
	result |= table & 128 ? a & b & c : 0;
	return result;
}

/* flags: 1: a is signed, 2: b is signed */
static inline u32
dp4a_any(u32 a, u32 b, u32 c, u32 flags)
{
	for (int k = 0; k < 4; k++) {
		s32 x = flags & 1 ? (s8)(a >> (8 * k)) : (u8)(a >> (8 * k));
		s32 y = flags & 2 ? (s8)(b >> (8 * k)) : (u8)(b >> (8 * k));

		c += (u32)(x * y);
	}
	return c;
}

static inline u32
dp2a_any(u32 a, u32 b, u32 c, u32 flags)
{
	for (int k = 0; k < 2; k++) {
		s32 x = flags & 1 ? (s16)(a >> (16 * k)) : (u16)(a >> (16 * k));
		s32 y = flags & 2 ? (s8)(b >> (8 * k)) : (u8)(b >> (8 * k));

		c += (u32)(x * y);
	}
	return c;
}

static inline u32
vabsdiff4_any(u32 a, u32 b, u32 c, int is_signed, int add)
{
	u32 result = add ? c : 0;

	for (int k = 0; k < 4; k++) {
		s32 x = is_signed ? (s8)(a >> (8 * k)) : (u8)(a >> (8 * k));
		s32 y = is_signed ? (s8)(b >> (8 * k)) : (u8)(b >> (8 * k));
		u32 difference = (u32)(x > y ? x - y : y - x);

		result += add ? difference : (difference & 0xff) << (8 * k);
	}
	return result;
}

static inline f32
f32_of_half_bits(u32 half)
{
	u32 sign = (half & 0x8000u) << 16;
	u32 magnitude = half & 0x7fffu;

	if (magnitude >= 0x7c00u)
		return f32_of_bits(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
	if (magnitude < 0x400u)
		return f32_of_bits(sign | bits_of_f32((f32)magnitude * 0x1p-24f));
	return f32_of_bits(sign | ((magnitude << 13) + 0x38000000u));
}

/* Rounds once, to nearest even. */
static inline u32
half_of_f64(f64 value)
{
	u64 bits = bits_of_f64(value);
	u32 sign = (u32)(bits >> 48) & 0x8000u;
	f64 magnitude = f64_of_bits(bits & ~(1ull << 63));
	u64 mantissa;
	s32 exponent;
	u32 shift;
	u64 kept;

	if (magnitude != magnitude)
		return 0x7fffu;
	if (magnitude >= 65520.0)
		return sign | 0x7c00u;
	exponent = (s32)(bits >> 52 & 0x7ff) - 1023;
	if (exponent < -26)
		return sign;
	mantissa = (bits & 0xfffffffffffffull) | 1ull << 52;
	shift = exponent < -14 ? 42u + (u32)(-14 - exponent) : 42u;
	kept = mantissa >> shift;
	mantissa &= (1ull << shift) - 1;
	if (mantissa > 1ull << (shift - 1) || (mantissa == 1ull << (shift - 1) && (kept & 1)))
		kept++;
	if (exponent < -14)
		return sign | (u32)kept;
	return sign | (u32)(kept + ((u64)(exponent + 14) << 10));
}

#ifdef __F16C__
static inline f32
half_to_f32(u32 half)
{
	return _cvtsh_ss((u16)half);
}

static inline u32
half_of_f32(f32 value)
{
	return value != value ? 0x7fffu : _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT);
}
#else
static inline f32
half_to_f32(u32 half)
{
	return f32_of_half_bits(half & 0xffffu);
}

static inline u32
half_of_f32(f32 value)
{
	return half_of_f64(value);
}
#endif

static inline f32
bfloat_to_f32(u32 bits)
{
	return f32_of_bits(bits << 16);
}

static inline u32
bfloat_of_f32(f32 value)
{
	u32 bits = bits_of_f32(value);

	if (value != value)
		return 0x7fffu;
	return (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
}

static inline f32
saturate_f32(f32 a)
{
	return a > 0.0f ? (a < 1.0f ? a : 1.0f) : 0.0f;
}

static inline f64
saturate_f64(f64 a)
{
	return a > 0.0 ? (a < 1.0 ? a : 1.0) : 0.0;
}

/* Converts to s32, toward zero. */
static inline s32
cut_f32(f32 a)
{
	s32 inside = (s32)(a >= 2147483648.0f || a < -2147483648.0f || a != a ? 0.0f : a);

	return a >= 2147483648.0f ? INT32_MAX : a < -2147483648.0f ? INT32_MIN : inside;
}

/* Saturates out-of-range values; NaN becomes 0 (for 64-bit results the device returns the sign
 * bit). */
static inline s64
f64_to_signed(f64 value, u32 bits)
{
	s64 highest = (s64)low_mask(bits - 1);

	if (value != value)
		return bits == 64 ? INT64_MIN : 0;
	if (value >= (f64)highest)
		return bits == 64 || value > (f64)highest ? highest : (s64)value;
	if (value <= -(f64)highest - 1.0)
		return -highest - 1;
	return (s64)value;
}

static inline u64
f64_to_unsigned(f64 value, u32 bits)
{
	if (value != value)
		return bits == 64 ? 1ull << 63 : 0;
	if (!(value > 0.0))
		return 0;
	if (bits == 64)
		return value >= 18446744073709551616.0 ? ~0ull : (u64)value;
	return value >= (f64)low_mask(bits) ? low_mask(bits) : (u64)value;
}

#endif
