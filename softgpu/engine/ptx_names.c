/* SPDX-License-Identifier: Apache-2.0 */
#include "parser.h"
#include "ptx.h"

#include <string.h>

static const struct {
	char name[8];
	uint8_t size;
} types[GS_TYPE_COUNT] = {
	[GS_TYPE_NONE] = { "", 0 },       [GS_TYPE_PRED] = { "pred", 4 },
	[GS_TYPE_B8] = { "b8", 1 },       [GS_TYPE_U8] = { "u8", 1 },
	[GS_TYPE_S8] = { "s8", 1 },       [GS_TYPE_B16] = { "b16", 2 },
	[GS_TYPE_U16] = { "u16", 2 },     [GS_TYPE_S16] = { "s16", 2 },
	[GS_TYPE_F16] = { "f16", 2 },     [GS_TYPE_BF16] = { "bf16", 2 },
	[GS_TYPE_B32] = { "b32", 4 },     [GS_TYPE_U32] = { "u32", 4 },
	[GS_TYPE_S32] = { "s32", 4 },     [GS_TYPE_F32] = { "f32", 4 },
	[GS_TYPE_F16X2] = { "f16x2", 4 }, [GS_TYPE_BF16X2] = { "bf16x2", 4 },
	[GS_TYPE_B64] = { "b64", 8 },     [GS_TYPE_U64] = { "u64", 8 },
	[GS_TYPE_S64] = { "s64", 8 },     [GS_TYPE_F64] = { "f64", 8 },
	[GS_TYPE_B128] = { "b128", 16 },
};

static const char *const op_names[GS_OP_COUNT] = {
#define X(name) #name,
	GS_OPS(X)
#undef X
};

unsigned int
gs_type_size(enum gs_type type)
{
	return types[type].size;
}

bool
gs_type_is_float(enum gs_type type)
{
	return type == GS_TYPE_F16 || type == GS_TYPE_BF16 || type == GS_TYPE_F32 ||
	       type == GS_TYPE_F64 || type == GS_TYPE_F16X2 || type == GS_TYPE_BF16X2;
}

bool
gs_type_is_signed(enum gs_type type)
{
	return type == GS_TYPE_S8 || type == GS_TYPE_S16 || type == GS_TYPE_S32 ||
	       type == GS_TYPE_S64;
}

enum gs_type
gs_type_named(const char *text, size_t len)
{
	for (int i = GS_TYPE_PRED; i < GS_TYPE_COUNT; i++) {
		if (strlen(types[i].name) == len && memcmp(types[i].name, text, len) == 0)
			return (enum gs_type)i;
	}
	return GS_TYPE_NONE;
}

const char *
gs_op_name(enum gs_op op)
{
	return op < GS_OP_COUNT ? op_names[op] : "?";
}

bool
gs_insn_has(const struct gs_insn *insn, const char *word)
{
	size_t len = strlen(word);
	const char *s = insn->spelling;
	const char *end = s + insn->spelling_len;

	while (s < end) {
		const char *dot = memchr(s, '.', (size_t)(end - s));
		const char *stop = dot ? dot : end;

		if ((size_t)(stop - s) == len && memcmp(s, word, len) == 0)
			return true;
		s = stop + 1;
	}
	return false;
}
