/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session owners: a table with the client of each session (host, user, program, credentials), for
 * reports and logs. It complements the ledger, which contains usage only.
 *
 * An entry has the same index as the session's entry in the ledger, and is valid as long as the
 * ledger has that session there; so entries are never removed.
 *
 * Threads: the main thread writes; other threads read with the lock of the report source held.
 */
#ifndef GPD_SESSION_OWNERS_H
#define GPD_SESSION_OWNERS_H

#include "protocol/control.h"
#include "server/supervisor/auth/authorization.h"
#include "server/supervisor/tenancy/tenants.h"

#include <stdint.h>

struct gpd_session_owner {
	uint64_t session;
	int64_t started_s; /* seconds since 1970 */
	uint32_t devices;  /* bit per ordinal of a visible device */
	uint32_t pid;
	char host[64], user[64], program[64]; /* as reported by the client */
	char address[80];
	char credentials[200]; /* by which it was authenticated */
};

struct gpd_session_owners {
	struct gpd_session_owner *clients; /* array of GPD_LEDGER_SESSIONS entries, owned */
};

/* Returns 0 or -ENOMEM. */
int gpd_session_owners_init(struct gpd_session_owners *session_owners);
void gpd_session_owners_fini(struct gpd_session_owners *session_owners);

/* Stores the client of a new session. index: of the session in the ledger. */
void gpd_session_owners_set(struct gpd_session_owners *session_owners, uint32_t index,
			    uint64_t session, const Gpupool__Hello *hello,
			    const struct gpd_assignment *assignment, const char *address);
/* Formats how a client was authenticated: "token ID", "certificate NAME, SERIAL", "user N of this
 * machine" or "--insecure". */
void gpd_session_owner_format_credentials(const struct gpd_principal *principal, const char *name,
					  const char *serial, char *text, size_t size);
/* Adds the credentials to an entry; name and serial: of the client's certificate, or NULL. */
void gpd_session_owners_set_credentials(struct gpd_session_owners *session_owners, uint32_t index,
					const struct gpd_principal *principal, const char *name,
					const char *serial);
/* Returns the entry of the session with this ID at this index, or an empty one. Owned by the
 * table. */
const struct gpd_session_owner *gpd_session_owner(const struct gpd_session_owners *session_owners,
						  uint32_t index, uint64_t session);

#endif /* GPD_SESSION_OWNERS_H */
