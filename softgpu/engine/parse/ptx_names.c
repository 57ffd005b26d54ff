/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/engine/parse/parser.h"
#include "softgpu/engine/parse/ptx.h"

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

static const char *const specials[GS_SPECIAL_COUNT] = {
	[GS_SPECIAL_TID] = "tid",
	[GS_SPECIAL_NTID] = "ntid",
	[GS_SPECIAL_CTAID] = "ctaid",
	[GS_SPECIAL_NCTAID] = "nctaid",
	[GS_SPECIAL_LANEID] = "laneid",
	[GS_SPECIAL_WARPID] = "warpid",
	[GS_SPECIAL_NWARPID] = "nwarpid",
	[GS_SPECIAL_SMID] = "smid",
	[GS_SPECIAL_NSMID] = "nsmid",
	[GS_SPECIAL_GRIDID] = "gridid",
	[GS_SPECIAL_CLOCK] = "clock",
	[GS_SPECIAL_CLOCK_HI] = "clock_hi",
	[GS_SPECIAL_CLOCK64] = "clock64",
	[GS_SPECIAL_GLOBALTIMER] = "globaltimer",
	[GS_SPECIAL_GLOBALTIMER_LO] = "globaltimer_lo",
	[GS_SPECIAL_GLOBALTIMER_HI] = "globaltimer_hi",
	[GS_SPECIAL_LANEMASK_EQ] = "lanemask_eq",
	[GS_SPECIAL_LANEMASK_LE] = "lanemask_le",
	[GS_SPECIAL_LANEMASK_LT] = "lanemask_lt",
	[GS_SPECIAL_LANEMASK_GE] = "lanemask_ge",
	[GS_SPECIAL_LANEMASK_GT] = "lanemask_gt",
	[GS_SPECIAL_DYNAMIC_SMEM_SIZE] = "dynamic_smem_size",
	[GS_SPECIAL_TOTAL_SMEM_SIZE] = "total_smem_size",
	[GS_SPECIAL_ENVREG] = "envreg",
	[GS_SPECIAL_CURRENT_GRAPH_EXEC] = "current_graph_exec",
	[GS_SPECIAL_CLUSTERID] = "clusterid",
	[GS_SPECIAL_NCLUSTERID] = "nclusterid",
	[GS_SPECIAL_CLUSTER_CTAID] = "cluster_ctaid",
	[GS_SPECIAL_CLUSTER_NCTAID] = "cluster_nctaid",
	[GS_SPECIAL_CLUSTER_CTARANK] = "cluster_ctarank",
	[GS_SPECIAL_CLUSTER_NCTARANK] = "cluster_nctarank",
	[GS_SPECIAL_IS_EXPLICIT_CLUSTER] = "is_explicit_cluster",
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

int
gs_special_named(const char *text, size_t len)
{
	for (int i = 0; i < GS_SPECIAL_COUNT; i++) {
		if (i != GS_SPECIAL_ENVREG && strlen(specials[i]) == len &&
		    memcmp(specials[i], text, len) == 0)
			return i;
	}
	return -1;
}

static bool
is_among(const char *const *words, size_t count, const char *text, size_t len)
{
	for (size_t i = 0; i < count; i++) {
		if (strlen(words[i]) == len && memcmp(words[i], text, len) == 0)
			return true;
	}
	return false;
}

bool
gs_op_is_unsupported(const char *text, size_t len)
{
	static const char *const words[] = {
		"alloca",       "applypriority", "clusterlaunchcontrol",
		"createpolicy", "getctarank",    "istypep",
		"movmatrix",    "multimem",      "setmaxnreg",
		"stackrestore", "stacksave",     "stmatrix",
		"tcgen05",      "tensormap",     "vabsdiff",
		"vabsdiff2",    "vadd",          "vadd2",
		"vadd4",        "vavrg2",        "vavrg4",
		"vmad",         "vmax",          "vmax2",
		"vmax4",        "vmin",          "vmin2",
		"vmin4",        "vset",          "vset2",
		"vset4",        "vsub",          "vsub2",
		"vsub4",        "wgmma",
	};

	return is_among(words, sizeof(words) / sizeof(words[0]), text, len);
}

bool
gs_special_is_unsupported(const char *text, size_t len)
{
	static const char *const words[] = {
		"aggr_smem_size",           "reserved_smem_offset_0",
		"reserved_smem_offset_1",   "reserved_smem_offset_begin",
		"reserved_smem_offset_cap", "reserved_smem_offset_end",
	};
	size_t envreg = strlen("envreg");

	return (len > envreg && memcmp(text, "envreg", envreg) == 0) ||
	       (len > 2 && memcmp(text, "pm", 2) == 0) ||
	       is_among(words, sizeof(words) / sizeof(words[0]), text, len);
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
