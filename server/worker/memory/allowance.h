/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allowance: device memory that is reserved for a session before the client allocates it. It is
 * charged, and allocated from the driver, before the client is notified of it. The client can then
 * allocate from it without waiting for a reply, because the allocation cannot fail for lack of
 * memory. The first part is granted when the session opens (in the Welcome message); the client
 * requests more with gpMemoryGrant and returns unused memory when other sessions need it.
 *
 * Ownership: session->memory owns the allowance; freed by gpd_allowance_destroy().
 * Threads: the worker's main thread creates it; then executor only; destroyed by the thread that
 * closes or discards the session.
 * Errors: CUresult, or 0 or false.
 * Units: bytes; devices are the worker's numbers.
 */
#ifndef GPD_ALLOWANCE_H
#define GPD_ALLOWANCE_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_session;

/* Size of the allowance that a session starts with, which the client maps at once for small
 * allocations; a multiple of every device's granularity. */
#define GPD_HEAP_SIZE ((uint64_t)4 << 20)

/* Reserves GPD_HEAP_SIZE on the first device that the session may use, without waiting for memory
 * of others. Returns the size and sets *device_p. On failure returns 0; *device_p is then
 * unchanged. */
uint64_t gpd_allowance_create(struct gpd_session *session, int *device_p);
/* Removes size bytes from the allowance. On success the caller is responsible for their charge and
 * uncharges them with gpd_account_free() if the allocation fails. Returns false, without a change,
 * if size is 0 or the allowance is smaller. */
bool gpd_allowance_consume(struct gpd_session *session, int device, uint64_t size);
/* Returns physical memory of this size for memory removed by gpd_allowance_consume(). On success
 * the caller owns *handle_p and releases it with cuMemRelease(); after an error its value is
 * undefined. */
CUresult gpd_allowance_obtain_memory(struct gpd_session *session, int device, uint64_t size,
				     CUmemGenericAllocationHandle *handle_p);
/* Makes any other allocation for memory removed by gpd_allowance_consume(): calls obtain(arg).
 * While that returns CUDA_ERROR_OUT_OF_MEMORY and the allowance has physical memory, some of it is
 * freed and obtain() is called again. Returns the last result of obtain(). obtain must not be
 * NULL. */
CUresult gpd_allowance_obtain(struct gpd_session *session, int device,
			      CUresult (*obtain)(void *arg), void *arg);
/* Returns the bytes of device memory that are allocated for the session beyond its allowance, which
 * its next allocation can use. */
uint64_t gpd_allowance_get_excess(struct gpd_session *session, int device);
/* Frees the allowance, its memory and its charge. Accepts a session without an allowance. */
void gpd_allowance_destroy(struct gpd_session *session);

#endif /* GPD_ALLOWANCE_H */
