/* SPDX-License-Identifier: Apache-2.0 */
/* What nvcc makes of tests/unit/fatbin/variables.cu, text that it does not write, and sizes that
 * are not those of the image. */
#include "image/image_check.h"
#include "tests/test.h"
#include "tests/unit/image/fatbin_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VERSION ".version 8.0\n.target sm_75\n.address_size 64\n"

static const struct gp_image_target targets[] = {
	{ .software = true },
	{ .major = 8, .minor = 6 },
	{ .major = 9, .minor = 0 },
};

/* By the rules of C. */
static const struct {
	const char *name;
	uint64_t size;
} table[] = {
	{ "plain", 4 },       { "of_both", 40 },   { "odds", 39 },
	{ "begun", 40 },      { "text", 12 },      { "vectors", 96 },
	{ "byte", 1 },        { "constants", 14 }, { "begun_constant", 8 },
	{ "large", 3 << 20 }, { "pointer", 8 },    { "_Z11of_templateILi9EE", 36 },
};
#define VARIABLES (sizeof(table) / sizeof(table[0]))

static char *
read_whole(const char *name)
{
	char file[64];

	snprintf(file, sizeof(file), "variables_%s", name);
	return read_fatbin_file(file);
}

/* Of an image of whose kernels nothing is told. */
static struct gp_image_variables *
variables_of(const void *bytes, const struct gp_image_target *target)
{
	struct gp_image_info info = { 0 };
	struct gp_image_variables *variables = NULL;
	char difference[GP_IMAGE_DIFFERENCE_SIZE];
	struct gp_image *image;

	assert_int_equal(gp_image_create(bytes, &image), 0);
	assert_int_equal(gp_image_check(image, target, &info, &variables, difference), 0);
	gp_image_destroy(image);
	return variables;
}

static void
expect(const struct gp_image_variables *variables, const char *name, uint64_t size)
{
	uint64_t has = 0;

	assert_int_equal(gp_image_variables_check(variables, name, size, &has), GP_VARIABLE_EQUAL);
	for (int step = -1; step <= 1; step += 2) {
		assert_int_equal(
			gp_image_variables_check(variables, name, size + (uint64_t)step, &has),
			GP_VARIABLE_DIFFERS);
		assert_int_equal(has, size);
	}
}

static enum gp_variable_verdict
verdict_of(const struct gp_image_variables *variables, const char *name)
{
	uint64_t has;

	return gp_image_variables_check(variables, name, 5, &has);
}

static bool
is_named(const struct gp_image_variables *variables, const char *name)
{
	const char *found;

	for (size_t i = 0; (found = gp_image_variables_get_name(variables, i)); i++) {
		if (strcmp(found, name) == 0)
			return true;
	}
	return false;
}

UNIT_TEST(names_of_few_are_kept)
{
	struct gp_image_variables *variables = gp_image_variables_create();
	char name[16];

	for (int i = 0; i < GP_VARIABLE_NAMES_MAX; i++) {
		for (int part = 0; part < 2; part++) {
			int size = snprintf(name, sizeof(name), "variable%d", i);

			assert_int_equal(gp_image_variables_add(variables, name, (size_t)size, true,
								false, 4),
					 0);
		}
	}
	assert_int_equal(gp_image_variables_add(variables, "$str", 4, true, false, 4), 0);
	assert_int_equal(gp_image_variables_add(variables, "managed", 7, true, true, 4), 0);
	assert_true(is_named(variables, "variable0") && is_named(variables, "variable15"));
	assert_false(is_named(variables, "$str") || is_named(variables, "managed"));
	assert_null(gp_image_variables_get_name(variables, GP_VARIABLE_NAMES_MAX));
	assert_int_equal(gp_image_variables_add(variables, "more", 4, true, false, 4), 0);
	assert_null(gp_image_variables_get_name(variables, 0));
	gp_image_variables_finish(variables);
	expect(variables, "variable7", 4);
	gp_image_variables_destroy(variables);
}

static void
expect_file(const char *file, const struct gp_image_target *target)
{
	char *bytes = read_whole(file);
	struct gp_image_variables *variables = variables_of(bytes, target);

	for (size_t i = 0; i < VARIABLES; i++)
		expect(variables, table[i].name, table[i].size);
	expect(variables, "of_device", target->major < 9 ? 4 : 8);
	for (size_t i = 0; i < VARIABLES; i++)
		assert_int_equal(gp_image_variables_is_managed(variables, table[i].name),
				 strcmp(table[i].name, "of_both") == 0);
	for (size_t i = 0; i < VARIABLES; i++)
		assert_int_equal(is_named(variables, table[i].name),
				 strcmp(table[i].name, "of_both") != 0);
	assert_false(gp_image_variables_is_managed(variables, "elsewhere"));
	assert_int_equal(verdict_of(variables, "elsewhere"), GP_VARIABLE_ABSENT);
	assert_int_equal(verdict_of(variables, ""), GP_VARIABLE_ABSENT);
	gp_image_variables_destroy(variables);
	free(bytes);
}

UNIT_TEST(whatever_nvcc_writes_is_read_as_it_is)
{
	expect_file("sm_80.cubin", &targets[1]);
	expect_file("sm_90.cubin", &targets[2]);
	expect_file("sm_90_debug.cubin", &targets[2]);
	expect_file("75.ptx", &targets[0]);
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		expect_file("balance.fatbin", &targets[i]);
		expect_file("none.fatbin", &targets[i]);
	}
}

UNIT_TEST(what_cannot_be_read_is_unknown)
{
	char *bytes = read_whole("lto.fatbin"), *cubin = read_whole("sm_80.cubin");
	struct gp_image_variables *variables = variables_of(bytes, &targets[2]);

	assert_int_equal(verdict_of(variables, "plain"), GP_VARIABLE_UNKNOWN);
	gp_image_variables_destroy(variables);
	/* A table of symbols that is none. */
	for (char *at = cubin;; at += 8) {
		/* sh_entsize of the only section whose entries have 24 bytes and that is a 2. */
		if (memcmp(at, "\x18\0\0\0\0\0\0\0", 8) == 0 &&
		    memcmp(at - 52, "\x02\0\0\0", 4) == 0) {
			*at = 0x19;
			break;
		}
	}
	variables = variables_of(cubin, &targets[1]);
	assert_int_equal(verdict_of(variables, "plain"), GP_VARIABLE_UNKNOWN);
	gp_image_variables_destroy(variables);
	free(cubin);
	free(bytes);
}

static struct gp_image_variables *
variables_of_text(const char *declarations)
{
	char text[4096];

	snprintf(text, sizeof(text), "%s%s", VERSION, declarations);
	return variables_of(text, &targets[0]);
}

UNIT_TEST(text_may_be_written_in_many_ways)
{
	static const struct {
		const char *text;
		uint64_t size;
	} texts[] = {
		{ ".global .u32 v;", 4 },
		{ ".visible .global .align 16 .v4 .f32 v[10] [0x3];", 480 },
		{ ".weak\n.const\n.align\n8\n.b8\nv\n[\n24\n]\n;", 24 },
		{ ".const[3] .b8 v[010];", 8 },
		{ ".global .attribute(.unified(19, 95)) .f64 v;", 8 },
		{ ".global .attribute(.managed) .align 4 .b8 v[20];", 20 },
		{ ".global .u64 x = generic(a, b), v[2] = {1, 2}, y;", 16 },
		{ ".global .b8 x[5] = \"v, ;\"; .global .s16 v = 3;", 2 },
		{ ".global .b8 x[4] = {0xFF(y), (1), {2}, 3}; .global .b8 v[3U];", 3 },
		{ ".entry k(.param .u64 .ptr .global .align 8 v) { .global .b8 v[9]; } "
		  ".global .b16 v;",
		  2 },
		{ ".extern .global .b8 v[7]; .global .b8 v[6];", 6 },
		{ "/* .global .b8 v[7]; */ // .global .b8 v[8];\n.global .b8 v[9];", 9 },
		{ ".func f(.param .b64 .ptr .global v); .global .b8 v[4294967295];", UINT32_MAX },
		{ ".global .b8 v[4294967296];", (uint64_t)1 << 32 },
		{ ".global .u32 v[0x100000000][2U];", (uint64_t)1 << 35 },
		{ ".global .b8 v[18446744073709551614];", UINT64_MAX - 1 },
		{ ".global .b8 v[WARP_SZ][WARP_SZ];", 1024 },
		{ ".global .b8 v[] = {1, 2, 3};", 3 },
		{ ".global .u32 v[][3] = { {1, 2, 3}, {4} }, w;", 24 },
		{ ".global .v2 .u32 x[ ] = {{1, 2}}, v[] = {{1, 2}, {3, 4}};", 16 },
		{ ".global .u64 v[] = { x, generic(a, b), /* , */ (1, 2) + 3 };", 24 },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct gp_image_variables *variables = variables_of_text(texts[i].text);
		uint64_t has;

		if (gp_image_variables_check(variables, "v", texts[i].size, &has) ||
		    verdict_of(variables, "elsewhere") != GP_VARIABLE_ABSENT)
			fail_msg("%s", texts[i].text);
		/* And it is not just believed. */
		expect(variables, "v", texts[i].size);
		gp_image_variables_destroy(variables);
	}
}

UNIT_TEST(text_says_what_is_managed)
{
	static const struct {
		const char *text;
		bool managed;
	} texts[] = {
		{ ".global .attribute(.managed) .align 4 .b8 v[20], w;", true },
		{ ".global .attribute( .unified(19, 95) , .managed ) .f64 v;", true },
		{ ".global .attribute(.unified(19, 95)) .f64 v;", false },
		{ ".global .attribute(.managed) .u32 w; .global .u32 v;", false },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct gp_image_variables *variables = variables_of_text(texts[i].text);

		if (gp_image_variables_is_managed(variables, "v") != texts[i].managed)
			fail_msg("%s", texts[i].text);
		gp_image_variables_destroy(variables);
	}
}

UNIT_TEST(text_of_another_form_says_nothing)
{
	static const char *const texts[] = {
		".global .texref v;",
		".global .b8 v[];",
		".global .b8 v[] = 1;",
		".global .b8 v[] = {};",
		".global .b8 v[] = {1, 2,};",
		".global .b8 v[] = {1, {2}",
		".global .b8 v[2][] = {{1}, {2}};",
		".global .b8 v[18446744073709551616];",
		".global .b16 v[9223372036854775808];",
		".global .u64 v[2305843009213693952][] = {1};",
		".global .u32 v[][4611686018427387903] = {{1}, {2}};",
		".global .b8 v[0x1ffffffffffffffff];",
		".global .b8 v[N];",
		".global .b8 v[2*2];",
		".global .align 3 .b8 v[4];",
		".global .b8 v[4294967295][4294967295][3];",
		".global .b7 v;",
		".global .b8 v[",
		".global .b8",
		".global",
		".global .b8 x,, v;",
		".global .b8 x = (1, v;",
		"#define v w\n.global .u8 w;",
		".global .b8 x[4] = {1, ",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct gp_image_variables *variables = variables_of_text(texts[i]);

		if (verdict_of(variables, "v") != GP_VARIABLE_UNKNOWN)
			fail_msg("%s", texts[i]);
		gp_image_variables_destroy(variables);
	}
}

UNIT_TEST(several_of_a_name_are_each_right)
{
	struct gp_image_variables *variables =
		variables_of_text(".global .b8 v[4]; .global .b8 v[6]; .global .b8 v[4];");
	uint64_t has;

	assert_int_equal(gp_image_variables_check(variables, "v", 4, &has), GP_VARIABLE_EQUAL);
	assert_int_equal(gp_image_variables_check(variables, "v", 6, &has), GP_VARIABLE_EQUAL);
	assert_int_equal(gp_image_variables_check(variables, "v", 5, &has), GP_VARIABLE_DIFFERS);
	gp_image_variables_destroy(variables);
}

UNIT_TEST(the_sum_is_known_if_all_are)
{
	struct gp_image_variables *variables =
		variables_of_text(".global .b8 v[4]; .const .b32 w[6]; .global .b64 x;");

	assert_int_equal(gp_image_variables_get_total(variables), 4 + 24 + 8);
	gp_image_variables_add_unknown(variables);
	assert_int_equal(gp_image_variables_get_total(variables), UINT64_MAX);
	gp_image_variables_destroy(variables);
	variables = gp_image_variables_create();
	assert_int_equal(gp_image_variables_get_total(variables), 0);
	assert_int_equal(gp_image_variables_add(variables, "v", 1, true, false, 8), 0);
	assert_int_equal(gp_image_variables_add(variables, "w", 1, false, false, 8), 0);
	assert_int_equal(gp_image_variables_get_total(variables), UINT64_MAX);
	gp_image_variables_destroy(variables);
}

UNIT_TEST_MAIN(NULL, NULL)
