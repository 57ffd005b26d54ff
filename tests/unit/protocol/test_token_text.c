/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/token_text.h"
#include "tests/test.h"

#include <string.h>

#define SECRET "2345672345672345672345672345672345672345672345672345"
#define TOKEN "gpt_abcdefghij_" SECRET

static int
find(const char *text, struct gp_token *token)
{
	return gp_token_find(text, strlen(text), token);
}

UNIT_TEST(a_token_has_an_id_and_a_secret)
{
	struct gp_token token;

	assert_int_equal(gp_token_parse(TOKEN, strlen(TOKEN), &token), 0);
	assert_string_equal(token.text, TOKEN);
	assert_string_equal(token.id, "abcdefghij");
	assert_string_equal(token.secret, SECRET);
	assert_int_equal(gp_token_check_id("abcdefghij"), 0);
	assert_int_equal(gp_token_check_id("abcdefghi"), GP_E_INVALID);
	assert_int_equal(gp_token_check_id("abcdefghi1"), GP_E_INVALID);
}

UNIT_TEST(every_other_form_is_none)
{
	static const char *const wrong[] = {
		"",
		"gpt_",
		"gpt_abcdefghij_",
		"GPT_abcdefghij_" SECRET,
		"gpt_abcdefghij-" SECRET,
		"gpt_abcdefghiJ_" SECRET,
		"gpt_abcdefghi1_" SECRET,
		"gpt_abcdefghij_" SECRET "2",
		"gpt_abcdefghij_234567234567234567234567234567234567234567234567234",
		"gpt_abcdefghij_234567234567234567234567234567234567234567234567234 ",
	};
	struct gp_token token;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(gp_token_parse(wrong[i], strlen(wrong[i]), &token), GP_E_INVALID);
	for (size_t i = 0; i < strlen(TOKEN); i++) {
		char text[] = TOKEN;

		text[i] = 0;
		assert_int_equal(gp_token_parse(text, sizeof(text) - 1, &token), GP_E_INVALID);
	}
}

UNIT_TEST(all_random_bytes_count)
{
	uint8_t random[GP_TOKEN_RANDOM];
	struct gp_token first, token;

	memset(random, 0x5a, sizeof(random));
	gp_token_create(random, &first);
	assert_int_equal(gp_token_parse(first.text, strlen(first.text), &token), 0);
	assert_memory_equal(&token, &first, sizeof(token));
	for (size_t i = 0; i < sizeof(random); i++) {
		random[i] ^= 0x10;
		gp_token_create(random, &token);
		assert_string_not_equal(token.text, first.text);
		random[i] ^= 0x10;
	}
}

UNIT_TEST(the_first_line_that_says_something_is_the_token)
{
	static const char *const texts[] = {
		TOKEN,
		TOKEN "\n",
		"\n\n  \t\r\n" TOKEN "\r\n",
		"# of alice\n" TOKEN "\n-----BEGIN CERTIFICATE-----\nAAAA\n",
		"  " TOKEN "  \n" TOKEN,
	};
	struct gp_token token;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(find(texts[i], &token), 0);
		assert_string_equal(token.text, TOKEN);
	}
}

UNIT_TEST(a_file_without_a_token_is_told_from_one_with_something_else)
{
	struct gp_token token;

	assert_int_equal(find("", &token), GP_E_EOF);
	assert_int_equal(find("\n \n# only words\n", &token), GP_E_EOF);
	assert_int_equal(find("-----BEGIN CERTIFICATE-----\n" TOKEN, &token), GP_E_INVALID);
	assert_int_equal(find("token = " TOKEN, &token), GP_E_INVALID);
	assert_int_equal(gp_token_find("\0", 1, &token), GP_E_INVALID);
}

UNIT_TEST_MAIN(NULL, NULL)
