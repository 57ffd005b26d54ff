/* SPDX-License-Identifier: Apache-2.0 */
/* Failed assertions: the texts in the driver's line, and the sessions whose code contains them. */
#include "image/fatbin.h"
#include "server/worker/session/assertion.h"
#include "server/worker/session/session.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
expect_parsed(const char *line, const char *file, const char *expression)
{
	struct gpd_assertion assertion;

	assert_true(gpd_assertion_parse(line, strlen(line), &assertion));
	assert_int_equal(assertion.file_size, strlen(file));
	assert_memory_equal(assertion.file, file, assertion.file_size);
	assert_int_equal(assertion.expression_size, strlen(expression));
	assert_memory_equal(assertion.expression, expression, assertion.expression_size);
}

UNIT_TEST(a_line_of_the_driver_has_a_file_and_an_expression)
{
	expect_parsed(
		"a.cu:12: void k(int): block: [0,0,0], thread: [3,0,0] Assertion `i < n` failed.",
		"a.cu", "i < n");
	expect_parsed("c:/x: y.cu:7: k: block: [1,2,3], thread: [0,0,0] Assertion `a ? \": block: "
		      "[\" : b` "
		      "failed.",
		      "c:/x: y.cu", "a ? \": block: [\" : b");
}

UNIT_TEST(other_lines_are_none_of_an_assertion)
{
	static const char *const lines[] = {
		"",
		"` failed.",
		"gpupool software device: k: CUDA_ERROR_ILLEGAL_ADDRESS (700)",
		"a.cu:12: k: block: [0,0,0], thread: [3,0,0] Assertion `i < n` faile",
		"a.cu:12: k: block: [0,0,0], thread: [3,0,0] Assertion ` failed.",
		"a.cu: k: block: [0,0,0], thread: [3,0,0] Assertion `i` failed.",
		":12: k: block: [0,0,0], thread: [3,0,0] Assertion `i` failed.",
	};
	struct gpd_assertion assertion;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_false(gpd_assertion_parse(lines[i], strlen(lines[i]), &assertion));
}

/* An image of PTX text with two constants, as nvcc writes them. bytes: room for the text. */
static struct gp_image *
ptx_open(char bytes[4096], const char *first, const char *second)
{
	const char *const constants[] = { first, second };
	struct gp_image *image;
	size_t used = (size_t)sprintf(bytes, ".version 8.0\n.target sm_75\n.address_size 64\n");

	for (int i = 0; i < 2; i++) {
		used += (size_t)sprintf(bytes + used, ".global .align 1 .b8 $str%d[64] = {", i);
		for (const char *c = constants[i]; *c; c++)
			used += (size_t)sprintf(bytes + used, c == constants[i] ? "%d" : ", %d",
						*c);
		used += (size_t)sprintf(bytes + used, "};\n");
	}
	assert_int_equal(gp_image_create(bytes, &image), 0);
	return image;
}

UNIT_TEST(a_session_with_both_texts_in_one_image_may_have_failed_it)
{
	static const char line[] =
		"a.cu:12: k: block: [0,0,0], thread: [3,0,0] Assertion `i < n` failed.";
	struct gpd_session *session = calloc(1, sizeof(*session));
	static char texts[2][4096];
	struct gp_image *file = ptx_open(texts[0], "a.cu", "other");
	struct gp_image *both = ptx_open(texts[1], "a.cu", "i < n");
	struct gpd_asserting_code codes[2] = { { .image = NULL } };
	struct gpd_assertion assertion;
	const size_t most = GPD_ASSERTION_SEARCH_MAX;

	assert_non_null(session);
	assert_true(gpd_assertion_parse(line, strlen(line), &assertion));
	assert_false(gpd_assertion_matches(session, &assertion, most));
	gpd_asserting_code_add(session, &codes[0], file);
	assert_false(gpd_assertion_matches(session, &assertion, most));
	gpd_asserting_code_add(session, &codes[1], both);
	assert_true(gpd_assertion_matches(session, &assertion, most));
	assert_false(gpd_assertion_matches(session, &assertion, 100));
	gpd_asserting_code_remove(session, &codes[1]);
	gpd_asserting_code_remove(session, &codes[1]);
	assert_false(gpd_assertion_matches(session, &assertion, most));
	gpd_asserting_code_remove(session, &codes[0]);
	assert_null(session->progress.asserting);
	gp_image_destroy(file);
	gp_image_destroy(both);
	free(session);
}

UNIT_TEST_MAIN(NULL, NULL)
