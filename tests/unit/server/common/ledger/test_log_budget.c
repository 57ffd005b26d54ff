/* SPDX-License-Identifier: Apache-2.0 */
/* Log budget: each client may write some lines to the log and cannot fill it, whichever process
 * writes them. */
#include "server/common/ledger/ledger.h"
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct gpd_ledger *ledger;
static int ledger_fd, log_before;
static char path[64];

static int
set_up(void **state)
{
	ledger = gpd_ledger_create(&ledger_fd);
	gpd_log_budget_set_ledger(ledger);
	log_before = gpd_log_fd;
	(void)snprintf(path, sizeof(path), "/tmp/gpupool-log-XXXXXX");
	gpd_log_fd = mkstemp(path);
	return ledger && gpd_log_fd >= 0 ? 0 : -1;
}

static int
tear_down(void **state)
{
	gpd_log_budget_set_ledger(NULL);
	close(gpd_log_fd);
	gpd_log_fd = log_before;
	(void)unlink(path);
	gpd_ledger_destroy(ledger);
	return close(ledger_fd);
}

static uint32_t
budget_of(const char *tenant, const char *address)
{
	return gpd_log_budget_get_for_sessions(tenant, address);
}

static uint32_t
dropped(uint32_t budget, enum gpd_log_budget_kind kind)
{
	return atomic_load(&ledger->log_budgets[budget].own.dropped[kind]);
}

static bool
log_has(const char *line)
{
	char text[32768] = "";

	assert_true(pread(gpd_log_fd, text, sizeof(text) - 1, 0) >= 0);
	return strstr(text, line) != NULL;
}

#define TEST(test) UNIT_TEST_WITH(test, set_up, tear_down)

TEST(five_sessions_a_second_lose_no_line)
{
	uint32_t budget = budget_of("a", "10.0.0.1");

	for (int64_t ms = 0; ms < 3600000; ms += 200) {
		assert_true(gpd_log_budget_consume(budget, GPD_LOG_BUDGET_INFO, ms));
		assert_true(gpd_log_budget_consume(budget, GPD_LOG_BUDGET_INFO, ms));
	}
	assert_int_equal(dropped(budget, GPD_LOG_BUDGET_INFO), 0);
}

TEST(who_floods_has_ten_lines_a_second)
{
	uint32_t budget = budget_of("a", "10.0.0.1");
	unsigned int said = 0, asked = 0;

	for (int64_t ms = 0; ms < 60000; ms++, asked++)
		said += gpd_log_budget_consume(budget, GPD_LOG_BUDGET_INFO, ms);
	assert_in_range(said, GPD_LOG_BUDGET_LINES + 590, GPD_LOG_BUDGET_LINES + 610);
	assert_int_equal(dropped(budget, GPD_LOG_BUDGET_INFO), asked - said);
}

TEST(warnings_have_lines_of_their_own)
{
	uint32_t budget = budget_of("a", "10.0.0.1");
	unsigned int said = 0;

	while (gpd_log_budget_consume(budget, GPD_LOG_BUDGET_INFO, 0))
		continue;
	for (int64_t ms = 0; ms < 60000; ms++)
		said += gpd_log_budget_consume(budget, GPD_LOG_BUDGET_WARNING, ms);
	/* Not lost altogether, however many there are. */
	assert_in_range(said, GPD_LOG_BUDGET_WARNINGS + 29, GPD_LOG_BUDGET_WARNINGS + 31);
	assert_true(gpd_log_budget_consume(budget, GPD_LOG_BUDGET_INFO, 100));
}

TEST(others_are_heard_besides)
{
	uint32_t loud = budget_of("a", "10.0.0.1");

	while (gpd_log_budget_consume(loud, GPD_LOG_BUDGET_INFO, 0))
		continue;
	assert_int_equal(budget_of("a", "10.0.0.1"), loud);
	assert_true(gpd_log_budget_consume(budget_of("a", "10.0.0.2"), GPD_LOG_BUDGET_INFO, 0));
	assert_true(gpd_log_budget_consume(budget_of("b", "10.0.0.1"), GPD_LOG_BUDGET_INFO, 0));
}

TEST(what_is_left_out_is_said)
{
	uint32_t budget = budget_of("carol", "10.0.0.1");

	atomic_store(&ledger->log_budgets[budget].own.dropped[GPD_LOG_BUDGET_INFO], 40);
	atomic_store(&ledger->log_budgets[budget].own.dropped[GPD_LOG_BUDGET_WARNING], 2);
	gpd_log_budget_check(0);
	assert_true(log_has("warning: sessions of tenant carol from 10.0.0.1: 42 further lines "
			    "suppressed, 2 of them warnings\n"));
	assert_int_equal(dropped(budget, GPD_LOG_BUDGET_INFO), 0);
}

TEST(budget_is_remembered_as_long_as_it_is_used)
{
	uint32_t budget = budget_of("a", "10.0.0.1");
	struct gpd_ledger_session *session = gpd_ledger_open(ledger, 1, GPD_TENANT_DEFAULT, 1);
	int64_t now = 0;

	session->log_budget = budget;
	gpd_log_budget_check(now += 30000);
	for (int i = 0; i < GPD_LOG_BUDGET_WARNINGS; i++)
		assert_true(gpd_log_budget_consume(budget, GPD_LOG_BUDGET_WARNING, now));
	gpd_ledger_close(ledger, session);
	/* Leaving and coming again gives nothing back. */
	gpd_log_budget_check(now += 1);
	assert_int_equal(budget_of("a", "10.0.0.1"), budget);
	assert_false(gpd_log_budget_consume(budget, GPD_LOG_BUDGET_WARNING, now));
	gpd_log_budget_check(now += GPD_LOG_BUDGET_WARNINGS * GPD_LOG_BUDGET_WARNING_MS);
	/* Its place is free. */
	assert_int_equal(budget_of("b", "10.0.0.9"), budget);
}

TEST(those_beyond_the_table_share_one)
{
	uint32_t last = 0,
		 address_of_its_own = gpd_log_budget_get(GPD_LOG_BUDGET_ADDRESS, "10.9.9.9");
	char address[32];

	for (int i = 0; i < GPD_LOG_BUDGETS + 2; i++) {
		uint32_t budget;

		(void)snprintf(address, sizeof(address), "10.0.%d.%d", i / 256, i % 256);
		budget = budget_of("a", address);
		assert_true(i >= GPD_LOG_BUDGETS - 1 || budget != last);
		assert_true(i < GPD_LOG_BUDGETS || budget == last);
		last = budget;
	}
	atomic_store(&ledger->log_budgets[last].own.dropped[GPD_LOG_BUDGET_INFO], 1);
	gpd_log_budget_check(0);
	assert_true(log_has("sessions of other tenants and addresses: 1 further lines"));
	/* Addresses without sessions have their own half. */
	assert_int_not_equal(address_of_its_own, last);
	assert_int_not_equal(gpd_log_budget_get(GPD_LOG_BUDGET_ADDRESS, "10.9.9.8"), last);
}

static int
lines_in_log(void)
{
	char text[32768] = "";
	int lines = 0;

	assert_true(pread(gpd_log_fd, text, sizeof(text) - 1, 0) >= 0);
	for (const char *c = text; (c = strchr(c, '\n')); c++)
		lines++;
	return lines;
}

TEST(all_lines_of_an_address_without_a_session_are_warnings)
{
	for (int i = 0; i < GPD_LOG_BUDGET_WARNINGS + 1000; i++)
		gpd_log_budget_log(gpd_log_budget_get(GPD_LOG_BUDGET_ADDRESS, "10.0.0.1"),
				   i % 2 ? GPD_LOG_WARNING : GPD_LOG_INFO, "line %d", i);
	gpd_log_budget_log(gpd_log_budget_get(GPD_LOG_BUDGET_ADDRESS, "10.0.0.2"), GPD_LOG_WARNING,
			   "another one");
	assert_true(log_has("another one\n"));
	gpd_log_budget_check(0);
	assert_true(log_has("warning: 10.0.0.1: "));
	assert_true(log_has(" further lines suppressed\n"));
	assert_false(log_has("10.0.0.2: "));
	/* A test that stands still for seconds lets one or two more through. */
	assert_in_range(lines_in_log(), GPD_LOG_BUDGET_WARNINGS + 2, GPD_LOG_BUDGET_WARNINGS + 12);
}

/* As workers that start one after another for one client. */
TEST(another_process_has_no_fresh_budget)
{
	struct gpd_ledger_session *session;
	uint32_t budget;

	assert_true(gpd_ledger_add_tenant(ledger, 1, "a"));
	budget = budget_of("a", "10.0.0.1");
	session = gpd_ledger_open(ledger, 1, 1, 1);
	for (int i = 0; i < 2; i++) {
		int fd = gpd_ledger_share(ledger, session);
		pid_t child = fork();
		int status;

		assert_true(child >= 0);
		if (child == 0) {
			struct gpd_ledger *mine = gpd_ledger_attach(dup(ledger_fd), NULL);
			bool may = gpd_ledger_attach_session(mine, 0, fd);

			gpd_log_budget_set_ledger(mine);
			for (int line = 0; line < GPD_LOG_BUDGET_WARNINGS; line++)
				may = may &&
				      gpd_log_budget_consume(budget, GPD_LOG_BUDGET_WARNING, 0);
			_exit(may ? 0 : 1);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, i ? 1 << 8 : 0);
		(void)close(fd);
	}
	assert_int_equal(ledger->tenants[1]
				 .log_buckets[budget - GPD_LOG_BUDGETS]
				 .dropped[GPD_LOG_BUDGET_WARNING],
			 1);
	assert_false(gpd_log_budget_consume(budget, GPD_LOG_BUDGET_WARNING, 0));
}

UNIT_TEST_MAIN(NULL, NULL)
