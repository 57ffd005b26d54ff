/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory that a session has before it asks: it is taken from the driver, and counted, when
 * the session is opened, Welcome tells of it, and gpMemoryUse maps it without an answer.
 *
 * The session owns it.  Made by the worker's main thread, taken by the executor, forgotten by
 * whoever ends the session.
 */
#ifndef GPD_GRANT_H
#define GPD_GRANT_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_session;

/* What a client maps at once for small allocations; a multiple of every granularity. */
#define GPD_HEAP_SIZE ((uint64_t)4 << 20)

/* On the first device that the session may use, which *device_p says.  Nobody waits for memory. Its
 * size; 0: there is none. */
uint64_t gpd_grant_make(struct gpd_session *session, int *device_p);
/* The memory becomes the caller's, with what is counted for it.  False: no such grant. */
bool gpd_grant_take(struct gpd_session *session, int device, uint64_t size,
		    CUmemGenericAllocationHandle *handle_p);
/* Gives back what is not mapped. */
void gpd_grant_forget(struct gpd_session *session);

#endif /* GPD_GRANT_H */
