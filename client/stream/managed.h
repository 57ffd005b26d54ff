/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work of a stream, and managed memory: what the work may use goes in front of it, and what it may
 * have changed is not looked at before the work is done (docs/managed.md).  Any thread, while
 * gpc_pages_any(); a thread calls nothing but what posts the work in between.
 */
#ifndef GPC_MANAGED_H
#define GPC_MANAGED_H

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_session;
struct gpc_stream;

/* Before work that may use all managed memory of the session; if it succeeds, gpc_managed_end()
 * follows, with the stream that has the work; NULL: no work was given. */
CUresult gpc_managed_begin(const struct gpc_session *session);
void gpc_managed_end(struct gpc_stream *stream);

/* The same before work of the stream that uses only these two parts.  While the session is held
 * back, what is here of them is sent when the stream reaches the work, not by this call. */
CUresult gpc_managed_begin_copy(struct gpc_stream *stream, uint64_t dst, uint64_t dst_size,
				uint64_t src, uint64_t src_size);

/* Sends what is here of the range now; it stays readable. */
CUresult gpc_managed_prefetch(const struct gpc_session *session, uint64_t base, uint64_t size);

/* Whether any of [base, base + size) is managed memory. */
bool gpc_managed_contains(uint64_t base, uint64_t size);

/* Of a thread that has faults served: whether the work that was begun so far is known to be done;
 * now it is. */
bool gpc_managed_is_done(const struct gpc_session *session);
void gpc_managed_set_done(const struct gpc_session *session);

#endif /* GPC_MANAGED_H */
