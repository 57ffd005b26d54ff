/* SPDX-License-Identifier: Apache-2.0 */
/* The output of nvcc for tests/unit/fatbin/params.cu, PTX that nvcc does not write, and a daemon
 * that reports other parameters. */
#include "base/sha256.h"
#include "image/image_check.h"
#include "image/image_list.h"
#include "protocol/frame.h"
#include "tests/test.h"
#include "tests/unit/image/fatbin_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARAMS_MAX 16
#define VERSION ".version 8.0\n.target sm_75\n.address_size 64\n"

static const struct gp_image_target targets[] = {
	{ .software = true },
	{ .major = 7, .minor = 5 },
	{ .major = 8, .minor = 6 },
	{ .major = 9, .minor = 0 },
};

/* By the rules of C for a struct of the parameters. */
static struct {
	const char *name;
	uint32_t count;
	struct gp_param_info params[PARAMS_MAX];
} const kernels[] = {
	{ "_Z11of_templateIdLi3EEvT_PAT0__S0_PKS0_", 3, { { 0, 8 }, { 8, 8 }, { 16, 8 } } },
	{ "nothing", 0, { { 0, 0 } } },
	{ "odd_end", 2, { { 0, 8 }, { 8, 13 } } },
	{ "scalars",
	  9,
	  { { 0, 1 },
	    { 2, 2 },
	    { 4, 4 },
	    { 8, 8 },
	    { 16, 4 },
	    { 24, 8 },
	    { 32, 8 },
	    { 40, 1 },
	    { 41, 1 } } },
	{ "structs", 6, { { 0, 13 }, { 13, 1 }, { 16, 32 }, { 48, 13 }, { 61, 1 }, { 64, 8 } } },
	{ "unused", 3, { { 0, 4 }, { 16, 16 }, { 32, 13 } } },
	{ "up_to_the_limit", 2, { { 0, 8 }, { 8, 32756 } } },
	{ "up_to_the_old_limit", 2, { { 0, 8 }, { 8, 4088 } } },
};
#define KERNELS (sizeof(kernels) / sizeof(kernels[0]))

/* What a daemon tells, to be changed; of_device comes last. */
struct told {
	struct gp_image_info info;
	struct gp_kernel_info kernels[KERNELS + 1];
	struct gp_param_info params[KERNELS + 1][PARAMS_MAX];
};

static void
tell_kernel(struct told *told, const char *name, uint32_t count, const struct gp_param_info *params)
{
	uint32_t number = told->info.kernel_count++;

	told->info.kernels = told->kernels;
	told->kernels[number] = (struct gp_kernel_info){ .name = name,
							 .param_count = count,
							 .params = told->params[number] };
	memcpy(told->params[number], params, count * sizeof(*params));
}

static struct told
tell_truth(uint32_t number_size)
{
	const struct gp_param_info of_device[] = { { 0, 8 }, { 8, number_size } };
	struct told told = { 0 };

	for (size_t i = 0; i < KERNELS; i++)
		tell_kernel(&told, kernels[i].name, kernels[i].count, kernels[i].params);
	tell_kernel(&told, "of_device", 2, of_device);
	return told;
}

static char *
read_whole(const char *name)
{
	char file[64];

	snprintf(file, sizeof(file), "params_%s", name);
	return read_fatbin_file(file);
}

static char difference[GP_IMAGE_DIFFERENCE_SIZE];

/* The copy has moved. */
static void
settle(struct told *told)
{
	told->info.kernels = told->kernels;
	for (uint32_t i = 0; i < told->info.kernel_count; i++)
		told->kernels[i].params = told->params[i];
}

static int
check(const void *pointer, const struct gp_image_target *target, struct told *told)
{
	struct gp_image_variables *variables;
	struct gp_image *image;
	int r;

	settle(told);
	difference[0] = '\0';
	assert_int_equal(gp_image_create(pointer, &image), 0);
	r = gp_image_check(image, target, &told->info, &variables, difference);
	gp_image_destroy(image);
	if (r == 0)
		gp_image_variables_destroy(variables);
	assert_int_equal(r == GP_IMAGE_E_DIFFERS, difference[0] != '\0');
	return r;
}

static int
check_text(const char *declarations, struct told *told)
{
	char text[8192];

	snprintf(text, sizeof(text), "%s%s", VERSION, declarations);
	return check(text, &targets[0], told);
}

static void
expect_true(const char *file, const struct gp_image_target *target, uint32_t number_size)
{
	struct told told = tell_truth(number_size);
	char *bytes = read_whole(file);

	assert_int_equal(check(bytes, target, &told), 0);
	for (uint32_t i = 0; i < told.info.kernel_count; i++)
		assert_false(told.kernels[i].absent);
	free(bytes);
}

static void
expect_lie(const char *bytes, const struct gp_image_target *target, struct told *told,
	   uint32_t number)
{
	assert_int_equal(check(bytes, target, told), GP_IMAGE_E_DIFFERS);
	assert_non_null(strstr(difference, kernels[number].name));
}

/* How many and how large, of each kernel, one more and one less. */
static void
expect_lies_found(const char *file, const struct gp_image_target *target, uint32_t number_size)
{
	char *bytes = read_whole(file);

	for (uint32_t i = 0; i < KERNELS; i++) {
		for (int step = -1; step <= 1; step += 2) {
			struct told told = tell_truth(number_size);

			told.kernels[i].param_count += (uint32_t)step;
			if (kernels[i].count > 0 || step > 0)
				expect_lie(bytes, target, &told, i);
			for (uint32_t p = 0; p < kernels[i].count; p++) {
				told = tell_truth(number_size);
				told.params[i][p].size += (uint32_t)step;
				expect_lie(bytes, target, &told, i);
			}
		}
	}
	free(bytes);
}

UNIT_TEST(whatever_nvcc_writes_is_read_as_it_is)
{
	static const char *const fatbins[] = { "balance.fatbin", "size.fatbin", "speed.fatbin",
					       "none.fatbin", "relocatable.fatbin" };

	for (size_t i = 0; i < sizeof(fatbins) / sizeof(fatbins[0]); i++) {
		for (size_t t = 0; t < sizeof(targets) / sizeof(targets[0]); t++)
			expect_true(fatbins[i], &targets[t], targets[t].major < 9 ? 4 : 8);
	}
	expect_true("sm_80.cubin", &targets[2], 4);
	expect_true("sm_90.cubin", &targets[3], 8);
	expect_true("sm_90_debug.cubin", &targets[3], 8);
	expect_true("75.ptx", &targets[0], 4);
	expect_true("75_debug.ptx", &targets[0], 4);
}

UNIT_TEST(no_number_can_be_changed)
{
	expect_lies_found("balance.fatbin", &targets[0], 4);
	expect_lies_found("speed.fatbin", &targets[3], 8);
	expect_lies_found("sm_80.cubin", &targets[2], 4);
	expect_lies_found("sm_90_debug.cubin", &targets[3], 8);
	expect_lies_found("75.ptx", &targets[0], 4);
}

/* The order of a worker. */
static struct told
sorted_truth(void)
{
	const struct gp_param_info of_device[] = { { 0, 8 }, { 8, 4 } };
	struct told told = { 0 };

	for (size_t i = 0; i < KERNELS; i++) {
		if (strcmp(kernels[i].name, "scalars") == 0)
			tell_kernel(&told, "of_device", 2, of_device);
		tell_kernel(&told, kernels[i].name, kernels[i].count, kernels[i].params);
	}
	return told;
}

static void
digest_of(const struct gp_image_info *info, uint8_t digest[GP_SHA256_SIZE])
{
	struct gp_bytes bytes;
	void *data;

	assert_int_equal(gp_image_info_encode(info, &data, &bytes.size), 0);
	bytes.data = data;
	assert_int_equal(gp_image_info_digest(bytes, digest), 0);
	free(data);
}

/* told: with attributes, which the list has not. */
static bool
lists(const char *name, const struct gp_image_target *target, struct told *told)
{
	uint8_t digest[GP_SHA256_SIZE], other[GP_SHA256_SIZE];
	struct gp_image_info *info;
	struct gp_image *image;
	char *bytes = read_whole(name);
	int r;

	assert_int_equal(gp_image_create(bytes, &image), 0);
	r = gp_image_list(image, target, &info);
	gp_image_destroy(image);
	free(bytes);
	if (r) {
		assert_int_equal(r, GP_IMAGE_E_NONE);
		return false;
	}
	digest_of(info, digest);
	gp_image_info_destroy(info);
	settle(told);
	digest_of(&told->info, other);
	return memcmp(digest, other, sizeof(digest)) == 0;
}

UNIT_TEST(the_kernels_are_listed_as_a_worker_lists_them)
{
	struct told told = sorted_truth();

	told.kernels[2].attributes_known = 1;
	told.kernels[2].attributes[0] = 256;
	assert_true(lists("75.ptx", &targets[0], &told));
	assert_true(lists("balance.fatbin", &targets[0], &told));
	assert_true(lists("balance.fatbin", &targets[2], &told));
	assert_true(lists("sm_80.cubin", &targets[2], &told));
	told.params[1][0].offset++;
	told.params[4][0].size++;
	assert_false(lists("75.ptx", &targets[0], &told));
	assert_false(lists("sm_80.cubin", &targets[2], &told));
	told = tell_truth(4);
	assert_false(lists("75.ptx", &targets[0], &told));
}

UNIT_TEST(the_line_says_what_differs)
{
	struct told told = tell_truth(4);
	char *bytes = read_whole("75.ptx");

	told.params[3][8].size = 12000;
	assert_int_equal(check(bytes, &targets[0], &told), GP_IMAGE_E_DIFFERS);
	assert_string_equal(difference, "parameter 8 of kernel scalars has 1 bytes in the image, "
					"and 12000 as the daemon reports");
	told = tell_truth(4);
	told.kernels[1].param_count = 1;
	assert_int_equal(check(bytes, &targets[0], &told), GP_IMAGE_E_DIFFERS);
	assert_string_equal(
		difference,
		"kernel nothing has 0 parameters in the image, and 1 as the daemon reports");
	free(bytes);
}

/* As the driver does for sm_90 with a CUtensorMap. */
UNIT_TEST(where_parameters_lie_the_daemon_says)
{
	struct told told = tell_truth(4);
	char *bytes = read_whole("75.ptx");

	for (uint32_t p = 0; p < kernels[3].count; p++)
		told.params[3][p].offset += 112;
	assert_int_equal(check(bytes, &targets[0], &told), 0);
	free(bytes);
}

UNIT_TEST(any_part_of_a_fatbin_will_do)
{
	struct told told = tell_truth(5);
	char *bytes = read_whole("none.fatbin");

	expect_true("none.fatbin", &targets[2], 8);
	expect_true("none.fatbin", &targets[3], 4);
	assert_int_equal(check(bytes, &targets[3], &told), GP_IMAGE_E_DIFFERS);
	free(bytes);
}

UNIT_TEST(a_name_told_twice_is_looked_at_twice)
{
	struct told told = tell_truth(4);
	const struct gp_param_info wrong[] = { { 0, 8 }, { 8, 14 } };
	char *bytes = read_whole("75.ptx");

	told.info.kernel_count--;
	tell_kernel(&told, "odd_end", 2, kernels[2].params);
	assert_int_equal(check(bytes, &targets[0], &told), 0);
	told.info.kernel_count--;
	tell_kernel(&told, "odd_end", 2, wrong);
	assert_int_equal(check(bytes, &targets[0], &told), GP_IMAGE_E_DIFFERS);
	free(bytes);
}

UNIT_TEST(a_kernel_that_is_nowhere_is_marked)
{
	static const char *const files[] = { "75.ptx", "sm_80.cubin", "size.fatbin" };

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct told told = tell_truth(4);
		char *bytes = read_whole(files[i]);

		told.info.kernel_count--;
		tell_kernel(&told, "odd", 2, kernels[2].params);
		assert_int_equal(check(bytes, &targets[2], &told), 0);
		for (uint32_t k = 0; k < told.info.kernel_count; k++)
			assert_int_equal(told.kernels[k].absent, k == KERNELS);
		free(bytes);
	}
}

UNIT_TEST(what_cannot_be_read_is_believed)
{
	struct told told = tell_truth(4);
	char *bytes = read_whole("lto.fatbin"), *cubin = read_whole("sm_80.cubin"), *at;
	size_t size;

	assert_int_equal(check(bytes, &targets[3], &told), 0);
	assert_false(told.kernels[0].absent);
	free(bytes);

	/* A toolkit that writes parameters as another attribute. */
	assert_int_equal(gp_image_size(cubin, &size), 0);
	for (at = cubin; at < cubin + size; at++) {
		if (memcmp(at, "\x04\x17\x0c\0\0\0\0\0", 8) == 0)
			at[1] = 0x77;
	}
	told.params[3][2].size = 14;
	assert_int_equal(check(cubin, &targets[2], &told), 0);
	assert_false(told.kernels[3].absent);
	told.params[6][1].size = 14;
	assert_int_equal(check(cubin, &targets[2], &told), GP_IMAGE_E_DIFFERS);
	free(cubin);
}

static void
expect_params(const char *declarations, uint32_t count, const struct gp_param_info *params)
{
	struct told told = { 0 };

	tell_kernel(&told, "k", count, params);
	if (check_text(declarations, &told) || told.kernels[0].absent)
		fail_msg("%s: %s", declarations, difference);
	/* And it is not just believed. */
	told.kernels[0].param_count++;
	assert_int_equal(check_text(declarations, &told), GP_IMAGE_E_DIFFERS);
}

UNIT_TEST(text_may_be_written_in_many_ways)
{
	static const struct gp_param_info one[] = { { 0, 8 } }, two[] = { { 0, 1 }, { 16, 48 } },
					  many[] = { { 0, 2 }, { 4, 4 }, { 8, 16 }, { 32, 16 } },
					  array[] = { { 0, 4 }, { 8, 80 } }, none[1];

	expect_params(".entry k { ret; }", 0, none);
	expect_params(".weak .entry k()\n.maxntid 32, 1, 1\n{ ret; }", 0, none);
	expect_params(".entry k(.param .u64 .ptr .global .align 16 k_param_0) { }", 1, one);
	expect_params(".entry k(.param.u64.ptr x){}", 1, one);
	expect_params(".visible\n.entry\nk\n(\n.param\n.f64\nx\n)\n{\n}\n", 1, one);
	expect_params(".entry k(.param .align 8 .b8 %x[8]) { }", 1, one);
	expect_params(".entry k(.param .s8 x, .param .align 16 .b8 y[0x30]) { }", 2, two);
	expect_params(".entry k(.param .b8 x,.param .align 020 .b8 y[2][0b11][8U]) {}", 2, two);
	expect_params(".entry k(.param .bf16 a, .param .f16x2 b, .param .align 8 .b32 c[4], "
		      ".param .b128 d) { }",
		      4, many);
	expect_params(".entry k(.param .u32 n, .param .f64 x[10]) { }", 2, array);
	expect_params("// .entry k(.param .u8 x) { }\n.entry k(.param .u64 x) { }", 1, one);
	expect_params("/* .entry k(.param .u8 x) { } */ .entry k(.param /* ) */ .u64 x // )\n) {}",
		      1, one);
	expect_params(".file 1 \"a \\\" .entry k() { \"\n.entry k(.param .u64 x) { }", 1, one);
	expect_params(".func (.param .b32 r) f(.param .b64 x) { { .param .b32 y; } /* } */ "
		      "\".entry k()\" // }\n }\n.entry k(.param .u64 x) { }",
		      1, one);
	expect_params(".global .b8 k_entry[4] = {1, 2, 3, 4};\n.entry k(.param .u64 x);", 1, one);
	expect_params("\n.section .debug_str { .b8 46,101 }\n.entry k(.param .u64 x) { }", 1, one);
}

UNIT_TEST(text_of_another_form_says_nothing)
{
	static const char *const texts[] = {
		".entry k(.param .texref t) { }",
		".entry k(.param .v4 .f32 v) { }",
		".entry k(.param .b8 x[]) { }",
		".entry k(.param .b8 x[N]) { }",
		".entry k(.param .b8 x[4*2]) { }",
		".entry k(.param .b8 x[99999]) { }",
		".entry k(.param .b8 x[18446744073709551615]) { }",
		".entry k(.param .align 3 .b8 x[4]) { }",
		".entry k(.param .u64 x",
		".entry k(.param",
		".entry k(",
		".entry k(.reg .u64 x) { }",
		".func f() { ",
		"#define k foo\n.entry foo() { }",
		".entry .new k() { }",
		".entry",
	};
	const struct gp_param_info params[] = { { 0, 4 }, { 4, 4 } };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct told told = { 0 };

		tell_kernel(&told, "k", 2, params);
		if (check_text(texts[i], &told) || told.kernels[0].absent)
			fail_msg("%s: %s", texts[i], difference);
	}
}

UNIT_TEST(old_text_says_nothing)
{
	const struct gp_param_info params[] = { { 0, 4 } };
	struct told told = { 0 };

	tell_kernel(&told, "k", 1, params);
	assert_int_equal(check(".version 1.4\n.entry k { .param .u32 x; }", &targets[0], &told), 0);
	assert_false(told.kernels[0].absent);
	assert_int_equal(check(".version 2.0\n.entry k { }", &targets[0], &told),
			 GP_IMAGE_E_DIFFERS);
	assert_int_equal(check(".version 10.0\n.entry k { }", &targets[0], &told),
			 GP_IMAGE_E_DIFFERS);
}

static int
decode(struct told *told)
{
	struct gp_image_info *info;
	struct gp_bytes bytes;
	void *data;
	int r;

	assert_int_equal(gp_image_info_encode(&told->info, &data, &bytes.size), 0);
	bytes.data = data;
	r = gp_image_info_decode(&info, bytes);
	if (r == 0)
		gp_image_info_destroy(info);
	free(data);
	return r;
}

UNIT_TEST(absurd_layouts_are_no_list)
{
	static const struct gp_param_info absurd[][2] = {
		{ { 0, 8 }, { 7, 8 } },
		{ { 8, 8 }, { 0, 8 } },
		{ { 0, 8 }, { 8, GP_LAUNCH_PARAMS_MAX - 7 } },
		{ { 0, 8 }, { GP_LAUNCH_PARAMS_MAX + 1, 0 } },
		{ { 0, 8 }, { 8, UINT32_MAX - 7 } },
		{ { 0, 8 }, { UINT32_MAX, 8 } },
		{ { 0, UINT32_MAX }, { 8, 8 } },
	};
	struct told told = tell_truth(4);

	told.info.kernels = told.kernels;
	for (uint32_t i = 0; i < told.info.kernel_count; i++)
		told.kernels[i].params = told.params[i];
	assert_int_equal(decode(&told), 0);
	for (size_t i = 0; i < sizeof(absurd) / sizeof(absurd[0]); i++) {
		memcpy(told.params[2], absurd[i], sizeof(absurd[i]));
		assert_int_equal(decode(&told), -EPROTO);
	}
}

UNIT_TEST_MAIN(NULL, NULL)
