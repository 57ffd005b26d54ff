/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CMocka, and macros that define a test and register it in one place.
 *
 *	UNIT_TEST(a_copy_of_nothing_succeeds)
 *	{
 *		assert_int_equal(copy(NULL, 0), 0);
 *	}
 *
 *	UNIT_TEST_MAIN(NULL, NULL)
 *
 * The tests of a source file run in the order of their definitions. Setup and teardown functions
 * return 0 on success; another value fails the test.
 */
#ifndef GP_TEST_H
#define GP_TEST_H

/* CMocka requires these four headers before its own, in this order. */
/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

#include <stdlib.h>

/* Maximum number of tests in a source file. */
#define UNIT_TESTS_MAX 128

/* The tests of this source file, sorted by line number. */
static struct {
	struct CMUnitTest tests[UNIT_TESTS_MAX];
	int lines[UNIT_TESTS_MAX];
	size_t count;
} unit_tests __attribute__((unused));

/* Registers a test. Constructors of one file run in any order, so the list is sorted by line
 * number. Aborts if there are too many tests. */
static inline void
unit_tests_add(struct CMUnitTest test, int line)
{
	size_t at = unit_tests.count++;

	if (at == UNIT_TESTS_MAX)
		abort();
	for (; at > 0 && unit_tests.lines[at - 1] > line; at--) {
		unit_tests.tests[at] = unit_tests.tests[at - 1];
		unit_tests.lines[at] = unit_tests.lines[at - 1];
	}
	unit_tests.tests[at] = test;
	unit_tests.lines[at] = line;
}

/* Runs the tests of this file and returns the number that failed. `setup` and `teardown` run once
 * for the whole file; NULL: none. */
static inline int
unit_tests_run(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	return _cmocka_run_group_tests("tests", unit_tests.tests, unit_tests.count, setup,
				       teardown);
}

/* Defines a test function with the parameter `state`, in which `setup` passes its data. `setup` and
 * `teardown` run before and after the test; NULL: none. */
#define UNIT_TEST_WITH(name, setup, teardown)                                                      \
	static void name(void **state);                                                            \
	__attribute__((constructor)) static void name##_register(void)                             \
	{                                                                                          \
		unit_tests_add((struct CMUnitTest){ #name, name, setup, teardown, NULL },          \
			       __LINE__);                                                          \
	}                                                                                          \
	static void name(void **state)

/* Defines a test without setup and teardown. */
#define UNIT_TEST(name) UNIT_TEST_WITH(name, NULL, NULL)

/* Defines main() of a file of tests. A file whose main() does more calls unit_tests_run()
 * itself. */
#define UNIT_TEST_MAIN(setup, teardown)                                                            \
	int main(void)                                                                             \
	{                                                                                          \
		return unit_tests_run(setup, teardown);                                            \
	}

/* Ends a test that cannot run on this machine, as passed, after a message. CMocka's skip() is not
 * used, because it prints "not ok ... # SKIP", which Meson counts as a failure. */
#define LEAVE(why)                                                                                 \
	do {                                                                                       \
		print_message("# left out: %s\n", why);                                            \
		return;                                                                            \
	} while (0)

#endif /* GP_TEST_H */
