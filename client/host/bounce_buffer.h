/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounce buffer: memory shared with the worker, through which short copies to pageable memory are
 * made.
 *
 * The GPU writes directly into it, so the client copies the bytes once instead of twice through a
 * ring. A session has one buffer, which counts as pinned memory, from its third copy until its end.
 * Ownership: the buffers are static; a caller has exclusive use between acquire and release.
 * Threads: any.
 */
#ifndef GPC_BOUNCE_BUFFER_H
#define GPC_BOUNCE_BUFFER_H

#include <stdatomic.h>
#include <stdint.h>

struct gpc_context;
struct gpc_session;

#define GPC_BOUNCE_BUFFER_SIZE ((uint64_t)1536 << 10)

/* The buffer of a session; used by one thread at a time. */
struct gpc_bounce_buffer {
	_Atomic(const struct gpc_session *) session;
	atomic_bool busy;
	unsigned int copies;
	uint64_t address; /* of GPC_BOUNCE_BUFFER_SIZE bytes, in both processes; 0: not allocated */
};

/* Returns the session's buffer, or NULL if memory is not shared with the daemon, the quota is
 * exhausted, or another thread is using the buffer. */
struct gpc_bounce_buffer *gpc_bounce_buffer_acquire(struct gpc_context *context);
void gpc_bounce_buffer_release(struct gpc_bounce_buffer *buffer);

#endif /* GPC_BOUNCE_BUFFER_H */
