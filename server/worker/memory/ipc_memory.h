/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a session exports to other sessions of its tenant (gpMemoryShare): each export has a
 * name of the client's, a secret (share/offer.h) and a reference to the memory. The export of a
 * pool is only a name, which exports of the pool's memory refer to.
 *
 * Ownership: the session, through its handle table; each export has a reference to its memory.
 * Threads: executor only.
 */
#ifndef GPD_IPC_MEMORY_H
#define GPD_IPC_MEMORY_H

struct gpd_session;

/* Withdraws all exports at the session's end, before its memory is freed. */
void gpd_memory_exports_destroy(struct gpd_session *session);

#endif /* GPD_IPC_MEMORY_H */
