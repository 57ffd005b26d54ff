/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the ledger does not say of sessions: whose they are.
 *
 * A client has the same place here as its session in the ledger, and counts as long as the ledger
 * has that session there; so nothing is ever taken out.  The main thread writes, others read under
 * the lock of whoever owns the roster.
 */
#ifndef GPD_ROSTER_H
#define GPD_ROSTER_H

#include "protocol/control.h"
#include "server/supervisor/door/auth.h"
#include "server/supervisor/tenancy/tenants.h"

#include <stdint.h>

struct gpd_session_owner {
	uint64_t session;
	int64_t started_s; /* since 1970 */
	uint32_t devices;  /* bit: ordinal that it sees */
	uint32_t pid;
	char host[64], user[64], program[64]; /* as the client says */
	char address[80];
	char credentials[200]; /* by which it was let in */
};

struct gpd_session_owners {
	struct gpd_session_owner *clients; /* GPD_LEDGER_SESSIONS */
};

/* 0 or -ENOMEM. */
int gpd_session_owners_init(struct gpd_session_owners *session_owners);
void gpd_session_owners_fini(struct gpd_session_owners *session_owners);

/* index: of the session's line in the ledger. */
void gpd_session_owners_set(struct gpd_session_owners *session_owners, uint32_t index,
			    uint64_t session, const Gpupool__Hello *hello,
			    const struct gpd_assignment *assignment, const char *address);
/* By what a client was let in, in words. */
void gpd_session_owner_format_credentials(const struct gpd_principal *principal, const char *name,
					  const char *serial, char *text, size_t size);
/* The same client, by what it was let in; name and serial number: of its certificate,
 * or NULL. */
void gpd_session_owners_set_credentials(struct gpd_session_owners *session_owners, uint32_t index,
					const struct gpd_principal *principal, const char *name,
					const char *serial);
/* Of the session with this id in this place, or an empty one. */
const struct gpd_session_owner *gpd_session_owner(const struct gpd_session_owners *session_owners,
						  uint32_t index, uint64_t session);

#endif /* GPD_ROSTER_H */
