/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table of IPC exports: objects of a session that other sessions of its tenant may open by a handle
 * with a secret (protocol/ipc_handle.h).
 *
 * Ownership: an export is part of its owner's object. It is in the worker's table from
 * gpd_ipc_export_create() to gpd_ipc_export_withdraw(). A session that opens it acquires the object
 * while the table is locked.
 * Threads: any.
 */
#ifndef GPD_IPC_EXPORT_H
#define GPD_IPC_EXPORT_H

#include "base/lock.h"
#include "protocol/ipc_handle.h"

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

struct gp_bytes;
struct gpd_account;

/* One exported object. */
struct gpd_ipc_export {
	UT_hash_handle hh;
	uint32_t number; /* 0: not in the table */
	enum gp_ipc_kind kind;
	uint8_t secret[GP_IPC_SECRET_SIZE];
	const struct gpd_ledger_session *line; /* of the exporting session */
	void *thing;                           /* the owner's object */
};

extern pthread_mutex_t gpd_ipc_exports_lock;

/* Adds the export, whose kind and thing are set, to the table unless it is there, and fills in the
 * handle. Returns false if no random secret is available. */
bool gpd_ipc_export_create(const struct gpd_account *account, struct gpd_ipc_export *ipc_export,
			   struct gp_ipc_handle *handle);
/* Removes the export from the table; it can no longer be opened. */
void gpd_ipc_export_withdraw(struct gpd_ipc_export *ipc_export);

/*
 * Finds the export that a handle names, for a session of the same tenant, which may be the
 * exporting one. On failure returns an error and sets *why_p to the reason, for
 * gpd_session_refuse_handle() after the table is unlocked.
 */
CUresult gpd_ipc_export_find_locked(const struct gpd_account *account,
				    const struct gp_bytes *handle, enum gp_ipc_kind kind,
				    struct gpd_ipc_export **ipc_export_p, const char **why_p)
	GP_LOCKED(gpd_ipc_exports_lock);
#endif /* GPD_IPC_EXPORT_H */
