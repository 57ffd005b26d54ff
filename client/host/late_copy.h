/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Late copies: copies from host memory whose data is sent when the stream reaches the copy, and
 * copies and fills within the host that are executed at that time.
 *
 * CUDA reads the source of an asynchronous copy from pinned memory in stream order. While the
 * stream must first wait for the host (for a host function or a value), the program may still fill
 * the source. Such a copy is posted as a host function of the library's own: the worker notifies
 * the client when the stream reaches it, the client sends the data with GP_COPY_LATE, and later
 * work of the stream follows. The caller does not wait, and no data occupies the worker in the
 * meantime.
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
	/* memory of the program that the copy reads, or writes if it is a fill; both 0: none */
	uintptr_t start, end;
	uintptr_t start_to, end_to; /* destination of a copy within the host; both 0: none */
	/* Sends the data and returns CUDA_SUCCESS or an error, which becomes the session's deferred
	 * error. Called on the thread of late copies (gpupool-late), or not at all if the session
	 * ends. The data of copies that the daemon has executed before is complete: their replies
	 * precede the notification, and a reply is read after its data. */
	CUresult (*send)(struct gpc_late_copy *late);
	/* Frees the copy. Called once, after send() or without it, on any thread and without a
	 * lock. */
	void (*destroy)(struct gpc_late_copy *late);
	uint64_t number; /* sequence number of the copy; set by gpc_late_copy_post() */
	struct gpc_late_copy *prev, *next;
};

/* Returns whether the session's daemon supports late copies. */
bool gpc_late_copy_is_known(const struct gpc_session *session);

/* Posts the copy to the stream with this wire ID. session, start, end, start_to, end_to, send and
 * destroy must be set. Does not wait for the copy. Returns CUDA_SUCCESS or an error of
 * gpc_host_queue_post(); on failure the copy has been destroyed and is not sent. */
CUresult gpc_late_copy_post(const struct gpc_scope *scope, uint32_t stream,
			    struct gpc_late_copy *late);

/* Blocks, without limit, until no late copy uses [base, base + size). Returns at once in the child
 * of a fork, which has no sending thread. */
void gpc_late_copy_settle(const void *base, uint64_t size);

#endif /* GPC_LATE_COPY_H */
