/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allowance: device memory that the daemon has granted to the session but that is not yet
 * allocated.
 *
 * Allocations within the allowance need no reply from the daemon, so a program that allocates
 * memory of ever new sizes rarely waits. The target size of the allowance depends on the last
 * allocation and on all mapped memory. Once less than three quarters of the target are left, a
 * refill is requested asynchronously. The daemon can recall the allowance along with the cached
 * memory (memory_cache.h).
 *
 * Ownership: part of struct gpc_device (client/context/context.h).
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note).
 * Units: bytes; counted per device.
 */
#ifndef GPC_ALLOWANCE_H
#define GPC_ALLOWANCE_H

#include <stdbool.h>
#include <stdint.h>

struct gpc_context;
struct gpc_device;
struct gpc_session;

/* Removes `size` bytes from the allowance of the context's device; the caller then posts the
 * allocation. Waits for the daemon's reply if the allowance is too small. Returns true. Returns
 * false if the daemon grants too little, the session is over, or the daemon does not support
 * allowances. Nothing was then removed for the caller, who requests the memory itself; the rest of
 * the allowance was returned to the daemon. */
bool gpc_allowance_acquire(struct gpc_context *context, uint64_t size);
/* Removes `size` bytes as gpc_allowance_acquire() does, but neither waits nor requests a refill.
 * Returns true, or false without any effect if the allowance is too small. */
bool gpc_allowance_try_acquire(struct gpc_context *context, uint64_t size);
/* Returns the size of the device's allowance, including refills that have arrived. Does not
 * wait. */
uint64_t gpc_allowance_get_bytes(struct gpc_device *device);
/* Returns the allowance of all devices of the session to the daemon, including refills in flight.
 * Waits for the daemon's replies; returns early if the session is over. */
void gpc_allowance_return(const struct gpc_session *session);

#endif /* GPC_ALLOWANCE_H */
