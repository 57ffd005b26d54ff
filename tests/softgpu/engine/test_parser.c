/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of modules, and the engine's messages about invalid ones. */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
#define KERNEL(body)                                                                               \
	HEAD ".visible .entry k(.param .u64 p, .param .u32 n)\n{\n.reg .b32 %r<4>;\n"              \
	     ".reg .b64 %rd<4>;\n.reg .pred %p<2>;\n.reg .f32 %f<4>;\n" body "\nret;\n}\n"

TEST(an_unknown_instruction_is_named_with_its_line)
{
	gs_test_refuse(KERNEL("wobble.f32 %f1, %f2;"), "line 10: unknown instruction 'wobble'");
}

TEST(an_unsupported_instruction_is_named_with_its_line)
{
	gs_test_unsupported(KERNEL("mov.u32 %r1, 5;\nwmma.load.a.sync %r1, [%rd1];"), "line 11: ");
	gs_test_unsupported(KERNEL("mov.u32 %r1, 5;\nwmma.load.a.sync %r1, [%rd1];"),
			    "'wmma.load.a.sync'");
	gs_test_unsupported(KERNEL("add.quick.f32 %f1, %f2, %f3;"), "'add.quick.f32'");
	gs_test_unsupported(KERNEL("ld.global.f32 %f1, [%rd1, {%r1}];"),
			    "line 10: instruction 'ld' with texture operands is not supported");
	gs_test_unsupported(KERNEL(".reg .f64 %d<3>;\nsin.approx.f64 %d1, %d2;"),
			    "'sin.approx.f64'");
	gs_test_unsupported(KERNEL("wgmma.fence.sync.aligned;"), "'wgmma'");
	gs_test_unsupported(KERNEL("mov.u32 %r1, %pm0;"), "register '%pm0'");
	gs_test_unsupported(KERNEL(".reg .b128 %q;"), "registers of this type");
	gs_test_unsupported(HEAD ".extern .func (.param .b32 r) cudaDeviceSynchronize();\n"
				 ".visible .entry k() {\n.param .b32 r;\n"
				 "call (r), cudaDeviceSynchronize;\n}",
			    "CUDA's runtime");
}

/* Kernel `good` stores what it finds after a call, through a pointer or not. */
#define BESIDE(bad)                                                                                \
	HEAD ".func (.param .b32 r) bad() {\n.reg .b32 %r<4>;\n{ { " bad " } }\n"                  \
	     "st.param.b32 [r], %r1;\nret;\n}\n"                                                   \
	     ".func (.param .b32 r) fine() {\n.reg .b32 %r<4>;\nmov.u32 %r1, 7;\n"                 \
	     "st.param.b32 [r], %r1;\nret;\n}\n"                                                   \
	     ".func (.param .b32 r) between() {\n.reg .b32 %r<4>;\n.param .b32 a;\n"               \
	     "call (a), bad;\nld.param.b32 %r1, [a];\nst.param.b32 [r], %r1;\nret;\n}\n"           \
	     ".global .u64 table[2] = {bad, fine};\n"                                              \
	     ".visible .entry k() {\n.param .b32 a;\ncall (a), between;\nret;\n}\n"                \
	     ".visible .entry good(.param .u64 p, .param .u32 n) {\n"                              \
	     ".reg .b64 %rd<6>;\n.reg .b32 %r<4>;\n.param .b32 a;\n"                               \
	     "ld.param.u64 %rd1, [p];\nld.param.u32 %r1, [n];\nmul.wide.u32 %rd2, %r1, 8;\n"       \
	     "mov.u64 %rd3, table;\nadd.u64 %rd4, %rd3, %rd2;\nld.global.u64 %rd5, [%rd4];\n"      \
	     "P: .callprototype (.param .b32 _) _ ();\n"                                           \
	     "call (a), %rd5, (), P;\nld.param.b32 %r2, [a];\nst.global.u32 [%rd1], %r2;\n"        \
	     "ret;\n}\n"

static int
run_good(const struct gs_module *module, uint32_t *word, uint32_t which)
{
	const struct {
		uint32_t *word;
		uint32_t which;
	} params = { word, which };
	const struct gs_test_launch launch = {
		.kernel = "good", .blocks = 1, .threads = 32, .params = &params, .params_size = 12
	};
	struct gs_error error;

	return gs_test_launch(module, &launch, &error);
}

TEST(what_cannot_run_spoils_its_callers_only)
{
	static const char *const texts[] = { BESIDE("wgmma.commit_group.sync.aligned;"),
					     BESIDE("add.quick.s32 %r1, %r2, %r3;"),
					     BESIDE("dp4a.quick.u32 %r1, %r2, %r3, %r1;") };
	uint32_t *word = gs_test_memory(sizeof(*word));

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct gs_module *module;

		gs_test_unsupported(texts[i], "it calls between: it calls bad: line 6: ");
		module = gs_test_load_text(texts[i]);
		*word = 0;
		assert_int_equal(run_good(module, word, 1), GS_OK);
		assert_int_equal(*word, 7);
		*word = 0;
		assert_int_not_equal(run_good(module, word, 0), GS_OK);
		assert_int_equal(*word, 0);
		gs_module_unload(module);
	}
}

TEST(names_that_nothing_declares_are_refused)
{
	gs_test_refuse(KERNEL("mov.u32 %r9, 5;"), "line 10: unknown register '%r9'");
	gs_test_refuse(KERNEL("ld.global.u32 %r1, [nowhere];"), "unknown name 'nowhere'");
	gs_test_refuse(KERNEL("bra $L7;"), "the label is not defined");
	gs_test_refuse(KERNEL("call.uni nowhere;"), "no declared function");
	gs_test_refuse(
		HEAD ".extern .global .u32 far;\n.visible .entry k() { .reg .b32 %r;\n"
		     "ld.global.u32 %r, [far]; }",
		"line 6: function k: instruction 'ld.global.u32': the variable is not defined");
	gs_test_refuse(HEAD ".extern .func far();\n.visible .entry k() {\ncall far;\n}",
		       "the function is not defined");
	gs_test_refuse(HEAD ".global .u64 x = nowhere;", "'nowhere'");
}

TEST(sizes_beyond_the_limits_are_refused)
{
	gs_test_refuse(KERNEL(".shared .b8 s[49153]; mov.u64 %rd1, s;"),
		       "49153 bytes of static shared memory; the maximum is 49152");
	/* Rounded up, or multiplied, in fewer bits these are 0. */
	gs_test_refuse(KERNEL(".shared .b8 s[4294967296]; mov.u64 %rd1, s;"),
		       "4294967296 bytes of static shared memory");
	gs_test_refuse(KERNEL(".shared .b8 s[4294967281]; mov.u64 %rd1, s;"),
		       "4294967281 bytes of static shared memory");
	gs_test_refuse(HEAD ".global .b8 a[68719476736][268435456];", "array too large");
	gs_test_refuse(HEAD ".global .b8 a[4294967296][4294967296];", "array too large");
}

TEST(operands_of_the_wrong_size_are_refused)
{
	gs_test_refuse(KERNEL("add.u32 %r1, %r2, %rd1;"), "wrong size");
	gs_test_refuse(KERNEL("add.u64 %r1, %rd2, %rd1;"), "wrong size");
	gs_test_refuse(KERNEL("ld.global.u64 %r1, [%rd1];"), "wrong size");
	gs_test_refuse(KERNEL("ld.param.u64 %rd1, [n+4];"), "outside the parameters");
	gs_test_refuse(KERNEL("ld.param.u32 %r1, [p-4];"), "outside the parameters");
	gs_test_refuse(KERNEL("add.u32 %r1, %r2;"), "too few operands");
	gs_test_refuse(KERNEL("ld.global.v4.u32 {%r1, %r2}, [%rd1];"), "do not fit");
	gs_test_refuse(KERNEL("@%r1 bra L; L:"), "the guard is no predicate");
}

TEST(textures_have_the_coordinates_of_their_shape)
{
	gs_test_refuse(KERNEL("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f1}, [%rd1, {%f1}];"),
		       "too few coordinates");
	gs_test_refuse(KERNEL("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f1}, [%rd1];"),
		       "too few coordinates");
	gs_test_unsupported(KERNEL("tex.5d.v4.f32.f32 {%f1, %f2, %f3, %f1}, [%rd1, {%f1}];"),
			    "not supported");
	gs_test_refuse(KERNEL("tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f1}, [p, {%f1}];"),
		       "64-bit registers");
	gs_test_refuse(KERNEL("tex.1d.v4.f32.f32 {%f1, %f2, %f3, %rd1}, [%rd1, {%f1}];"),
		       "wrong size");
	gs_test_unsupported(
		KERNEL("tex.1d.v4.f32.f32 {%f1, %f2, %f3, %f1}, [%rd1, {[%rd1, {%f1}]}];"),
		"texture operands is not supported");
	gs_test_refuse(KERNEL("suld.b.2d.b32.trap {%r1}, [%rd1, {%rd1, %r2}];"), "wrong size");
	gs_test_unsupported(KERNEL("suld.b.2d.v4.b64.trap {%rd1, %rd2, %rd3, %rd1}, [%rd1, {%r1, "
				   "%r2}];"),
			    "not supported");
	gs_test_refuse(KERNEL("tex.grad.2d.v4.f32.f32 {%f1, %f2, %f3, %f1}, [%rd1, {%f1, %f2}], "
			      "{%f1}, {%f1, %f2};"),
		       "too few coordinates");
	gs_test_unsupported(KERNEL("sust.p.2d.b32.trap [%rd1, {%r1, %r2}], {%r1};"),
			    "not supported");
}

TEST(what_is_no_ptx_is_refused)
{
	gs_test_refuse("", "this is not PTX");
	gs_test_refuse("int main(void) { return 0; }", "line 1: unexpected 'int'");
	gs_test_refuse("\177ELF", "line 1: ");
	gs_test_refuse(HEAD ".visible .entry k(.param .u64 x", "before the end of the text");
	gs_test_refuse(HEAD ".visible .entry k() { .reg .u32 %r;", "ends inside function k");
	gs_test_refuse(HEAD ".address_size 32\n", "only 64-bit");
	gs_test_refuse(HEAD ".visible .entry k() { ret; }\n.visible .entry k() { ret; }",
		       "defined twice");
}

TEST(limits_are_kept)
{
	static char text[8192];
	size_t n;

	gs_test_refuse(KERNEL(".reg .b32 %x<4000000>;"), "out of range");
	gs_test_refuse(HEAD ".global .u8 x[99999999999999];", "out of range");
	gs_test_refuse(HEAD ".global .u32 x[2] = {1, 2, 3};", "longer than x");
	gs_test_refuse(KERNEL(".local .b8 x[99999999];"), "too much local memory");
	gs_test_refuse(HEAD ".visible .entry k(.param .b8 x[40000]) { ret; }",
		       "bytes of parameters");
	n = (size_t)sprintf(text, "%s.visible .entry k() ", HEAD);
	memset(text + n, '{', 500);
	text[n + 500] = '\0';
	gs_test_refuse(text, "nested too deep");
	n = (size_t)sprintf(text, "%s.global .u32 x[4] = ", HEAD);
	memset(text + n, '{', 5000);
	text[n + 5000] = '\0';
	gs_test_refuse(text, "nested too deep");
}

/* The parser must end, with a result, wherever the text ends or goes wrong. */
TEST(damaged_text_does_no_harm)
{
	const char *folder = getenv("GS_TEST_PTX");
	static char text[1u << 20];
	struct gs_module *module;
	struct gs_error error;
	uint32_t random = 1;
	char path[4096];
	size_t refused = 0;
	size_t size;
	FILE *file;

	snprintf(path, sizeof(path), "%s/torture_plain.ptx", folder);
	file = fopen(path, "rb");
	assert_non_null(file);
	size = fread(text, 1, 1u << 20, file);
	fclose(file);
	for (size_t end = 0; end < size; end += 97) {
		if (gs_module_load(text, end, &module, &error) == GS_OK)
			gs_module_unload(module);
		else
			refused++;
	}
	assert_true(refused > 100);
	for (int i = 0; i < 500; i++) {
		size_t at;
		char saved;

		random = random * 1664525u + 1013904223u;
		at = random % size;
		saved = text[at];
		text[at] = (char)(random >> 24);
		if (gs_module_load(text, size, &module, &error) == GS_OK)
			gs_module_unload(module);
		text[at] = saved;
	}
}

TEST(a_kernel_describes_itself)
{
	struct gs_module *module = gs_test_load_text(
		HEAD ".const .align 4 .b8 c[12];\n"
		     ".shared .align 16 .b8 s[40];\n.extern .shared .align 16 .b8 d[];\n"
		     ".visible .entry k(.param .u8 a, .param .align 16 .b8 b[20], .param .u64 c0)\n"
		     ".reqntid 8, 4\n{ .local .align 8 .b8 l[24];\n .reg .b32 %r<3>;\n"
		     "mov.u32 %r1, s; ld.shared.u32 %r2, [d];\nret; }\n"
		     ".visible .entry other() .maxntid 128 { ret; }\n");
	struct gs_function_info info;

	assert_int_equal(gs_module_function_count(module), 2);
	assert_null(gs_module_function(module, "nothing"));
	gs_function_info(gs_module_function(module, "k"), &info);
	assert_string_equal(info.name, "k");
	assert_ptr_equal(info.module, module);
	assert_int_equal(info.param_count, 3);
	assert_int_equal(info.params[1].offset, 16);
	assert_int_equal(info.params[1].size, 20);
	assert_int_equal(info.params[2].offset, 40);
	assert_int_equal(info.param_bytes, 48);
	assert_int_equal(info.shared_bytes, 40);
	assert_int_equal(info.const_bytes, 12);
	assert_int_equal(info.local_bytes, 32);
	assert_int_equal(info.required_block[0] * 100 + info.required_block[1] * 10 +
				 info.required_block[2],
			 841);
	assert_int_equal(info.max_threads, 32);
	assert_int_equal(info.target, 80);
	assert_int_equal(info.ptx_version, 80);
	gs_function_info(gs_module_function_at(module, 1), &info);
	assert_string_equal(info.name, "other");
	assert_int_equal(info.max_threads, 128);
	assert_int_equal(info.shared_bytes, 0);
	gs_module_unload(module);
}

TEST(uses_of_the_runtime_are_known)
{
	struct gs_module *module = gs_test_load("torture");
	struct gs_function_info info;

	gs_function_info(gs_module_function(module, "prints"), &info);
	assert_true(info.uses_printf);
	assert_false(info.uses_heap);
	gs_function_info(gs_module_function(module, "allocates"), &info);
	assert_true(info.uses_heap);
	gs_function_info(gs_module_function(module, "grid_sync"), &info);
	assert_true(info.uses_grid_sync);
	gs_module_unload(module);
}

/* Inline assembly repeats labels, each in braces of its own. */
TEST(labels_belong_to_their_block)
{
	struct {
		int *out;
		int n;
	} params = { gs_test_memory(256), 0 };
	struct gs_module *module = gs_test_load_text(
		KERNEL("mov.u32 %r1, 0;\nmov.u32 %r2, 0;\nld.param.u64 %rd1, [p];\n"
		       "{ L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 5; @%p1 bra L; }\n"
		       "{ L: add.u32 %r2, %r2, 1; setp.lt.u32 %p1, %r2, 3; @%p1 bra L;\n"
		       "{ bra out; } trap; }\n trap; out:\n"
		       "mad.lo.u32 %r1, %r1, 10, %r2;\nst.global.u32 [%rd1], %r1;"));

	gs_test_run(module, &(struct gs_test_launch){ .kernel = "k",
						      .blocks = 1,
						      .threads = 1,
						      .params = &params,
						      .params_size = sizeof(params) });
	assert_int_equal(params.out[0], 53);
	gs_module_unload(module);
}

TEST(several_texts_are_one_module)
{
	static const char first[] =
		".version 9.0 .target sm_75 .address_size 64\n"
		".global .b8 $str[2] = {1, 0};\n.extern .global .u32 both;\n"
		".extern .func (.param .b32 r) get();\n"
		".weak .global .u32 often = 7;\n"
		".visible .entry k(.param .u64 p, .param .u32 n) {\n"
		".reg .b32 %r<4>; .reg .b64 %rd<2>; .param .b32 r;\n"
		"ld.param.u64 %rd1, [p]; call (r), get; ld.param.b32 %r1, [r];\n"
		"ld.global.u32 %r2, [both]; add.u32 %r1, %r1, %r2;\n"
		"ld.global.u8 %r3, [$str]; add.u32 %r1, %r1, %r3;\n"
		"st.global.u32 [%rd1], %r1; ret; }\n";
	static const char second[] =
		".version 9.0 .target sm_75 .address_size 64\n"
		".global .b8 $str[2] = {2, 0};\n.visible .global .u32 both = 400;\n"
		".weak .global .u32 often = 8;\n"
		".visible .func (.param .b32 r) get() { .reg .b32 %r<3>;\n"
		"ld.global.u32 %r1, [often]; ld.global.u8 %r2, [$str];\n"
		"mad.lo.u32 %r1, %r1, 10, %r2; st.param.b32 [r], %r1; ret; }\n";
	struct {
		int *out;
		int n;
	} params = { gs_test_memory(256), 0 };
	char text[4096];
	struct gs_module *module;

	snprintf(text, sizeof(text), "%s%s", first, second);
	module = gs_test_load_text(text);
	gs_test_run(module, &(struct gs_test_launch){ .kernel = "k",
						      .blocks = 1,
						      .threads = 1,
						      .params = &params,
						      .params_size = sizeof(params) });
	assert_int_equal(params.out[0], 72 + 400 + 1);
	gs_module_unload(module);
}

UNIT_TEST_MAIN(NULL, NULL)
