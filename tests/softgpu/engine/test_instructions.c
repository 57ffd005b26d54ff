/* SPDX-License-Identifier: Apache-2.0 */
/* Each instruction in a kernel of its own, on edge values and random ones, against C. */
#include "common.h"
#include "instructions.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 256u
#define BLOCKS 24u
#define COUNT (THREADS * BLOCKS)
#define OPERANDS 4

static const uint64_t integers[] = {
	0,
	1,
	2,
	3,
	7,
	8,
	31,
	32,
	33,
	63,
	64,
	100,
	127,
	128,
	255,
	256,
	0x7fff,
	0x8000,
	0xffff,
	0x10000,
	0x7fffffff,
	0x80000000,
	0xfffffffe,
	0xffffffff,
	0x100000000,
	0x7fffffffffffffff,
	0x8000000000000000,
	0xffffffffffffffff,
	0x8000800080008000,
	0x0123456789abcdef,
};

static const double reals[] = {
	0.0,   -0.0,  1.0,           -1.0,      0.5,    -0.5,    1.5,      2.5,  -2.5,
	0.1,   3.0,   1e-3,          255.0,     256.5,  65504.0, 65520.0,  1e-8, -6e-8,
	1e10,  -1e10, 2.147483647e9, 4.3e9,     9.3e18, -9.3e18, 1.9e19,   1e30, -1e38,
	1e-38, 1e-44, INFINITY,      -INFINITY, NAN,    127.0,   0.999999, 88.0, 1e300,
};

static uint32_t random_state = 12345;

static uint64_t
next_random(void)
{
	uint64_t value = 0;

	for (int i = 0; i < 3; i++) {
		random_state = random_state * 1664525u + 1013904223u;
		value = value << 22 ^ random_state >> 8;
	}
	return value;
}

static uint64_t
get_bits(char letter, double value)
{
	float narrow = (float)value;
	uint64_t bits = 0;

	if (letter == 'g')
		memcpy(&bits, &value, sizeof(value));
	else
		memcpy(&bits, &narrow, sizeof(narrow));
	return bits;
}

static uint64_t
random_real(char letter)
{
	int exponent = (int)(next_random() % 80) - 40;
	double value = ldexp((double)(next_random() & 0xffffff) / 0x1p24, exponent);

	if (letter == 'g' && next_random() % 2)
		value += (double)(next_random() & 0xffffff) * 0x1p-60;
	return get_bits(letter, next_random() % 2 ? value : -value);
}

static uint64_t
choose(char letter)
{
	uint64_t pick = next_random();

	switch (letter) {
	case 'f':
	case 'g':
		if (pick % 3)
			return get_bits(letter,
					reals[pick / 3 % (sizeof(reals) / sizeof(reals[0]))]);
		return random_real(letter);
	case 'p':
		return pick & 1;
	case 'e':
	case 'x':
		return pick;
	default:
		if (pick % 2)
			return integers[pick / 2 % (sizeof(integers) / sizeof(integers[0]))];
		return next_random() >> (pick / 2 % 60);
	}
}

static const char *
get_register(char letter)
{
	switch (letter) {
	case 'h':
	case 'e':
		return "%h";
	case 'w':
	case 'x':
		return "%w";
	case 'f':
		return "%f";
	case 'g':
		return "%g";
	case 'p':
		return "%p";
	default:
		return "%l";
	}
}

/* From a 64-bit register to the operand's kind. */
static int
write_load(char *text, size_t size, char letter, int k)
{
	const char *reg = get_register(letter);
	int n = snprintf(text, size, "ld.global.u64 %%v%d, [%%in+%d];\n", k, k * 8);

	text += n;
	size -= (size_t)n;
	switch (letter) {
	case 'p':
		return n + snprintf(text, size, "setp.ne.u64 %s%d, %%v%d, 0;\n", reg, k, k);
	case 'l':
	case 'g':
		return n + snprintf(text, size, "mov.b64 %s%d, %%v%d;\n", reg, k, k);
	case 'w':
	case 'x':
	case 'f':
		return n + snprintf(text, size, "cvt.u32.u64 %%t, %%v%d; mov.b32 %s%d, %%t;\n", k,
				    reg, k);
	default:
		return n + snprintf(text, size, "cvt.u16.u64 %s%d, %%v%d;\n", reg, k, k);
	}
}

static int
write_store(char *text, size_t size, char letter)
{
	static const char end[] = "st.global.u64 [%out], %v9;\nret;\n}\n";
	const char *reg = get_register(letter);

	switch (letter) {
	case 'p':
		return snprintf(text, size, "selp.u64 %%v9, 1, 0, %s9;\n%s", reg, end);
	case 'l':
	case 'g':
		return snprintf(text, size, "mov.b64 %%v9, %s9;\n%s", reg, end);
	case 'w':
	case 'x':
	case 'f':
		return snprintf(text, size, "mov.b32 %%t, %s9; cvt.u64.u32 %%v9, %%t;\n%s", reg,
				end);
	default:
		return snprintf(text, size, "cvt.u64.u16 %%v9, %s9;\n%s", reg, end);
	}
}

static int
write_instruction(char *text, size_t size, const struct instruction *instruction)
{
	size_t n = 0;

	for (const char *s = instruction->text; *s && n + 32 < size; s++) {
		if (*s != '%') {
			text[n++] = *s;
			continue;
		}
		s++;
		if (*s == 'd')
			n += (size_t)snprintf(text + n, size - n, "%s9",
					      get_register(instruction->operands[0]));
		else
			n += (size_t)snprintf(text + n, size - n, "%s%c",
					      get_register(instruction->operands[*s - '0' + 1]),
					      *s);
	}
	return (int)n + snprintf(text + n, size - n, ";\n");
}

static void
write_kernel(char *text, size_t size, const struct instruction *instruction)
{
	static const char head[] =
		".version 8.6\n.target sm_90\n.address_size 64\n"
		".visible .entry k(.param .u64 p_in, .param .u64 p_out) {\n"
		".reg .pred %p<10>; .reg .b16 %h<10>; .reg .b32 %w<10>; .reg .f32 %f<10>;\n"
		".reg .f64 %g<10>; .reg .b64 %l<10>; .reg .b64 %v<10>; .reg .b64 %in, %out, %at;\n"
		".reg .b32 %t, %u;\n"
		"mov.u32 %t, %ctaid.x; mov.u32 %u, %ntid.x; mul.lo.u32 %t, %t, %u;\n"
		"mov.u32 %u, %tid.x; add.u32 %t, %t, %u;\n"
		"ld.param.u64 %in, [p_in]; ld.param.u64 %out, [p_out];\n"
		"mul.wide.u32 %at, %t, 32; add.u64 %in, %in, %at;\n"
		"mul.wide.u32 %at, %t, 8; add.u64 %out, %out, %at;\n";
	int n = snprintf(text, size, "%s", head);

	for (int k = 0; instruction->operands[k + 1]; k++)
		n += write_load(text + n, size - (size_t)n, instruction->operands[k + 1], k);
	n += write_instruction(text + n, size - (size_t)n, instruction);
	write_store(text + n, size - (size_t)n, instruction->operands[0]);
}

static uint64_t
get_mask(char letter)
{
	switch (letter) {
	case 'h':
	case 'e':
		return 0xffff;
	case 'l':
	case 'g':
		return UINT64_MAX;
	case 'p':
		return 1;
	default:
		return 0xffffffff;
	}
}

static bool
is_nan(char letter, uint64_t bits)
{
	switch (letter) {
	case 'f':
		return (bits & 0x7fffffff) > 0x7f800000;
	case 'g':
		return (bits & INT64_MAX) > 0x7ff0000000000000;
	case 'e':
		return (bits & 0x7fff) > 0x7c00;
	default:
		return false;
	}
}

static bool
is_close(const struct instruction *instruction, uint64_t got, uint64_t want)
{
	char letter = instruction->operands[0];

	if (letter == 'x')
		return (is_nan('e', want) ? is_nan('e', got) : (got & 0xffff) == (want & 0xffff)) &&
		       (is_nan('e', want >> 16) ? is_nan('e', got >> 16) : got >> 16 == want >> 16);
	if (is_nan(letter, want))
		return is_nan(letter, got);
	if (got == want)
		return true;
	return (got > want ? got - want : want - got) <= instruction->ulps;
}

static void
compare(const struct instruction *instruction, const uint64_t *in, const uint64_t *out)
{
	uint64_t mask = get_mask(instruction->operands[0]);

	for (unsigned int i = 0; i < COUNT; i++) {
		const uint64_t *v = in + i * OPERANDS;
		uint64_t want = instruction->want(v[0], v[1], v[2], v[3]) & mask;

		if (!is_close(instruction, out[i], want))
			fail_msg("%s: of 0x%" PRIx64 ", 0x%" PRIx64 ", 0x%" PRIx64 ", 0x%" PRIx64
				 ": 0x%" PRIx64 " instead of 0x%" PRIx64,
				 instruction->text, v[0], v[1], v[2], v[3], out[i], want);
	}
}

/* Operands are cut to their kind here, so that both sides start from the same. */
static void
try_instruction(const struct instruction *instruction)
{
	uint64_t *in = gs_test_memory(COUNT * OPERANDS * sizeof(*in));
	uint64_t *out = gs_test_memory(COUNT * sizeof(*out));
	const uint64_t *params[2] = { in, out };
	struct gs_module *module;
	char text[4096];

	for (unsigned int i = 0; i < COUNT; i++) {
		for (size_t k = 0; k + 1 < strlen(instruction->operands); k++) {
			char letter = instruction->operands[k + 1];

			in[i * OPERANDS + k] = choose(letter) & get_mask(letter);
		}
	}
	write_kernel(text, sizeof(text), instruction);
	module = gs_test_load_text(text);
	gs_test_run(module, &(struct gs_test_launch){ .kernel = "k",
						      .blocks = BLOCKS,
						      .threads = THREADS,
						      .params = params,
						      .params_size = sizeof(params) });
	compare(instruction, in, out);
	gs_module_unload(module);
}

static void
try_all(const struct instruction *instructions, size_t count)
{
	void *state = NULL;

	for (size_t i = 0; i < count; i++) {
		try_instruction(&instructions[i]);
		gs_test_setup(&state);
	}
}

TEST(integer_instructions_compute_what_c_does)
{
	try_all(integer_instructions, integer_instruction_count);
}

TEST(float_instructions_compute_what_c_does)
{
	try_all(float_instructions, float_instruction_count);
}

int
main(void)
{
	if (gs_engine_init(NULL) != GS_OK) {
		puts("1..0 # SKIP this CPU does not have the instruction set");
		return 0;
	}
	return unit_tests_run(NULL, NULL);
}
