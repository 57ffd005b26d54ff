/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Credit: device memory that a session has before anything is made of it.  It is counted, and taken
 * from the driver, when the client is told of it; what the client then makes of it needs no answer,
 * for there is no way that the device has none.  Some comes with Welcome; the client asks for more
 * (gpMemoryGrant), and gives back what it does not use when others want it.
 *
 * The session owns it.  Made by the worker's main thread, used by the executor, forgotten by
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
uint64_t gpd_allowance_create(struct gpd_session *session, int *device_p);
/* So many bytes (not 0) are credit no more: what is counted for them is the caller's, to be freed
 * if nothing is made of them.  False: the client has no such credit. */
bool gpd_allowance_consume(struct gpd_session *session, int device, uint64_t size);
/* Behind that: physical memory of this size, the caller's. */
CUresult gpd_allowance_obtain_memory(struct gpd_session *session, int device, uint64_t size,
				     CUmemGenericAllocationHandle *handle_p);
/* The same of anything else: obtain() is called again with more memory free while it says
 * CUDA_ERROR_OUT_OF_MEMORY and memory is held for the session. */
CUresult gpd_allowance_obtain(struct gpd_session *session, int device,
			      CUresult (*obtain)(void *arg), void *arg);
/* Bytes of the device's memory that are held for the session besides its credit: what it allocates
 * next finds them. */
uint64_t gpd_allowance_get_excess(struct gpd_session *session, int device);
/* Gives all of it back. */
void gpd_allowance_destroy(struct gpd_session *session);

#endif /* GPD_GRANT_H */
