/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log's budgets: how many lines one peer may cause, so that nobody can fill the log.
 *
 * One table in the ledger, which the supervisor and its workers share.  A budget belongs to an
 * address without a session, or to the sessions of one tenant from one address.  Whoever asks first
 * in any process makes the budget, and the next process finds it: a new worker gives nobody a fresh
 * one.  What is left out is counted; the supervisor says how much it was.
 *
 * Any thread of any process, unless a function says otherwise.  A session's line in the ledger has
 * its budget as an index.
 */
#ifndef GPD_LOG_BUDGET_H
#define GPD_LOG_BUDGET_H

#include "base/status.h"
#include "server/common/base/log.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_ledger;

/* The two halves of the table, so that addresses cannot crowd sessions out. */
enum gpd_log_budget_owner {
	GPD_LOG_BUDGET_ADDRESS, /* all its lines count as warnings */
	GPD_LOG_BUDGET_SESSIONS,
	GPD_LOG_BUDGET_OWNERS,
};

/* Budgets in each half; the first one is shared by all for whom there is no other place. */
#define GPD_LOG_BUDGETS 1024
#define GPD_LOG_BUDGET_NAME_MAX 160

/* So many lines at once, and one more in each of these times: who opens five sessions in each
 * second, all day, loses none. */
#define GPD_LOG_BUDGET_LINES 1000
#define GPD_LOG_BUDGET_LINE_MS 100
#define GPD_LOG_BUDGET_WARNINGS 100
#define GPD_LOG_BUDGET_WARNING_MS 2000

enum gpd_log_budget_kind {
	GPD_LOG_BUDGET_INFO,
	GPD_LOG_BUDGET_WARNING, /* and errors */
	GPD_LOG_BUDGET_KINDS,
};

struct gpd_log_budget {
	_Atomic uint32_t state;                         /* free, being named, or named */
	char name[GPD_LOG_BUDGET_NAME_MAX];             /* once named: whose it is */
	_Atomic int64_t until_ms[GPD_LOG_BUDGET_KINDS]; /* then every line is given back */
	_Atomic uint32_t dropped[GPD_LOG_BUDGET_KINDS];
};

/* Once in each process, before the first line with a budget: the table that it uses.  Until then,
 * and after NULL, every line is written. */
void gpd_log_budget_set_ledger(struct gpd_ledger *ledger);

/* The budget of this name, which begins if there is none.  It is remembered as long as a session's
 * line has it, or lines of it are not given back. */
uint32_t gpd_log_budget_get(enum gpd_log_budget_owner owner, const char *name);
uint32_t gpd_log_budget_get_for_sessions(const char *tenant, const char *address);

/* Whether there is a line left, which is used up; if not, it is counted. */
bool gpd_log_budget_consume(uint32_t budget, enum gpd_log_budget_kind kind, int64_t now_ms);
void gpd_log_budget_log(uint32_t budget, enum gpd_log_level level, const char *format, ...)
	GP_PRINTF(3, 4);
/* Supervisor's main thread, once in a while: says what was left out, and forgets whom nothing is
 * known of. */
void gpd_log_budget_check(int64_t now_ms);

#endif /* GPD_LOG_BUDGET_H */
