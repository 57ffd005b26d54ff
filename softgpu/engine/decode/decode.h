/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoder: translates one function of a module to code (lanes/code.h). struct gs_decoder is its
 * state, shared by its files.
 *
 * A slot is a register of 32 lanes in the function's frame; functions return slots as offsets in
 * bytes.
 * Ownership: code and everything it refers to is allocated in the module's pool.
 * Threads: one thread.
 * Errors: sticky, as in the parser: the first error is stored in `error`, and decoding continues
 * without effect. Functions then return some valid slot, an instruction that is discarded or, for
 * allocations, NULL.
 */
#ifndef GS_DECODE_H
#define GS_DECODE_H

#include "softgpu/engine/decode/module.h"
#include "softgpu/engine/lanes/lane.h"
#include "softgpu/engine/parse/names.h"

struct gs_decoder {
	const struct gs_module *module;
	const struct gs_ptx *ptx;
	const struct gs_ptx_function *ptx_function;
	struct gs_function *function;
	struct gs_pool *pool;
	struct gs_error *error;
	const struct gs_insn *insn; /* the instruction that is being decoded */
	const struct gs_lanes *lanes;
	uint32_t *reg_slots; /* by register: its slot */
	uint32_t scratch;    /* slot that receives unused results */
	uint32_t carry;      /* slot of the carry flag (.cc) */
	/* Indices of the function's fixed slots by their contents. */
	struct gs_names fixed_names;
	size_t code_capacity;
	size_t fixed_capacity;
	bool failed;
};

/* Decodes a function. Returns GS_OK, GS_INVALID_PTX, GS_OUT_OF_MEMORY, or GS_NOT_SUPPORTED for
 * valid PTX that the device cannot run. */
int gs_decode_function(struct gs_module *module, struct gs_function *function,
		       struct gs_error *error);

/* slots.c: assigns all registers of the function to slots. */
void gs_decode_assign_slots(struct gs_decoder *decoder);
/* Returns a new slot with lanes of 4 or 8 bytes, for values of `width` bytes. */
uint32_t gs_decode_new_slot(struct gs_decoder *decoder, unsigned int width);
/* Returns whether operand k is a result of the instruction. */
bool gs_insn_defines(const struct gs_insn *insn, unsigned int k);

/* Stores an error for invalid PTX, with the line of the instruction. `why` is copied. */
void gs_decode_fail(struct gs_decoder *decoder, const char *why);
/* Stores GS_NOT_SUPPORTED for valid PTX that the device cannot run. */
void gs_decode_unsupported(struct gs_decoder *decoder, const char *why);
/* Returns zeroed memory of the module's pool; NULL: out of memory, and the decoder has failed. */
void *gs_decode_alloc(struct gs_decoder *decoder, size_t size);
/* Appends an instruction with the guard of the current PTX instruction and returns it for the
 * caller to fill in. The pointer is valid until the next one is appended. Never NULL. */
struct gs_code *gs_decode_emit(struct gs_decoder *decoder, enum gs_kind kind);
/* Appends an operation on lanes with its result in slot `dst`. A NULL func fails the decoder. */
struct gs_code *gs_decode_emit_lane(struct gs_decoder *decoder, gs_lane_func *func, uint32_t dst,
				    unsigned int dst_width);
/* Returns the slot with a fixed value (enum gs_fixed_kind); equal values share a slot. */
uint32_t gs_decode_fixed(struct gs_decoder *decoder, enum gs_fixed_kind kind, unsigned int width,
			 int id, unsigned int dim, int64_t value);
/* Return the bytes per lane of a register or a type: 4 or 8. */
unsigned int gs_decode_reg_width(const struct gs_decoder *decoder, int32_t reg);
unsigned int gs_lane_width(enum gs_type type);
/* Returns the slot of a source operand, which must have the type's lane width; otherwise the
 * decoder fails. */
uint32_t gs_decode_source(struct gs_decoder *decoder, const struct gs_operand *operand,
			  enum gs_type type);
/* Returns the slot for a result, which must have the type's lane width; otherwise the decoder
 * fails. Returns the scratch slot for an unused result ("_"). */
uint32_t gs_decode_result(struct gs_decoder *decoder, const struct gs_operand *operand,
			  enum gs_type type);
/* Returns operand k of the instruction. If there is none, the decoder fails and the result is an
 * empty operand, never NULL. */
const struct gs_operand *gs_decode_operand(struct gs_decoder *decoder, unsigned int k);
/* Returns the unsigned type of the same width, for operations to which the sign does not matter. */
enum gs_type gs_type_unsigned(enum gs_type type);

/* Each of these functions handles a group of opcodes: it decodes decoder->insn and returns true, or
 * returns false for other opcodes without effect. */
bool gs_decode_arithmetic(struct gs_decoder *decoder);
bool gs_decode_logic(struct gs_decoder *decoder);
bool gs_decode_compare(struct gs_decoder *decoder);
bool gs_decode_convert(struct gs_decoder *decoder);
bool gs_decode_memory(struct gs_decoder *decoder);
bool gs_decode_mbarrier(struct gs_decoder *decoder);
bool gs_decode_texture(struct gs_decoder *decoder);
bool gs_decode_control(struct gs_decoder *decoder);
bool gs_decode_warp(struct gs_decoder *decoder);

/* Sets a, imm, space and has_short_address from an address operand. */
void gs_decode_address(struct gs_decoder *decoder, const struct gs_operand *operand,
		       struct gs_code *code);

/* Emits an operation on operands 1 to count of the given types with operand 0 as its result,
 * including rounding mode and saturation. */
void gs_decode_plain(struct gs_decoder *decoder, enum gs_lane_op op, enum gs_type key,
		     enum gs_type result, unsigned int count, const enum gs_type *types);
/* Emits the instruction that sets the CPU's rounding mode to that of the PTX instruction or
 * (restore) back to the nearest. Emits nothing for round-to-nearest. */
void gs_decode_rounding(struct gs_decoder *decoder, bool restore);

#endif
