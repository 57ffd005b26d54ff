/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gate that compressed code of a session passes in the worker (struct gp_unpack_limiter).  The
 * unpacked size counts as code of the session while it is in memory.  Of code of more than 4 MiB a
 * worker, or its driver, unpacks two at a time, and of each tenant one.
 *
 * Ownership: the caller; the session outlives it.
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
	struct gpd_unpacking *next; /* of those with the turn of their tenant; unpackings.lock */
	bool has_tenant_slot, is_running;
};

void gpd_unpacking_init(struct gpd_unpacking *unpacking, struct gpd_session *session);

/* Counts bytes that the driver allocates for code until gpd_account_uncharge_code().
 * CUDA_ERROR_OUT_OF_MEMORY: the log says why. */
CUresult gpd_unpacking_charge(struct gpd_session *session, uint64_t size);

/* Around a call in which the driver unpacks or compiles code of so many bytes, which are charged.
 * false: the session is closing, and there is nothing to end. */
bool gpd_unpacking_begin(struct gpd_unpacking *unpacking, struct gpd_session *session,
			 uint64_t size);
/* The same without waiting; false also if others have their turns. */
bool gpd_unpacking_try(struct gpd_unpacking *unpacking, struct gpd_session *session, uint64_t size);
void gpd_unpacking_end(struct gpd_unpacking *unpacking);

#endif /* GPD_UNPACKING_H */
