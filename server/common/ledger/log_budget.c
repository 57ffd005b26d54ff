/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/ledger/log_budget.h"

#include "base/clock.h"
#include "server/common/ledger/ledger.h"
#include "server/supervisor/door/source.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_SIZE (GPD_TENANT_NAME_MAX + GPD_SOURCE_NAME_MAX + 32)
/* For all that there is no other place for. */
#define OTHERS 0

/* The supervisor's: whose they are; "": nobody's. */
static char names[GPD_LOG_BUDGETS][NAME_MAX_SIZE];
static int64_t check_ms = INT64_MAX;

bool
gpd_log_budget_may(struct gpd_log_budget *budget, enum gpd_log_budget_kind kind, int64_t now_ms)
{
	int64_t each =
		kind == GPD_LOG_BUDGET_NEWS ? GPD_LOG_BUDGET_LINE_MS : GPD_LOG_BUDGET_WARNING_MS;
	int64_t lines =
		kind == GPD_LOG_BUDGET_NEWS ? GPD_LOG_BUDGET_LINES : GPD_LOG_BUDGET_WARNINGS;
	int64_t before = atomic_load(&budget->until_ms[kind]), start;

	do {
		start = before > now_ms ? before : now_ms;
		if (start + each > now_ms + lines * each) {
			(void)atomic_fetch_add(&budget->left_out[kind], 1);
			return false;
		}
	} while (!atomic_compare_exchange_weak(&budget->until_ms[kind], &before, start + each));
	return true;
}

void
gpd_log_budget_log(struct gpd_log_budget *budget, enum gpd_log_level level, const char *format, ...)
{
	enum gpd_log_budget_kind kind =
		level > GPD_LOG_WARNING ? GPD_LOG_BUDGET_NEWS : GPD_LOG_BUDGET_WARNING;
	char text[1024];
	va_list args;

	if (level > gpd_log_level || !gpd_log_budget_may(budget, kind, gp_now_ms()))
		return;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	gpd_log(level, "%s", text);
}

static void
begin(struct gpd_ledger *ledger, uint32_t index, const char *name)
{
	struct gpd_log_budget *budget = &ledger->log_budgets[index];

	for (int k = 0; k < GPD_LOG_BUDGET_KINDS; k++) {
		atomic_store(&budget->until_ms[k], 0);
		atomic_store(&budget->left_out[k], 0);
	}
	(void)snprintf(names[index], sizeof(names[index]), "%s", name);
}

uint32_t
gpd_log_budget_choose(struct gpd_ledger *ledger, const char *tenant, const char *address,
		      int64_t now_ms)
{
	uint32_t free_one = OTHERS;
	char name[NAME_MAX_SIZE];

	if (check_ms == INT64_MAX)
		check_ms = now_ms + GPD_LOG_BUDGET_CHECK_MS;
	(void)snprintf(name, sizeof(name), "tenant %s from %s", tenant, address);
	for (uint32_t i = GPD_LOG_BUDGETS - 1; i > OTHERS; i--) {
		if (strcmp(names[i], name) == 0)
			return i;
		if (!names[i][0])
			free_one = i;
	}
	if (free_one != OTHERS)
		begin(ledger, free_one, name);
	else if (!names[OTHERS][0])
		begin(ledger, OTHERS, "other tenants and addresses");
	return free_one;
}

int64_t
gpd_log_budget_deadline(void)
{
	return check_ms;
}

static void
tell_left_out(struct gpd_log_budget *budget, const char *name)
{
	uint32_t news = atomic_exchange(&budget->left_out[GPD_LOG_BUDGET_NEWS], 0);
	uint32_t warnings = atomic_exchange(&budget->left_out[GPD_LOG_BUDGET_WARNING], 0);

	if (news || warnings)
		gpd_warning("sessions of %s: %llu more lines about them are left out, %u of them "
			    "warnings",
			    name, (unsigned long long)news + warnings, warnings);
}

static bool
is_rested(const struct gpd_log_budget *budget, int64_t now_ms)
{
	for (int k = 0; k < GPD_LOG_BUDGET_KINDS; k++) {
		if (atomic_load(&budget->until_ms[k]) > now_ms)
			return false;
	}
	return true;
}

void
gpd_log_budget_check(struct gpd_ledger *ledger, int64_t now_ms)
{
	bool used[GPD_LOG_BUDGETS] = { false }, any = false;

	for (int i = 0; i < GPD_LEDGER_SESSIONS; i++) {
		const struct gpd_ledger_session *session = &ledger->sessions[i];

		if (atomic_load(&session->id) && session->log_budget < GPD_LOG_BUDGETS)
			used[session->log_budget] = true;
	}
	for (int i = 0; i < GPD_LOG_BUDGETS; i++) {
		if (!names[i][0])
			continue;
		tell_left_out(&ledger->log_budgets[i], names[i]);
		if (!used[i] && is_rested(&ledger->log_budgets[i], now_ms))
			names[i][0] = 0;
		any = any || names[i][0];
	}
	check_ms = any ? now_ms + GPD_LOG_BUDGET_CHECK_MS : INT64_MAX;
}

void
gpd_log_budget_forget_all(struct gpd_ledger *ledger)
{
	for (int i = 0; i < GPD_LOG_BUDGETS; i++) {
		if (names[i][0])
			tell_left_out(&ledger->log_budgets[i], names[i]);
		names[i][0] = 0;
	}
	check_ms = INT64_MAX;
}
