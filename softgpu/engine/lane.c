/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled once for each instruction set, with GS_LANES_FILL and GS_LANES_ISA set. */
#include "lane.h"

#include "lane_math.h"

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
/* ne is false with a NaN; the "u" comparisons are true with one. */
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

#include "lane_ops.def"

/* Reads the lane as the source type; an integer comes in *whole, a float in *real. */
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

/* Results narrower than their register are extended as their type says. */
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

/* type, sub: to and from; imm: rounding; flag: saturate; width, dst_width: of the lanes. */
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

/* count parts of width bytes each, lowest first, into a lane of dst_width bytes. */
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

/* count bytes from bit imm on of a lane of width bytes */
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

/* imm: 1 the carry comes in, 2 it goes out, 4 subtract; d: the carry's slot */
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
	/* 8: the product's high half */                                                           \
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

/* imm: what to test for, in the order finite, infinite, number, notanumber, normal, subnormal */
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

/* Every stride-th word, as the elements of an array of structures. */
static void
stride4(const uint8_t *memory, uint32_t stride, uint8_t *dst)
{
	LANES((u32 *)dst)[i] = ((const u32 *)memory)[(u32)i * stride];
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
	};
#include "lane_ops.def"
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
