/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resource account of a session: counts what it uses and enforces its quotas. The generated
 * dispatcher calls these functions for calls described as ALLOCATES, FREES, LAUNCHES or COPIES, so
 * that counting and quotas are each in one place. Hooks that alone know their amounts (BY_HOOK)
 * call them themselves. The counters are in the ledger, in the line that the supervisor assigned to
 * the session.
 *
 * Ownership: part of a session.
 * Threads: any, unless noted.
 * Units: bytes and nanoseconds.
 */
#ifndef GPD_ACCOUNT_H
#define GPD_ACCOUNT_H

#include "server/common/ledger/ledger.h"

#include <cuda.h>
#include <stdint.h>

struct gpd_issue;
struct gpd_schedule_run;

/* A session's account. */
struct gpd_account {
	/* Executor only: waits for memory that the session has freed; returns whether there was
	 * any. NULL: there is never any. */
	bool (*reclaim_memory)(struct gpd_account *account);
	/* Notifies all workers that sessions have been requested to return cached memory. NULL: no
	 * notification. */
	void (*recall)(void);
	const _Atomic bool *closing; /* the session is closing: waits end */
	struct gpd_ledger *ledger;
	struct gpd_ledger_session *line;
	_Atomic uint64_t quotas_reported; /* exhausted quotas in the log: bit per ledger line */
	/* Executor: memory of ended sessions was not freed in time; it is not waited for again. */
	bool ending_timed_out;
	struct gpd_issue *issue;           /* launch threads (issue.h); NULL: none */
	struct gpd_schedule_run *schedule; /* schedule.h: one run for each device used */
};

/* Whether the session may use the device. Any number is valid. */
bool gpd_account_may_use(const struct gpd_account *account, int device);

/* Charges bytes of device memory. CUDA_ERROR_OUT_OF_MEMORY: over a quota;
 * CUDA_ERROR_INVALID_DEVICE: not available to the session. On failure nothing is charged. May wait
 * for memory that is being freed. */
CUresult gpd_account_allocate(struct gpd_account *account, int device, uint64_t bytes);
void gpd_account_free(struct gpd_account *account, int device, uint64_t bytes);

/* The same for memory of the machine that contains device code. Executor only. */
CUresult gpd_account_charge_code(struct gpd_account *account, uint64_t bytes);
void gpd_account_uncharge_code(struct gpd_account *account, uint64_t bytes);
/* The same for pinned memory of the machine that kernels can access; never waits. */
CUresult gpd_account_charge_pinned(struct gpd_account *account, uint64_t bytes);
void gpd_account_uncharge_pinned(struct gpd_account *account, uint64_t bytes);

/*
 * To be called when out of memory: waits a moment for memory that other sessions are returning to
 * the driver: a session that is ending, a free after running work, or cached memory, which is
 * requested now. of_tenant: only of the same tenant, because its quota is exhausted. Returns false
 * if there is no such memory or *until (0 on the first call) has passed. In both cases another
 * attempt is worthwhile.
 */
bool gpd_account_wait(struct gpd_account *account, bool of_tenant, uint64_t *until);
/* Waits, as an allocation would, until the memory of ended sessions is free. */
void gpd_account_wait_ended(struct gpd_account *account);
/* Notes that the session's client has gone. */
void gpd_account_set_ended(struct gpd_account *account);

/* Counts one launch. */
void gpd_account_launch(struct gpd_account *account);
/* Counts one copy of bytes to (in) and from (out) the device. */
void gpd_account_copy(struct gpd_account *account, uint64_t in, uint64_t out);

/*
 * To be called before `bytes` (not 0) are transferred to or from the client: waits as the bandwidth
 * limit requires, or until the session is closing. Returns how many of them may be transferred now,
 * at least one. Only these are charged, because a client may announce more than it sends.
 */
size_t gpd_account_throttle(struct gpd_account *account, size_t bytes);
/* The same for all of the bytes: for data that is transferred in one piece. */
void gpd_account_throttle_all(struct gpd_account *account, size_t bytes);
/* Charges bytes that are transferred now regardless of the limit; later ones wait longer. For
 * callers that must not wait. */
void gpd_account_charge_bandwidth(struct gpd_account *account, size_t bytes);

/* Bytes of a record's fields that are not program data: names, kernel parameters. */
#define GPD_ACCOUNT_FREE_BYTES ((size_t)4 << 10)
/* Executor: throttles the fields of a record or a reply beyond the call's `free` bytes. All fields
 * pass here; bulk tails and chunks are charged as they are transferred. */
static inline void
gpd_account_throttle_fields(struct gpd_account *account, size_t bytes, size_t free)
{
	if (bytes > free)
		gpd_account_throttle_all(account, bytes);
}

#endif /* GPD_ACCOUNT_H */
