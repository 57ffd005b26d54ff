/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allowance: device memory that is reserved for a session before the client allocates it. It is
 * charged, and allocated from the driver, before the client is notified of it. The client can then
 * allocate from it without waiting for a reply, because the allocation cannot fail for lack of
 * memory. Some comes with Welcome; the client requests more with gpMemoryGrant and returns unused
 * memory when others need it.
 *
 * Ownership: the session.
 * Threads: the worker's main thread creates it; then executor only; destroyed by the thread that
 * ends the session.
 * Errors: CUresult, or 0 or false.
 */
#ifndef GPD_ALLOWANCE_H
#define GPD_ALLOWANCE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_session;

/* Bytes that a client maps at once for small allocations; a multiple of every granularity. */
#define GPD_HEAP_SIZE ((uint64_t)4 << 20)

/* Reserves GPD_HEAP_SIZE on the first device that the session may use (*device_p), without waiting
 * for memory. Returns the size, or 0 on failure. */
uint64_t gpd_allowance_create(struct gpd_session *session, int *device_p);
/* Removes size bytes (not 0) from the allowance. The caller takes over their charge and frees it
 * with gpd_account_free() if the allocation fails. Returns false if the allowance is smaller. */
bool gpd_allowance_consume(struct gpd_session *session, int device, uint64_t size);
/* To be called after gpd_allowance_consume(): returns physical memory of this size, which the
 * caller owns. */
CUresult gpd_allowance_obtain_memory(struct gpd_session *session, int device, uint64_t size,
				     CUmemGenericAllocationHandle *handle_p);
/* The same for any other allocation. While obtain() returns CUDA_ERROR_OUT_OF_MEMORY and the
 * allowance has memory, some of it is freed and obtain() is called again. */
CUresult gpd_allowance_obtain(struct gpd_session *session, int device,
			      CUresult (*obtain)(void *arg), void *arg);
/* Bytes of device memory allocated for the session beyond its allowance, which its next allocation
 * can use. */
uint64_t gpd_allowance_get_excess(struct gpd_session *session, int device);
/* Frees the memory and its charge. */
void gpd_allowance_destroy(struct gpd_session *session);

#endif /* GPD_ALLOWANCE_H */
