/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resource account of a session: counts what it uses and enforces its quotas. The generated
 * dispatcher calls these functions for calls described as ALLOCATES, FREES, LAUNCHES or COPIES, so
 * that counting and quotas are each in one place. Calls described as BY_HOOK know their amounts
 * only while they are carried out; their hooks call these functions themselves. The counters are in
 * the ledger, in the entry that the supervisor assigned to the session (struct gpd_ledger_session).
 * The entry has an element of `devices` for each device and for GPD_LEDGER_CODE and
 * GPD_LEDGER_PINNED.
 *
 * Ownership: part of a session. The ledger and the entry must outlive it.
 * Threads: any, unless noted.
 * Errors: functions that return a CUresult return CUDA_SUCCESS on success; on failure nothing is
 * charged.
 * Units: bytes and nanoseconds.
 */
#ifndef GPD_ACCOUNT_H
#define GPD_ACCOUNT_H

#include "server/common/ledger/ledger.h"

#include <cuda.h>
#include <stdint.h>

struct gpd_issue;
struct gpd_schedule_run;

/* A session's account. The owner zeroes it and sets reclaim_memory, recall, closing, ledger, entry
 * and issue before the first use. */
struct gpd_account {
	/* Executor only: waits for memory that the session has freed; returns whether there was
	 * any. NULL: the session never has such memory. */
	bool (*reclaim_memory)(struct gpd_account *account);
	/* Any thread: notifies all workers that sessions have been requested to return cached
	 * memory. NULL: no notification. */
	void (*recall)(void);
	/* When *closing becomes true, every wait for bandwidth, for a turn or for ended sessions
	 * returns early. NULL: the session does not close, and uses no function that throttles and
	 * no schedule. */
	const _Atomic bool *closing;
	struct gpd_ledger *ledger;
	struct gpd_ledger_session *entry; /* the session's entry in the ledger */
	/* Exhausted quotas that have been logged: bit n for entry->devices[n] (device ordinals,
	 * GPD_LEDGER_CODE, GPD_LEDGER_PINNED). */
	_Atomic uint64_t quotas_reported;
	/* Internal, executor only: memory of ended sessions was not freed in time, so the session
	 * does not wait for it again (gpd_account_wait_ended()). */
	bool ending_timed_out;
	struct gpd_issue *issue; /* launch threads of the session (issue.h); NULL: none */
	/* List of the session's runs (schedule.h), one for each device used; NULL: none. Executor
	 * only. */
	struct gpd_schedule_run *schedule;
};

/* Returns whether the session may use the device with this ordinal. Accepts any number. */
bool gpd_account_may_use(const struct gpd_account *account, int device);
/* Returns the first device that the session may use; -1: it may use none. */
int gpd_account_get_first_device(const struct gpd_account *account);

/* Charges bytes of device memory; gpd_account_free() undoes it. Executor only. Returns
 * CUDA_SUCCESS; CUDA_ERROR_OUT_OF_MEMORY if over a quota of the session or its tenant, after
 * blocking for a limited time on memory that is being freed (reclaim_memory and
 * gpd_account_wait()); or CUDA_ERROR_INVALID_DEVICE if the device is not available to the
 * session. */
CUresult gpd_account_allocate(struct gpd_account *account, int device, uint64_t bytes);
/* Returns bytes that gpd_account_allocate() has charged to the quotas. Does nothing if the device
 * is invalid. */
void gpd_account_free(struct gpd_account *account, int device, uint64_t bytes);

/* Executor only: charges host memory that contains device code; gpd_account_uncharge_code() undoes
 * it. Returns and waits as gpd_account_allocate(), without CUDA_ERROR_INVALID_DEVICE. */
CUresult gpd_account_charge_code(struct gpd_account *account, uint64_t bytes);
/* Returns bytes that gpd_account_charge_code() has charged. */
void gpd_account_uncharge_code(struct gpd_account *account, uint64_t bytes);
/* Charges pinned host memory that kernels can access; gpd_account_uncharge_pinned() undoes it.
 * Returns CUDA_SUCCESS; or CUDA_ERROR_OUT_OF_MEMORY if over a quota. Does not wait. */
CUresult gpd_account_charge_pinned(struct gpd_account *account, uint64_t bytes);
/* Returns bytes that gpd_account_charge_pinned() has charged. */
void gpd_account_uncharge_pinned(struct gpd_account *account, uint64_t bytes);

/*
 * Blocks for about a millisecond on memory that other sessions are returning to the driver. Called
 * in a loop with attempts to allocate, when out of memory. Executor only. Such memory is that of a
 * session that is ending or a free that follows running work (waited for at most GPD_FREE_LATE_NS,
 * ledger.h), or cached memory, whose release the first call requests (waited for at most
 * GPD_RECALL_NS). of_tenant: count only sessions of the same tenant, because its quota is
 * exhausted. *until: 0 at the first call, then changed only by this function. Returns true after
 * the wait, and once more when there is no such memory any longer. Returns false, without waiting,
 * if there is no such memory or the time limit has passed. In both cases another attempt to
 * allocate is worthwhile.
 */
bool gpd_account_wait(struct gpd_account *account, bool of_tenant, uint64_t *until);
/* Blocks until the memory of ended sessions is free, for at most GPD_FREE_LATE_NS (ledger.h) or
 * until the session is closing. Executor only. After a wait that timed out, it does not wait again
 * until the memory of these sessions is free. */
void gpd_account_wait_ended(struct gpd_account *account);

/* Counts one launch. */
void gpd_account_launch(struct gpd_account *account);
/* Counts one copy of `in` bytes to the device and `out` bytes from the device, and ends the current
 * batches of launches (schedule.h). Executor only. */
void gpd_account_copy(struct gpd_account *account, uint64_t in, uint64_t out);

/*
 * Called before `bytes` (not 0) are transferred to or from the client: blocks as the tenant's
 * bandwidth limit requires, or until the session is closing. Returns how many of the bytes may be
 * transferred now, at least 1. Only these are charged, because a client may announce more than it
 * sends.
 */
size_t gpd_account_throttle(struct gpd_account *account, size_t bytes);
/* As gpd_account_throttle(), but blocks until all of the bytes may be transferred, or the session
 * is closing: for data that is transferred in one piece. */
void gpd_account_throttle_all(struct gpd_account *account, size_t bytes);
/* Charges bytes that are transferred now regardless of the bandwidth limit, without waiting; later
 * transfers wait longer. */
void gpd_account_charge_bandwidth(struct gpd_account *account, size_t bytes);

/* Maximum size in bytes of a record's fields that are free of charge: fields of this size contain
 * no program data, but names and kernel parameters. */
#define GPD_ACCOUNT_FREE_BYTES ((size_t)4 << 10)
/* Executor only: throttles the fields of a record or a reply, of `bytes` bytes, if they are larger
 * than `free`. All fields pass through this function; bulk data and chunks are charged as they are
 * transferred. */
static inline void
gpd_account_throttle_fields(struct gpd_account *account, size_t bytes, size_t free)
{
	if (bytes > free)
		gpd_account_throttle_all(account, bytes);
}

#endif /* GPD_ACCOUNT_H */
