/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Late copies: copies from host memory whose data is sent when the stream reaches the copy, and
 * copies and fills within the host that are executed at that time.
 *
 * CUDA reads the source of an asynchronous copy from pinned memory in stream order. While the
 * stream must first wait for the host (for a host function or a value), the program may still fill
 * the source. Such a copy is posted as a host function of the library's own: the worker notifies
 * the client when the stream reaches it, the client sends the data with GP_COPY_LATE
 * (protocol/frame.h), and later work of the stream follows. The caller does not wait, and no data
 * occupies the worker in the meantime.
 *
 * Ownership: gpc_late_copy_post() takes ownership of the copy and destroys it with destroy(), also
 * on failure.
 * Threads: any; the list of late copies has a lock of its own.
 */
#ifndef GPC_LATE_COPY_H
#define GPC_LATE_COPY_H

#include "client/session/call.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* A late copy; the first member of the struct that the caller allocated for it and that destroy()
 * frees. */
struct gpc_late_copy {
	struct gpc_session *session; /* borrowed */
	/* first byte, and byte after the last, of the memory of the program that the copy reads, or
	 * that a fill writes; both 0: none */
	uintptr_t start, end;
	/* likewise, the destination of a copy within the host; both 0: none */
	uintptr_t start_to, end_to;
	/* Sends the data, or executes a copy or fill within the host. Returns CUDA_SUCCESS or an
	 * error, which becomes the session's deferred error. Called on the thread of late copies
	 * (gpupool-late), without a lock, when the stream has reached the copy; not called if the
	 * session ends before. The data of earlier copies from the device has then arrived. */
	CUresult (*send)(struct gpc_late_copy *late);
	/* Frees the copy. Called once, after send() or without it, on any thread and without a
	 * lock. */
	void (*destroy)(struct gpc_late_copy *late);
	uint64_t number; /* sequence number of the copy; set by gpc_late_copy_post() */
	struct gpc_late_copy *prev, *next; /* list of late_copy.c */
};

/* Returns whether the session's daemon supports GP_FEATURE_LATE (protocol/control.h), without which
 * no send() may use GP_COPY_LATE. Copies and fills within the host need no support. */
bool gpc_late_copy_is_known(const struct gpc_session *session);

/* Posts the copy to the stream with this wire ID, after the stream's work so far. session, start,
 * end, start_to, end_to, send and destroy must be set. May block as gpc_post_X() does
 * (client/session/call.h). Does not wait for the copy, which may already be destroyed when this
 * returns. Returns CUDA_SUCCESS or an error of gpc_host_queue_post() (client/session/host_queue.h);
 * after an error the copy has been destroyed. */
CUresult gpc_late_copy_post(const struct gpc_scope *scope, uint32_t stream,
			    struct gpc_late_copy *late);

/* Called before [base, base + size) is freed or changed: blocks, without limit, until no late copy
 * uses it. Not called in send(). Does not wait for copies of the parent in the child of a fork. */
void gpc_late_copy_settle(const void *base, uint64_t size);

#endif /* GPC_LATE_COPY_H */
