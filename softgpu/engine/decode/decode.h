/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of the decoder, shared by its files: translates one function of a module to code.
 *
 * Errors: sticky, as in the parser: the first error counts, and decoding continues without effect.
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
	const struct gs_insn *insn;
	const struct gs_lanes *lanes;
	uint32_t *reg_slots;
	uint32_t scratch; /* slot for unused results */
	uint32_t carry;
	struct gs_names fixed_names;
	size_t code_capacity;
	size_t fixed_capacity;
	bool failed;
};

/* Decodes a function. Returns GS_OK, GS_INVALID_PTX, GS_OUT_OF_MEMORY, or GS_NOT_SUPPORTED: valid
 * PTX that the device cannot run. */
int gs_decode_function(struct gs_module *module, struct gs_function *function,
		       struct gs_error *error);

/* slots.c: assigns registers to slots of the frame. */
void gs_decode_assign_slots(struct gs_decoder *decoder);
uint32_t gs_decode_new_slot(struct gs_decoder *decoder, unsigned int width);
/* Whether operand k is a result. */
bool gs_insn_defines(const struct gs_insn *insn, unsigned int k);

void gs_decode_fail(struct gs_decoder *decoder, const char *why);
/* The same for valid PTX that the device cannot run. */
void gs_decode_unsupported(struct gs_decoder *decoder, const char *why);
void *gs_decode_alloc(struct gs_decoder *decoder, size_t size);
struct gs_code *gs_decode_emit(struct gs_decoder *decoder, enum gs_kind kind);
struct gs_code *gs_decode_emit_lane(struct gs_decoder *decoder, gs_lane_func *func, uint32_t dst,
				    unsigned int dst_width);
uint32_t gs_decode_fixed(struct gs_decoder *decoder, enum gs_fixed_kind kind, unsigned int width,
			 int id, unsigned int dim, int64_t value);
/* Bytes per lane of a register or a type: 4 or 8. */
unsigned int gs_decode_reg_width(const struct gs_decoder *decoder, int32_t reg);
unsigned int gs_lane_width(enum gs_type type);
/* Returns the operand's slot, which must have the type's lane width; otherwise the decoder
 * fails. */
uint32_t gs_decode_source(struct gs_decoder *decoder, const struct gs_operand *operand,
			  enum gs_type type);
uint32_t gs_decode_result(struct gs_decoder *decoder, const struct gs_operand *operand,
			  enum gs_type type);
/* Returns operand k of the instruction; fails if there is none. */
const struct gs_operand *gs_decode_operand(struct gs_decoder *decoder, unsigned int k);
/* Returns the unsigned type of the same width, for operations to which the sign does not matter. */
enum gs_type gs_type_unsigned(enum gs_type type);

/* Each decodes decoder->insn if it handles it, otherwise returns false. */
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
void gs_decode_rounding(struct gs_decoder *decoder, bool restore);

#endif
