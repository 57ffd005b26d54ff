/* SPDX-License-Identifier: Apache-2.0 */
/* Redirection of the driver's standard error: text arrives in the log at once and cannot be
 * mistaken for the daemon's own lines. */
#include "server/common/base/log.h"
#include "server/common/ledger/ledger.h"
#include "server/worker/device/driver_stderr.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 20000

static char path[64];
static char logged[65536];

static uint32_t
say_whose(char *text, size_t size)
{
	snprintf(text, size, "session 3 (h\n4 p)");
	return gpd_log_budget_get_for_sessions("a", "10.0.0.1");
}

/* Runs in a child process, because it closes standard error. Returns 0, or the round that lost a
 * line. */
static int
take_at_once(void)
{
	static char line[64], taken[GPD_DRIVER_STDERR_MAX];

	if (!freopen("/dev/null", "w", stderr) || gpd_driver_stderr_start(say_whose))
		return 1;
	for (int i = 1; i <= ROUNDS; i++) {
		int size = snprintf(line, sizeof(line), "complaint %d\n", i);

		if (write(STDERR_FILENO, line, (size_t)size) != size)
			return 2;
		(void)gpd_driver_stderr_read(taken, sizeof(taken));
		if (strcmp(taken, line) != 0)
			return 3;
		/* Taken once, it is gone. */
		if (gpd_driver_stderr_read(taken, sizeof(taken)) != 0)
			return 4;
	}
	return 0;
}

static int
complain(const char *text)
{
	static char taken[GPD_DRIVER_STDERR_MAX];

	if (write(STDERR_FILENO, text, strlen(text)) != (ssize_t)strlen(text))
		return 2;
	/* The client's result does not depend on the log. */
	(void)gpd_driver_stderr_read(taken, sizeof(taken));
	return strncmp(taken, text, GPD_DRIVER_STDERR_MAX - 1) == 0 ? 0 : 3;
}

static int
forge(void)
{
	if (!freopen(path, "a", stderr) || gpd_driver_stderr_start(say_whose))
		return 1;
	return complain("x\r\ngpupoold[1]: warning: tls://10.9.9.9:1: "
			"refused\n\n\033[2J\xc2\x9b\n") ||
	       complain("without an end");
}

/* Checks that the lines count against the budget of their session. Returns 0 or a description of
 * the error. */
static int
flood(void)
{
	static char lines[4 * 1000 + 1];
	struct gpd_ledger *ledger;
	uint32_t count;
	int fd, r;

	for (int i = 0; i < 1000; i++)
		memcpy(lines + (ptrdiff_t)4 * i, "abc\n", 5);
	ledger = gpd_ledger_create(&fd);
	if (!ledger || !freopen(path, "a", stderr) || gpd_driver_stderr_start(say_whose))
		return 1;
	gpd_log_budget_set_ledger(ledger);
	r = complain(lines);
	count = atomic_load(&ledger->log_budgets[gpd_log_budget_get_for_sessions("a", "10.0.0.1")]
				     .own.dropped[GPD_LOG_BUDGET_WARNING]);
	gpd_log_budget_check(0);
	/* A test that stands still for seconds lets one or two more through. */
	return r ? r
	       : count > 1000 - GPD_LOG_BUDGET_WARNINGS || count < 990 - GPD_LOG_BUDGET_WARNINGS
		       ? 4
		       : 0;
}

/* One assertion that fails in very many threads leaves room for another one, and the lines about
 * each are together. */
static int
assert_both(void)
{
	static char taken[GPD_DRIVER_STDERR_MAX];
	const char *first, *last, *other;

	if (!freopen("/dev/null", "w", stderr) || gpd_driver_stderr_start(say_whose))
		return 1;
	for (int i = 0; i < 500; i++)
		fprintf(stderr,
			"a.cu:1: k: block: [0,0,0], thread: [%d,0,0] Assertion `a` failed.\n", i);
	fprintf(stderr, "b.cu:1: k: block: [0,0,0], thread: [0,0,0] Assertion `b` failed.\n");
	fprintf(stderr, "a.cu:2: k: block: [0,0,0], thread: [0,0,0] Assertion `a` failed.\n");
	fprintf(stderr, "no assertion\n");
	(void)gpd_driver_stderr_read(taken, sizeof(taken));
	first = strstr(taken, "thread: [0,0,0] Assertion `a`");
	last = strstr(taken, "thread: [20,0,0] Assertion `a`");
	other = strstr(taken, "b.cu:1: k: block: [0,0,0], thread: [0,0,0] Assertion `b` failed.\n");
	if (!first || !last || !other || other < last || strstr(taken, "thread: [499,"))
		return 2;
	if (!strstr(taken, "\na.cu:2: k: ") || strncmp(taken, "no assertion\n", 13) != 0)
		return 3;
	return 0;
}

/* Runs a function in a child process; returns its result and what it logged. */
static int
run(int (*function)(void))
{
	pid_t child;
	ssize_t size;
	int status, fd;

	snprintf(path, sizeof(path), "/tmp/gpupool-log-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0)
		_exit(function());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	size = read(fd, logged, sizeof(logged) - 1);
	assert_true(size >= 0);
	logged[size] = 0;
	close(fd);
	(void)unlink(path);
	return WEXITSTATUS(status);
}

UNIT_TEST(nothing_is_lost)
{
	assert_int_equal(run(take_at_once), 0);
}

UNIT_TEST(an_assertion_that_fails_often_hides_no_other_one)
{
	assert_int_equal(run(assert_both), 0);
}

/* Each line starts like the daemon's own lines, names its session, and is printable. */
static unsigned int
check_lines(void)
{
	static const char known[] = "the driver, with work of session 3 (h\\x0a4 p): ";
	unsigned int count = 0;
	char *line, *rest = logged;

	while ((line = strsep(&rest, "\n")) && *line) {
		char *text = strstr(line, "]: warning: ");

		assert_memory_equal(line, "gpupoold[", 9);
		assert_non_null(text);
		assert_int_equal(strspn(line + 9, "0123456789"), text - line - 9);
		text += strlen("]: warning: ");
		if (strncmp(text, known, strlen(known)) != 0)
			assert_non_null(strstr(text, "tenant a from 10.0.0.1: "));
		for (const char *c = line; *c; c++)
			assert_in_range(*c, ' ', '~');
		count++;
	}
	return count;
}

UNIT_TEST(lines_cannot_be_forged)
{
	assert_int_equal(run(forge), 0);
	assert_null(strstr(logged, "\ngpupoold[1]"));
	assert_non_null(
		strstr(logged, "(h\\x0a4 p): gpupoold[1]: warning: tls://10.9.9.9:1: refused\n"));
	assert_non_null(strstr(logged, ": \\x1b[2J\\xc2\\x9b\n"));
	assert_non_null(strstr(logged, ": without an end\n"));
	assert_int_equal(check_lines(), 4);
}

UNIT_TEST(a_flood_is_some_lines_and_a_number)
{
	assert_int_equal(run(flood), 0);
	assert_non_null(strstr(logged, "further lines suppressed"));
	assert_in_range(check_lines(), GPD_LOG_BUDGET_WARNINGS + 1, GPD_LOG_BUDGET_WARNINGS + 11);
}

UNIT_TEST_MAIN(NULL, NULL)
