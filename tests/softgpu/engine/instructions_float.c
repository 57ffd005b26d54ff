/* SPDX-License-Identifier: Apache-2.0 */
#include "instructions.h"

#include <fenv.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define WANT(name) static uint64_t name(uint64_t a, uint64_t b, uint64_t c, uint64_t d)

static float
single(uint64_t bits)
{
	uint32_t word = (uint32_t)bits;
	float value;

	memcpy(&value, &word, sizeof(value));
	return value;
}

static uint64_t
of_single(float value)
{
	uint32_t word;

	memcpy(&word, &value, sizeof(word));
	return word;
}

static double
real(uint64_t bits)
{
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

static uint64_t
of_real(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

/* By the definition of the format. */
static double
half(uint64_t bits)
{
	int exponent = bits >> 10 & 31;
	double mantissa = (double)(bits & 1023);
	double magnitude;

	if (exponent == 31)
		magnitude = mantissa != 0 ? NAN : INFINITY;
	else
		magnitude = exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24);
	return bits & 0x8000 ? -magnitude : magnitude;
}

/* The nearest of all 65536, ties to the even one. */
static uint64_t
of_half(double value)
{
	uint64_t sign = signbit(value) ? 0x8000 : 0;
	uint64_t low = 0;
	uint64_t high = 0x7c00;
	double below;
	double above;

	value = fabs(value);
	if (isnan(value))
		return 0x7fff;
	if (value >= 65520)
		return sign | 0x7c00;
	while (high - low > 1) {
		uint64_t middle = (low + high) / 2;

		if (half(middle) <= value)
			low = middle;
		else
			high = middle;
	}
	below = value - half(low);
	above = (high == 0x7c00 ? 65536.0 : half(high)) - value;
	if (below < above || (below == above && !(low & 1)))
		return sign | low;
	return sign | high;
}

static double
round_in(int mode, double (*operation)(double, double, double), double a, double b, double c)
{
	volatile double result;

	fesetround(mode);
	result = operation(a, b, c);
	fesetround(FE_TONEAREST);
	return result;
}

static double
narrow_sum(double a, double b, double c)
{
	volatile float x = (float)a;
	volatile float y = (float)b;

	return x + y;
}

static double
narrow_product(double a, double b, double c)
{
	volatile float x = (float)a;
	volatile float y = (float)b;

	return x * y;
}

static double
wide_quotient(double a, double b, double c)
{
	volatile double x = a;
	volatile double y = b;

	return x / y;
}

#define FLOATS(name, expression)                                                                   \
	WANT(name##_f32)                                                                           \
	{                                                                                          \
		float x = single(a), y = single(b), z = single(c);                                 \
		(void)x, (void)y, (void)z;                                                         \
		return of_single(expression);                                                      \
	}                                                                                          \
	WANT(name##_f64)                                                                           \
	{                                                                                          \
		double x = real(a), y = real(b), z = real(c);                                      \
		(void)x, (void)y, (void)z;                                                         \
		return of_real(expression);                                                        \
	}

FLOATS(add, x + y)
FLOATS(sub, x - y)
FLOATS(mul, x *y)
FLOATS(divide, x / y)
FLOATS(negate, -x)
FLOATS(reciprocal, 1 / x)
WANT(fma_f32)
{
	return of_single(fmaf(single(a), single(b), single(c)));
}
WANT(fma_f64)
{
	return of_real(fma(real(a), real(b), real(c)));
}
WANT(sqrt_f32)
{
	return of_single(sqrtf(single(a)));
}
WANT(sqrt_f64)
{
	return of_real(sqrt(real(a)));
}
WANT(rsqrt_f32)
{
	return of_single((float)(1 / sqrt(single(a))));
}
WANT(abs_f32)
{
	return a & 0x7fffffff;
}
WANT(abs_f64)
{
	return a & INT64_MAX;
}
WANT(sin_f32)
{
	return of_single((float)sin(single(a)));
}
WANT(cos_f32)
{
	return of_single((float)cos(single(a)));
}
WANT(lg2_f32)
{
	return of_single((float)log2(single(a)));
}
WANT(ex2_f32)
{
	return of_single((float)exp2(single(a)));
}
WANT(tanh_f32)
{
	return of_single((float)tanh(single(a)));
}
WANT(copysign_f32)
{
	return of_single(copysignf(single(b), single(a)));
}
WANT(copysign_f64)
{
	return of_real(copysign(real(b), real(a)));
}

static double
lesser(double x, double y)
{
	if (isnan(x) || isnan(y))
		return isnan(x) ? y : x;
	if (x == y)
		return signbit(x) ? x : y;
	return x < y ? x : y;
}

WANT(min_f32)
{
	return of_single((float)lesser(single(a), single(b)));
}
WANT(min_f64)
{
	return of_real(lesser(real(a), real(b)));
}
WANT(max_f32)
{
	return of_single(-(float)lesser(-single(a), -single(b)));
}
WANT(max_f64)
{
	return of_real(-lesser(-real(a), -real(b)));
}

static double
saturate(double x)
{
	return !(x > 0) ? 0 : x > 1 ? 1 : x;
}

WANT(add_sat)
{
	return of_single((float)saturate(single(a) + single(b)));
}
WANT(fma_sat)
{
	return of_single((float)saturate(fmaf(single(a), single(b), single(c))));
}
WANT(add_rz)
{
	return of_single((float)round_in(FE_TOWARDZERO, narrow_sum, single(a), single(b), 0));
}
WANT(add_rm)
{
	return of_single((float)round_in(FE_DOWNWARD, narrow_sum, single(a), single(b), 0));
}
WANT(mul_rp)
{
	return of_single((float)round_in(FE_UPWARD, narrow_product, single(a), single(b), 0));
}
WANT(div_rz)
{
	return of_real(round_in(FE_TOWARDZERO, wide_quotient, real(a), real(b), 0));
}

#define ORDERED(name, operator)                                                                    \
	WANT(name##_f32)                                                                           \
	{                                                                                          \
		return single(a) operator single(b);                                               \
	}                                                                                          \
	WANT(name##_f64)                                                                           \
	{                                                                                          \
		return real(a) operator real(b);                                                   \
	}                                                                                          \
	WANT(name##u_f32)                                                                          \
	{                                                                                          \
		return isnan(single(a)) || isnan(single(b)) || single(a) operator single(b);       \
	}                                                                                          \
	WANT(name##u_f64)                                                                          \
	{                                                                                          \
		return isnan(real(a)) || isnan(real(b)) || real(a) operator real(b);               \
	}
ORDERED(lt, <)
ORDERED(le, <=)
ORDERED(gt, >)
ORDERED(ge, >=)
ORDERED(eq, ==)
WANT(ne_f32)
{
	return single(a) < single(b) || single(a) > single(b);
}
WANT(neu_f64)
{
	return real(a) != real(b);
}
WANT(num_f32)
{
	return !isnan(single(a)) && !isnan(single(b));
}
WANT(nan_f64)
{
	return isnan(real(a)) || isnan(real(b));
}
WANT(lt_and)
{
	return single(a) < single(b) && c;
}
WANT(lt_or_not)
{
	return single(a) < single(b) || !c;
}
WANT(set_f32)
{
	return of_single(single(a) < single(b) ? 1.0f : 0.0f);
}
WANT(set_u32)
{
	return single(a) < single(b) ? 0xffffffff : 0;
}
WANT(finite_f32)
{
	return isfinite(single(a));
}
WANT(normal_f64)
{
	return isnormal(real(a));
}
WANT(subnormal_f32)
{
	return fpclassify(single(a)) == FP_SUBNORMAL;
}

static uint64_t
to_integer(double value, double low, double high, uint64_t of_nan)
{
	if (isnan(value))
		return of_nan;
	if (value <= low)
		return low < 0 ? (uint64_t)(int64_t)low : 0;
	if (value >= high)
		return high > 1e19              ? UINT64_MAX
		       : high > 1e18 && low < 0 ? INT64_MAX
						: (uint64_t)high;
	return value < 0 ? (uint64_t)(int64_t)value : (uint64_t)value;
}

WANT(f32_to_s32)
{
	return to_integer(trunc(single(a)), INT32_MIN, INT32_MAX, 0);
}
WANT(f32_to_u32)
{
	return to_integer(trunc(single(a)), 0, UINT32_MAX, 0);
}
WANT(f32_to_s32_near)
{
	return to_integer(nearbyint(single(a)), INT32_MIN, INT32_MAX, 0);
}
WANT(f32_to_s32_floor)
{
	return to_integer(floor(single(a)), INT32_MIN, INT32_MAX, 0);
}
WANT(f32_to_u8)
{
	return to_integer(trunc(single(a)), 0, 255, 0);
}
WANT(f64_to_s64)
{
	return to_integer(trunc(real(a)), -0x1p63, 0x1p63, 1ull << 63);
}
WANT(f64_to_u64)
{
	return to_integer(trunc(real(a)), 0, 0x1p64, 1ull << 63);
}
WANT(s32_to_f32)
{
	return of_single((float)(int32_t)a);
}
WANT(u32_to_f32)
{
	return of_single((float)(uint32_t)a);
}
WANT(u64_to_f32)
{
	return of_single((float)a);
}
WANT(s64_to_f64)
{
	return of_real((double)(int64_t)a);
}
WANT(u16_to_f32)
{
	return of_single((uint16_t)a);
}
WANT(s16_to_f64)
{
	return of_real((int16_t)a);
}
WANT(f32_to_f64)
{
	return of_real(single(a));
}
WANT(f64_to_f32)
{
	return of_single((float)real(a));
}
WANT(floor_f32)
{
	return of_single(floorf(single(a)));
}
WANT(ceil_f64)
{
	return of_real(ceil(real(a)));
}
WANT(trunc_f32)
{
	return of_single(truncf(single(a)));
}
WANT(sat_f32)
{
	return of_single((float)saturate(single(a)));
}

WANT(half_to_f32)
{
	return of_single((float)half(a));
}
WANT(half_to_s32)
{
	return to_integer(trunc(half(a)), INT32_MIN, INT32_MAX, 0);
}
WANT(f32_to_half)
{
	return of_half(single(a));
}
WANT(s32_to_half)
{
	return of_half((int32_t)a);
}
WANT(f32_pair_to_halves)
{
	return of_half(single(a)) << 16 | of_half(single(b));
}
WANT(bfloat_to_f32)
{
	return (a & 0xffff) << 16;
}
WANT(add_half)
{
	return of_half(half(a) + half(b));
}
WANT(mul_half)
{
	return of_half(half(a) * half(b));
}
WANT(fma_half)
{
	return of_half(fma(half(a), half(b), half(c)));
}
WANT(max_half)
{
	return of_half(-lesser(-half(a), -half(b)));
}
WANT(lt_half)
{
	return half(a) < half(b);
}
/* Of each half the bits, or none. */
static uint64_t
lt_halves(uint64_t a, uint64_t b, uint64_t bits)
{
	return (half(a) < half(b) ? bits : 0) | (half(a >> 16) < half(b >> 16) ? bits << 16 : 0);
}
WANT(lt_halves_mask)
{
	return lt_halves(a, b, 0xffff);
}
WANT(lt_halves_one)
{
	return lt_halves(a, b, 0x3c00);
}
WANT(lt_brains_one)
{
	uint64_t low = single((a & 0xffff) << 16) < single((b & 0xffff) << 16) ? 0x3f80 : 0;

	return low | (single(a & 0xffff0000) < single(b & 0xffff0000) ? 0x3f800000 : 0);
}
WANT(add_halves)
{
	return of_half(half(a) + half(b)) | of_half(half(a >> 16) + half(b >> 16)) << 16;
}
WANT(fma_halves)
{
	return of_half(fma(half(a), half(b), half(c))) |
	       of_half(fma(half(a >> 16), half(b >> 16), half(c >> 16))) << 16;
}

#define BOTH(text32, text64, name)                                                                 \
	{ text32 " %d, %0, %1", "fff", name##_f32, 0 },                                            \
	{                                                                                          \
		text64 " %d, %0, %1", "ggg", name##_f64, 0                                         \
	}
#define COMPARES(op)                                                                               \
	{ "setp." #op ".f32 %d, %0, %1", "pff", op##_f32, 0 },                                     \
		{ "setp." #op ".f64 %d, %0, %1", "pgg", op##_f64, 0 },                             \
		{ "setp." #op "u.f32 %d, %0, %1", "pff", op##u_f32, 0 },                           \
	{                                                                                          \
		"setp." #op "u.f64 %d, %0, %1", "pgg", op##u_f64, 0                                \
	}

const struct instruction float_instructions[] = {
	BOTH("add.f32", "add.rn.f64", add),
	BOTH("sub.rn.f32", "sub.f64", sub),
	BOTH("mul.f32", "mul.rn.f64", mul),
	BOTH("div.rn.f32", "div.rn.f64", divide),
	BOTH("min.f32", "min.f64", min),
	BOTH("max.f32", "max.f64", max),
	BOTH("copysign.f32", "copysign.f64", copysign),
	{ "fma.rn.f32 %d, %0, %1, %2", "ffff", fma_f32, 0 },
	{ "fma.rn.f64 %d, %0, %1, %2", "gggg", fma_f64, 0 },
	{ "mad.rn.f32 %d, %0, %1, %2", "ffff", fma_f32, 0 },
	{ "neg.f32 %d, %0", "ff", negate_f32, 0 },
	{ "neg.f64 %d, %0", "gg", negate_f64, 0 },
	{ "abs.f32 %d, %0", "ff", abs_f32, 0 },
	{ "abs.f64 %d, %0", "gg", abs_f64, 0 },
	{ "rcp.rn.f32 %d, %0", "ff", reciprocal_f32, 0 },
	{ "rcp.rn.f64 %d, %0", "gg", reciprocal_f64, 0 },
	{ "rcp.approx.f32 %d, %0", "ff", reciprocal_f32, 1 },
	{ "sqrt.rn.f32 %d, %0", "ff", sqrt_f32, 0 },
	{ "sqrt.rn.f64 %d, %0", "gg", sqrt_f64, 0 },
	{ "rsqrt.approx.f32 %d, %0", "ff", rsqrt_f32, 2 },
	{ "div.full.f32 %d, %0, %1", "fff", divide_f32, 2 },
	{ "sin.approx.f32 %d, %0", "ff", sin_f32, 2 },
	{ "cos.approx.f32 %d, %0", "ff", cos_f32, 2 },
	{ "lg2.approx.f32 %d, %0", "ff", lg2_f32, 2 },
	{ "ex2.approx.f32 %d, %0", "ff", ex2_f32, 2 },
	{ "tanh.approx.f32 %d, %0", "ff", tanh_f32, 4 },
	{ "add.sat.f32 %d, %0, %1", "fff", add_sat, 0 },
	{ "fma.rn.sat.f32 %d, %0, %1, %2", "ffff", fma_sat, 0 },
	{ "add.rz.f32 %d, %0, %1", "fff", add_rz, 0 },
	{ "add.rm.f32 %d, %0, %1", "fff", add_rm, 0 },
	{ "mul.rp.f32 %d, %0, %1", "fff", mul_rp, 0 },
	{ "div.rz.f64 %d, %0, %1", "ggg", div_rz, 0 },
	COMPARES(lt),
	COMPARES(le),
	COMPARES(gt),
	COMPARES(ge),
	COMPARES(eq),
	{ "setp.ne.f32 %d, %0, %1", "pff", ne_f32, 0 },
	{ "setp.neu.f64 %d, %0, %1", "pgg", neu_f64, 0 },
	{ "setp.num.f32 %d, %0, %1", "pff", num_f32, 0 },
	{ "setp.nan.f64 %d, %0, %1", "pgg", nan_f64, 0 },
	{ "setp.lt.and.f32 %d, %0, %1, %2", "pffp", lt_and, 0 },
	{ "setp.lt.or.f32 %d, %0, %1, !%2", "pffp", lt_or_not, 0 },
	{ "set.lt.f32.f32 %d, %0, %1", "fff", set_f32, 0 },
	{ "set.lt.u32.f32 %d, %0, %1", "wff", set_u32, 0 },
	{ "testp.finite.f32 %d, %0", "pf", finite_f32, 0 },
	{ "testp.normal.f64 %d, %0", "pg", normal_f64, 0 },
	{ "testp.subnormal.f32 %d, %0", "pf", subnormal_f32, 0 },
	{ "cvt.rzi.s32.f32 %d, %0", "wf", f32_to_s32, 0 },
	{ "cvt.rzi.u32.f32 %d, %0", "wf", f32_to_u32, 0 },
	{ "cvt.rni.s32.f32 %d, %0", "wf", f32_to_s32_near, 0 },
	{ "cvt.rmi.s32.f32 %d, %0", "wf", f32_to_s32_floor, 0 },
	{ "cvt.rzi.u8.f32 %d, %0", "wf", f32_to_u8, 0 },
	{ "cvt.rzi.s64.f64 %d, %0", "lg", f64_to_s64, 0 },
	{ "cvt.rzi.u64.f64 %d, %0", "lg", f64_to_u64, 0 },
	{ "cvt.rn.f32.s32 %d, %0", "fw", s32_to_f32, 0 },
	{ "cvt.rn.f32.u32 %d, %0", "fw", u32_to_f32, 0 },
	{ "cvt.rn.f32.u64 %d, %0", "fl", u64_to_f32, 0 },
	{ "cvt.rn.f64.s64 %d, %0", "gl", s64_to_f64, 0 },
	{ "cvt.rn.f32.u16 %d, %0", "fh", u16_to_f32, 0 },
	{ "cvt.rn.f64.s16 %d, %0", "gh", s16_to_f64, 0 },
	{ "cvt.f64.f32 %d, %0", "gf", f32_to_f64, 0 },
	{ "cvt.rn.f32.f64 %d, %0", "fg", f64_to_f32, 0 },
	{ "cvt.rmi.f32.f32 %d, %0", "ff", floor_f32, 0 },
	{ "cvt.rpi.f64.f64 %d, %0", "gg", ceil_f64, 0 },
	{ "cvt.rzi.f32.f32 %d, %0", "ff", trunc_f32, 0 },
	{ "cvt.sat.f32.f32 %d, %0", "ff", sat_f32, 0 },
	{ "cvt.f32.f16 %d, %0", "fe", half_to_f32, 0 },
	{ "cvt.rzi.s32.f16 %d, %0", "we", half_to_s32, 0 },
	{ "cvt.rn.f16.f32 %d, %0", "ef", f32_to_half, 0 },
	{ "cvt.rn.f16.s32 %d, %0", "ew", s32_to_half, 0 },
	{ "cvt.rn.f16x2.f32 %d, %0, %1", "xff", f32_pair_to_halves, 0 },
	{ "cvt.f32.bf16 %d, %0", "fh", bfloat_to_f32, 0 },
	{ "add.f16 %d, %0, %1", "eee", add_half, 0 },
	{ "mul.f16 %d, %0, %1", "eee", mul_half, 0 },
	{ "fma.rn.f16 %d, %0, %1, %2", "eeee", fma_half, 0 },
	{ "max.f16 %d, %0, %1", "eee", max_half, 0 },
	{ "setp.lt.f16 %d, %0, %1", "pee", lt_half, 0 },
	{ "set.lt.u32.f16x2 %d, %0, %1", "wxx", lt_halves_mask, 0 },
	{ "set.lt.f16x2.f16x2 %d, %0, %1", "xxx", lt_halves_one, 0 },
	{ "set.lt.bf16x2.bf16x2 %d, %0, %1", "xxx", lt_brains_one, 0 },
	{ "add.f16x2 %d, %0, %1", "xxx", add_halves, 0 },
	{ "fma.rn.f16x2 %d, %0, %1, %2", "xxxx", fma_halves, 0 },
};

const size_t float_instruction_count = sizeof(float_instructions) / sizeof(float_instructions[0]);
