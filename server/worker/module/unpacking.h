/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits the extraction (unpacking) of a session's compressed code in the worker and in the driver.
 * An extraction of more than 4 MiB, by the worker or by its driver, holds one of the two slots of
 * the worker and the only slot of its tenant.
 *
 * In the worker, the struct is used as a limiter (struct gp_unpack_limiter of image/fatbin.h),
 * after gpd_unpacking_init(): enter() waits for the slots, if the code is larger than 4 MiB, and
 * charges the extracted size as code of the session until leave(); it returns -ECANCELED if the
 * session is closing, -EDQUOT if the size exceeds the limit. Around a driver call,
 * gpd_unpacking_begin() or gpd_unpacking_try() and gpd_unpacking_end() are used instead; they do
 * not charge.
 *
 * Ownership: the caller owns the struct; the session must outlive it. It must not move while an
 * extraction runs.
 * Threads: the session's executor.
 */
#ifndef GPD_UNPACKING_H
#define GPD_UNPACKING_H

#include "image/fatbin.h"

#include <cuda.h>

struct gpd_session;

/* An extraction. */
struct gpd_unpacking {
	struct gp_unpack_limiter limiter; /* callbacks for the image parser */
	struct gpd_session *session;
	/* next in the list of extractions that have a slot; protected by the lock of unpacking.c */
	struct gpd_unpacking *next;
	/* has_tenant_slot: the extraction has the slot of its tenant. is_running: it has one of the
	 * slots of the worker. Protected by the lock of unpacking.c. */
	bool has_tenant_slot, is_running;
};

/* Initializes *unpacking for use as a limiter. Nothing has to be freed. */
void gpd_unpacking_init(struct gpd_unpacking *unpacking, struct gpd_session *session);

/* Charges bytes that the driver allocates for code; gpd_account_uncharge_code() undoes it. size 0:
 * does nothing. May block as gpd_account_charge_code() (schedule/account.h). Returns CUDA_SUCCESS;
 * or CUDA_ERROR_OUT_OF_MEMORY, without charging anything, if over the limit, which is logged. */
CUresult gpd_unpacking_charge(struct gpd_session *session, uint64_t size);

/* Initializes *unpacking and begins a driver call that extracts or compiles code of size bytes,
 * which the caller has charged by gpd_unpacking_charge(). If size is above 4 MiB, waits without
 * limit for other extractions. Returns true, and gpd_unpacking_end() must follow the call; or false
 * if the session is closing, and gpd_unpacking_end() must not be called. */
bool gpd_unpacking_begin(struct gpd_unpacking *unpacking, struct gpd_session *session,
			 uint64_t size);
/* Initializes *unpacking and begins such a driver call without waiting. Returns true, and
 * gpd_unpacking_end() must follow; or false if size is above 4 MiB and the slots are in use, and
 * gpd_unpacking_end() must not be called. */
bool gpd_unpacking_try(struct gpd_unpacking *unpacking, struct gpd_session *session, uint64_t size);
/* Ends what gpd_unpacking_begin() or gpd_unpacking_try() has begun, and releases the slots. */
void gpd_unpacking_end(struct gpd_unpacking *unpacking);

#endif /* GPD_UNPACKING_H */
