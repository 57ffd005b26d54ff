/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory as used by work of a stream (docs/managed.md).
 *
 * Before work is posted, the locally modified pages that it may use are sent to the device. After
 * the work is posted, pages that it may have changed are not accessible to the program until the
 * work is done.
 * Threads: any thread except the thread that reads the daemon's replies; needed only while
 * gpc_pages_any(). A begin function starts a critical section (gpc_pages_begin()) that
 * gpc_managed_end() ends; in between, the thread may only post the work.
 * Errors: functions that return CUresult return CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY or the
 * session's error. After a failure the critical section has been left, and the work must not be
 * posted.
 */
#ifndef GPC_STREAM_MANAGED_H
#define GPC_STREAM_MANAGED_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_session;
struct gpc_stream;

/* Called before work that may use all managed memory of the session: enters the critical section,
 * and sends the modified pages. After CUDA_SUCCESS gpc_managed_end() must follow. */
CUresult gpc_managed_begin(const struct gpc_session *session);
/* Leaves the critical section. stream: the stream that the work was posted to; NULL: no work was
 * posted. */
void gpc_managed_end(struct gpc_stream *stream);

/* Called before work of the stream that writes only the first range and reads only the second
 * range; size 0: no range. Otherwise like gpc_managed_begin(). While the session is host-gated
 * (gpc_session_is_host_gated()), modified pages are sent when the stream reaches the work, not by
 * this call. */
CUresult gpc_managed_begin_copy(struct gpc_stream *stream, uint64_t dst, uint64_t dst_size,
				uint64_t src, uint64_t src_size);

/* Sends the modified pages of the range now, without a critical section afterwards; they stay
 * readable. Does not wait for the device. */
CUresult gpc_managed_prefetch(const struct gpc_session *session, uint64_t base, uint64_t size);

/* Returns whether any byte of [base, base + size) is managed memory. */
bool gpc_managed_contains(uint64_t base, uint64_t size);

/* For the thread that serves page faults, in the critical section: returns whether all work that
 * may have used managed memory of the session is known to be done. Does not query the daemon. */
bool gpc_managed_is_done(const struct gpc_session *session);
/* For the thread that serves page faults, in the critical section: records that this work is
 * done. */
void gpc_managed_set_done(const struct gpc_session *session);

#endif /* GPC_STREAM_MANAGED_H */
