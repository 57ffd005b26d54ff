/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quarantine: the table of programs whose kernels have faulted, or whose GPU work has continued
 * after its client had left, in a worker with other sessions. For the configured time a program in
 * quarantine gets workers of its own, so that its next fault ends no other session.
 *
 * An incident is a fault or a worker that has become WEDGED (worker_process.h); its candidates are
 * the programs that may have caused it. The only candidate of a fault is quarantined at once. Every
 * other candidate becomes a suspect, and is quarantined if it is a candidate again while it is one.
 * A program is identified by its tenant and the key that its client sends. Clients choose the key,
 * so the table has a limit for each tenant: a fault of one more program of a tenant with
 * GPD_QUARANTINE_TENANT_MAX entries quarantines the whole tenant.
 *
 * Ownership: the struct owns everything by value. Initialized to zeros.
 * Threads: the supervisor's main thread; other threads read with the lock of the report source
 * (report.h) held.
 * Units: `seconds` is the configured time, 0: no quarantine, which also ends all present ones;
 * now_ms is the time of gp_now_ms().
 */
#ifndef GPD_QUARANTINE_H
#define GPD_QUARANTINE_H

#include "server/common/ledger/ledger.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum number of entries, in total and of a tenant. */
#define GPD_QUARANTINE_MAX 256
#define GPD_QUARANTINE_TENANT_MAX 8
/* Size of the text of gpd_quarantine_explain(). */
#define GPD_QUARANTINE_TEXT_MAX 160

/* Identity of a program. Strings are printable. */
struct gpd_program {
	char tenant[GPD_TENANT_NAME_MAX];
	/* Hello.program_key; zero: the client sent none, and host, user and name identify the
	 * program. */
	uint8_t key[32];
	char host[64], user[64], name[64]; /* of the client that was a candidate last */
};

/* State of an entry. Every state ends at its time, and by gpd_quarantine_end(). */
enum gpd_quarantine_state {
	/* Initial state. */
	GPD_QUARANTINE_FREE,
	/* Entered when the program is one of several candidates, or its work became orphaned. */
	GPD_QUARANTINE_SUSPECT,
	/* Entered from FREE when the program is the only candidate of a fault, and from SUSPECT
	 * when it is a candidate again; each further incident extends it. */
	GPD_QUARANTINE_ACTIVE,
};

/* An entry of the table. */
struct gpd_quarantine_entry {
	enum gpd_quarantine_state state; /* changed by entry_set_state() only */
	uint64_t id;                     /* unique while the supervisor runs, from 1 */
	struct gpd_program program;
	bool whole_tenant; /* all programs of the tenant; the others of `program` are unused */
	bool certain;      /* the program was the only candidate of the last fault */
	int result;        /* CUresult of the last fault; 0: orphaned work */
	int64_t until_ms;  /* time at which the state ends */
	int64_t until_s;   /* the same, in seconds since 1970-01-01 UTC, for texts */
};

/* The table. */
struct gpd_quarantine {
	struct gpd_quarantine_entry entries[GPD_QUARANTINE_MAX];
	uint64_t last_id; /* of the newest entry; 0: none yet */
	uint64_t total;   /* number of entries that have become ACTIVE */
};

/* Sets *program. Text is made printable. key: size bytes; another size than 32 counts as none. */
void gpd_program_set(struct gpd_program *program, const char *tenant, const void *key, size_t size,
		     const char *host, const char *user, const char *name);

/* Returns whether both are the same program. */
bool gpd_program_equals(const struct gpd_program *a, const struct gpd_program *b);

/* Records an incident of `count` candidates, of which several may be the same program, and logs
 * each change. result: CUresult of the fault; 0: orphaned work. */
void gpd_quarantine_report(struct gpd_quarantine *quarantine, const struct gpd_program *candidates,
			   size_t count, int result, uint32_t seconds, int64_t now_ms);

/* Returns the entry because of which the program is in quarantine, borrowed until the next call;
 * NULL: it is not in quarantine. */
const struct gpd_quarantine_entry *gpd_quarantine_find(struct gpd_quarantine *quarantine,
						       const struct gpd_program *program,
						       uint32_t seconds, int64_t now_ms);

/* Frees the entries whose time is over; with seconds 0 all. The other functions do this
 * themselves. */
void gpd_quarantine_expire(struct gpd_quarantine *quarantine, uint32_t seconds, int64_t now_ms);

/* Ends the quarantine with this ID, and logs that. Returns false if there is none. */
bool gpd_quarantine_end(struct gpd_quarantine *quarantine, uint64_t id);

/* Writes why the entry exists, as "its kernel faulted with error 700". Returns text. */
const char *gpd_quarantine_explain(const struct gpd_quarantine_entry *entry,
				   char text[GPD_QUARANTINE_TEXT_MAX]);

/* Writes the end of the entry's state, as "12:34:56 UTC". Returns text. */
const char *gpd_quarantine_format_end(const struct gpd_quarantine_entry *entry, char text[32]);

#endif /* GPD_QUARANTINE_H */
