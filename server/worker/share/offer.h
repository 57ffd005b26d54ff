/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offers: things of a session that other sessions of its tenant may open, each by a handle with a
 * secret (protocol/ipc_handle.h).
 *
 * An offer lies in its owner's memory and is in one table of the worker from
 * gpd_ipc_export_create() to gpd_ipc_export_withdraw().  Who opens it takes what it stands for
 * while the table is locked.  Any thread.
 */
#ifndef GPD_OFFER_H
#define GPD_OFFER_H

#include "base/lock.h"
#include "protocol/ipc_handle.h"

#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

struct gp_bytes;
struct gpd_account;

struct gpd_ipc_export {
	UT_hash_handle hh;
	uint32_t number; /* 0: it is not in the table */
	enum gp_ipc_kind kind;
	uint8_t secret[GP_IPC_SECRET_SIZE];
	const struct gpd_ledger_session *line; /* of the session that has made it */
	void *thing;                           /* the owner's */
};

extern pthread_mutex_t gpd_ipc_exports_lock;

/* Enters the offer, whose kind and thing are set, if it is not there yet, and fills in what names
 * it in the handle; false: there is no secret to be had. */
bool gpd_ipc_export_create(const struct gpd_account *account, struct gpd_ipc_export *ipc_export,
			   struct gp_ipc_handle *handle);
/* Nobody opens it from now on. */
void gpd_ipc_export_withdraw(struct gpd_ipc_export *ipc_export);

/*
 * The offer that these bytes name, for a session of the same tenant that may be its own.  Else an
 * error, and *why_p says what is wrong, for gpd_session_refuse_handle() after the table is
 * unlocked.
 */
CUresult gpd_ipc_export_find_locked(const struct gpd_account *account,
				    const struct gp_bytes *handle, enum gp_ipc_kind kind,
				    struct gpd_ipc_export **ipc_export_p, const char **why_p)
	GP_LOCKED(gpd_ipc_exports_lock);
#endif /* GPD_OFFER_H */
