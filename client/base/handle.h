/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handle tables: map the opaque handles of the application (CUstream, CUevent, CUcontext, CUmodule,
 * CUlibrary, CUkernel, CUfunction, CUmemoryPool and others) to objects.
 *
 * A handle is a token, never an address. It encodes the kind, the index of a slot in the kind's
 * table, and a generation that changes with each object of the slot. So a foreign handle is
 * detected, and a stale one until its slot has been used 4096 more times. Each object begins with a
 * struct gpc_handle.
 *
 * Ownership: objects have no reference counts, because every launch would have to update them.
 * Memory from gpc_handle_new() is never returned to the heap: it is reused only for the next object
 * of the same slot, which is of the same kind. If an application destroys an object that another of
 * its threads uses, that thread may read the next object, but never freed memory. Memory that was
 * passed to gpc_handle_add() stays the caller's and must stay valid until no thread can look up or
 * use the handle any more; the header of the object's type states how this is ensured.
 * Destruction: two threads may destroy one object at the same time. So a call that destroys objects
 * without a lock of its own first claims the object (gpc_handle_claim()), which one thread can.
 * Threads: any thread may call. Lookups acquire no lock. The other functions except
 * gpc_handle_publish() acquire the lock of the kind's table; none is held while visit() runs.
 */
#ifndef GPC_HANDLE_H
#define GPC_HANDLE_H

#include "gpc_kinds.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* First member of each object that has a handle. Filled in by the handle table. */
struct gpc_handle {
	enum gpc_kind kind;
	uint32_t id; /* index and generation, unique among live objects of the kind; the object's ID
			in messages to the daemon; never 0 */
	void *token; /* the handle that the application received */
};

/* Creates an object of zeros, except for its kind, id and token. size: size of the object in bytes,
 * a multiple of 8 and the same for all objects of a kind. Returns NULL if out of memory or if 2^20
 * - 1 objects of the kind exist. Undone by gpc_handle_remove(). */
void *gpc_handle_new(enum gpc_kind kind, size_t size);
/* Creates a handle for an object in the caller's memory and fills *handle, which is the object's
 * first member. Undone by gpc_handle_remove(). Returns 0, or -ENOMEM, with *handle unchanged, if
 * out of memory or if 2^20 - 1 objects of the kind exist. */
int gpc_handle_add(enum gpc_kind kind, struct gpc_handle *handle);

/* Makes this thread's earlier writes to the object visible to every later lookup. Called after an
 * object is filled in, if another thread of the program may use the handle without having
 * synchronized with this one. */
void gpc_handle_publish(struct gpc_handle *handle);

/* Returns the object of the token, or NULL if the token is not the handle of a live object of this
 * kind. Any bit pattern is allowed. For the lifetime of the object, see Ownership above. */
void *gpc_handle_from_token(enum gpc_kind kind, const void *token);

/* Returns the kind (enum gpc_kind) that is encoded in the token, without checking that the handle
 * is valid. The result is arbitrary, at most 255, for a value that is not a token. */
unsigned int gpc_handle_kind(const void *token);

/* Returns the live object of this kind with this ID (struct gpc_handle), or NULL. */
void *gpc_handle_from_id(enum gpc_kind kind, uint32_t id);

/* Reserves the object of the token for destruction by the caller. Returns false if another call has
 * claimed it, or if the token is not the handle of a live object of this kind: the caller must not
 * touch the object then. Called before anything of the object is released. Lookups return the
 * object until gpc_handle_remove(). */
bool gpc_handle_claim(enum gpc_kind kind, const void *token);
/* Undoes gpc_handle_claim() of a live object that is not destroyed after all. */
void gpc_handle_unclaim(struct gpc_handle *handle);

/* Invalidates the handle of an object that the caller has claimed or destroys under a lock of its
 * own: lookups return NULL for its token and ID. Has no effect on a handle that was removed and
 * whose memory no other object uses. Memory from gpc_handle_new() is reused for the next object of
 * the slot; memory that was passed to gpc_handle_add() belongs to the caller again. */
void gpc_handle_remove(struct gpc_handle *handle);

/* Calls visit(object, arg) for each object of the kind that is live at the start of the call and
 * still live when its turn comes. An object is live as soon as gpc_handle_new() or gpc_handle_add()
 * returns, so another thread may still be filling it in. No lock is held, so visit() may create and
 * remove objects. Visits no object if out of memory. */
void gpc_handle_each(enum gpc_kind kind, void (*visit)(void *object, void *arg), void *arg);

#endif /* GPC_HANDLE_H */
