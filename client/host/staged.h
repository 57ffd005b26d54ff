/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the worker shares, through which short copies come to pageable memory: the GPU writes
 * into it, so the bytes are copied once, by the client, and not twice through a ring.
 *
 * A session has one piece of it, which counts as pinned memory of its own, from its third copy on
 * to its end.  Any thread may call; one at a time has it.
 */
#ifndef GPC_STAGED_H
#define GPC_STAGED_H

#include <stdatomic.h>
#include <stdint.h>

struct gpc_context;
struct gpc_session;

#define GPC_BOUNCE_BUFFER_SIZE ((uint64_t)1536 << 10)

/* Of a session: whoever has it has all of it. */
struct gpc_bounce_buffer {
	_Atomic(const struct gpc_session *) session;
	atomic_bool busy;
	unsigned int copies;
	uint64_t
		address; /* of GPC_BOUNCE_BUFFER_SIZE bytes, here and there; 0: not yet, or never */
};

/* NULL: the session's memory is not shared, its quota has no room, or another thread has it. */
struct gpc_bounce_buffer *gpc_bounce_buffer_acquire(struct gpc_context *context);
void gpc_bounce_buffer_release(struct gpc_bounce_buffer *buffer);

#endif /* GPC_STAGED_H */
