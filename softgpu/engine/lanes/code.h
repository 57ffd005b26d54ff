/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoded kernels: what the decoder writes and the interpreter runs.
 * A register is a slot of 32 lanes, 4 or 8 bytes each, at a fixed offset in a warp's frame.
 * Narrower values lie in 4-byte lanes, whatever the upper bits; a predicate is 0 or -1. Constants
 * are slots too, filled when a block begins. Nothing here changes after decoding, so all threads
 * may read.
 */
#ifndef GS_CODE_H
#define GS_CODE_H

#include "softgpu/engine/parse/ptx.h"

#define GS_WARP 32

struct gs_code;

/* Computes all lanes of one result. dst may be the slot of an operand of the same width. */
typedef void gs_lane_func(const struct gs_code *code, const uint8_t *regs, uint8_t *dst);

enum gs_kind {
	GS_KIND_LANE,
	GS_KIND_JOIN, /* a label: where split warps may come together */
	GS_KIND_BRANCH,
	GS_KIND_BRANCH_TABLE,
	GS_KIND_LOAD,
	GS_KIND_STORE,
	GS_KIND_ATOMIC,
	GS_KIND_COPY_ASYNC,
	GS_KIND_TEXTURE,
	GS_KIND_SURFACE,
	GS_KIND_BARRIER,
	GS_KIND_MBARRIER, /* a barrier object in shared memory */
	GS_KIND_EXIT,
	GS_KIND_RETURN,
	GS_KIND_CALL,
	/* Operations of a warp: they meet by member mask. */
	GS_KIND_WARP_SYNC,
	GS_KIND_SHUFFLE,
	GS_KIND_VOTE,
	GS_KIND_MATCH,
	GS_KIND_REDUX,
	GS_KIND_ACTIVE_MASK,
	GS_KIND_CLOCK,
	GS_KIND_FENCE,
	GS_KIND_TRAP,
	GS_KIND_ROUND, /* sets the CPU's rounding mode to imm */
	GS_KIND_IS_SPACE,
	GS_KIND_SLEEP,
};

struct gs_code {
	gs_lane_func *func;
	uint32_t dst;
	uint32_t a;
	uint32_t b;
	uint32_t c;
	int64_t imm;
	int32_t pred; /* slot of the guard, or -1 */
	int32_t target;
	const uint32_t *slots; /* a vector's elements */
	const struct gs_insn *insn;
	uint32_t d;    /* fourth operand, or the member mask */
	uint32_t dst2; /* 0: none */
	uint8_t kind;
	uint8_t dst_width; /* lane bytes of dst: 4 or 8 */
	uint8_t width;     /* bytes of one element in memory; lane bytes of a source */
	uint8_t count;     /* elements of a vector, parts of a pack */
	uint8_t space;     /* GS_SPACE_SHARED or GS_SPACE_GENERIC */
	uint8_t sub;
	uint8_t type;
	bool is_signed;
	bool pred_negated;
	bool negated;           /* a predicate operand */
	bool has_short_address; /* address register of 4 bytes */
	bool flag;
};

/* A slot whose value the launch, the block or the warp gives. */
enum gs_fixed_kind {
	GS_FIXED_IMM,
	GS_FIXED_SPECIAL,
	GS_FIXED_PARAM, /* bytes of the parameter buffer */
	GS_FIXED_PARAM_ADDRESS,
	GS_FIXED_LOCAL_ADDRESS,  /* per lane */
	GS_FIXED_REFERENCE,      /* the number of a texture that lies at this address */
	GS_FIXED_DYNAMIC_SHARED, /* where extern .shared begins: each kernel's own */
};

struct gs_fixed {
	uint8_t kind;
	uint8_t width;
	uint8_t dim;
	int32_t id; /* special register or type */
	int64_t value;
	uint32_t slot;
};

struct gs_function {
	const struct gs_module *module;
	const struct gs_ptx_function *ptx;
	uint32_t index; /* in the module; what a function pointer names */
	struct gs_code *code;
	uint32_t code_count;
	uint32_t frame_bytes; /* of slots */
	struct gs_fixed *fixed;
	uint32_t fixed_count;
	uint32_t warp_fixed_count;  /* behind those that all warps share */
	uint32_t block_fixed_count; /* last: they change from block to block */
	uint64_t local_bytes;
	uint32_t shared_bytes; /* static, with that of all functions called */
	uint32_t live_regs;    /* the most 32-bit registers that are live at once, roughly */
	bool calls;            /* functions with a body */
	bool uses_printf;
	bool uses_heap;
	bool uses_grid_sync;
	/* Why the device cannot run it; NULL: it can.  Then its code is a trap. */
	const char *unsupported;
};

/* The offset of dynamic shared memory, which follows the static one. */
static inline uint64_t
gs_dynamic_shared_at(const struct gs_function *function)
{
	return ((uint64_t)function->shared_bytes + 15) & ~UINT64_C(15);
}

/* A function's address as kernels see it: outside every mapping. */
#define GS_FUNCTION_ADDRESS 0xf000000000000000ull

#endif
