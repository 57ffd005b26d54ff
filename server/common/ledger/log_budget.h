/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the log has room for about the sessions of one tenant from one address, so that who is let
 * in cannot fill it: lines of their ordinary life, and warnings besides, whichever process writes
 * them.  What is left out is counted.
 *
 * Voices lie in the ledger, where workers and the supervisor use them up; any thread.  Which one a
 * session has the supervisor says, whose main thread alone may call what is named so.
 */
#ifndef GPD_LOG_BUDGET_H
#define GPD_LOG_BUDGET_H

#include "protocol/status.h"
#include "server/common/base/log.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_ledger;

/* Beyond so many those that are new share one. */
#define GPD_LOG_BUDGETS 1024
/* So many lines at once, and one more in each of these times: who opens five sessions in each
 * second, all day, loses none. */
#define GPD_LOG_BUDGET_LINES 1000
#define GPD_LOG_BUDGET_LINE_MS 100
#define GPD_LOG_BUDGET_WARNINGS 100
#define GPD_LOG_BUDGET_WARNING_MS 2000
/* How often what was left out is told. */
#define GPD_LOG_BUDGET_CHECK_MS 30000

enum gpd_log_budget_kind {
	GPD_LOG_BUDGET_NEWS,
	GPD_LOG_BUDGET_WARNING, /* and errors */
	GPD_LOG_BUDGET_KINDS,
};

struct gpd_log_budget {
	_Atomic int64_t until_ms[GPD_LOG_BUDGET_KINDS]; /* then all that was said is given back */
	_Atomic uint32_t left_out[GPD_LOG_BUDGET_KINDS];
};

/* Whether there is a line left, which is used up; if not, it is counted. */
bool gpd_log_budget_may(struct gpd_log_budget *budget, enum gpd_log_budget_kind kind,
			int64_t now_ms);
void gpd_log_budget_log(struct gpd_log_budget *budget, enum gpd_log_level level, const char *format,
			...) GP_PRINTF(3, 4);

/* Supervisor: of this tenant and address, as an index of the ledger's budgets.  It is remembered as
 * long as a session has it, or less than all is given back. */
uint32_t gpd_log_budget_choose(struct gpd_ledger *ledger, const char *tenant, const char *address,
			       int64_t now_ms);
/* Supervisor: says what was left out; when to be called again, INT64_MAX: there is no need. */
int64_t gpd_log_budget_deadline(void);
void gpd_log_budget_check(struct gpd_ledger *ledger, int64_t now_ms);
/* Supervisor: there are no sessions any more. */
void gpd_log_budget_forget_all(struct gpd_ledger *ledger);

#endif /* GPD_LOG_BUDGET_H */
