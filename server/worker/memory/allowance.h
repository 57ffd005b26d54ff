/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allowance: device memory that is reserved for a session before the client allocates it. It is
 * charged, and allocated from the driver, before the client is notified of it. The client can then
 * allocate from it without waiting for a reply, because the physical memory for the allocation
 * exists. The first part is granted when the session opens (in the Welcome message); the client
 * requests more with gpMemoryGrant and returns unused memory when other sessions need it.
 *
 * Ownership: session->memory owns the allowance; freed by gpd_allowance_destroy().
 * Threads: the worker's main thread creates it; then executor only; destroyed by the thread that
 * closes or discards the session.
 * Errors: CUresult, unless noted.
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
 * of other sessions. session->memory must exist. Makes the device current. Returns the size and
 * sets *device_p. On failure returns 0; *device_p is then unchanged. */
uint64_t gpd_allowance_create(struct gpd_session *session, int *device_p);
/* Removes size bytes from the allowance. device and size may come from the client unchecked.
 * Returns true; the caller is then responsible for the charge, and uncharges the bytes with
 * gpd_account_free() if the allocation fails for another reason. Returns false, without a change,
 * if size is 0, there is no such device or the allowance is smaller. */
bool gpd_allowance_consume(struct gpd_session *session, int device, uint64_t size);
/* Gets physical memory of this size, a multiple of the device's granularity, for bytes removed by
 * gpd_allowance_consume(). Returns CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY or another error of the
 * driver. On success the caller owns *handle_p and releases it with cuMemRelease(); after an error
 * its value is undefined. */
CUresult gpd_allowance_obtain_memory(struct gpd_session *session, int device, uint64_t size,
				     CUmemGenericAllocationHandle *handle_p);
/* Makes an allocation of another kind, such as an array, for bytes removed by
 * gpd_allowance_consume(): calls obtain(arg). While that returns CUDA_ERROR_OUT_OF_MEMORY and the
 * allowance has physical memory, some of it is freed and obtain() is called again. Afterwards
 * physical memory is freed or allocated until it matches the allowance again, as far as the device
 * has memory. Returns the last result of obtain(). obtain must not be NULL. */
CUresult gpd_allowance_obtain(struct gpd_session *session, int device,
			      CUresult (*obtain)(void *arg), void *arg);
/* Returns by how many bytes the session's physical memory exceeds its allowance, because pieces
 * were consumed in part. The next allocation can use these bytes. */
uint64_t gpd_allowance_get_excess(struct gpd_session *session, int device);
/* Frees the allowance, its memory and its charge, before gpd_memory_destroy() (memory.h). Accepts a
 * session without an allowance, but session->memory must exist. */
void gpd_allowance_destroy(struct gpd_session *session);

#endif /* GPD_ALLOWANCE_H */
