/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a session uses and may use.  The generated dispatcher calls these where the description says
 * ALLOCATES, FREES, LAUNCHES or COPIES, so that every call is counted, and every quota enforced, in
 * one place each; hooks whose amounts only they know (BY_HOOK) call them themselves.  The numbers
 * lie in the ledger, in the line that the supervisor gave the session.  Any thread.
 */
#ifndef GPD_ACCOUNT_H
#define GPD_ACCOUNT_H

#include "server/common/ledger/ledger.h"

#include <cuda.h>
#include <stdint.h>

struct gpd_issue;
struct gpd_schedule_run;

/* A session's. */
struct gpd_account {
	/* Executor only: waits for what the session has given back; whether there was any.  NULL:
	 * there never is. */
	bool (*reclaim_memory)(struct gpd_account *account);
	/* Tells all workers that sessions have been asked for what they keep.  NULL: nobody is. */
	void (*recall)(void);
	const _Atomic bool *closing; /* the session ends: it waits for nothing any more */
	struct gpd_ledger *ledger;
	struct gpd_ledger_session *line;
	_Atomic uint64_t quotas_reported; /* quotas that the log has said to be used up: bits, by
					     their lines */
	/* Executor: what has ended did not become free in time, and is not waited for again. */
	bool ending_timed_out;
	struct gpd_issue *issue;           /* issue.h; NULL: the executor alone launches */
	struct gpd_schedule_run *schedule; /* schedule.h: one for each device that it launched on */
};

/* Whether the session may use the device, which need not exist. */
bool gpd_account_may_use(const struct gpd_account *account, int device);

/* CUDA_SUCCESS; CUDA_ERROR_OUT_OF_MEMORY past the quota, or CUDA_ERROR_INVALID_DEVICE, and nothing
 * is counted. */
CUresult gpd_account_allocate(struct gpd_account *account, int device, uint64_t bytes);
void gpd_account_free(struct gpd_account *account, int device, uint64_t bytes);

/* The same for the machine's memory for device code.  Executor. */
CUresult gpd_account_charge_code(struct gpd_account *account, uint64_t bytes);
void gpd_account_uncharge_code(struct gpd_account *account, uint64_t bytes);
/* And for the machine's memory that kernels reach: nobody is asked to give any back. */
CUresult gpd_account_charge_pinned(struct gpd_account *account, uint64_t bytes);
void gpd_account_uncharge_pinned(struct gpd_account *account, uint64_t bytes);

/*
 * There is no memory, but others' may be on its way back to the driver: a session that ends, a free
 * behind work, or what others keep and are asked for now (of_tenant: of the same tenant, whose
 * quota is what is missing).  Waits for a moment; false: there is none of that, or *until (0 at
 * first) has passed.  Either way it is worth one more try.
 */
bool gpd_account_wait(struct gpd_account *account, bool of_tenant, uint64_t *until);
/* Waits, as an allocation that needs it does, until the memory of sessions that have ended is free.
 */
void gpd_account_wait_ended(struct gpd_account *account);
/* The session's client is gone. */
void gpd_account_set_ended(struct gpd_account *account);

void gpd_account_launch(struct gpd_account *account);
void gpd_account_copy(struct gpd_account *account, uint64_t in, uint64_t out);

/*
 * Before bytes, not 0, travel to or from the client: waits for as long as the limit of bandwidth
 * says, or until the session closes, and returns how many of them may travel now, at least one.
 * Only these are charged: a client may announce more than it sends.
 */
size_t gpd_account_throttle(struct gpd_account *account, size_t bytes);
/* The same until all of them may: for what travels in one piece. */
void gpd_account_throttle_all(struct gpd_account *account, size_t bytes);
/* Bytes travel now, whatever the limit says, and those that come later wait for longer: for who
 * must not wait. */
void gpd_account_charge_bandwidth(struct gpd_account *account, size_t bytes);

/* Fields of a record that are no data of the program's: names, parameters of kernels. */
#define GPD_ACCOUNT_FREE_BYTES ((size_t)4 << 10)
/* Executor: what a record or a reply has in its fields, of a call for whose fields so many bytes
 * are free.  Every field passes here; bulk tails and chunks are charged as they travel. */
static inline void
gpd_account_throttle_fields(struct gpd_account *account, size_t bytes, size_t free)
{
	if (bytes > free)
		gpd_account_throttle_all(account, bytes);
}

#endif /* GPD_ACCOUNT_H */
