/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parsed PTX module: output of the parser and input of the decoder.
 *
 * The text comes from programs and is untrusted: every count has a limit (GS_PTX_MAX_...), and
 * every error names a line.
 * Ownership: a struct gs_ptx owns its pool, in which everything else is allocated; gs_ptx_destroy()
 * frees it.
 * Threads: immutable after parsing; any thread may read.
 */
#ifndef GS_PTX_H
#define GS_PTX_H

#include "softgpu/engine/engine.h"
#include "softgpu/engine/parse/pool.h"

enum gs_type {
	GS_TYPE_NONE,
	GS_TYPE_PRED,
	GS_TYPE_B8,
	GS_TYPE_U8,
	GS_TYPE_S8,
	GS_TYPE_B16,
	GS_TYPE_U16,
	GS_TYPE_S16,
	GS_TYPE_F16,
	GS_TYPE_BF16,
	GS_TYPE_B32,
	GS_TYPE_U32,
	GS_TYPE_S32,
	GS_TYPE_F32,
	GS_TYPE_F16X2,
	GS_TYPE_BF16X2,
	GS_TYPE_B64,
	GS_TYPE_U64,
	GS_TYPE_S64,
	GS_TYPE_F64,
	GS_TYPE_B128,
	GS_TYPE_COUNT
};

enum gs_space {
	GS_SPACE_GENERIC,
	GS_SPACE_GLOBAL,
	GS_SPACE_SHARED,
	GS_SPACE_LOCAL,
	GS_SPACE_CONST,
	GS_SPACE_PARAM,
};

/* Opcodes in alphabetical order, for binary search. */
#define GS_OPS(X)                                                                                  \
	X(abs)                                                                                     \
	X(activemask)                                                                              \
	X(add)                                                                                     \
	X(addc)                                                                                    \
	X(and)                                                                                     \
	X(atom)                                                                                    \
	X(bar)                                                                                     \
	X(barrier)                                                                                 \
	X(bfe)                                                                                     \
	X(bfi)                                                                                     \
	X(bfind)                                                                                   \
	X(bmsk)                                                                                    \
	X(bra)                                                                                     \
	X(brev)                                                                                    \
	X(brkpt)                                                                                   \
	X(brx)                                                                                     \
	X(call)                                                                                    \
	X(clz)                                                                                     \
	X(cnot)                                                                                    \
	X(copysign)                                                                                \
	X(cos)                                                                                     \
	X(cp)                                                                                      \
	X(cvt)                                                                                     \
	X(cvta)                                                                                    \
	X(discard)                                                                                 \
	X(div)                                                                                     \
	X(dp2a)                                                                                    \
	X(dp4a)                                                                                    \
	X(elect)                                                                                   \
	X(ex2)                                                                                     \
	X(exit)                                                                                    \
	X(fence)                                                                                   \
	X(fma)                                                                                     \
	X(fns)                                                                                     \
	X(griddepcontrol)                                                                          \
	X(isspacep)                                                                                \
	X(ld)                                                                                      \
	X(ldmatrix)                                                                                \
	X(ldu)                                                                                     \
	X(lg2)                                                                                     \
	X(lop3)                                                                                    \
	X(mad)                                                                                     \
	X(mad24)                                                                                   \
	X(madc)                                                                                    \
	X(mapa)                                                                                    \
	X(match)                                                                                   \
	X(max)                                                                                     \
	X(mbarrier)                                                                                \
	X(membar)                                                                                  \
	X(min)                                                                                     \
	X(mma)                                                                                     \
	X(mov)                                                                                     \
	X(mul)                                                                                     \
	X(mul24)                                                                                   \
	X(nanosleep)                                                                               \
	X(neg)                                                                                     \
	X(not )                                                                                    \
	X(or)                                                                                      \
	X(pmevent)                                                                                 \
	X(popc)                                                                                    \
	X(prefetch)                                                                                \
	X(prefetchu)                                                                               \
	X(prmt)                                                                                    \
	X(rcp)                                                                                     \
	X(red)                                                                                     \
	X(redux)                                                                                   \
	X(rem)                                                                                     \
	X(ret)                                                                                     \
	X(rsqrt)                                                                                   \
	X(sad)                                                                                     \
	X(selp)                                                                                    \
	X(set)                                                                                     \
	X(setp)                                                                                    \
	X(shf)                                                                                     \
	X(shfl)                                                                                    \
	X(shl)                                                                                     \
	X(shr)                                                                                     \
	X(sin)                                                                                     \
	X(slct)                                                                                    \
	X(sqrt)                                                                                    \
	X(st)                                                                                      \
	X(sub)                                                                                     \
	X(subc)                                                                                    \
	X(suld)                                                                                    \
	X(suq)                                                                                     \
	X(sured)                                                                                   \
	X(sust)                                                                                    \
	X(szext)                                                                                   \
	X(tanh)                                                                                    \
	X(testp)                                                                                   \
	X(tex)                                                                                     \
	X(tld4)                                                                                    \
	X(trap)                                                                                    \
	X(txq)                                                                                     \
	X(vabsdiff4)                                                                               \
	X(vote)                                                                                    \
	X(vshl)                                                                                    \
	X(vshr)                                                                                    \
	X(wmma)                                                                                    \
	X(xor)

enum gs_op {
#define X(name) GS_OP_##name,
	GS_OPS(X)
#undef X
	GS_OP_COUNT
};

/* Comparisons. The PTX spellings lo, ls, hi, hs are the unsigned lt, le, gt, ge. */
enum gs_compare {
	GS_CMP_EQ,
	GS_CMP_NE,
	GS_CMP_LT,
	GS_CMP_LE,
	GS_CMP_GT,
	GS_CMP_GE,
	GS_CMP_EQU,
	GS_CMP_NEU,
	GS_CMP_LTU,
	GS_CMP_LEU,
	GS_CMP_GTU,
	GS_CMP_GEU,
	GS_CMP_NUM,
	GS_CMP_NAN,
};

enum gs_bool_op {
	GS_BOOL_NONE,
	GS_BOOL_AND,
	GS_BOOL_OR,
	GS_BOOL_XOR,
	GS_BOOL_POPC
};

enum gs_special {
	GS_SPECIAL_TID,
	GS_SPECIAL_NTID,
	GS_SPECIAL_CTAID,
	GS_SPECIAL_NCTAID,
	GS_SPECIAL_LANEID,
	GS_SPECIAL_WARPID,
	GS_SPECIAL_NWARPID,
	GS_SPECIAL_SMID,
	GS_SPECIAL_NSMID,
	GS_SPECIAL_GRIDID,
	GS_SPECIAL_CLOCK,
	GS_SPECIAL_CLOCK_HI,
	GS_SPECIAL_CLOCK64,
	GS_SPECIAL_GLOBALTIMER,
	GS_SPECIAL_GLOBALTIMER_LO,
	GS_SPECIAL_GLOBALTIMER_HI,
	GS_SPECIAL_LANEMASK_EQ,
	GS_SPECIAL_LANEMASK_LE,
	GS_SPECIAL_LANEMASK_LT,
	GS_SPECIAL_LANEMASK_GE,
	GS_SPECIAL_LANEMASK_GT,
	GS_SPECIAL_DYNAMIC_SMEM_SIZE,
	GS_SPECIAL_TOTAL_SMEM_SIZE,
	GS_SPECIAL_ENVREG,
	GS_SPECIAL_CURRENT_GRAPH_EXEC,
	GS_SPECIAL_CLUSTERID,
	GS_SPECIAL_NCLUSTERID,
	GS_SPECIAL_CLUSTER_CTAID,
	GS_SPECIAL_CLUSTER_NCTAID,
	GS_SPECIAL_CLUSTER_CTARANK,
	GS_SPECIAL_CLUSTER_NCTARANK,
	GS_SPECIAL_IS_EXPLICIT_CLUSTER,
	GS_SPECIAL_COUNT,
	GS_SPECIAL_SHARED_BASE, /* not in PTX: start of the block's shared window */
};

enum gs_operand_kind {
	GS_OPERAND_NONE,
	GS_OPERAND_REG,
	GS_OPERAND_IMM,
	GS_OPERAND_SYMBOL,
	GS_OPERAND_SPECIAL,
	GS_OPERAND_VECTOR,
	GS_OPERAND_ADDRESS,
	GS_OPERAND_LABEL,
	GS_OPERAND_FUNCTION,
	GS_OPERAND_SINK, /* "_": an unused result */
};

struct gs_operand {
	uint8_t kind;
	bool negated;       /* written with "!" */
	uint8_t count;      /* number of elements of a vector */
	uint8_t dim;        /* component of a special register, or number of an envreg */
	uint8_t float_size; /* bytes of an immediate written as 0f or 0d: 4 or 8; 0: an integer */
	int32_t reg;        /* index of the register, special register or label; of an address: base
			       register, or -1 */
	int32_t symbol;     /* index of the symbol or function; of an address: base symbol, or -1 */
	int64_t imm;        /* value of an immediate, or offset of an address */
	const struct gs_operand *elements; /* of a vector */
};

enum gs_mul_mode {
	GS_MUL_NONE,
	GS_MUL_LO,
	GS_MUL_HI,
	GS_MUL_WIDE
};

enum gs_rounding {
	GS_ROUND_NONE,
	GS_ROUND_NEAREST,
	GS_ROUND_ZERO,
	GS_ROUND_DOWN,
	GS_ROUND_UP,
	/* Rounding to an integral value (.rni and others). */
	GS_ROUND_NEAREST_INT,
	GS_ROUND_ZERO_INT,
	GS_ROUND_DOWN_INT,
	GS_ROUND_UP_INT,
};

/* Modifiers that select one of several operations of an opcode, for example atom.add. */
enum gs_sub {
	GS_SUB_NONE,
	GS_SUB_ADD,
	GS_SUB_MIN,
	GS_SUB_MAX,
	GS_SUB_INC,
	GS_SUB_DEC,
	GS_SUB_CAS,
	GS_SUB_EXCH,
	GS_SUB_AND,
	GS_SUB_OR,
	GS_SUB_XOR,
	GS_SUB_ARRIVE,
	GS_SUB_RED,
	GS_SUB_WARP,
	GS_SUB_IDX,
	GS_SUB_UP,
	GS_SUB_DOWN,
	GS_SUB_BFLY,
	GS_SUB_ALL,
	GS_SUB_ANY,
	GS_SUB_UNI,
	GS_SUB_BALLOT,
	GS_SUB_SHIFTAMT,
	GS_SUB_TO,
	GS_SUB_LEFT,
	GS_SUB_RIGHT,
	GS_SUB_INIT,
	GS_SUB_INVAL,
	GS_SUB_ARRIVE_DROP,
	GS_SUB_TEST_WAIT,
	GS_SUB_PENDING_COUNT,
};

/* An instruction. Members for modifiers are 0 (..._NONE) if the instruction has none. */
struct gs_insn {
	uint16_t op;
	uint8_t type[3]; /* enum gs_type, in order of appearance */
	uint8_t type_count;
	uint8_t compare; /* enum gs_compare */
	uint8_t bool_op;
	uint8_t space;
	uint8_t vector; /* number of elements of .v2 or .v4; 0: not a vector */
	uint8_t mul_mode;
	uint8_t rounding;
	uint8_t sub;
	bool saturate;
	bool carry_out; /* has .cc */
	bool clamp;     /* has .clamp, as opposed to .wrap */
	bool pair;      /* whether the first two operands were written as d|p */
	bool pred_negated;
	bool unknown_modifier;
	uint8_t operand_count;
	int32_t pred; /* guard predicate's register, or -1 */
	const struct gs_operand *operands;
	const char *spelling; /* opcode and modifiers; not NUL-terminated */
	uint32_t spelling_len;
	int32_t line;
};

/* A value in a variable's initializer that is an address, or some bytes of one. */
struct gs_relocation {
	struct gs_relocation *next;
	uint64_t at;      /* offset in the variable */
	const char *name; /* symbol or function that the address is of */
	int32_t symbol;   /* index of the symbol, or -1; set when parsing is complete */
	int32_t function; /* index of the function, or -1; set when parsing is complete */
	int64_t addend;
	int32_t line;
	uint8_t size;  /* bytes of the value stored */
	uint8_t shift; /* right shift of the address in bits, before it is truncated to `size` */
};

/* Kind of a texture, surface or sampler reference. The driver writes an ID to the variable. */
enum gs_reference {
	GS_REFERENCE_NONE,
	GS_REFERENCE_TEXTURE,
	GS_REFERENCE_SURFACE,
	GS_REFERENCE_SAMPLER,
};

/* A variable or parameter. */
struct gs_symbol {
	const char *name;
	uint8_t space;
	uint8_t reference; /* enum gs_reference */
	uint32_t align;
	bool is_extern;
	bool is_dynamic;      /* extern .shared a[], whose size is set by the launch */
	bool is_launch_param; /* parameter of an .entry, not of a .func */
	bool is_function_local;
	bool is_linkable;   /* other texts may refer to it: .visible, .weak or .extern */
	int32_t definition; /* index of the symbol that defines this extern one, or -1 */
	uint64_t size;      /* bytes */
	uint64_t offset;    /* of parameters and local variables: offset in their frame */
	uint8_t *init;      /* initial value, `size` bytes; NULL: zeros */
	struct gs_relocation *relocations;
};

struct gs_ptx_function {
	const char *name;
	bool is_entry;
	bool has_body;
	bool is_linkable;
	int32_t line;
	struct gs_insn *insns;
	uint32_t insn_count;
	uint8_t *reg_types; /* enum gs_type, per register */
	uint32_t reg_count;
	int32_t *label_at; /* per label: index of the instruction that follows; -1: the label has no
			      position */
	uint32_t label_count;
	int32_t **branch_targets; /* per label: labels of a .branchtargets, terminated by -1, for
				     brx.idx; otherwise NULL */
	int32_t *params;          /* indices of the parameters' symbols; likewise `returns` */
	uint32_t param_count;
	int32_t *returns;
	uint32_t return_count;
	uint64_t param_bytes; /* size of the packed parameters */
	uint64_t local_bytes;
	uint32_t max_threads; /* threads per block; required_block is all 0 if not required */
	uint32_t required_block[3];
	/* Reason for which the device cannot run the function although it is valid PTX; it then has
	 * a body without instructions. NULL: accepted by the parser. */
	const char *unsupported;
};

struct gs_ptx {
	struct gs_pool pool;
	const char *text; /* copy of the text, to which names and spellings point */
	size_t size;
	struct gs_symbol *symbols;
	uint32_t symbol_count;
	struct gs_ptx_function *functions;
	uint32_t function_count;
	int version; /* 90: PTX 9.0 */
	int target;  /* 75: .target sm_75 */
};

#define GS_PTX_MAX_BYTES (256u << 20)
#define GS_PTX_MAX_REGS (1u << 20)
#define GS_PTX_MAX_INSNS (1u << 22)
#define GS_PTX_MAX_SYMBOLS (1u << 20)
#define GS_PTX_MAX_FUNCTIONS (1u << 16)
#define GS_PTX_MAX_LABELS (1u << 20)
#define GS_PTX_MAX_PARAMS 4096u
#define GS_PTX_MAX_PARAM_BYTES 32764u
#define GS_PTX_MAX_VARIABLE (1ull << 36)
#define GS_PTX_MAX_LOCAL (512u << 10) /* per thread, as on a GPU */
#define GS_PTX_MAX_NESTING 64
#define GS_PTX_MAX_VECTOR 16
#define GS_PTX_MAX_OPERANDS 24

/*
 * Parses PTX text, which is copied. Several modules' texts may follow each other, each starting
 * with .version; they are linked. Returns GS_OK and a module in *ptx_p, which gs_ptx_destroy()
 * frees; or GS_INVALID_PTX or GS_OUT_OF_MEMORY, with *ptx_p unchanged. *error is always written.
 */
int gs_ptx_parse(const char *text, size_t size, struct gs_ptx **ptx_p, struct gs_error *error);
/* Frees a module. NULL is allowed. */
void gs_ptx_destroy(struct gs_ptx *ptx);

/* Returns the bytes of a value of the type; 0 for GS_TYPE_NONE. */
unsigned int gs_type_size(enum gs_type type);
bool gs_type_is_float(enum gs_type type);
bool gs_type_is_signed(enum gs_type type);
/* Returns the spelling of an opcode as a static string. */
const char *gs_op_name(enum gs_op op);
/* Returns whether ".<word>" is among the instruction's modifiers. */
bool gs_insn_has(const struct gs_insn *insn, const char *word);

#endif
