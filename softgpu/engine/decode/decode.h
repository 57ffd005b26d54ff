/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decoder's own state, shared by its files: one function of one module, used once.
 * Errors are sticky as in the parser: the first counts, and decoding goes on without effect.
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
	uint32_t scratch; /* for results nobody wants */
	uint32_t carry;
	struct gs_names fixed_names;
	size_t code_capacity;
	size_t fixed_capacity;
	bool failed;
};

/* Fills function->code and the rest. GS_OK, GS_INVALID_PTX, GS_OUT_OF_MEMORY, or GS_NOT_SUPPORTED:
 * valid PTX that the device does not run. */
int gs_decode_function(struct gs_module *module, struct gs_function *function,
		       struct gs_error *error);

/* slots.c: where each register lives in the frame. */
void gs_decode_assign_slots(struct gs_decoder *decoder);
uint32_t gs_decode_new_slot(struct gs_decoder *decoder, unsigned int width);
/* Whether operand k is a result. */
bool gs_insn_defines(const struct gs_insn *insn, unsigned int k);

void gs_decode_fail(struct gs_decoder *decoder, const char *why);
/* The same of valid PTX that the device does not run. */
void gs_decode_unsupported(struct gs_decoder *decoder, const char *why);
void *gs_decode_alloc(struct gs_decoder *decoder, size_t size);
struct gs_code *gs_decode_emit(struct gs_decoder *decoder, enum gs_kind kind);
struct gs_code *gs_decode_emit_lane(struct gs_decoder *decoder, gs_lane_func *func, uint32_t dst,
				    unsigned int dst_width);
uint32_t gs_decode_fixed(struct gs_decoder *decoder, enum gs_fixed_kind kind, unsigned int width,
			 int id, unsigned int dim, int64_t value);
/* Lane bytes of a register or a type: 4 or 8. */
unsigned int gs_decode_reg_width(const struct gs_decoder *decoder, int32_t reg);
unsigned int gs_lane_width(enum gs_type type);
/* The operand's slot, which has the type's lane width; else the decoder fails. */
uint32_t gs_decode_source(struct gs_decoder *decoder, const struct gs_operand *operand,
			  enum gs_type type);
uint32_t gs_decode_result(struct gs_decoder *decoder, const struct gs_operand *operand,
			  enum gs_type type);
/* Operand k of the instruction; fails if there is none. */
const struct gs_operand *gs_decode_operand(struct gs_decoder *decoder, unsigned int k);
/* Signs removed: for operations that do not care. */
enum gs_type gs_type_unsigned(enum gs_type type);

/* Each decodes decoder->insn if it is of its kind, else returns false. */
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

/* Operands 1.. of the given types to operand 0; rounding modes and saturation apply. */
void gs_decode_plain(struct gs_decoder *decoder, enum gs_lane_op op, enum gs_type key,
		     enum gs_type result, unsigned int count, const enum gs_type *types);
void gs_decode_rounding(struct gs_decoder *decoder, bool restore);

#endif
