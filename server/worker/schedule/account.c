/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/schedule/account.h"

#include "base/clock.h"
#include "server/common/base/size_text.h"
#include "server/worker/schedule/schedule.h"

#include <stdio.h>

/* Maximum sleep: a wait also ends when the session is closing or its limit is lifted. */
#define NAP_MAX_NS UINT64_C(20000000)
#define LEAVING_NAP_NS 1000000

static bool
is_device(int device)
{
	return device >= 0 && device < GPD_LEDGER_DEVICES;
}

bool
gpd_account_may_use(const struct gpd_account *account, int device)
{
	return is_device(device) && atomic_load(&account->entry->devices[device].allowed);
}

int
gpd_account_get_first_device(const struct gpd_account *account)
{
	for (int i = 0; i < GPD_LEDGER_DEVICES; i++) {
		if (gpd_account_may_use(account, i))
			return i;
	}
	return -1;
}

/* Bit of the time of gpd_account_wait(): a free or a recall was pending at its last call. */
#define WAITED UINT64_C(1)

/* The ledger notes that this session is waiting: its executor cannot return cached memory now, so
 * other sessions must not wait for that. */
static void
nap_excused(struct gpd_account *account)
{
	uint64_t begin = gp_now_ns();

	atomic_store(&account->entry->waiting, 1);
	gp_sleep_ns(LEAVING_NAP_NS);
	atomic_store(&account->entry->waiting, 0);
	gpd_ledger_extend_recall(account->entry, gp_now_ns() - begin);
}

bool
gpd_account_wait(struct gpd_account *account, bool of_tenant, uint64_t *until)
{
	uint64_t now = gp_now_ns();

	if (!*until) {
		*until = (now + GPD_FREE_LATE_NS) & ~WAITED;
		if (account->recall &&
		    gpd_ledger_recall(account->ledger, account->entry, of_tenant)) {
			account->recall();
			*until |= WAITED;
		}
	}
	/* A session begins its frees before it ends the recall, so the recall is checked first. */
	if ((now <= *until - GPD_FREE_LATE_NS + GPD_RECALL_NS &&
	     gpd_ledger_has_pending_recall(account->ledger, account->entry, of_tenant)) ||
	    (now <= *until &&
	     gpd_ledger_has_pending_frees(account->ledger, account->entry, of_tenant,
					  now + GPD_FREE_LATE_NS - *until))) {
		*until |= WAITED;
		nap_excused(account);
		return true;
	}
	if (!(*until & WAITED))
		return false;
	/* They have ended since the caller's last attempt. */
	*until &= ~WAITED;
	return true;
}

void
gpd_account_wait_ended(struct gpd_account *account)
{
	const uint64_t until = gp_now_ns() + GPD_FREE_LATE_NS;
	bool ending = gpd_ledger_has_closing(account->ledger, account->entry);

	while (ending && !account->ending_timed_out && gp_now_ns() < until &&
	       !(account->closing && atomic_load(account->closing))) {
		nap_excused(account);
		ending = gpd_ledger_has_closing(account->ledger, account->entry);
	}
	account->ending_timed_out = ending;
}

static bool
quota_charge_wait(struct gpd_account *account, int line, uint64_t bytes)
{
	uint64_t until = 0;
	bool again;

	if (account->reclaim_memory && account->reclaim_memory(account) &&
	    gpd_ledger_charge(account->ledger, account->entry, line, bytes))
		return true;
	do {
		again = gpd_account_wait(account, true, &until);
		if (gpd_ledger_charge(account->ledger, account->entry, line, bytes))
			return true;
	} while (again);
	return false;
}

/* Returns the quota that `bytes` more would exceed, by its name in gpupoold.conf(5), with its use
 * and its size. NULL: no quota is exceeded. */
static const char *
quota_find_exceeded(const struct gpd_account *account, int line, uint64_t bytes, uint64_t *used_p,
		    uint64_t *max_p)
{
	const struct gpd_ledger_line *own = &account->entry->devices[line];
	const struct gpd_ledger_tenant_line *all =
		&account->ledger->tenants[account->entry->tenant].devices[line];
	uint64_t max = atomic_load(&own->memory_max);

	*used_p = atomic_load(&own->memory);
	*max_p = max;
	if (max != GPD_NO_LIMIT && (bytes > max || *used_p > max - bytes))
		return "session-memory";
	*used_p = atomic_load(&all->memory);
	*max_p = max = atomic_load(&all->memory_max);
	if (max == GPD_NO_LIMIT || (bytes <= max && *used_p <= max - bytes))
		return NULL;
	return line == GPD_LEDGER_CODE     ? "code-memory"
	       : line == GPD_LEDGER_PINNED ? "pinned-memory"
					   : "memory";
}

/* The program sees only that memory is exhausted. Logged once per quota, because some programs
 * retry again and again. */
static void
refusal_log(struct gpd_account *account, int line, uint64_t bytes)
{
	const uint64_t bit = UINT64_C(1) << line;
	char wanted[GPD_SIZE_TEXT_MAX], used[GPD_SIZE_TEXT_MAX], most[GPD_SIZE_TEXT_MAX];
	uint64_t in_use, max;
	const char *quota = quota_find_exceeded(account, line, bytes, &in_use, &max);
	char of[32] = "";

	if (!quota || atomic_fetch_or(&account->quotas_reported, bit) & bit)
		return;
	if (line < GPD_LEDGER_DEVICES)
		(void)snprintf(of, sizeof(of), " of device %d", line);
	gpd_log_budget_log(account->entry->log_budget, GPD_LOG_INFO,
			   "session %llu, tenant %s: out of memory: %s more%s: the quota %s is %s, "
			   "and %s of it are in use",
			   (unsigned long long)atomic_load(&account->entry->id),
			   account->ledger->tenants[account->entry->tenant].name,
			   gpd_size_format(bytes, wanted), of, quota, gpd_size_format(max, most),
			   gpd_size_format(in_use, used));
}

static CUresult
quota_refuse(struct gpd_account *account, int line, uint64_t bytes)
{
	gpd_ledger_count(&account->entry->counts.refusals, 1);
	refusal_log(account, line, bytes);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
quota_charge(struct gpd_account *account, int line, uint64_t bytes)
{
	if (gpd_ledger_charge(account->ledger, account->entry, line, bytes) ||
	    quota_charge_wait(account, line, bytes))
		return CUDA_SUCCESS;
	return quota_refuse(account, line, bytes);
}

CUresult
gpd_account_allocate(struct gpd_account *account, int device, uint64_t bytes)
{
	if (!gpd_account_may_use(account, device))
		return CUDA_ERROR_INVALID_DEVICE;
	return quota_charge(account, device, bytes);
}

CUresult
gpd_account_charge_code(struct gpd_account *account, uint64_t bytes)
{
	return quota_charge(account, GPD_LEDGER_CODE, bytes);
}

void
gpd_account_uncharge_code(struct gpd_account *account, uint64_t bytes)
{
	gpd_ledger_uncharge(account->ledger, account->entry, GPD_LEDGER_CODE, bytes);
}

CUresult
gpd_account_charge_pinned(struct gpd_account *account, uint64_t bytes)
{
	if (gpd_ledger_charge(account->ledger, account->entry, GPD_LEDGER_PINNED, bytes))
		return CUDA_SUCCESS;
	return quota_refuse(account, GPD_LEDGER_PINNED, bytes);
}

void
gpd_account_uncharge_pinned(struct gpd_account *account, uint64_t bytes)
{
	gpd_ledger_uncharge(account->ledger, account->entry, GPD_LEDGER_PINNED, bytes);
}

void
gpd_account_free(struct gpd_account *account, int device, uint64_t bytes)
{
	if (is_device(device))
		gpd_ledger_uncharge(account->ledger, account->entry, device, bytes);
}

void
gpd_account_launch(struct gpd_account *account)
{
	gpd_ledger_count(&account->entry->counts.launches, 1);
}

void
gpd_account_copy(struct gpd_account *account, uint64_t in, uint64_t out)
{
	gpd_schedule_end_batches(account->schedule);
	gpd_ledger_count(&account->entry->counts.copies, 1);
	if (in)
		gpd_ledger_count(&account->entry->counts.copied_in, in);
	if (out)
		gpd_ledger_count(&account->entry->counts.copied_out, out);
}

/* Waits until the slot's time has come, the session is closing, or the limit has changed. Returns
 * the time. */
static uint64_t
bandwidth_wait(const struct gpd_account *account, const struct gpd_ledger_link_slot *turn)
{
	uint64_t now = gp_now_ns();

	while (now < turn->start_ns && !atomic_load(account->closing) &&
	       gpd_ledger_link_is_current(account->ledger, account->entry, turn)) {
		uint64_t left = turn->start_ns - now;

		gp_sleep_ns(left < NAP_MAX_NS ? left : NAP_MAX_NS);
		now = gp_now_ns();
	}
	return now;
}

size_t
gpd_account_throttle(struct gpd_account *account, size_t bytes)
{
	const struct gpd_ledger_tenant *tenant = &account->ledger->tenants[account->entry->tenant];
	struct gpd_ledger_link_slot turn;
	uint64_t begin, now;

	if (atomic_load(&tenant->bandwidth_max) == GPD_NO_LIMIT)
		return bytes;
	begin = now = gp_now_ns();
	do {
		turn = gpd_ledger_link_acquire(account->ledger, account->entry, bytes, now);
		if (turn.start_ns <= now)
			break;
		now = bandwidth_wait(account, &turn);
		gpd_ledger_link_release(account->ledger, account->entry, &turn, now);
	} while (now < turn.start_ns && !atomic_load(account->closing));
	if (now > begin)
		gpd_ledger_count(&account->entry->counts.throttled_ns, now - begin);
	return turn.bytes;
}

void
gpd_account_throttle_all(struct gpd_account *account, size_t bytes)
{
	while (bytes && !atomic_load(account->closing))
		bytes -= gpd_account_throttle(account, bytes);
}

void
gpd_account_charge_bandwidth(struct gpd_account *account, size_t bytes)
{
	gpd_ledger_link_charge(account->ledger, account->entry, bytes, gp_now_ns());
}
