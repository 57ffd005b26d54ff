/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/memory/grant.h"

#include "server/common/ledger/ledger.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/memory/physical.h"
#include "server/worker/session/session.h"

#include <stdlib.h>

struct gpd_grant {
	uint64_t size;
	int device;
	CUmemGenericAllocationHandle handle;
};

static void
count(const struct gpd_session *session, int device, uint64_t size)
{
	atomic_store(&session->account.line->devices[device].granted, size);
}

static int
first_device(const struct gpd_session *session)
{
	for (int i = 0; i < gpd_devices.count; i++) {
		if (gpd_account_may_use(&session->account, i))
			return i;
	}
	return -1;
}

uint64_t
gpd_grant_make(struct gpd_session *session, int *device_p)
{
	struct gpd_account *account = &session->account;
	struct gpd_grant *grant = calloc(1, sizeof(*grant));
	int device = first_device(session);

	/* Not gpd_account_allocate(), which waits for what others give back. */
	if (!grant || device < 0 ||
	    !gpd_ledger_take(account->ledger, account->line, device, GPD_HEAP_SIZE)) {
		free(grant);
		return 0;
	}
	if (gpd_device_enter(device) != CUDA_SUCCESS ||
	    gpd_physical_obtain(GPD_HEAP_SIZE, device, &grant->handle) != CUDA_SUCCESS) {
		gpd_account_free(account, device, GPD_HEAP_SIZE);
		free(grant);
		return 0;
	}
	grant->size = GPD_HEAP_SIZE;
	grant->device = *device_p = device;
	session->grant = grant;
	count(session, device, grant->size);
	return grant->size;
}

bool
gpd_grant_take(struct gpd_session *session, int device, uint64_t size,
	       CUmemGenericAllocationHandle *handle_p)
{
	struct gpd_grant *grant = session->grant;

	if (!grant || grant->size != size || grant->device != device)
		return false;
	*handle_p = grant->handle;
	count(session, device, 0);
	session->grant = NULL;
	free(grant);
	return true;
}

void
gpd_grant_forget(struct gpd_session *session)
{
	struct gpd_grant *grant = session->grant;

	if (!grant)
		return;
	gpd_driver.cuMemRelease(grant->handle);
	gpd_account_free(&session->account, grant->device, grant->size);
	count(session, grant->device, 0);
	session->grant = NULL;
	free(grant);
}
