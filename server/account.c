/* SPDX-License-Identifier: Apache-2.0 */
#include "server/account.h"

#include "server/schedule.h"

static bool
is_device(int device)
{
	return device >= 0 && device < GPD_LEDGER_DEVICES;
}

bool
gpd_account_may_use(const struct gpd_account *account, int device)
{
	return is_device(device) && atomic_load(&account->line->devices[device].allowed);
}

CUresult
gpd_account_allocate(struct gpd_account *account, int device, uint64_t bytes)
{
	if (!gpd_account_may_use(account, device))
		return CUDA_ERROR_INVALID_DEVICE;
	return gpd_ledger_take(account->ledger, account->line, device, bytes)
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_OUT_OF_MEMORY;
}

void
gpd_account_free(struct gpd_account *account, int device, uint64_t bytes)
{
	if (is_device(device))
		gpd_ledger_give(account->ledger, account->line, device, bytes);
}

void
gpd_account_launch(struct gpd_account *account)
{
	gpd_ledger_count(&account->line->counts.launches, 1);
}

void
gpd_account_copy(struct gpd_account *account, uint64_t in, uint64_t out)
{
	gpd_schedule_pause(account->schedule);
	gpd_ledger_count(&account->line->counts.copies, 1);
	if (in)
		gpd_ledger_count(&account->line->counts.copied_in, in);
	if (out)
		gpd_ledger_count(&account->line->counts.copied_out, out);
}

struct gpd_ledger_room
gpd_account_room(const struct gpd_account *account, int device)
{
	return gpd_ledger_room(account->ledger, account->line, device);
}
