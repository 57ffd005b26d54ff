/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounce buffer: memory shared with the worker, through which short copies from the device to
 * pageable memory are made.
 *
 * The GPU writes directly into the buffer, so the client copies the bytes once instead of twice
 * through the transport's ring. A session has one buffer, which counts as pinned memory, from its
 * third short copy until its end. Only the first eight sessions of the process that make such
 * copies have one.
 *
 * Ownership: the process owns the buffers and never frees them; a caller has exclusive use between
 * acquire and release.
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note).
 */
#ifndef GPC_BOUNCE_BUFFER_H
#define GPC_BOUNCE_BUFFER_H

#include <stdatomic.h>
#include <stdint.h>

struct gpc_context;
struct gpc_session;

/* Size of a buffer in bytes. */
#define GPC_BOUNCE_BUFFER_SIZE ((uint64_t)1536 << 10)

/* The buffer of a session. The thread that has acquired it uses the members except the first
 * two. */
struct gpc_bounce_buffer {
	_Atomic(const struct gpc_session *) session; /* NULL: the buffer is unused */
	atomic_bool busy;                            /* a thread has acquired it */
	/* number of acquisitions so far, up to three; the third allocates the memory */
	unsigned int copies;
	uint64_t address; /* address of GPC_BOUNCE_BUFFER_SIZE bytes, equal in both processes; 0:
			     not allocated */
};

/* Acquires the buffer of the context's session for one copy. Returns it, with its address set;
 * gpc_bounce_buffer_release() must follow. Returns NULL for the first two copies of a session, or
 * if memory is not shared with the worker, no buffer is left, it could not be allocated, or another
 * thread is using it; the caller then copies without it. Does not wait for the buffer. The call
 * that allocates it waits for the daemon. */
struct gpc_bounce_buffer *gpc_bounce_buffer_acquire(struct gpc_context *context);
/* Releases the buffer. Its contents may then be overwritten. */
void gpc_bounce_buffer_release(struct gpc_bounce_buffer *buffer);

#endif /* GPC_BOUNCE_BUFFER_H */
