/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits the extraction of a session's compressed code in the worker (struct gp_unpack_limiter).
 * The extracted size is charged as code of the session while it is in memory. Of code larger than 4
 * MiB, a worker and its driver extract at most two at a time, and at most one per tenant.
 *
 * Ownership: the caller; the session must outlive it.
 * Threads: the session's executor.
 */
#ifndef GPD_UNPACKING_H
#define GPD_UNPACKING_H

#include "image/fatbin.h"

#include <cuda.h>

struct gpd_session;

struct gpd_unpacking {
	struct gp_unpack_limiter limiter;
	struct gpd_session *session;
	struct gpd_unpacking *next; /* list of slot owners; unpackings.lock */
	bool has_tenant_slot, is_running;
};

/* Prepares the limiter for the session. */
void gpd_unpacking_init(struct gpd_unpacking *unpacking, struct gpd_session *session);

/* Charges bytes that the driver allocates for code, until gpd_account_uncharge_code().
 * CUDA_ERROR_OUT_OF_MEMORY: over the limit, which is logged. */
CUresult gpd_unpacking_charge(struct gpd_session *session, uint64_t size);

/* Encloses a driver call that extracts or compiles code of this size, which must be charged. Waits
 * for other extractions. false: the session is closing, and gpd_unpacking_end() must not be
 * called. */
bool gpd_unpacking_begin(struct gpd_unpacking *unpacking, struct gpd_session *session,
			 uint64_t size);
/* The same without waiting; false also if the slots are in use. */
bool gpd_unpacking_try(struct gpd_unpacking *unpacking, struct gpd_session *session, uint64_t size);
void gpd_unpacking_end(struct gpd_unpacking *unpacking);

#endif /* GPD_UNPACKING_H */
