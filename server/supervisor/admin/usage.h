/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Usage records: what each session has used, in a file of CSV that outlives the daemon, so that
 * somebody can be billed, or asked.
 *
 * A record is written when a session ends, and every few minutes of one that goes on: the last one
 * of a session on a device counts.  Sessions that have used nothing, and short ones of which there
 * are very many, are summed up for each tenant.  A file that has reached its largest size becomes
 * FILE.1, in place of the one before.  What cannot be written (a full disk) is kept in memory and
 * tried again, the log says so, and what is dropped at last is counted.  The file is opened for
 * each write, so it may be moved away at any time.  Main thread of the supervisor.
 */
#ifndef GPD_USAGE_H
#define GPD_USAGE_H

#include "server/supervisor/admission/admission.h"

#include <stddef.h>
#include <stdint.h>

/* A file is not longer, and neither is the one before it. */
#define GPD_USAGE_FILE_MAX ((int64_t)256 << 20)

/* Records of sessions that have lasted less than five minutes: so many at once, and one more in
 * each of these times, for each tenant.  The rest are summed up: longer ones are few. */
#define GPD_USAGE_RECORDS 1000
#define GPD_USAGE_RECORD_MS 1000

/* Sessions without records of their own. */
enum gpd_usage_sum_kind {
	GPD_USAGE_UNUSED, /* have used nothing */
	GPD_USAGE_SUMMED, /* are too many */
	GPD_USAGE_SUMS,
};

/* Those of a tenant since the last record of them. */
struct gpd_usage_sum {
	char tenant[GPD_TENANT_NAME_MAX];
	uint64_t sessions;
	int64_t since_s,
		seconds;  /* UNUSED: when the first one ended; SUMMED: how long they lasted */
	uint32_t devices; /* bit: ordinal that one of them saw */
	struct gpd_ledger_counts counts;
	uint64_t gpu_ns[GPD_LEDGER_DEVICES], memory_peak[GPD_LEDGER_DEVICES];
};

struct gpd_usage {
	char path[GPD_CONFIG_PATH_MAX]; /* "": none are written */
	const struct gpd_admission *admission;
	char *pending; /* lines that are not written yet */
	size_t used, room;
	uint64_t pending_count, lost;
	int64_t next_ms;  /* when those that go on are written again */
	int64_t retry_ms; /* when what is pending is tried again; 0: nothing failed */
	struct gpd_usage_sum sums[GPD_USAGE_SUMS][GPD_LEDGER_TENANTS];
	/* Then a tenant may have GPD_USAGE_RECORDS at once again. */
	int64_t until_ms[GPD_LEDGER_TENANTS];
};

void gpd_usage_init(struct gpd_usage *usage, const struct gpd_admission *admission);
/* From now on there ("": nowhere).  0, or -1: the file cannot be written, and error says why. */
GP_MUST_CHECK int gpd_usage_set_path(struct gpd_usage *usage, const char *path, char *error,
				     size_t error_size);
/* Likewise, of a file that cannot be written at the moment: what there is is kept, and tried again.
 */
void gpd_usage_set_path_deferred(struct gpd_usage *usage, const char *path);
/* The session ends, and its line in the ledger still has what it used. */
void gpd_usage_ended(void *usage, const struct gpd_ledger_session *session);
/* Once in a while. */
void gpd_usage_check(struct gpd_usage *usage, int64_t now_ms);
/* Writes what there is of all sessions. */
void gpd_usage_close(struct gpd_usage *usage);

#endif /* GPD_USAGE_H */
