/* SPDX-License-Identifier: Apache-2.0 */
#include "client/api/asked.h"
#include "tests/test.h"

static const uint64_t answer[GPC_ASKED_WORDS] = { 1, 2, 3, 4, 5, 6, 7, 8 };

static void
what_was_answered_is_found_until_others_take_its_place(void **state)
{
	struct gpc_asked asked = { .call = 7, .of = 1, .words = { 1, 2, 3 } }, other = asked;
	uint64_t words[GPC_ASKED_WORDS] = { 0 };

	assert_false(gpc_asked_find(&asked, words));
	gpc_asked_keep(&asked, answer);
	assert_true(gpc_asked_find(&asked, words));
	assert_memory_equal(words, answer, sizeof(words));
	other.words[2] = 4;
	assert_false(gpc_asked_find(&other, words));
	for (uint64_t i = 1; i <= GPC_ASKED_MAX; i++) {
		assert_true(gpc_asked_find(&asked, words));
		other.of = 1 + i;
		gpc_asked_keep(&other, answer);
	}
	assert_false(gpc_asked_find(&asked, words));
	assert_true(gpc_asked_find(&other, words));
}

static void
what_hangs_on_the_share_is_forgotten_with_it(void **state)
{
	struct gpc_asked asked = { .call = 8, .revision = 1 };
	uint64_t words[GPC_ASKED_WORDS];

	gpc_asked_keep(&asked, answer);
	asked.revision = 2;
	assert_false(gpc_asked_find(&asked, words));
}

static void
what_is_not_to_be_kept_is_not(void **state)
{
	struct gpc_asked asked = { .of = 3 };
	uint64_t words[GPC_ASKED_WORDS];

	gpc_asked_keep(&asked, answer);
	assert_false(gpc_asked_find(&asked, words));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_answered_is_found_until_others_take_its_place),
		cmocka_unit_test(what_hangs_on_the_share_is_forgotten_with_it),
		cmocka_unit_test(what_is_not_to_be_kept_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
