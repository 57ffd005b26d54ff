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

/* Reserves an address range in this process: the range that the daemon proposed in its Welcome (the
 * description of the session), or, if this process already uses its addresses, one that is
 * requested from the daemon. The calling thread waits for each reply, and tries at most eight.
 * Returns true with the range's address in reply->address and its size, in bytes, in reply->room.
 * Returns false, with nothing reserved and *reply undefined, if the daemon does not support such
 * memory or has no range, a request fails, or none of the proposals is free in this process. */
bool gpc_host_range_find(struct gpc_context *context, struct gp_reply_gpHostReserve *reply);

#endif /* GPC_HOST_RANGE_H */
