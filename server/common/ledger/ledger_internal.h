/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions shared by the files of the ledger: ledger.c (entries, charges and host memory),
 * ledger_memory.c (the files), ledger_others.c (queries about other sessions) and ledger_link.c
 * (bandwidth limits).
 *
 * Ownership, threads, errors and units: as in ledger.h.
 */
#ifndef GPD_LEDGER_INTERNAL_H
#define GPD_LEDGER_INTERNAL_H

#include "server/common/ledger/ledger.h"

/* ledger_memory.c: maps the session's part from the file of its tenant; fd is borrowed. Returns
 * false with errno set. */
bool gpd_ledger_map_session(struct gpd_ledger *ledger, struct gpd_ledger_session *session, int fd);
/* ledger_memory.c: returns the pages of the session's part, which are zeros afterwards. */
void gpd_ledger_clear_session(struct gpd_ledger_session *session);

/* ledger_others.c: stores the function that sends queries; NULL: there are no other sessions. */
void gpd_ledger_set_query(gpd_ledger_send_query *send);
/* ledger_others.c: requests more of the host memory that all sessions share for the session's
 * tenant. Returns whether gpd_ledger_grant_host() has granted it. */
bool gpd_ledger_query_host(const struct gpd_ledger *ledger,
			   const struct gpd_ledger_session *session, uint64_t bytes);
/* ledger.c, in the supervisor: grants the tenant more of the host memory that all sessions share,
 * and withdraws what other tenants have not used. Returns false if there is not enough. */
bool gpd_ledger_grant_host(struct gpd_ledger *ledger, struct gpd_ledger_tenant *tenant,
			   uint64_t bytes);

/* ledger_link.c: returns time that was reserved on the tenant's link. */
void gpd_ledger_refund_link(struct gpd_ledger_tenant *tenant, uint64_t ns);

#endif /* GPD_LEDGER_INTERNAL_H */
