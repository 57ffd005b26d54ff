/* SPDX-License-Identifier: Apache-2.0 */
#include "server/common/ledger/log_budget.h"

#include "base/clock.h"
#include "server/common/ledger/ledger.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum state {
	FREE,
	NAMING, /* a thread has claimed the entry and writes its name */
	NAMED,
};

static struct gpd_ledger *ledger;
/* In a worker, for lines of each owner that have no budget in a tenant's part. */
static struct gpd_log_bucket worker_buckets[GPD_LOG_BUDGET_OWNERS];

static const char *const others[GPD_LOG_BUDGET_OWNERS] = {
	[GPD_LOG_BUDGET_ADDRESS] = "other addresses",
	[GPD_LOG_BUDGET_SESSIONS] = "sessions of other tenants and addresses",
};

void
gpd_log_budget_set_ledger(struct gpd_ledger *used)
{
	ledger = used;
}

static enum gpd_log_budget_owner
budget_get_owner(uint32_t budget)
{
	return budget / GPD_LOG_BUDGETS;
}

static struct gpd_log_bucket *
budget_get_bucket(uint32_t index)
{
	struct gpd_log_budget *budget = &ledger->log_budgets[index];

	if (atomic_load(&budget->state) == NAMED && budget->tenant >= 0)
		return &ledger->tenants[budget->tenant].log_buckets[index % GPD_LOG_BUDGETS];
	return gpd_ledger_is_attached(ledger) ? &worker_buckets[budget_get_owner(index)]
					      : &budget->own;
}

bool
gpd_log_budget_consume(uint32_t index, enum gpd_log_budget_kind kind, int64_t now_ms)
{
	struct gpd_log_bucket *bucket = budget_get_bucket(index);
	int64_t each =
		kind == GPD_LOG_BUDGET_INFO ? GPD_LOG_BUDGET_LINE_MS : GPD_LOG_BUDGET_WARNING_MS;
	int64_t lines =
		kind == GPD_LOG_BUDGET_INFO ? GPD_LOG_BUDGET_LINES : GPD_LOG_BUDGET_WARNINGS;
	int64_t before = atomic_load(&bucket->until_ms[kind]), start;

	do {
		start = before > now_ms ? before : now_ms;
		if (start + each > now_ms + lines * each) {
			(void)atomic_fetch_add(&bucket->dropped[kind], 1);
			return false;
		}
	} while (!atomic_compare_exchange_weak(&bucket->until_ms[kind], &before, start + each));
	return true;
}

void
gpd_log_budget_log(uint32_t budget, enum gpd_log_level level, const char *format, ...)
{
	bool news = level > GPD_LOG_WARNING && budget_get_owner(budget) == GPD_LOG_BUDGET_SESSIONS;
	char text[1024];
	va_list args;

	if (level > gpd_log_level)
		return;
	if (ledger && budget < GPD_LOG_BUDGET_OWNERS * GPD_LOG_BUDGETS &&
	    !gpd_log_budget_consume(budget, news ? GPD_LOG_BUDGET_INFO : GPD_LOG_BUDGET_WARNING,
				    gp_now_ms()))
		return;
	va_start(args, format);
	(void)vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	gpd_log(level, "%s", text);
}

static bool
budget_has_name(struct gpd_log_budget *budget, const char *name)
{
	return atomic_load(&budget->state) == NAMED && strcmp(budget->name, name) == 0;
}

/* Claims the entry for this name. tenant: index in the ledger; -1: none. Returns false if the entry
 * is not free. */
static bool
budget_claim(uint32_t index, const char *name, int32_t tenant)
{
	struct gpd_log_budget *budget = &ledger->log_budgets[index];
	uint32_t state = FREE;
	struct gpd_log_bucket *bucket;

	if (!atomic_compare_exchange_strong(&budget->state, &state, NAMING))
		return false;
	budget->tenant = tenant;
	(void)snprintf(budget->name, sizeof(budget->name), "%s", name);
	bucket = tenant < 0 ? &budget->own
			    : &ledger->tenants[tenant].log_buckets[index % GPD_LOG_BUDGETS];
	for (int k = 0; k < GPD_LOG_BUDGET_KINDS; k++) {
		atomic_store(&bucket->until_ms[k], 0);
		atomic_store(&bucket->dropped[k], 0);
	}
	atomic_store(&budget->state, NAMED);
	return true;
}

/* Two threads that look up a new name at the same time may create an entry each; later lookups find
 * the first of them. */
static uint32_t
budget_get(enum gpd_log_budget_owner owner, const char *name, int32_t tenant)
{
	uint32_t shared = owner * GPD_LOG_BUDGETS, end = shared + GPD_LOG_BUDGETS;

	if (!ledger || gpd_ledger_is_attached(ledger))
		return shared;
	for (uint32_t i = shared + 1; i < end; i++) {
		if (budget_has_name(&ledger->log_budgets[i], name))
			return i;
	}
	for (uint32_t i = shared + 1; i < end; i++) {
		if (budget_claim(i, name, tenant))
			return i;
	}
	(void)budget_claim(shared, others[owner], -1);
	return shared;
}

uint32_t
gpd_log_budget_get(enum gpd_log_budget_owner owner, const char *name)
{
	return budget_get(owner, name, -1);
}

/* Returns the tenant's index in the ledger, or -1. */
static int32_t
find_tenant(const char *name)
{
	for (int32_t i = 0; ledger && i < GPD_LEDGER_TENANTS; i++) {
		if (strcmp(ledger->tenants[i].name, name) == 0)
			return i;
	}
	return -1;
}

uint32_t
gpd_log_budget_get_for_sessions(const char *tenant, const char *address)
{
	char name[GPD_LOG_BUDGET_NAME_MAX];

	(void)snprintf(name, sizeof(name), "sessions of tenant %s from %s", tenant, address);
	return budget_get(GPD_LOG_BUDGET_SESSIONS, name, find_tenant(tenant));
}

static void
budget_report_dropped(uint32_t index)
{
	struct gpd_log_budget *budget = &ledger->log_budgets[index];
	struct gpd_log_bucket *bucket = budget_get_bucket(index);
	uint32_t news = atomic_exchange(&bucket->dropped[GPD_LOG_BUDGET_INFO], 0);
	uint32_t warnings = atomic_exchange(&bucket->dropped[GPD_LOG_BUDGET_WARNING], 0);
	unsigned long long all = (unsigned long long)news + warnings;

	if (all && budget_get_owner(index) == GPD_LOG_BUDGET_ADDRESS)
		gpd_warning("%s: %llu further lines suppressed", budget->name, all);
	else if (all)
		gpd_warning("%s: %llu further lines suppressed, %u of them warnings", budget->name,
			    all, warnings);
}

static bool
bucket_is_full(const struct gpd_log_bucket *bucket, int64_t now_ms)
{
	for (int k = 0; k < GPD_LOG_BUDGET_KINDS; k++) {
		if (atomic_load(&bucket->until_ms[k]) > now_ms)
			return false;
	}
	return true;
}

void
gpd_log_budget_check(int64_t now_ms)
{
	bool used[GPD_LOG_BUDGET_OWNERS * GPD_LOG_BUDGETS] = { false };

	for (const struct gpd_ledger_session *s = NULL;
	     (s = gpd_ledger_next(ledger, s, GPD_LEDGER_ANY_WORKER));)
		used[s->log_budget] = true;
	for (uint32_t i = 0; i < sizeof(used) / sizeof(used[0]); i++) {
		struct gpd_log_budget *budget = &ledger->log_budgets[i];

		if (atomic_load(&budget->state) != NAMED)
			continue;
		budget_report_dropped(i);
		if (!used[i] && bucket_is_full(budget_get_bucket(i), now_ms))
			atomic_store(&budget->state, FREE);
	}
}
