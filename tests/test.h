/* SPDX-License-Identifier: Apache-2.0 */
/* CMocka wants four headers before its own, in this order. */
#ifndef GP_TEST_H
#define GP_TEST_H

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
/* clang-format on */

/* Leaves a case that cannot be tried here.  After skip() CMocka says "not ok ... # SKIP", which
 * Meson takes for a failure. */
#define LEAVE(why)                                                                                 \
	do {                                                                                       \
		print_message("# left out: %s\n", why);                                            \
		return;                                                                            \
	} while (0)

#endif /* GP_TEST_H */
