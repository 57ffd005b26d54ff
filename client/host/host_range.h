/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the address range for a session's host memory that kernels access: free both in this
 * process and in the worker.
 *
 * Ownership: the caller owns the reservation and releases it with gpc_window_release().
 * Threads: one thread per session at a time; not the thread that reads the daemon's replies.
 */
#ifndef GPC_HOST_RANGE_H
#define GPC_HOST_RANGE_H

#include "gpc_calls.h"

#include <stdbool.h>
#include <stdint.h>

/* Address and size of the range are multiples of this. */
#define GPC_HOST_GRANULARITY ((uint64_t)2 << 20)

struct gpc_context;

/* Reserves, in this process, the range that the daemon proposed in its Welcome (the description of
 * the session), or a range that is requested from the daemon, which waits for its reply. Returns
 * true with address and size (room) of the range in *reply. Returns false if the daemon has no
 * range, or none of its proposals is free here; *reply is then undefined. */
bool gpc_host_range_find(struct gpc_context *context, struct gp_reply_gpHostReserve *reply);

#endif /* GPC_HOST_RANGE_H */
