/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/device/mapping_quota.h"

bool
gpd_mapping_quota_acquire(struct gpd_mapping_quota *quota, atomic_uint *used)
{
	unsigned int before = atomic_fetch_add(used, 1);

	if (before < quota->part)
		return true;
	if (before < quota->max) {
		if (atomic_fetch_add(&quota->extra, 1) < quota->more)
			return true;
		(void)atomic_fetch_sub(&quota->extra, 1);
	}
	(void)atomic_fetch_sub(used, 1);
	return false;
}

void
gpd_mapping_quota_release(struct gpd_mapping_quota *quota, atomic_uint *used)
{
	if (atomic_fetch_sub(used, 1) > quota->part)
		(void)atomic_fetch_sub(&quota->extra, 1);
}
