/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Late copies: copies from host memory whose bytes leave when the stream reaches the copy, and
 * copies and fills within the host that happen then.
 *
 * CUDA reads the source of an asynchronous copy from pinned memory in stream order.  While
 * something that the host can hold back is ahead of the copy (a host function, a stream's wait for
 * a value), the program may still fill the source.  Such a copy is posted as a host function of the
 * library's own: the worker notifies the client when the stream gets there, the client sends the
 * bytes with GP_COPY_LATE, and later work of the stream follows.  Nothing of it waits in the
 * caller, and no byte occupies the worker meanwhile.
 *
 * Ownership: a late copy belongs to this unit from gpc_late_copy_post() on, which frees it.
 * Threads: any.
 */
#ifndef GPC_LATE_COPY_H
#define GPC_LATE_COPY_H

#include "client/wire/call.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* The first member of what was allocated for the copy. */
struct gpc_late_copy {
	struct gpc_session *session;
	/* Memory of the program that the copy reads or writes; both 0: none. */
	uintptr_t start, end;
	uintptr_t start_to, end_to; /* of a copy within the host, the destination */
	/* Sends the bytes; on the thread of late copies, or not at all if the session ends.  Copies
	 * that the daemon had carried out before have all their bytes: they have been answered
	 * before the stream's turn is announced, and an answer is read behind its bytes. */
	CUresult (*send)(struct gpc_late_copy *late);
	void (*destroy)(struct gpc_late_copy *late);
	uint64_t number; /* of all that were posted */
	struct gpc_late_copy *prev, *next;
};

/* Whether the daemon of the session knows them. */
bool gpc_late_copy_is_known(const struct gpc_session *session);

/* Posts the copy to a stream (its name on the wire); session, start, end, send and destroy are set.
 * After an error it has been destroyed. */
CUresult gpc_late_copy_post(const struct gpc_scope *scope, uint32_t stream,
			    struct gpc_late_copy *late);

/* Waits until no late copy uses [base, base + size) any more; returns at once in the child of
 * a fork, which has no thread that sends. */
void gpc_late_copy_settle(const void *base, uint64_t size);

#endif /* GPC_LATE_COPY_H */
