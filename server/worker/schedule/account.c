/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/schedule/account.h"

#include "base/clock.h"
#include "server/common/base/size_text.h"
#include "server/worker/schedule/schedule.h"

#include <stdio.h>

/* A session that closes does not wait to its end, nor does one whose limit is lifted. */
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
	return is_device(device) && atomic_load(&account->line->devices[device].allowed);
}

/* Others must not wait for what this session keeps, as the executor is here. */
static void
nap_excused(struct gpd_account *account)
{
	uint64_t begin = gp_now_ns();

	atomic_store(&account->line->waiting, 1);
	gp_nap(LEAVING_NAP_NS);
	atomic_store(&account->line->waiting, 0);
	gpd_ledger_excuse(account->line, gp_now_ns() - begin);
}

bool
gpd_account_wait(struct gpd_account *account, bool of_tenant, uint64_t *until)
{
	uint64_t now = gp_now_ns();

	if (!*until) {
		*until = now + GPD_LEAVE_NS;
		if (account->recall && gpd_ledger_recall(account->ledger, account->line, of_tenant))
			account->recall();
	}
	if ((now > *until || !gpd_ledger_is_leaving(account->ledger, account->line, of_tenant,
						    now + GPD_LEAVE_NS - *until)) &&
	    (now > *until - GPD_LEAVE_NS + GPD_RECALL_NS ||
	     !gpd_ledger_is_recalling(account->ledger, account->line, of_tenant)))
		return false;
	nap_excused(account);
	return true;
}

void
gpd_account_wait_ended(struct gpd_account *account)
{
	const uint64_t until = gp_now_ns() + GPD_LEAVE_NS;
	bool ending = gpd_ledger_is_ending(account->ledger, account->line);

	while (ending && !account->ending_in_vain && gp_now_ns() < until &&
	       !(account->closing && atomic_load(account->closing))) {
		nap_excused(account);
		ending = gpd_ledger_is_ending(account->ledger, account->line);
	}
	account->ending_in_vain = ending;
}

void
gpd_account_set_ended(struct gpd_account *account)
{
	gpd_ledger_set_ended(account->ledger, account->line);
}

static bool
take_in_the_end(struct gpd_account *account, int line, uint64_t bytes)
{
	uint64_t until = 0;
	bool again;

	if (account->give_back && account->give_back(account) &&
	    gpd_ledger_take(account->ledger, account->line, line, bytes))
		return true;
	do {
		again = gpd_account_wait(account, true, &until);
		if (gpd_ledger_take(account->ledger, account->line, line, bytes))
			return true;
	} while (again);
	return false;
}

/* What is too small for so many bytes more, as gpupoold.conf(5) names it; *max_p: how much it is.
 * NULL: it is not a quota. */
static const char *
quota_of(const struct gpd_account *account, int line, uint64_t bytes, uint64_t *used_p,
	 uint64_t *max_p)
{
	const struct gpd_ledger_line *own = &account->line->devices[line];
	const struct gpd_ledger_tenant_line *all =
		&account->ledger->tenants[account->line->tenant].devices[line];
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

/* The program's own line says only that memory is out.  Once for each: some try again and again. */
static void
tell_refusal(struct gpd_account *account, int line, uint64_t bytes)
{
	const uint64_t bit = UINT64_C(1) << line;
	char wanted[GPD_SIZE_TEXT_MAX], used[GPD_SIZE_TEXT_MAX], most[GPD_SIZE_TEXT_MAX];
	uint64_t in_use, max;
	const char *quota = quota_of(account, line, bytes, &in_use, &max);
	char of[32] = "";

	if (!quota || atomic_fetch_or(&account->told, bit) & bit)
		return;
	if (line < GPD_LEDGER_DEVICES)
		(void)snprintf(of, sizeof(of), " of device %d", line);
	gpd_log_budget_log(account->line->log_budget, GPD_LOG_INFO,
			   "session %llu, tenant %s: out of memory: %s more%s: the quota %s is %s, "
			   "and %s of it are in use",
			   (unsigned long long)atomic_load(&account->line->id),
			   account->ledger->tenants[account->line->tenant].name,
			   gpd_size_text(bytes, wanted), of, quota, gpd_size_text(max, most),
			   gpd_size_text(in_use, used));
}

static CUresult
refuse(struct gpd_account *account, int line, uint64_t bytes)
{
	gpd_ledger_count(&account->line->counts.refusals, 1);
	tell_refusal(account, line, bytes);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult
take(struct gpd_account *account, int line, uint64_t bytes)
{
	if (gpd_ledger_take(account->ledger, account->line, line, bytes) ||
	    take_in_the_end(account, line, bytes))
		return CUDA_SUCCESS;
	return refuse(account, line, bytes);
}

CUresult
gpd_account_allocate(struct gpd_account *account, int device, uint64_t bytes)
{
	if (!gpd_account_may_use(account, device))
		return CUDA_ERROR_INVALID_DEVICE;
	return take(account, device, bytes);
}

CUresult
gpd_account_take_code(struct gpd_account *account, uint64_t bytes)
{
	return take(account, GPD_LEDGER_CODE, bytes);
}

void
gpd_account_give_code(struct gpd_account *account, uint64_t bytes)
{
	gpd_ledger_give(account->ledger, account->line, GPD_LEDGER_CODE, bytes);
}

CUresult
gpd_account_take_pinned(struct gpd_account *account, uint64_t bytes)
{
	if (gpd_ledger_take(account->ledger, account->line, GPD_LEDGER_PINNED, bytes))
		return CUDA_SUCCESS;
	return refuse(account, GPD_LEDGER_PINNED, bytes);
}

void
gpd_account_give_pinned(struct gpd_account *account, uint64_t bytes)
{
	gpd_ledger_give(account->ledger, account->line, GPD_LEDGER_PINNED, bytes);
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

/* When it is not waited for any more: its time has come, the session closes or the limit is another
 * one. */
static uint64_t
wait_for_turn(const struct gpd_account *account, const struct gpd_ledger_turn *turn)
{
	uint64_t now = gp_now_ns();

	while (now < turn->start_ns && !atomic_load(account->closing) &&
	       gpd_ledger_link_is_current(account->ledger, account->line, turn)) {
		uint64_t left = turn->start_ns - now;

		gp_nap(left < NAP_MAX_NS ? left : NAP_MAX_NS);
		now = gp_now_ns();
	}
	return now;
}

size_t
gpd_account_link(struct gpd_account *account, size_t bytes)
{
	const struct gpd_ledger_tenant *tenant = &account->ledger->tenants[account->line->tenant];
	struct gpd_ledger_turn turn;
	uint64_t begin, now;

	if (atomic_load(&tenant->bandwidth_max) == GPD_NO_LIMIT)
		return bytes;
	begin = now = gp_now_ns();
	do {
		turn = gpd_ledger_link(account->ledger, account->line, bytes, now);
		if (turn.start_ns <= now)
			break;
		now = wait_for_turn(account, &turn);
		gpd_ledger_link_end(account->ledger, account->line, &turn, now);
	} while (now < turn.start_ns && !atomic_load(account->closing));
	if (now > begin)
		gpd_ledger_count(&account->line->counts.throttled_ns, now - begin);
	return turn.bytes;
}

void
gpd_account_link_all(struct gpd_account *account, size_t bytes)
{
	while (bytes && !atomic_load(account->closing))
		bytes -= gpd_account_link(account, bytes);
}

void
gpd_account_link_owe(struct gpd_account *account, size_t bytes)
{
	gpd_ledger_link_owe(account->ledger, account->line, bytes, gp_now_ns());
}
