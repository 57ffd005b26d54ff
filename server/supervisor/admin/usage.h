/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage records for accounting: a CSV file with the resources that each session has used, which
 * persists across restarts of the daemon.
 *
 * A record is written when a session ends, and every few minutes while it runs: the last record of
 * a session on a device is the valid one. Sessions without usage, and short sessions above a rate
 * limit, are summed up per tenant. A file that has reached its maximum size is renamed to FILE.1,
 * replacing the previous one. Records that cannot be written (disk full) are kept in memory and
 * retried, with a message in the log; records that are dropped in the end are counted. The file is
 * opened for each write, so it can be moved at any time.
 *
 * Threads: the supervisor's main thread.
 */
#ifndef GPD_USAGE_H
#define GPD_USAGE_H

#include "server/supervisor/admission/admission.h"

#include <stddef.h>
#include <stdint.h>

/* Maximum size in bytes of the file and of FILE.1. */
#define GPD_USAGE_FILE_MAX ((int64_t)256 << 20)

/* Rate limit per tenant of records for sessions shorter than five minutes: RECORDS at once, plus
 * one more per RECORD_MS. The others are summed up; longer sessions are few. */
#define GPD_USAGE_RECORDS 1000
#define GPD_USAGE_RECORD_MS 1000

/* Sessions without records of their own. */
enum gpd_usage_sum_kind {
	GPD_USAGE_UNUSED, /* without any usage */
	GPD_USAGE_SUMMED, /* above the rate limit */
	GPD_USAGE_SUMS,
};

/* Sums over those of a tenant since the last record of the sums. */
struct gpd_usage_sum {
	char tenant[GPD_TENANT_NAME_MAX];
	uint64_t sessions;
	/* UNUSED: since_s: end of the first one; SUMMED: seconds: total duration. */
	int64_t since_s, seconds;
	uint32_t devices; /* bit per ordinal of a device visible to any of them */
	struct gpd_ledger_counts counts;
	uint64_t gpu_ns[GPD_LEDGER_DEVICES], memory_peak[GPD_LEDGER_DEVICES];
};

struct gpd_usage {
	char path[GPD_CONFIG_PATH_MAX]; /* "": none are written */
	const struct gpd_admission *admission;
	char *pending; /* records that are not written yet */
	size_t used, room;
	uint64_t pending_count, lost;
	int64_t next_ms;  /* time of the next records of running sessions */
	int64_t retry_ms; /* time of the next attempt to write; 0: the last one succeeded */
	struct gpd_usage_sum sums[GPD_USAGE_SUMS][GPD_LEDGER_TENANTS];
	/* Rate limit: time at which the tenant may write GPD_USAGE_RECORDS at once again. */
	int64_t until_ms[GPD_LEDGER_TENANTS];
};

/* Initializes the records without a file. */
void gpd_usage_init(struct gpd_usage *usage, const struct gpd_admission *admission);
/* Sets the file ("": none). Returns 0, or -1 with a text in error if it cannot be written; the
 * previous file is used then. */
GP_MUST_CHECK int gpd_usage_set_path(struct gpd_usage *usage, const char *path, char *error,
				     size_t error_size);
/* Sets a file that cannot be written at the moment: records are kept in memory and retried. */
void gpd_usage_set_path_deferred(struct gpd_usage *usage, const char *path);
/* Records the end of a session whose ledger entry still exists. usage is a struct gpd_usage
 * (callback of quota.h). */
void gpd_usage_ended(void *usage, const struct gpd_ledger_session *session);
/* Called in each iteration of the loop: writes records that are due. */
void gpd_usage_check(struct gpd_usage *usage, int64_t now_ms);
/* Writes the records of all sessions, which end with the daemon. */
void gpd_usage_close(struct gpd_usage *usage);

#endif /* GPD_USAGE_H */
