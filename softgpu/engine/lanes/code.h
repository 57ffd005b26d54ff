/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoded kernels: output of the decoder and input of the interpreter.
 *
 * A register is a slot: 32 lanes of 4 or 8 bytes each, at a fixed offset in a warp's frame.
 * Narrower values use 4-byte lanes with arbitrary upper bits. A predicate is 0 or -1. Constants are
 * slots too, filled when a block starts.
 * Ownership: everything is allocated in the module's pool (decode/module.h).
 * Threads: immutable after decoding; any thread may read.
 * Units: slots are offsets in bytes in `regs`, the frame's memory.
 */
#ifndef GS_CODE_H
#define GS_CODE_H

#include "softgpu/engine/parse/ptx.h"

#define GS_WARP 32

struct gs_code;

/* Computes all lanes of a result. dst may be the slot of an operand of the same width. `regs` is
 * the frame's memory. */
typedef void gs_lane_func(const struct gs_code *code, const uint8_t *regs, uint8_t *dst);

/* Kind of an instruction. */
enum gs_kind {
	GS_KIND_LANE,
	GS_KIND_JOIN, /* a label, where split warps may reconverge */
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
	/* Warp operations, synchronized by member mask. */
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

/* A decoded instruction. The use of a member depends on the kind; unused ones are 0. */
struct gs_code {
	gs_lane_func *func; /* of GS_KIND_LANE */
	uint32_t dst;       /* slot of the result */
	uint32_t a;         /* slots of operands 1 to 3 */
	uint32_t b;
	uint32_t c;
	int64_t imm;           /* immediate operand, or offset of an address */
	int32_t pred;          /* slot of the guard predicate, or -1 */
	int32_t target;        /* index of the instruction or of the function to go to */
	const uint32_t *slots; /* slots of the elements of a vector; NULL: not a vector */
	const struct gs_insn *insn;
	uint32_t d;    /* fourth operand, or the member mask */
	uint32_t dst2; /* slot of a second result; 0: none */
	uint8_t kind;
	uint8_t dst_width; /* bytes per lane of dst: 4 or 8 */
	uint8_t width;     /* bytes of one element in memory, or bytes per lane of a source */
	uint8_t count;     /* elements of a vector, parts of a pack */
	uint8_t space;     /* GS_SPACE_SHARED or GS_SPACE_GENERIC */
	/* Enum of the kind: gs_sub, gs_bool_op, gs_geometry, or the source's gs_type. */
	uint8_t sub;
	uint8_t type; /* enum gs_type */
	bool is_signed;
	bool pred_negated;
	bool negated;           /* whether a predicate operand is negated */
	bool has_short_address; /* whether the address register has 4 bytes */
	bool flag;
};

/* Determines how the value of a fixed slot is computed: from the launch, the block or the warp. */
enum gs_fixed_kind {
	GS_FIXED_IMM,
	GS_FIXED_SPECIAL,
	GS_FIXED_PARAM, /* bytes of the parameter buffer */
	GS_FIXED_PARAM_ADDRESS,
	GS_FIXED_LOCAL_ADDRESS,  /* per lane */
	GS_FIXED_REFERENCE,      /* number of the texture at this address */
	GS_FIXED_DYNAMIC_SHARED, /* start of extern .shared, which differs between kernels */
};

/* A fixed slot. Constants and special registers are filled when a block or a warp starts. */
struct gs_fixed {
	uint8_t kind;
	uint8_t width;
	/* Component of the special register (0 to 2: x, y, z) or number of an envreg. */
	uint8_t dim;
	int32_t id;    /* enum gs_special or enum gs_type */
	int64_t value; /* immediate, or offset in the parameter buffer */
	uint32_t slot;
};

/* A function of a module. */
struct gs_function {
	const struct gs_module *module;
	const struct gs_ptx_function *ptx;
	uint32_t index; /* number in the module; value of function pointers relative to
			   GS_FUNCTION_ADDRESS */
	struct gs_code *code;
	uint32_t code_count;
	uint32_t frame_bytes; /* size of all slots */
	/* The fixed slots, `fixed_count` in all: first those with the same value in all warps of a
	 * grid, then those that differ between warps, last those that differ between blocks. */
	struct gs_fixed *fixed;
	uint32_t fixed_count;
	uint32_t warp_fixed_count;  /* number of slots that differ between warps */
	uint32_t block_fixed_count; /* number of slots that differ between blocks */
	uint64_t local_bytes;       /* local memory per thread */
	uint32_t shared_bytes; /* static shared memory, including that of all called functions */
	uint32_t live_regs;    /* approximate maximum of live 32-bit registers */
	bool calls;            /* whether it calls functions with a body */
	bool uses_printf;
	bool uses_heap;
	bool uses_grid_sync;
	/* Reason for which the device cannot run the function, whose code is then a trap. NULL: it
	 * can. */
	const char *unsupported;
};

/* Returns the offset of dynamic shared memory in the shared window. It follows static shared
 * memory. */
static inline uint64_t
gs_dynamic_shared_at(const struct gs_function *function)
{
	return ((uint64_t)function->shared_bytes + 15) & ~UINT64_C(15);
}

/* Base of function addresses as kernels see them; outside of all mappings, so they cannot be
 * accessed as memory. */
#define GS_FUNCTION_ADDRESS 0xf000000000000000ull

#endif
