/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session owners: a table with the client of each session (host, user, program, credentials), for
 * reports and logs. It complements the ledger, which contains usage only.
 *
 * An entry has the same index as the session's entry in the ledger, and is valid as long as the
 * ledger has that session there. An entry is not removed: the next session at the index overwrites
 * it.
 *
 * Ownership: gpd_session_owners_init() to gpd_session_owners_fini(). Entries contain copies of all
 * strings.
 * Threads: the supervisor's main thread writes; other threads read with the lock of the report
 * source (report.h) held.
 */
#ifndef GPD_SESSION_OWNERS_H
#define GPD_SESSION_OWNERS_H

#include "protocol/control.h"
#include "server/supervisor/auth/authorization.h"
#include "server/supervisor/tenancy/tenants.h"

#include <stdint.h>

/* The client of a session. Strings are printable. */
struct gpd_session_owner {
	uint64_t session;  /* ID of the session; 0: no session yet */
	int64_t started_s; /* start of the session, in seconds since 1970-01-01 UTC */
	uint32_t devices;  /* bit n: the session can see device n */
	uint32_t pid;      /* process ID on its machine, as reported by the client */
	char host[64], user[64], program[64]; /* as reported by the client */
	uint8_t program_key[32];              /* Hello.program_key; zero: none */
	char address[80];                     /* as returned by gp_conn_peer() */
	char credentials[200];                /* text of gpd_session_owner_format_credentials() */
};

/* The table. */
struct gpd_session_owners {
	struct gpd_session_owner *clients; /* array of GPD_LEDGER_SESSIONS entries, owned */
};

/* Allocates the table. Returns 0; or -ENOMEM, and nothing has to be freed. */
int gpd_session_owners_init(struct gpd_session_owners *session_owners);
/* Frees the table. */
void gpd_session_owners_fini(struct gpd_session_owners *session_owners);

/* Stores the client of a session that starts now, called when its ledger entry has been assigned.
 * The credentials are empty until gpd_session_owners_set_credentials(). index: of the session in
 * the ledger. session: its ID. address: as returned by gp_conn_peer(). */
void gpd_session_owners_set(struct gpd_session_owners *session_owners, uint32_t index,
			    uint64_t session, const Gpupool__Hello *hello,
			    const struct gpd_assignment *assignment, const char *address);
/* Formats the credentials by which a client was authenticated: "token ID", "certificate NAME,
 * SERIAL", "local user N" or "--insecure". name and serial: of the client's certificate; NULL:
 * none. The text is printable and truncated to size bytes, at most 200. */
void gpd_session_owner_format_credentials(const struct gpd_principal *principal, const char *name,
					  const char *serial, char *credentials, size_t size);
/* Stores the text of the credentials in the entry at this index. name and serial: of the client's
 * certificate; NULL: none. */
void gpd_session_owners_set_credentials(struct gpd_session_owners *session_owners, uint32_t index,
					const struct gpd_principal *principal, const char *name,
					const char *serial);
/* Returns the entry at this index if it belongs to the session with this ID, else a static empty
 * entry; never NULL. Owned by the table. */
const struct gpd_session_owner *gpd_session_owner(const struct gpd_session_owners *session_owners,
						  uint32_t index, uint64_t session);

#endif /* GPD_SESSION_OWNERS_H */
