/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory that several sessions of a tenant use. It is freed in the driver with its last
 * use. The session with the oldest use is charged for it; when that session drops its last use, the
 * charge moves to the next session, so the tenant's total stays the same.
 *
 * Ownership: reference counted; each reference belongs to a session, identified by its account.
 * Threads: any that has a reference. The module has a lock of its own.
 */
#ifndef GPD_SHARED_PHYSICAL_H
#define GPD_SHARED_PHYSICAL_H

#include "server/common/ledger/ledger.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_account;
struct gpd_shared_physical_user;

struct gpd_shared_physical {
	CUmemGenericAllocationHandle handle; /* owned */
	uint64_t size;
	int device;
	struct gpd_ledger *ledger; /* borrowed */
	/* List (utlist) of the sessions that use the memory, owned; the first one is charged.
	 * Protected by the lock of shared_physical.c. */
	struct gpd_shared_physical_user *users;
};

/* Creates the struct for memory that the account's session owns and is charged for, with one
 * reference of that session. On success the struct takes over the handle and the charge. Returns
 * NULL if memory is exhausted; the caller then keeps both. */
struct gpd_shared_physical *gpd_shared_physical_create(const struct gpd_account *account,
						       CUmemGenericAllocationHandle handle,
						       uint64_t size, int device);
/* Adds a reference of the account's session, which must be of the same tenant. The caller has a
 * reference, or holds a lock that keeps another one. Returns false, without a change, if memory is
 * exhausted. */
bool gpd_shared_physical_ref(struct gpd_shared_physical *shared, const struct gpd_account *account);
/* Drops a reference of the account's session, which must have one. Dropping the last reference of
 * all sessions frees the memory, its charge and the struct. Called before the session's entry in
 * the ledger is closed. */
void gpd_shared_physical_unref(struct gpd_shared_physical *shared,
			       const struct gpd_account *account);

#endif /* GPD_SHARED_PHYSICAL_H */
