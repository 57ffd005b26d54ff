/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log budgets: rate limits on the log lines that one peer can cause, so that no client can fill the
 * log.
 *
 * The budgets are a table in the ledger, which the supervisor and its workers share; a new worker
 * therefore does not give a client a new budget. A budget belongs to an address without a session
 * (named as in client_address_name.h), or to all sessions of one tenant from one address. The first
 * lookup in the supervisor creates it. The counts of a tenant's budgets are in the tenant's part of
 * the ledger, which workers of the tenant write. Lines of a worker that belong to no tenant have a
 * budget in that process. Dropped lines are counted, and the supervisor logs their number, except
 * for those of a budget in a worker.
 *
 * Ownership: the ledger contains the table; a budget is referred to by its index.
 * Threads: any, of any process, unless a function states otherwise. No function blocks.
 * Units: milliseconds of gp_now_ms().
 */
#ifndef GPD_LOG_BUDGET_H
#define GPD_LOG_BUDGET_H

#include "base/status.h"
#include "server/common/base/log.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_ledger;

/* The two halves of the table. They are separate so that addresses cannot use up the entries of
 * sessions. */
enum gpd_log_budget_owner {
	GPD_LOG_BUDGET_ADDRESS,  /* an address without a session; all its lines count as warnings */
	GPD_LOG_BUDGET_SESSIONS, /* all sessions of a tenant from one address */
	GPD_LOG_BUDGET_OWNERS,   /* number of halves */
};

/* Number of budgets in each half. The first budget of a half is shared by all names for which no
 * entry is free. */
#define GPD_LOG_BUDGETS 1024
/* Size of the buffer of a budget's name in bytes, including the terminating zero. */
#define GPD_LOG_BUDGET_NAME_MAX 160

/* Rates of the token buckets of each kind (enum gpd_log_budget_kind). GPD_LOG_BUDGET_LINES and
 * GPD_LOG_BUDGET_LINE_MS belong to the kind GPD_LOG_BUDGET_INFO: a bucket has at most 1000 lines
 * and gets one back every 100 ms, so a client that opens five sessions per second all day loses no
 * line. GPD_LOG_BUDGET_WARNINGS and GPD_LOG_BUDGET_WARNING_MS belong likewise to
 * GPD_LOG_BUDGET_WARNING. */
#define GPD_LOG_BUDGET_LINES 1000
#define GPD_LOG_BUDGET_LINE_MS 100
#define GPD_LOG_BUDGET_WARNINGS 100
#define GPD_LOG_BUDGET_WARNING_MS 2000

/* Each budget has one token bucket per kind of line. */
enum gpd_log_budget_kind {
	GPD_LOG_BUDGET_INFO,    /* less severe lines, of sessions only */
	GPD_LOG_BUDGET_WARNING, /* lines of level GPD_LOG_WARNING or GPD_LOG_ERROR */
	GPD_LOG_BUDGET_KINDS,   /* number of kinds */
};

/* The token buckets of a budget. */
struct gpd_log_bucket {
	_Atomic int64_t until_ms[GPD_LOG_BUDGET_KINDS]; /* time at which the bucket is full again */
	/* Lines not written since the last report. */
	_Atomic uint32_t dropped[GPD_LOG_BUDGET_KINDS];
};

/* An entry of the table in the ledger, written by the supervisor. */
struct gpd_log_budget {
	_Atomic uint32_t state;             /* free, being named, or named (log_budget.c) */
	char name[GPD_LOG_BUDGET_NAME_MAX]; /* name of the owner; valid once named */
	/* Index of the tenant that has the buckets in its part of the ledger; -1: `own` is used. */
	int32_t tenant;
	struct gpd_log_bucket own;
};

/* Sets the ledger whose table this process uses (NULL: none); the ledger must stay mapped until a
 * call with NULL. Called before other threads use budgets. While no table is set,
 * gpd_log_budget_log() writes every line. */
void gpd_log_budget_set_ledger(struct gpd_ledger *ledger);

/* Returns the index of the budget with this name in the owner's half, and creates it if necessary.
 * Returns the index of the half's shared budget if no entry is free, no ledger is set, or in a
 * worker. The index
 * stays valid while a session in the ledger has it as log_budget, or until the budget is full
 * again; other callers look it up for each line. */
uint32_t gpd_log_budget_get(enum gpd_log_budget_owner owner, const char *name);
/* Returns the index of the budget of the sessions from this address of the tenant with this name,
 * as gpd_log_budget_get() does. */
uint32_t gpd_log_budget_get_for_sessions(const char *tenant, const char *address);

/* Consumes one line of the budget at this index (from gpd_log_budget_get()). Returns true if the
 * line may be written. Returns false if no line is left; the line then counts as dropped. A ledger
 * must be set. now_ms: time of gp_now_ms(). */
bool gpd_log_budget_consume(uint32_t index, enum gpd_log_budget_kind kind, int64_t now_ms);
/* Writes a line by gpd_log() if the budget allows it; otherwise the line counts as dropped. Lines
 * less severe than gpd_log_level are not written and consume nothing. Lines of an address count as
 * warnings at any level. */
void gpd_log_budget_log(uint32_t budget, enum gpd_log_level level, const char *format, ...)
	GP_PRINTF(3, 4);
/* Logs the numbers of dropped lines, and frees entries that are full again and that no session in
 * the ledger refers to. Called periodically by the supervisor's main thread only, while a ledger is
 * set. */
void gpd_log_budget_check(int64_t now_ms);

#endif /* GPD_LOG_BUDGET_H */
