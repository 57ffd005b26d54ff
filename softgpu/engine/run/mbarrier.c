/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Barrier objects are 64 bits of shared memory, which only the worker that runs the block accesses.
 * They are opaque to programs; here they contain the phase and two counts.
 */
#include "softgpu/engine/run/run.h"

#define COUNT_BITS 20
#define COUNT_MASK ((1u << COUNT_BITS) - 1)

struct mbarrier {
	uint32_t pending;  /* arrivals until the phase completes */
	uint32_t expected; /* arrivals of the next phase */
	uint32_t phase;    /* 0 or 1 */
};

static uint64_t
pack(const struct mbarrier *barrier)
{
	return (uint64_t)(barrier->phase & 1) << 63 |
	       (uint64_t)(barrier->expected & COUNT_MASK) << COUNT_BITS |
	       (barrier->pending & COUNT_MASK);
}

static struct mbarrier
unpack(uint64_t bits)
{
	return (struct mbarrier){ .pending = (uint32_t)bits & COUNT_MASK,
				  .expected = (uint32_t)(bits >> COUNT_BITS) & COUNT_MASK,
				  .phase = (uint32_t)(bits >> 63) };
}

static void
arrive(struct mbarrier *barrier, uint32_t count, bool drops)
{
	if (drops)
		barrier->expected -= count < barrier->expected ? count : barrier->expected;
	barrier->pending -= count < barrier->pending ? count : barrier->pending;
	if (barrier->pending)
		return;
	barrier->phase ^= 1;
	barrier->pending = barrier->expected;
}

static uint32_t
word_at(const uint8_t *slot, int lane)
{
	return ((const uint32_t *)(const void *)slot)[lane];
}

static uint64_t
wide_at(const uint8_t *slot, int lane)
{
	return ((const uint64_t *)(const void *)slot)[lane];
}

/* Returns false only for a failed test: the phase is not yet complete. */
static bool
operate(const struct gs_code *code, uint64_t *memory, uint8_t *regs, int lane)
{
	const uint8_t *value = regs + code->b;
	struct mbarrier barrier = unpack(*memory);
	uint32_t phase;

	switch ((enum gs_sub)code->sub) {
	case GS_SUB_INIT:
		barrier = (struct mbarrier){ word_at(value, lane), word_at(value, lane), 0 };
		*memory = pack(&barrier);
		return true;
	case GS_SUB_INVAL:
		*memory = 0;
		return true;
	case GS_SUB_TEST_WAIT:
		phase = code->flag ? word_at(value, lane) & 1 : unpack(wide_at(value, lane)).phase;
		((uint32_t *)(void *)(regs + code->dst))[lane] =
			barrier.phase != phase ? GS_FULL_MASK : 0;
		return barrier.phase != phase;
	default:
		((uint64_t *)(void *)(regs + code->dst))[lane] = *memory;
		arrive(&barrier, word_at(value, lane), code->sub == GS_SUB_ARRIVE_DROP);
		*memory = pack(&barrier);
		return true;
	}
}

static void
write_pending_counts(const struct gs_code *code, uint8_t *regs, uint32_t mask)
{
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		int lane = __builtin_ctz(rest);

		((uint32_t *)(void *)(regs + code->dst))[lane] =
			unpack(wide_at(regs + code->b, lane)).pending;
	}
}

bool
gs_mbarrier(struct gs_block *block, const struct gs_code *code, uint8_t *regs, uint32_t mask,
	    bool *waits_p)
{
	uint64_t addresses[GS_WARP] __attribute__((aligned(64)));

	*waits_p = false;
	if (code->sub == GS_SUB_PENDING_COUNT) {
		write_pending_counts(code, regs, mask);
		return true;
	}
	block->code_at = code;
	if (!gs_addresses(block, code, regs, mask, addresses))
		return false;
	for (uint32_t rest = mask; rest; rest &= rest - 1) {
		int lane = __builtin_ctz(rest);

		if (!operate(code, (uint64_t *)(uintptr_t)addresses[lane], regs, lane))
			*waits_p = true;
	}
	return true;
}
