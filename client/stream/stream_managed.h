/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory as used by work of a stream (docs/managed.md).
 *
 * Before work is posted, the locally modified pages that it may use are sent to the device; after
 * it, pages that it may have changed are not read until it is done.
 * Threads: any; needed only while gpc_pages_any(). A begin function starts a critical section that
 * gpc_managed_end() ends; in between, the thread may only post the work.
 * Errors: after a failure the critical section has been left.
 */
#ifndef GPC_STREAM_MANAGED_H
#define GPC_STREAM_MANAGED_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_session;
struct gpc_stream;

/* Called before work that may use all managed memory of the session. If it succeeds,
 * gpc_managed_end() must follow, with the stream that the work was posted to, or NULL if none was
 * posted. */
CUresult gpc_managed_begin(const struct gpc_session *session);
void gpc_managed_end(struct gpc_stream *stream);

/* Called before work of the stream that uses only these two ranges. While the session is
 * host-gated, modified pages are sent when the stream reaches the work, not by this call. */
CUresult gpc_managed_begin_copy(struct gpc_stream *stream, uint64_t dst, uint64_t dst_size,
				uint64_t src, uint64_t src_size);

/* Sends the modified pages of the range now; they stay readable. */
CUresult gpc_managed_prefetch(const struct gpc_session *session, uint64_t base, uint64_t size);

/* Returns whether any of [base, base + size) is managed memory. */
bool gpc_managed_contains(uint64_t base, uint64_t size);

/* For the thread that serves page faults: returns whether all work started so far is known to be
 * done; and marks it as done. */
bool gpc_managed_is_done(const struct gpc_session *session);
void gpc_managed_set_done(const struct gpc_session *session);

#endif /* GPC_STREAM_MANAGED_H */
