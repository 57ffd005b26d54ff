/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed memory that work of a stream uses (client/pages/pages.h, docs/managed.md).
 *
 * Before work is posted, those pages that it may use and that the program has modified are sent to
 * the device. After the work is posted, the program's access to pages that it may have changed
 * waits until the work is done.
 *
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note); needed only while gpc_pages_any(). A begin
 * function starts a critical section (gpc_pages_begin()) that gpc_managed_end() ends; in between,
 * the thread may only post the work. The begin functions and gpc_managed_prefetch() block while
 * another thread is in a critical section or a page fault is being served.
 * Errors: functions that return CUresult return CUDA_SUCCESS, CUDA_ERROR_OUT_OF_MEMORY or the
 * session's error. After a failure the calling thread is not in a critical section, the work must
 * not be posted, and modified pages that could not be sent may be lost.
 */
#ifndef GPC_STREAM_MANAGED_H
#define GPC_STREAM_MANAGED_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_session;
struct gpc_stream;

/* Called before work that may use any managed memory of the session: enters the critical section,
 * and sends all modified pages of the session. After CUDA_SUCCESS gpc_managed_end() must follow. */
CUresult gpc_managed_begin(const struct gpc_session *session);
/* Leaves the critical section. stream: the stream that the work was posted to; NULL: no work was
 * posted, or none that may change managed memory. */
void gpc_managed_end(struct gpc_stream *stream);

/* Called before work of the stream that writes only [dst, dst + dst_size) and reads only [src, src
 * + src_size); size 0: no range. Does the same as gpc_managed_begin(), but sends only the modified
 * pages of the ranges. While the session is host-gated (gpc_session_is_host_gated(),
 * client/session/session.h), the pages are sent when the stream reaches the work, not by this
 * call. */
CUresult gpc_managed_begin_copy(struct gpc_stream *stream, uint64_t dst, uint64_t dst_size,
				uint64_t src, uint64_t src_size);

/* Sends the modified pages of the range now; they stay readable. Called without a critical section,
 * which it enters and leaves. Does not wait for the device. */
CUresult gpc_managed_prefetch(const struct gpc_session *session, uint64_t base, uint64_t size);

/* Returns whether any byte of [base, base + size) is managed memory. */
bool gpc_managed_contains(uint64_t base, uint64_t size);

/* Returns whether all work that may have used managed memory of the session is known to be done.
 * Called by a thread that serves page faults, which excludes critical sections (await() of
 * client/pages/pages.h). Does not query the daemon. */
bool gpc_managed_is_done(const struct gpc_session *session);
/* Records that all work that may have used managed memory of the session is done. Called like
 * gpc_managed_is_done(), after the thread has waited for the work. */
void gpc_managed_set_done(const struct gpc_session *session);

#endif /* GPC_STREAM_MANAGED_H */
