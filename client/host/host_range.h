/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Address range for a session's host memory that kernels access: free both in this process and on
 * the daemon.
 *
 * Threads: one thread per session at a time.
 */
#ifndef GPC_HOST_RANGE_H
#define GPC_HOST_RANGE_H

#include "gpc_calls.h"

#include <stdbool.h>
#include <stdint.h>

/* Address and size of the range are multiples of this. */
#define GPC_HOST_GRANULARITY ((uint64_t)2 << 20)

struct gpc_context;

/* Reserves, in this process, the range that the daemon proposed in its welcome message, or one that
 * is requested from it, and stores it in *reply. Returns false if there is none. */
bool gpc_host_range_find(struct gpc_context *context, struct gp_reply_gpHostReserve *reply);

#endif /* GPC_HOST_RANGE_H */
