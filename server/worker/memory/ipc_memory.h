/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that a session exports to other sessions of its tenant (gpMemoryShare and similar calls,
 * whose hooks are declared in gpd_calls.h). Each export has an ID chosen by the client, a secret
 * (session/ipc_export.h) and a reference to the memory. The export of a memory pool has no memory;
 * exports of the pool's memory refer to it.
 *
 * Ownership: the session's handle table refers to the exports, and this module frees them. Each
 * export has a reference to its memory, which may outlive the session.
 * Threads: executor only.
 */
#ifndef GPD_IPC_MEMORY_H
#define GPD_IPC_MEMORY_H

struct gpd_session;

/* Withdraws and frees all exports at the session's end. To be called before gpd_memory_unmap_all()
 * (memory.h). */
void gpd_memory_exports_destroy(struct gpd_session *session);

#endif /* GPD_IPC_MEMORY_H */
