/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log budgets: rate limits on the log lines that one peer can cause, so that no client can fill the
 * log.
 *
 * The budgets are a table in the ledger, which the supervisor and its workers share; a new worker
 * therefore does not give a client a new budget. A budget belongs to an address without a session,
 * or to all sessions of one tenant from one address. The first lookup in any process creates it.
 * Dropped lines are counted, and the supervisor logs their number.
 *
 * Threads: any, of any process, unless a function states otherwise.
 */
#ifndef GPD_LOG_BUDGET_H
#define GPD_LOG_BUDGET_H

#include "base/status.h"
#include "server/common/base/log.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_ledger;

/* The two halves of the table, separate so that addresses cannot use up the entries of sessions. */
enum gpd_log_budget_owner {
	GPD_LOG_BUDGET_ADDRESS, /* all its lines count as warnings */
	GPD_LOG_BUDGET_SESSIONS,
	GPD_LOG_BUDGET_OWNERS,
};

/* Budgets in each half. The first one is shared by all names for which no entry is free. */
#define GPD_LOG_BUDGETS 1024
#define GPD_LOG_BUDGET_NAME_MAX 160

/* Token bucket: at most LINES lines at once, refilled by one line per LINE_MS; WARNINGS likewise. A
 * client that opens five sessions per second all day loses no line. */
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
	char name[GPD_LOG_BUDGET_NAME_MAX];             /* of the owner; valid once named */
	_Atomic int64_t until_ms[GPD_LOG_BUDGET_KINDS]; /* time at which the bucket is full again */
	_Atomic uint32_t dropped[GPD_LOG_BUDGET_KINDS];
};

/* Sets the table that this process uses. Called once, before the first line with a budget; until
 * then, and after a call with NULL, no line is dropped. */
void gpd_log_budget_set_ledger(struct gpd_ledger *ledger);

/* Returns the index of the budget with this name, and creates it if necessary. The entry is kept
 * while a session in the ledger refers to it, or until it is full again. */
uint32_t gpd_log_budget_get(enum gpd_log_budget_owner owner, const char *name);
/* Returns the budget of the tenant's sessions from this address. */
uint32_t gpd_log_budget_get_for_sessions(const char *tenant, const char *address);

/* Consumes one line. Returns false if none is left; the line then counts as dropped. */
bool gpd_log_budget_consume(uint32_t budget, enum gpd_log_budget_kind kind, int64_t now_ms);
/* Logs a line as gpd_log() does if the budget allows it. */
void gpd_log_budget_log(uint32_t budget, enum gpd_log_level level, const char *format, ...)
	GP_PRINTF(3, 4);
/* Supervisor's main thread, periodically: logs the numbers of dropped lines, and frees entries that
 * are full again and not referred to. */
void gpd_log_budget_check(int64_t now_ms);

#endif /* GPD_LOG_BUDGET_H */
