/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allowance: device memory that the daemon has granted to the session but that is not yet
 * allocated.
 *
 * Allocations within the allowance need no reply from the daemon, so a program that allocates
 * memory of ever new sizes rarely waits. The target size of the allowance depends on the last
 * allocation and on all mapped memory; a refill is requested asynchronously when a quarter is used.
 * The daemon can recall it along with the cached memory (memory.h).
 * Units: bytes; counted per device (context.h).
 * Threads: any.
 */
#ifndef GPC_ALLOWANCE_H
#define GPC_ALLOWANCE_H

#include <stdbool.h>
#include <stdint.h>

struct gpc_context;
struct gpc_device;
struct gpc_session;

/* Takes `size` bytes from the allowance; the caller then posts the allocation. Waits for the
 * daemon's reply if the allowance is too small. Returns false if the daemon grants too little; the
 * allowance is then empty. */
bool gpc_allowance_acquire(struct gpc_context *context, uint64_t size);
/* The same without waiting: returns false if the allowance is too small. */
bool gpc_allowance_try_acquire(struct gpc_context *context, uint64_t size);
/* Returns the size of the allowance, including refills that have arrived. */
uint64_t gpc_allowance_get_bytes(struct gpc_device *device);
/* Returns the allowance of all devices of the session to the daemon, including refills in flight.
 * May be called only by a thread that may wait for the daemon. */
void gpc_allowance_return(const struct gpc_session *session);

#endif /* GPC_ALLOWANCE_H */
