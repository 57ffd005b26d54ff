/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Physical memory that several sessions of a tenant may use: it goes back to the driver with the
 * last use.  The session that has used it for longest pays for it, and when that one leaves, the
 * next; the tenant's sum stays the same.
 *
 * Belongs to its users.  Whoever has a use may call, on any thread.
 */
#ifndef GPD_SHARED_H
#define GPD_SHARED_H

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
		*users; /* utlist; the first one pays; under shared.c's lock */
};

/* Of memory that the account's session has and pays for, which is its first use.  NULL: there is no
 * memory for it. */
struct gpd_shared_physical *gpd_shared_physical_create(const struct gpd_account *account,
						       CUmemGenericAllocationHandle handle,
						       uint64_t size, int device);
/* One more use; false: there is no memory for it. */
bool gpd_shared_physical_ref(struct gpd_shared_physical *shared, const struct gpd_account *account);
/* One use less, before the session's line is closed. */
void gpd_shared_physical_unref(struct gpd_shared_physical *shared,
			       const struct gpd_account *account);

#endif /* GPD_SHARED_H */
