/* SPDX-License-Identifier: Apache-2.0 */
/* What was written to standard error is there when it is asked for at once. */
#include "server/complain.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 20000

/* In a process of its own, whose standard error may go: 0, or the round that lost a line. */
static int
take_at_once(void)
{
	char line[64], taken[GPD_COMPLAINT_MAX];

	if (!freopen("/dev/null", "w", stderr) || gpd_complain_start())
		return 1;
	for (int i = 1; i <= ROUNDS; i++) {
		int size = snprintf(line, sizeof(line), "complaint %d\n", i);

		if (write(STDERR_FILENO, line, (size_t)size) != size)
			return 2;
		(void)gpd_complain_take(taken, sizeof(taken));
		if (strcmp(taken, line) != 0)
			return 3;
		/* Taken once, it is gone. */
		if (gpd_complain_take(taken, sizeof(taken)) != 0)
			return 4;
	}
	return 0;
}

static void
nothing_is_lost(void **state)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0)
		_exit(take_at_once());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
