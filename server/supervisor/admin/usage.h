/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage records for accounting: a CSV file with the resources that each session has used, which
 * persists across restarts of the daemon.
 *
 * For each device that a session can see, a record is written when the session ends, and every 5
 * minutes while it runs. It contains the usage since the session's start, so the last record of a
 * session on a device is the valid one. Counts that are not per device are in the record of the
 * session's first device. Sessions without usage, and short sessions above a rate limit, are summed
 * up per tenant. A file that has reached its maximum size is renamed to FILE.1, replacing the
 * previous FILE.1. The file is opened for each write, so it can be moved at any time.
 *
 * Records that cannot be written (disk full) are kept in memory, at most 4 MiB, and retried every
 * 10 s, with a message in the log. Records beyond that are dropped and counted in `lost`.
 *
 * Ownership: gpd_usage_init() to gpd_usage_close().
 * Threads: the supervisor's main thread. Writes are synchronous and may wait for the disk.
 * Units: times with _ms are milliseconds of gp_now_ms().
 */
#ifndef GPD_USAGE_H
#define GPD_USAGE_H

#include "server/supervisor/admission/admission.h"

#include <stddef.h>
#include <stdint.h>

/* Maximum size in bytes of the file and of FILE.1. */
#define GPD_USAGE_FILE_MAX ((int64_t)256 << 20)

/* Rate limit per tenant of records for sessions shorter than five minutes: RECORDS at once, plus
 * one more per RECORD_MS milliseconds. Short sessions above the limit are summed up; longer
 * sessions always get records. */
#define GPD_USAGE_RECORDS 1000
#define GPD_USAGE_RECORD_MS 1000

/* Kinds of sessions without records of their own. */
enum gpd_usage_sum_kind {
	GPD_USAGE_UNUSED, /* sessions without any usage */
	GPD_USAGE_SUMMED, /* short sessions above the rate limit */
	GPD_USAGE_SUMS,   /* number of kinds */
};

/* Sums over the sessions of a tenant and of one kind, since the sums were last recorded. */
struct gpd_usage_sum {
	char tenant[GPD_TENANT_NAME_MAX];
	uint64_t sessions; /* number of sessions; 0: the entry is unused */
	/* since_s: only with GPD_USAGE_UNUSED: end of the first session, in seconds since
	 * 1970-01-01 UTC. seconds: only with GPD_USAGE_SUMMED: sum of the sessions' durations. */
	int64_t since_s, seconds;
	uint32_t devices; /* bit n: device n gets a record; with GPD_USAGE_UNUSED only bit 0 */
	struct gpd_ledger_counts counts;
	/* By device: sum of the GPU time, and the highest peak of any of the sessions in bytes. */
	uint64_t gpu_ns[GPD_LEDGER_DEVICES], memory_peak[GPD_LEDGER_DEVICES];
};

/* State of the usage records. */
struct gpd_usage {
	char path[GPD_CONFIG_PATH_MAX]; /* path of the file; "": no records are written */
	const struct gpd_admission *admission;
	char *pending;                /* records that are not written yet, as text; owned */
	size_t used, capacity;        /* bytes used and allocated of pending */
	uint64_t pending_count, lost; /* numbers of records in pending and of records dropped */
	/* Time at which the next records of running sessions are due; 0: not set yet. */
	int64_t next_ms;
	int64_t retry_ms; /* time of the next attempt to write; 0: the last attempt succeeded */
	/* Second index: the tenant's index in the ledger. */
	struct gpd_usage_sum sums[GPD_USAGE_SUMS][GPD_LEDGER_TENANTS];
	/* Rate limit, by the tenant's index in the ledger: time at which the tenant may write
	 * GPD_USAGE_RECORDS at once again. */
	int64_t until_ms[GPD_LEDGER_TENANTS];
};

/* Initializes the records without a file: usage of ended sessions is dropped until
 * gpd_usage_set_path(). admission must outlive the records. */
void gpd_usage_init(struct gpd_usage *usage, const struct gpd_admission *admission);
/* Sets the file; "": no records. Records in memory are first written to the previous file; if that
 * fails, they are written to the new one later. path is copied; at most GPD_CONFIG_PATH_MAX - 1
 * bytes. Returns 0, also if path is the current one; or -1 with a text in error if the file cannot
 * be written, and the previous file stays in use. */
GP_MUST_CHECK int gpd_usage_set_path(struct gpd_usage *usage, const char *path, char *error,
				     size_t error_size);
/* Sets a file that cannot be written at the moment, instead of gpd_usage_set_path() at the start:
 * records are kept in memory and writing is retried. */
void gpd_usage_set_path_deferred(struct gpd_usage *usage, const char *path);
/* The callback gpd_quota.ended (quota.h): records the end of a session, whose ledger entry is still
 * valid. arg: the struct gpd_usage. Does nothing without a file. The record is kept in memory until
 * gpd_usage_check(). */
void gpd_usage_ended(void *arg, const struct gpd_ledger_session *session);
/* Called in each iteration of the loop: records running sessions when that is due, and writes the
 * records in memory. */
void gpd_usage_check(struct gpd_usage *usage, int64_t now_ms);
/* Records all sessions in the ledger as ended, because they end with the daemon, writes all
 * records, and frees the memory. Records that cannot be written are lost, with a message in the
 * log. */
void gpd_usage_close(struct gpd_usage *usage);

#endif /* GPD_USAGE_H */
