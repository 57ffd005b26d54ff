/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/engine/lanes/lane_math.h"
#include "softgpu/engine/run/run.h"

#define ORDER __ATOMIC_SEQ_CST

static u32
combine32(const struct gs_code *code, u32 old, u32 value)
{
	switch (code->sub) {
	case GS_SUB_ADD:
		if (code->type == GS_TYPE_F32)
			return bits_of_f32(f32_of_bits(old) + f32_of_bits(value));
		return half_of_f32(half_to_f32(old) + half_to_f32(value)) |
		       half_of_f32(half_to_f32(old >> 16) + half_to_f32(value >> 16)) << 16;
	case GS_SUB_MIN:
		if (code->type == GS_TYPE_S32)
			return (s32)old < (s32)value ? old : value;
		return old < value ? old : value;
	case GS_SUB_MAX:
		if (code->type == GS_TYPE_S32)
			return (s32)old > (s32)value ? old : value;
		return old > value ? old : value;
	case GS_SUB_INC:
		return old >= value ? 0 : old + 1;
	default:
		return old == 0 || old > value ? value : old - 1;
	}
}

static u32
combine_bfloat2(u32 old, u32 value)
{
	return bfloat_of_f32(bfloat_to_f32(old) + bfloat_to_f32(value)) |
	       bfloat_of_f32(bfloat_to_f32(old >> 16) + bfloat_to_f32(value >> 16)) << 16;
}

static u32
atomic32(const struct gs_code *code, u32 *memory, u32 value, u32 swap)
{
	u32 old = value;
	u32 next;

	switch (code->sub) {
	case GS_SUB_EXCH:
		return __atomic_exchange_n(memory, value, ORDER);
	case GS_SUB_CAS:
		__atomic_compare_exchange_n(memory, &old, swap, 0, ORDER, ORDER);
		return old;
	case GS_SUB_ADD:
		if (!gs_type_is_float((enum gs_type)code->type))
			return __atomic_fetch_add(memory, value, ORDER);
		break;
	case GS_SUB_AND:
		return __atomic_fetch_and(memory, value, ORDER);
	case GS_SUB_OR:
		return __atomic_fetch_or(memory, value, ORDER);
	case GS_SUB_XOR:
		return __atomic_fetch_xor(memory, value, ORDER);
	default:
		break;
	}
	old = __atomic_load_n(memory, ORDER);
	do {
		next = code->type == GS_TYPE_BF16X2 ? combine_bfloat2(old, value)
						    : combine32(code, old, value);
	} while (!__atomic_compare_exchange_n(memory, &old, next, 0, ORDER, ORDER));
	return old;
}

static u64
combine64(const struct gs_code *code, u64 old, u64 value)
{
	bool is_signed = code->type == GS_TYPE_S64;

	switch (code->sub) {
	case GS_SUB_ADD:
		return bits_of_f64(f64_of_bits(old) + f64_of_bits(value));
	case GS_SUB_MIN:
		return (is_signed ? (s64)old < (s64)value : old < value) ? old : value;
	case GS_SUB_MAX:
		return (is_signed ? (s64)old > (s64)value : old > value) ? old : value;
	case GS_SUB_INC:
		return old >= value ? 0 : old + 1;
	default:
		return old == 0 || old > value ? value : old - 1;
	}
}

static u64
atomic64(const struct gs_code *code, u64 *memory, u64 value, u64 swap)
{
	u64 old = value;

	switch (code->sub) {
	case GS_SUB_EXCH:
		return __atomic_exchange_n(memory, value, ORDER);
	case GS_SUB_CAS:
		__atomic_compare_exchange_n(memory, &old, swap, 0, ORDER, ORDER);
		return old;
	case GS_SUB_ADD:
		if (code->type != GS_TYPE_F64)
			return __atomic_fetch_add(memory, value, ORDER);
		break;
	case GS_SUB_AND:
		return __atomic_fetch_and(memory, value, ORDER);
	case GS_SUB_OR:
		return __atomic_fetch_or(memory, value, ORDER);
	case GS_SUB_XOR:
		return __atomic_fetch_xor(memory, value, ORDER);
	default:
		break;
	}
	old = __atomic_load_n(memory, ORDER);
	while (!__atomic_compare_exchange_n(memory, &old, combine64(code, old, value), 0, ORDER,
					    ORDER))
		continue;
	return old;
}

static u32
atomic16(const struct gs_code *code, u16 *memory, u16 value, u16 swap)
{
	bool is_half = code->type == GS_TYPE_F16;
	u16 old = value;
	u16 next;

	if (code->sub == GS_SUB_CAS) {
		__atomic_compare_exchange_n(memory, &old, swap, 0, ORDER, ORDER);
		return old;
	}
	old = __atomic_load_n(memory, ORDER);
	do {
		next = is_half ? (u16)half_of_f32(half_to_f32(old) + half_to_f32(value))
			       : (u16)bfloat_of_f32(bfloat_to_f32(old) + bfloat_to_f32(value));
	} while (!__atomic_compare_exchange_n(memory, &old, next, 0, ORDER, ORDER));
	return old;
}

bool
gs_atomic(struct gs_block *block, const struct gs_code *code, uint8_t *regs, uint32_t mask)
{
	u64 addresses[GS_WARP] __attribute__((aligned(64)));
	const uint8_t *values = regs + code->b;
	const uint8_t *swaps = regs + (code->sub == GS_SUB_CAS ? code->c : code->b);

	block->code_at = code;
	if (!gs_addresses(block, code, regs, mask, addresses))
		return false;
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		int i = __builtin_ctz(rest);
		void *memory = (void *)(uintptr_t)addresses[i];

		if (code->width == 8)
			((u64 *)(void *)(regs + code->dst))[i] =
				atomic64(code, memory, ((const u64 *)(const void *)values)[i],
					 ((const u64 *)(const void *)swaps)[i]);
		else if (code->width == 4)
			((u32 *)(void *)(regs + code->dst))[i] =
				atomic32(code, memory, ((const u32 *)(const void *)values)[i],
					 ((const u32 *)(const void *)swaps)[i]);
		else
			((u32 *)(void *)(regs + code->dst))[i] =
				atomic16(code, memory, (u16)((const u32 *)(const void *)values)[i],
					 (u16)((const u32 *)(const void *)swaps)[i]);
	}
	return true;
}
