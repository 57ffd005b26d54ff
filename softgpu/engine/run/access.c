/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores of warps. The pattern of the lanes' addresses selects the access method. */
#include "softgpu/engine/run/run.h"

#include <string.h>

#define VA_SIZE (GS_VA_END - GS_VA_BASE)

/* 16 bytes that the CPU moves with a single access: on a GPU vectors are single-copy atomic, and
 * decoupled look-back algorithms rely on it. */
typedef long long vec16 __attribute__((vector_size(16), aligned(16)));

static void
misaligned(struct gs_block *block, const struct gs_code *code, uint64_t address)
{
	gs_job_fail(block->job, GS_MISALIGNED_ADDRESS,
		    "kernel %.160s: misaligned address 0x%llx at PTX line %d (%.*s)",
		    block->job->function->ptx->name, (unsigned long long)address,
		    (int)code->insn->line,
		    (int)(code->insn->spelling_len > 60 ? 60 : code->insn->spelling_len),
		    code->insn->spelling);
}

/* Finds the active lane that causes the fault, if there is one. */
static bool
check_lanes(struct gs_block *block, const struct gs_code *code, uint32_t mask,
	    const uint64_t *addresses, uint64_t base, uint64_t limit, uint64_t align_mask)
{
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		uint64_t at = addresses[__builtin_ctz(rest)] - base;

		if (at >= limit) {
			bool is_shared = code->space == GS_SPACE_SHARED;

			gs_block_fault(block, is_shared ? at : at + base,
				       is_shared ? "shared" : "global");
			return false;
		}
		if (at & align_mask) {
			misaligned(block, code, code->space == GS_SPACE_SHARED ? at : at + base);
			return false;
		}
	}
	return true;
}

bool
gs_addresses(struct gs_block *block, const struct gs_code *code, const uint8_t *regs, uint32_t mask,
	     uint64_t *addresses)
{
	const struct gs_lanes *lanes = gs_lanes();
	uint64_t bytes = (uint64_t)code->width * code->count;
	uint64_t align_mask = bytes - 1;
	uint64_t wide[GS_WARP] __attribute__((aligned(64)));
	uint32_t narrow[GS_WARP] __attribute__((aligned(64)));
	const uint8_t *source = regs + code->a;
	uint64_t base = GS_VA_BASE;
	uint64_t limit = VA_SIZE - bytes;
	uint64_t bad;

	if (code->space == GS_SPACE_SHARED) {
		uint64_t size = block->job->shared_bytes;

		if (!code->has_short_address) {
			lanes->narrow((const uint64_t *)source, narrow);
			source = (const uint8_t *)narrow;
		}
		base = (uint64_t)(uintptr_t)block->shared;
		limit = size >= bytes ? size - bytes + 1 : 0;
		bad = lanes->window4((const uint32_t *)source, (uint32_t)code->imm, base,
				     (uint32_t)limit, (uint32_t)align_mask, addresses);
	} else {
		if (code->has_short_address) {
			lanes->widen((const uint32_t *)source, wide);
			source = (const uint8_t *)wide;
		}
		bad = lanes->addresses((const uint64_t *)source, (uint64_t)code->imm, base, limit,
				       align_mask, addresses);
	}
	return !bad || check_lanes(block, code, mask, addresses, base, limit, align_mask);
}

/* Returns the lanes' memory if all read the same address (step 0) or adjacent ones, otherwise
 * NULL. */
static const uint8_t *
regular_memory(const struct gs_block *block, const struct gs_code *code, const uint8_t *regs,
	       bool *is_same_p)
{
	const struct gs_lanes *lanes = gs_lanes();
	uint32_t step = (uint32_t)code->width * code->count;
	uint64_t span = (uint64_t)step * GS_WARP;

	if (code->space == GS_SPACE_SHARED) {
		const uint32_t *from = (const uint32_t *)(regs + code->a);
		uint32_t first = from[0] + (uint32_t)code->imm;
		bool same = code->has_short_address && lanes->is_same4(from);

		if (!code->has_short_address || (first & (step - 1)) ||
		    (uint64_t)first + (same ? step : span) > block->job->shared_bytes)
			return NULL;
		*is_same_p = same;
		return same || lanes->is_sequence4(from, step) ? block->shared + first : NULL;
	} else {
		const uint64_t *from = (const uint64_t *)(regs + code->a);
		uint64_t first = from[0] + (uint64_t)code->imm;

		if (code->has_short_address || (first & (step - 1)) ||
		    first - GS_VA_BASE >= VA_SIZE - span)
			return NULL;
		*is_same_p = lanes->is_same8(from);
		return *is_same_p || lanes->is_sequence8(from, step)
			       ? (const uint8_t *)(uintptr_t)first
			       : NULL;
	}
}

static void
copy_vectors(uint8_t *dst, const uint8_t *src, uint32_t bytes)
{
	for (uint32_t i = 0; i < bytes; i += 16)
		*(volatile vec16 *)(void *)(dst + i) =
			*(const volatile vec16 *)(const void *)(src + i);
}

static void
splat(const struct gs_code *code, uint8_t *regs, const uint8_t *memory)
{
	uint8_t copy[32] __attribute__((aligned(16)));
	uint32_t step = (uint32_t)code->width * code->count;

	if (step % 16 == 0) {
		copy_vectors(copy, memory, step);
		memory = copy;
	} else if (step == 8) {
		*(uint64_t *)(void *)copy = *(const volatile uint64_t *)(const void *)memory;
		memory = copy;
	}
	if (code->width == 4) {
		gs_lanes()->splat_words(regs, code->slots, code->count,
					(const uint32_t *)(const void *)memory);
		return;
	}
	for (unsigned int k = 0; k < code->count; k++)
		gs_lanes()->splat8(regs + code->slots[k],
				   ((const uint64_t *)(const void *)memory)[k]);
}

/* All lanes read the same address, or adjacent ones, in whole lanes. */
static bool
load_regular(const struct gs_block *block, const struct gs_code *code, uint8_t *regs)
{
	uint8_t copy[GS_WARP * 16] __attribute__((aligned(64)));
	bool is_same = false;
	const uint8_t *memory = regular_memory(block, code, regs, &is_same);
	uint32_t step = (uint32_t)code->width * code->count;

	if (!memory)
		return false;
	if (is_same) {
		splat(code, regs, memory);
		return true;
	}
	if (code->count == 1) {
		memcpy(regs + code->slots[0], memory, (size_t)step * GS_WARP);
		return true;
	}
	if (code->width != 4 || step > 16)
		return false;
	/* Mappings are aligned to pages, so 8 lanes of 8 bytes are 16-byte pieces if the first one
	 * is aligned. */
	if (((uintptr_t)memory & 15) != 0)
		return false;
	copy_vectors(copy, memory, step * GS_WARP);
	for (unsigned int k = 0; k < code->count; k++)
		gs_lanes()->stride4(copy + k * 4, code->count, regs + code->slots[k]);
	return true;
}

/* Adjacent bytes or half words. */
static bool
load_narrow(const struct gs_block *block, const struct gs_code *code, uint8_t *regs)
{
	bool is_same = false;
	const uint8_t *memory;

	if (code->count != 1 || code->dst_width != 4)
		return false;
	memory = regular_memory(block, code, regs, &is_same);
	if (!memory || is_same)
		return false;
	gs_lanes()->load_narrow(memory, code->width, code->is_signed, regs + code->slots[0]);
	return true;
}

static inline uint64_t
read_element(const uint8_t *memory, unsigned int size, bool is_signed)
{
	switch (size) {
	case 1:
		return is_signed ? (uint64_t)(int64_t) * (const volatile int8_t *)memory
				 : *(const volatile uint8_t *)memory;
	case 2: {
		uint16_t value = *(const volatile uint16_t *)(const void *)memory;

		return is_signed ? (uint64_t)(int64_t)(int16_t)value : value;
	}
	case 4: {
		uint32_t value = *(const volatile uint32_t *)(const void *)memory;

		return is_signed ? (uint64_t)(int64_t)(int32_t)value : value;
	}
	default:
		return *(const volatile uint64_t *)(const void *)memory;
	}
}

static inline void
write_lane(uint8_t *slot, unsigned int width, int lane, uint64_t value)
{
	if (width == 8)
		((uint64_t *)(void *)slot)[lane] = value;
	else
		((uint32_t *)(void *)slot)[lane] = (uint32_t)value;
}

static inline uint64_t
read_lane(const uint8_t *slot, unsigned int width, int lane)
{
	return width == 8 ? ((const uint64_t *)(const void *)slot)[lane]
			  : ((const uint32_t *)(const void *)slot)[lane];
}

static void
load_lane(const struct gs_code *code, uint8_t *regs, const uint8_t *memory, int lane)
{
	uint8_t copy[32] __attribute__((aligned(16)));
	uint32_t step = (uint32_t)code->width * code->count;

	if (code->count > 1 && step % 16 == 0) {
		copy_vectors(copy, memory, step);
		memory = copy;
	} else if (code->count > 1 && step == 8) {
		*(uint64_t *)(void *)copy = *(const volatile uint64_t *)(const void *)memory;
		memory = copy;
	}
	for (unsigned int k = 0; k < code->count; k++)
		write_lane(regs + code->slots[k], code->dst_width, lane,
			   read_element(memory + k * code->width, code->width, code->is_signed));
}

bool
gs_load(struct gs_block *block, const struct gs_code *code, uint8_t *regs, uint32_t mask)
{
	uint64_t addresses[GS_WARP] __attribute__((aligned(64)));
	bool whole_lanes = code->width == code->dst_width;

	block->code_at = code;
	if (mask == GS_FULL_MASK && whole_lanes && load_regular(block, code, regs))
		return true;
	if (mask == GS_FULL_MASK && code->width < 4 && load_narrow(block, code, regs))
		return true;
	if (!gs_addresses(block, code, regs, mask, addresses))
		return false;
	if (mask == GS_FULL_MASK && whole_lanes && code->count == 1) {
		if (code->width == 8)
			gs_lanes()->gather8(addresses, 0, regs + code->slots[0]);
		else
			gs_lanes()->gather4(addresses, 0, regs + code->slots[0]);
		return true;
	}
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		int lane = __builtin_ctz(rest);

		load_lane(code, regs, (const uint8_t *)(uintptr_t)addresses[lane], lane);
	}
	return true;
}

static inline void
write_element(uint8_t *memory, unsigned int size, uint64_t value)
{
	switch (size) {
	case 1:
		*(volatile uint8_t *)memory = (uint8_t)value;
		break;
	case 2:
		*(volatile uint16_t *)(void *)memory = (uint16_t)value;
		break;
	case 4:
		*(volatile uint32_t *)(void *)memory = (uint32_t)value;
		break;
	default:
		*(volatile uint64_t *)(void *)memory = value;
	}
}

static void
store_lane(const struct gs_code *code, const uint8_t *regs, uint8_t *memory, int lane)
{
	uint8_t copy[32] __attribute__((aligned(16)));
	uint32_t step = (uint32_t)code->width * code->count;
	bool at_once = code->count > 1 && step >= 8;
	uint8_t *to = at_once ? copy : memory;

	for (unsigned int k = 0; k < code->count; k++)
		write_element(to + k * code->width, code->width,
			      read_lane(regs + code->slots[k], code->dst_width, lane));
	if (!at_once)
		return;
	if (step == 8)
		*(volatile uint64_t *)(void *)memory = *(const uint64_t *)(const void *)copy;
	else
		copy_vectors(memory, copy, step);
}

/* An element for each lane, adjacent in memory. */
static bool
store_regular(const struct gs_block *block, const struct gs_code *code, const uint8_t *regs)
{
	bool is_narrow = code->width < 4 && code->dst_width == 4;
	bool is_same = false;
	uint8_t *memory;

	if (code->count != 1 || (code->width != code->dst_width && !is_narrow))
		return false;
	memory = (uint8_t *)(uintptr_t)regular_memory(block, code, regs, &is_same);
	if (!memory || is_same)
		return false;
	if (is_narrow)
		gs_lanes()->store_narrow(memory, code->width, regs + code->slots[0]);
	else
		memcpy(memory, regs + code->slots[0], (size_t)code->width * GS_WARP);
	return true;
}

bool
gs_store(struct gs_block *block, const struct gs_code *code, const uint8_t *regs, uint32_t mask)
{
	uint64_t addresses[GS_WARP] __attribute__((aligned(64)));

	block->code_at = code;
	if (mask == GS_FULL_MASK && store_regular(block, code, regs))
		return true;
	if (!gs_addresses(block, code, regs, mask, addresses))
		return false;
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		int lane = __builtin_ctz(rest);

		store_lane(code, regs, (uint8_t *)(uintptr_t)addresses[lane], lane);
	}
	return true;
}

/* cp.async of 4, 8 or 16 bytes; bytes beyond the source size are zeroed. */
bool
gs_copy_async(struct gs_block *block, const struct gs_code *code, const uint8_t *regs,
	      uint32_t mask)
{
	uint64_t addresses[GS_WARP] __attribute__((aligned(64)));
	const uint64_t *sources = (const uint64_t *)(const void *)(regs + code->b);
	const uint32_t *sizes = (const uint32_t *)(const void *)(regs + code->c);
	struct gs_code to = *code;

	block->code_at = code;
	to.width = 1;
	if (!gs_addresses(block, &to, regs, mask, addresses))
		return false;
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		int lane = __builtin_ctz(rest);
		uint8_t *dst = (uint8_t *)(uintptr_t)addresses[lane];
		uint64_t from = sources[lane] + (uint64_t)(int64_t)code->target;
		uint32_t size = sizes[lane] < code->count ? sizes[lane] : code->count;

		if (size && from - GS_VA_BASE >= VA_SIZE - 16) {
			gs_block_fault(block, from, "global");
			return false;
		}
		memcpy(dst, (const void *)(uintptr_t)from, size);
		memset(dst + size, 0, code->count - size);
	}
	return true;
}
