/* SPDX-License-Identifier: Apache-2.0 */
#include "instructions.h"

#include <stdbool.h>

typedef unsigned __int128 u128;
typedef __int128 s128;

#define WANT(name) static uint64_t name(uint64_t a, uint64_t b, uint64_t c, uint64_t d)

static s128
sign(uint64_t value, int bits)
{
	return bits == 64   ? (int64_t)value
	       : bits == 32 ? (int32_t)value
	       : bits == 16 ? (int16_t)value
			    : (int8_t)value;
}

static u128
zero(uint64_t value, int bits)
{
	return bits == 64 ? value : value & ((1ull << bits) - 1);
}

/* One function for each operation and type, as the device documentation defines them. */
#define TYPED(name, bits, type, extend, expression)                                                \
	WANT(name)                                                                                 \
	{                                                                                          \
		const int width = bits;                                                            \
		type x = extend(a, bits);                                                          \
		type y = extend(b, bits);                                                          \
		type z = extend(c, bits);                                                          \
		(void)x, (void)y, (void)z, (void)width;                                            \
		return (uint64_t)(expression);                                                     \
	}
#define UNSIGNED(name, bits, expression) TYPED(name, bits, u128, zero, expression)
#define SIGNED(name, bits, expression) TYPED(name, bits, s128, sign, expression)
#define SIGNED_TYPES(name, expression)                                                             \
	SIGNED(name##_s16, 16, expression)                                                         \
	SIGNED(name##_s32, 32, expression)                                                         \
	SIGNED(name##_s64, 64, expression)
#define ALL_TYPES(name, expression)                                                                \
	UNSIGNED(name##_u16, 16, expression)                                                       \
	UNSIGNED(name##_u32, 32, expression)                                                       \
	UNSIGNED(name##_u64, 64, expression)                                                       \
	SIGNED_TYPES(name, expression)

ALL_TYPES(add, x + y)
ALL_TYPES(sub, x - y)
ALL_TYPES(mul_lo, x *y)
ALL_TYPES(mul_hi, (x * y) >> width)
ALL_TYPES(mad_lo, x *y + z)
ALL_TYPES(mad_hi, ((x * y) >> width) + z)
ALL_TYPES(min, x < y ? x : y)
ALL_TYPES(max, x > y ? x : y)
SIGNED_TYPES(neg, 0 - x)
SIGNED_TYPES(abs, x < 0 ? 0 - x : x)
ALL_TYPES(sad, z + (x < y ? y - x : x - y))
ALL_TYPES(divide, y ? (uint64_t)(x / y) : UINT64_MAX)
ALL_TYPES(rest, y ? x % y : x)
ALL_TYPES(eq, x == y)
ALL_TYPES(ne, x != y)
ALL_TYPES(lt, x < y)
ALL_TYPES(le, x <= y)
ALL_TYPES(gt, x > y)
ALL_TYPES(ge, x >= y)

/* The shift count is an unsigned 32-bit number for every type. */
ALL_TYPES(shr, x >> ((uint32_t)b < (uint32_t)width ? (int)b : width))
UNSIGNED(shl_16, 16, (uint32_t)b < 16 ? x << (uint32_t)b : 0)
UNSIGNED(shl_32, 32, (uint32_t)b < 32 ? x << (uint32_t)b : 0)
UNSIGNED(shl_64, 64, (uint32_t)b < 64 ? x << (uint32_t)b : 0)
UNSIGNED(shr_add_u32, 32, (x >> ((uint32_t)b < 32 ? (int)b : 32)) + z)
SIGNED(shr_add_s32, 32, (x >> ((uint32_t)b < 32 ? (int)b : 32)) + z)
UNSIGNED(shl_add, 32, ((uint32_t)b < 32 ? x << (uint32_t)b : 0) + z)

WANT(bit_and)
{
	return a & b;
}
WANT(bit_or)
{
	return a | b;
}
WANT(bit_xor)
{
	return a ^ b;
}
WANT(bit_not)
{
	return ~a;
}
WANT(pred_and)
{
	return a && b;
}
WANT(pred_or)
{
	return a || b;
}
WANT(pred_xor)
{
	return !a != !b;
}
WANT(pred_not)
{
	return !a;
}
WANT(pred_and_not)
{
	return a && !b;
}
WANT(cnot_32)
{
	return (uint32_t)a == 0;
}
WANT(cnot_64)
{
	return a == 0;
}
WANT(select)
{
	return c ? a : b;
}
WANT(select_not)
{
	return c ? b : a;
}
WANT(slct)
{
	return (int32_t)c >= 0 ? a : b;
}
WANT(move)
{
	return a;
}

static uint64_t
clamp(s128 value, s128 low, s128 high)
{
	return (uint64_t)(value < low ? low : value > high ? high : value);
}

WANT(add_sat)
{
	return clamp(sign(a, 32) + sign(b, 32), INT32_MIN, INT32_MAX);
}
WANT(sub_sat)
{
	return clamp(sign(a, 32) - sign(b, 32), INT32_MIN, INT32_MAX);
}
WANT(mul_wide_u16)
{
	return (uint32_t)(uint16_t)a * (uint32_t)(uint16_t)b;
}
WANT(mul_wide_s16)
{
	return (uint64_t)(sign(a, 16) * sign(b, 16));
}
WANT(mul_wide_u32)
{
	return (uint64_t)(uint32_t)a * (uint32_t)b;
}
WANT(mul_wide_s32)
{
	return (uint64_t)(sign(a, 32) * sign(b, 32));
}
WANT(mad_wide_u32)
{
	return (uint64_t)(uint32_t)a * (uint32_t)b + c;
}
WANT(mad_wide_s32)
{
	return (uint64_t)(sign(a, 32) * sign(b, 32) + (s128)c);
}
WANT(mul24_u32)
{
	return (a & 0xffffff) * (b & 0xffffff);
}

static s128
sign24(uint64_t value)
{
	return (int32_t)((uint32_t)value << 8) / 256;
}

WANT(mul24_s32)
{
	return (uint64_t)(sign24(a & 0xffffff) * sign24(b & 0xffffff));
}
WANT(mad24_u32)
{
	return (a & 0xffffff) * (b & 0xffffff) + c;
}

static unsigned int
count_bits(uint64_t value)
{
	unsigned int count = 0;

	for (; value; value >>= 1)
		count += value & 1;
	return count;
}

static unsigned int
highest_bit(uint64_t value, int bits)
{
	for (int i = bits - 1; i >= 0; i--) {
		if (value >> i & 1)
			return (unsigned int)i;
	}
	return ~0u;
}

static uint64_t
reverse(uint64_t value, int bits)
{
	uint64_t result = 0;

	for (int i = 0; i < bits; i++)
		result |= (value >> i & 1) << (bits - 1 - i);
	return result;
}

WANT(popc_32)
{
	return count_bits((uint32_t)a);
}
WANT(popc_64)
{
	return count_bits(a);
}
WANT(clz_32)
{
	return (uint32_t)a ? 31 - highest_bit(a, 32) : 32;
}
WANT(clz_64)
{
	return a ? 63 - highest_bit(a, 64) : 64;
}
WANT(brev_32)
{
	return reverse(a, 32);
}
WANT(brev_64)
{
	return reverse(a, 64);
}
WANT(bfind_u32)
{
	return highest_bit(a, 32);
}
WANT(bfind_u64)
{
	return highest_bit(a, 64);
}
WANT(bfind_s32)
{
	return highest_bit((int32_t)a < 0 ? ~a : a, 32);
}
WANT(bfind_s64)
{
	return highest_bit((int64_t)a < 0 ? ~a : a, 64);
}
WANT(bfind_shift_u32)
{
	return (uint32_t)a ? 31 - highest_bit(a, 32) : ~0u;
}

/* Bit by bit, as the documentation's pseudo code has it. */
static uint64_t
extract(uint64_t a, uint64_t b, uint64_t c, int bits, bool is_signed)
{
	int last = bits - 1;
	int pos = b & 0xff;
	int len = c & 0xff;
	int sign_at = pos + len - 1 < last ? pos + len - 1 : last;
	bool fill = is_signed && len && (a >> sign_at & 1);
	uint64_t result = 0;

	for (int i = 0; i <= last; i++) {
		bool bit = i < len && pos + i <= last ? (a >> (pos + i) & 1) : fill;

		result |= (uint64_t)bit << i;
	}
	return result;
}

static uint64_t
insert(uint64_t a, uint64_t b, uint64_t c, uint64_t d, int bits)
{
	int pos = c & 0xff;
	int len = d & 0xff;
	uint64_t result = b;

	for (int i = 0; i < len && pos + i < bits; i++) {
		result &= ~(1ull << (pos + i));
		result |= (a >> i & 1) << (pos + i);
	}
	return result;
}

WANT(bfe_u32)
{
	return extract(a, b, c, 32, false);
}
WANT(bfe_s32)
{
	return extract(a, b, c, 32, true);
}
WANT(bfe_u64)
{
	return extract(a, b, c, 64, false);
}
WANT(bfe_s64)
{
	return extract(a, b, c, 64, true);
}
WANT(bfi_32)
{
	return insert(a, b, c, d, 32);
}
WANT(bfi_64)
{
	return insert(a, b, c, d, 64);
}

WANT(prmt)
{
	uint64_t bytes = (b << 32) | (uint32_t)a;
	uint64_t result = 0;

	for (int i = 0; i < 4; i++) {
		int selector = c >> (i * 4) & 15;
		uint64_t byte = bytes >> ((selector & 7) * 8) & 0xff;

		if (selector & 8)
			byte = byte >> 7 ? 0xff : 0;
		result |= byte << (i * 8);
	}
	return result;
}

WANT(lop3)
{
	uint64_t result = 0;

	for (int i = 0; i < 32; i++) {
		int index = (int)(a >> i & 1) * 4 + (int)(b >> i & 1) * 2 + (int)(c >> i & 1);

		result |= (uint64_t)(0x9b >> index & 1) << i;
	}
	return result;
}

WANT(shf_left_wrap)
{
	return (((b << 32) | (uint32_t)a) << (c & 31)) >> 32;
}
WANT(shf_right_wrap)
{
	return ((b << 32) | (uint32_t)a) >> (c & 31);
}
WANT(shf_left_clamp)
{
	return (uint32_t)c >= 32 ? a : shf_left_wrap(a, b, c, d);
}
WANT(shf_right_clamp)
{
	return (uint32_t)c >= 32 ? b : shf_right_wrap(a, b, c, d);
}

static uint64_t
dot(uint64_t a, uint64_t b, uint64_t c, bool a_signed, bool b_signed)
{
	s128 sum = (s128)c;

	for (int i = 0; i < 4; i++) {
		s128 x = a_signed ? sign(a >> (i * 8), 8) : (s128)zero(a >> (i * 8), 8);
		s128 y = b_signed ? sign(b >> (i * 8), 8) : (s128)zero(b >> (i * 8), 8);

		sum += x * y;
	}
	return (uint64_t)sum;
}

WANT(dp4a_uu)
{
	return dot(a, b, c, false, false);
}
WANT(dp4a_ss)
{
	return dot(a, b, c, true, true);
}
WANT(dp4a_us)
{
	return dot(a, b, c, false, true);
}

/* 96-bit sums: the carry goes through all three words. */
WANT(add_cc)
{
	return (uint64_t)(((u128)a + b) >> 64) + c;
}

WANT(sub_cc)
{
	return c - (a < b);
}

WANT(cvt_s64_s32)
{
	return (uint64_t)(int64_t)(int32_t)a;
}
WANT(cvt_u64_u32)
{
	return (uint32_t)a;
}
WANT(cvt_s32_s8)
{
	return (uint64_t)(int64_t)(int8_t)a;
}
WANT(cvt_u32_u8)
{
	return (uint8_t)a;
}
WANT(cvt_s64_s16)
{
	return (uint64_t)(int64_t)(int16_t)a;
}
WANT(cvt_sat_u8_s32)
{
	return clamp(sign(a, 32), 0, 255);
}
WANT(cvt_sat_s8_s32)
{
	return clamp(sign(a, 32), -128, 127);
}
WANT(cvt_sat_s16_u32)
{
	return clamp((s128)zero(a, 32), -32768, 32767);
}
WANT(cvt_sat_u32_s64)
{
	return clamp((int64_t)a, 0, UINT32_MAX);
}
WANT(cvt_sat_s32_u64)
{
	return clamp((s128)a, INT32_MIN, INT32_MAX);
}
WANT(pack_16)
{
	return (a & 0xffff) | b << 16;
}
WANT(pack_32)
{
	return (uint32_t)a | b << 32;
}
WANT(high_half)
{
	return a >> 32;
}

#define BY_SIGN(op, name)                                                                          \
	{ op ".u16 %d, %0, %1", "hhh", name##_u16, 0 },                                            \
		{ op ".s16 %d, %0, %1", "hhh", name##_s16, 0 },                                    \
		{ op ".u32 %d, %0, %1", "www", name##_u32, 0 },                                    \
		{ op ".s32 %d, %0, %1", "www", name##_s32, 0 },                                    \
		{ op ".u64 %d, %0, %1", "lll", name##_u64, 0 },                                    \
	{                                                                                          \
		op ".s64 %d, %0, %1", "lll", name##_s64, 0                                         \
	}
#define BY_SIGN_3(op, name)                                                                        \
	{ op ".u16 %d, %0, %1, %2", "hhhh", name##_u16, 0 },                                       \
		{ op ".s16 %d, %0, %1, %2", "hhhh", name##_s16, 0 },                               \
		{ op ".u32 %d, %0, %1, %2", "wwww", name##_u32, 0 },                               \
		{ op ".s32 %d, %0, %1, %2", "wwww", name##_s32, 0 },                               \
		{ op ".u64 %d, %0, %1, %2", "llll", name##_u64, 0 },                               \
	{                                                                                          \
		op ".s64 %d, %0, %1, %2", "llll", name##_s64, 0                                    \
	}
#define COMPARES(op)                                                                               \
	{ "setp." #op ".u16 %d, %0, %1", "phh", op##_u16, 0 },                                     \
		{ "setp." #op ".s16 %d, %0, %1", "phh", op##_s16, 0 },                             \
		{ "setp." #op ".u32 %d, %0, %1", "pww", op##_u32, 0 },                             \
		{ "setp." #op ".s32 %d, %0, %1", "pww", op##_s32, 0 },                             \
		{ "setp." #op ".u64 %d, %0, %1", "pll", op##_u64, 0 },                             \
	{                                                                                          \
		"setp." #op ".s64 %d, %0, %1", "pll", op##_s64, 0                                  \
	}

const struct instruction integer_instructions[] = {
	BY_SIGN("add", add),
	BY_SIGN("sub", sub),
	BY_SIGN("mul.lo", mul_lo),
	BY_SIGN("mul.hi", mul_hi),
	BY_SIGN_3("mad.lo", mad_lo),
	BY_SIGN_3("mad.hi", mad_hi),
	BY_SIGN_3("sad", sad),
	BY_SIGN("min", min),
	BY_SIGN("max", max),
	BY_SIGN("div", divide),
	BY_SIGN("rem", rest),
	COMPARES(eq),
	COMPARES(ne),
	COMPARES(lt),
	COMPARES(le),
	COMPARES(gt),
	COMPARES(ge),
	{ "setp.lo.u32 %d, %0, %1", "pww", lt_u32, 0 },
	{ "setp.hs.u64 %d, %0, %1", "pll", ge_u64, 0 },
	{ "neg.s16 %d, %0", "hh", neg_s16, 0 },
	{ "neg.s32 %d, %0", "ww", neg_s32, 0 },
	{ "neg.s64 %d, %0", "ll", neg_s64, 0 },
	{ "abs.s16 %d, %0", "hh", abs_s16, 0 },
	{ "abs.s32 %d, %0", "ww", abs_s32, 0 },
	{ "abs.s64 %d, %0", "ll", abs_s64, 0 },
	{ "shl.b16 %d, %0, %1", "hhw", shl_16, 0 },
	{ "shl.b32 %d, %0, %1", "www", shl_32, 0 },
	{ "shl.b64 %d, %0, %1", "llw", shl_64, 0 },
	{ "shr.u16 %d, %0, %1", "hhw", shr_u16, 0 },
	{ "shr.s16 %d, %0, %1", "hhw", shr_s16, 0 },
	{ "shr.u32 %d, %0, %1", "www", shr_u32, 0 },
	{ "shr.s32 %d, %0, %1", "www", shr_s32, 0 },
	{ "shr.u64 %d, %0, %1", "llw", shr_u64, 0 },
	{ "shr.s64 %d, %0, %1", "llw", shr_s64, 0 },
	{ "and.b16 %d, %0, %1", "hhh", bit_and, 0 },
	{ "and.b32 %d, %0, %1", "www", bit_and, 0 },
	{ "and.b64 %d, %0, %1", "lll", bit_and, 0 },
	{ "or.b32 %d, %0, %1", "www", bit_or, 0 },
	{ "or.b64 %d, %0, %1", "lll", bit_or, 0 },
	{ "xor.b32 %d, %0, %1", "www", bit_xor, 0 },
	{ "xor.b64 %d, %0, %1", "lll", bit_xor, 0 },
	{ "not.b16 %d, %0", "hh", bit_not, 0 },
	{ "not.b32 %d, %0", "ww", bit_not, 0 },
	{ "not.b64 %d, %0", "ll", bit_not, 0 },
	{ "and.pred %d, %0, %1", "ppp", pred_and, 0 },
	{ "or.pred %d, %0, %1", "ppp", pred_or, 0 },
	{ "xor.pred %d, %0, %1", "ppp", pred_xor, 0 },
	{ "not.pred %d, %0", "pp", pred_not, 0 },
	{ "and.pred %d, %0, !%1", "ppp", pred_and_not, 0 },
	{ "cnot.b32 %d, %0", "ww", cnot_32, 0 },
	{ "cnot.b64 %d, %0", "ll", cnot_64, 0 },
	{ "selp.b32 %d, %0, %1, %2", "wwwp", select, 0 },
	{ "selp.b64 %d, %0, %1, %2", "lllp", select, 0 },
	{ "selp.u16 %d, %0, %1, !%2", "hhhp", select_not, 0 },
	{ "slct.u32.s32 %d, %0, %1, %2", "wwww", slct, 0 },
	{ "slct.u64.s32 %d, %0, %1, %2", "lllw", slct, 0 },
	{ "mov.b32 %d, %0", "ww", move, 0 },
	{ "mov.u64 %d, %0", "ll", move, 0 },
	{ "add.sat.s32 %d, %0, %1", "www", add_sat, 0 },
	{ "sub.sat.s32 %d, %0, %1", "www", sub_sat, 0 },
	{ "mul.wide.u16 %d, %0, %1", "whh", mul_wide_u16, 0 },
	{ "mul.wide.s16 %d, %0, %1", "whh", mul_wide_s16, 0 },
	{ "mul.wide.u32 %d, %0, %1", "lww", mul_wide_u32, 0 },
	{ "mul.wide.s32 %d, %0, %1", "lww", mul_wide_s32, 0 },
	{ "mad.wide.u32 %d, %0, %1, %2", "lwwl", mad_wide_u32, 0 },
	{ "mad.wide.s32 %d, %0, %1, %2", "lwwl", mad_wide_s32, 0 },
	{ "mul24.lo.u32 %d, %0, %1", "www", mul24_u32, 0 },
	{ "mul24.lo.s32 %d, %0, %1", "www", mul24_s32, 0 },
	{ "mad24.lo.u32 %d, %0, %1, %2", "wwww", mad24_u32, 0 },
	{ "popc.b32 %d, %0", "ww", popc_32, 0 },
	{ "popc.b64 %d, %0", "wl", popc_64, 0 },
	{ "clz.b32 %d, %0", "ww", clz_32, 0 },
	{ "clz.b64 %d, %0", "wl", clz_64, 0 },
	{ "brev.b32 %d, %0", "ww", brev_32, 0 },
	{ "brev.b64 %d, %0", "ll", brev_64, 0 },
	{ "bfind.u32 %d, %0", "ww", bfind_u32, 0 },
	{ "bfind.s32 %d, %0", "ww", bfind_s32, 0 },
	{ "bfind.u64 %d, %0", "wl", bfind_u64, 0 },
	{ "bfind.s64 %d, %0", "wl", bfind_s64, 0 },
	{ "bfind.shiftamt.u32 %d, %0", "ww", bfind_shift_u32, 0 },
	{ "bfe.u32 %d, %0, %1, %2", "wwww", bfe_u32, 0 },
	{ "bfe.s32 %d, %0, %1, %2", "wwww", bfe_s32, 0 },
	{ "bfe.u64 %d, %0, %1, %2", "llww", bfe_u64, 0 },
	{ "bfe.s64 %d, %0, %1, %2", "llww", bfe_s64, 0 },
	{ "bfi.b32 %d, %0, %1, %2, %3", "wwwww", bfi_32, 0 },
	{ "bfi.b64 %d, %0, %1, %2, %3", "lllww", bfi_64, 0 },
	{ "prmt.b32 %d, %0, %1, %2", "wwww", prmt, 0 },
	{ "lop3.b32 %d, %0, %1, %2, 0x9b", "wwww", lop3, 0 },
	{ "shf.l.wrap.b32 %d, %0, %1, %2", "wwww", shf_left_wrap, 0 },
	{ "shf.r.wrap.b32 %d, %0, %1, %2", "wwww", shf_right_wrap, 0 },
	{ "shf.l.clamp.b32 %d, %0, %1, %2", "wwww", shf_left_clamp, 0 },
	{ "shf.r.clamp.b32 %d, %0, %1, %2", "wwww", shf_right_clamp, 0 },
	{ "dp4a.u32.u32 %d, %0, %1, %2", "wwww", dp4a_uu, 0 },
	{ "dp4a.s32.s32 %d, %0, %1, %2", "wwww", dp4a_ss, 0 },
	{ "dp4a.u32.s32 %d, %0, %1, %2", "wwww", dp4a_us, 0 },
	{ "vshl.u32.u32.u32.clamp %d, %0, %1", "www", shl_32, 0 },
	{ "vshl.u32.u32.u32.clamp.add %d, %0, %1, %2", "wwww", shl_add, 0 },
	{ "vshr.u32.u32.u32.clamp %d, %0, %1", "www", shr_u32, 0 },
	{ "vshr.u32.u32.u32.clamp.add %d, %0, %1, %2", "wwww", shr_add_u32, 0 },
	{ "vshr.s32.s32.u32.clamp.add %d, %0, %1, %2", "wwww", shr_add_s32, 0 },
	{ "add.cc.u64 %d, %0, %1; addc.u64 %d, %2, 0", "llll", add_cc, 0 },
	{ "sub.cc.u64 %d, %0, %1; subc.u64 %d, %2, 0", "llll", sub_cc, 0 },
	{ "cvt.s64.s32 %d, %0", "lw", cvt_s64_s32, 0 },
	{ "cvt.u64.u32 %d, %0", "lw", cvt_u64_u32, 0 },
	{ "cvt.s64.s32 %d, %0", "ll", cvt_s64_s32, 0 },
	{ "cvt.u32.u64 %d, %0", "wl", cvt_u64_u32, 0 },
	{ "cvt.s32.s8 %d, %0", "ww", cvt_s32_s8, 0 },
	{ "cvt.u32.u8 %d, %0", "ww", cvt_u32_u8, 0 },
	{ "cvt.s64.s16 %d, %0", "lh", cvt_s64_s16, 0 },
	{ "cvt.s16.s8 %d, %0", "hh", cvt_s32_s8, 0 },
	{ "cvt.u8.u32 %d, %0", "ww", cvt_u32_u8, 0 },
	{ "cvt.s8.s32 %d, %0", "lw", cvt_s32_s8, 0 },
	{ "cvt.sat.u8.s32 %d, %0", "ww", cvt_sat_u8_s32, 0 },
	{ "cvt.sat.s8.s32 %d, %0", "ww", cvt_sat_s8_s32, 0 },
	{ "cvt.sat.s16.u32 %d, %0", "hw", cvt_sat_s16_u32, 0 },
	{ "cvt.sat.u32.s64 %d, %0", "wl", cvt_sat_u32_s64, 0 },
	{ "cvt.sat.s32.u64 %d, %0", "wl", cvt_sat_s32_u64, 0 },
	{ "mov.b32 %d, {%0, %1}", "whh", pack_16, 0 },
	{ "mov.b64 %d, {%0, %1}", "lww", pack_32, 0 },
	{ "mov.b64 {_, %d}, %0", "wl", high_half, 0 },
};

const size_t integer_instruction_count =
	sizeof(integer_instructions) / sizeof(integer_instructions[0]);
