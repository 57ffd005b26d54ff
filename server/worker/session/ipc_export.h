/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Table of IPC exports: objects of a session that other sessions of its tenant may open. The
 * opening program presents an IPC handle (protocol/ipc_handle.h), which contains the export's
 * number and a random secret. The table is common to all sessions of the worker.
 *
 * Ownership: an export is embedded in its owner's object and must stay valid from
 * gpd_ipc_export_create() to gpd_ipc_export_withdraw(). A session that opens the object must add a
 * reference to it before it unlocks the table.
 * Threads: any; gpd_ipc_exports_lock protects the table. Functions without the suffix _locked
 * acquire the lock.
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

/* One exported object. The owner sets kind and thing and initializes the rest to zeros;
 * gpd_ipc_export_create() sets number, secret and entry. Once it is in the table, it is protected
 * by gpd_ipc_exports_lock; only the exporting session's executor changes it. */
struct gpd_ipc_export {
	UT_hash_handle hh;
	uint32_t number;                    /* key in the table; 0: not in the table */
	enum gp_ipc_kind kind;              /* kind of the object */
	uint8_t secret[GP_IPC_SECRET_SIZE]; /* random, part of the IPC handle; valid in the table */
	const struct gpd_ledger_session *entry; /* ledger entry of the exporting session */
	void *thing;                            /* the owner's object; its type depends on kind */
};

/* Protects the table of exports. */
extern pthread_mutex_t gpd_ipc_exports_lock;

/* Adds the export to the table, unless it is in it, and creates the IPC handle for the client, with
 * the members that do not depend on the kind; the caller sets the others and frees the handle with
 * free(). account: of the exporting session, whose executor calls it. NULL: out of memory, or no
 * random bytes were available; the export is then not added. */
struct gp_ipc_handle *gpd_ipc_export_create(const struct gpd_account *account,
					    struct gpd_ipc_export *ipc_export);
/* Removes the export from the table and erases its secret; it can no longer be opened. Does nothing
 * if it is not in the table. */
void gpd_ipc_export_withdraw(struct gpd_ipc_export *ipc_export);

/*
 * Finds the export to which an IPC handle refers, for a session of the same tenant, which may be
 * the exporting one. account: of that session. handle: bytes from the client, unchecked. Returns
 * CUDA_SUCCESS and sets *ipc_export_p, borrowed, valid while the lock is held.
 *
 * On failure returns one of the following errors and sets *why_p to the reason, a static string.
 * The caller passes it to gpd_session_refuse_handle() (session_send.h) after it has released the
 * lock.
 * CUDA_ERROR_INVALID_VALUE: the bytes are not a handle of this kind.
 * CUDA_ERROR_NOT_SUPPORTED: the handle is of another worker process.
 * CUDA_ERROR_INVALID_HANDLE: the handle is of another daemon or tenant, or its export was
 * withdrawn.
 */
CUresult gpd_ipc_export_find_locked(const struct gpd_account *account,
				    const struct gp_bytes *handle, enum gp_ipc_kind kind,
				    struct gpd_ipc_export **ipc_export_p, const char **why_p)
	GP_LOCKED(gpd_ipc_exports_lock);
#endif /* GPD_IPC_EXPORT_H */
