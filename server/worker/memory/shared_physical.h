/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory that several sessions of a tenant use. It is freed in the driver with its last
 * use. The session with the oldest use is charged for it; when that session drops it, the charge
 * moves to the next one, so the tenant's total stays the same.
 *
 * Ownership: reference counted by its users.
 * Threads: any that has a reference.
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
	CUmemGenericAllocationHandle handle;
	uint64_t size;
	int device;
	struct gpd_ledger *ledger;
	struct gpd_shared_physical_user
		*users; /* utlist; the first one is charged; shared_physical.c's lock */
};

/* Creates it for memory that the account's session owns and is charged for, which becomes its first
 * user. NULL: out of memory. */
struct gpd_shared_physical *gpd_shared_physical_create(const struct gpd_account *account,
						       CUmemGenericAllocationHandle handle,
						       uint64_t size, int device);
/* Adds a reference of the account's session; false: out of memory. */
bool gpd_shared_physical_ref(struct gpd_shared_physical *shared, const struct gpd_account *account);
/* Drops a reference; to be called before the session's ledger line is closed. */
void gpd_shared_physical_unref(struct gpd_shared_physical *shared,
			       const struct gpd_account *account);

#endif /* GPD_SHARED_PHYSICAL_H */
