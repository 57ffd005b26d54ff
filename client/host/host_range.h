/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the address range for a session's host memory that kernels access: a range that is free
 * both in this process and in the worker.
 *
 * Ownership: the caller owns the reservation in this process, and releases it with
 * gpc_window_release() (client/connect/window.h).
 * Threads: one thread per session at a time; not in a function that the receiver runs (done() of
 * struct gpc_request, client/session/call.h, or the handler of a note).
 */
#ifndef GPC_HOST_RANGE_H
#define GPC_HOST_RANGE_H

#include "gpc_calls.h"

#include <stdbool.h>
#include <stdint.h>

/* Address and size of the range are multiples of this. */
#define GPC_HOST_GRANULARITY ((uint64_t)2 << 20)

struct gpc_context;

/* Reserves an address range in this process. First tries the range that the daemon proposed in its
 * Welcome. While this process already uses addresses of the proposal, requests another one from the
 * daemon and waits for the reply, at most eight times. Returns true with the range's address in
 * reply->address and its size, in bytes, in reply->room. Both are checked: multiples of
 * GPC_HOST_GRANULARITY, and below 2^47. Returns false, with nothing reserved and *reply undefined,
 * if the daemon does not support such memory or proposes no valid range, a request fails, all
 * proposals are in use, or the range exceeds this process's limit for address space. */
bool gpc_host_range_find(struct gpc_context *context, struct gp_reply_gpHostReserve *reply);

#endif /* GPC_HOST_RANGE_H */
