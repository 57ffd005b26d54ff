/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a session's host memory goes that kernels reach: a range in which neither end has anything.
 * By one thread for each session.
 */
#ifndef GPC_HOST_RANGE_H
#define GPC_HOST_RANGE_H

#include "gpc_calls.h"

#include <stdbool.h>
#include <stdint.h>

/* Its address and size are multiples of it. */
#define GPC_HOST_GRANULARITY ((uint64_t)2 << 20)

struct gpc_context;

/* The one that the daemon named with its welcome, or one that it is asked for; reserved here.
 * False: there is none. */
bool gpc_host_range_find(struct gpc_context *context, struct gp_reply_gpHostReserve *reply);

#endif /* GPC_HOST_RANGE_H */
