/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handle tables: map the opaque handles of the application (CUstream, CUevent, CUcontext, CUmodule,
 * CUlibrary, CUkernel, CUfunction, CUmemoryPool and others) to objects.
 *
 * A handle is a token, never an address. It encodes kind, generation and index, so a stale or
 * foreign handle is detected. Each object begins with a struct gpc_handle.
 *
 * Ownership: objects have no reference counts, because every launch would have to update them.
 * Memory from gpc_handle_new() is never returned to the heap: it is reused only for the next object
 * of the same slot, which is of the same kind. So if an application destroys an object that another
 * of its threads uses, the using thread may see the next object, but never freed memory. Memory
 * that was passed to gpc_handle_add() stays the caller's and must stay valid until no thread can
 * look up or use the handle any more; the header of the object states how that is ensured.
 * Threads: any thread may call. Lookups take no lock; gpc_handle_new(), gpc_handle_add(),
 * gpc_handle_remove() and gpc_handle_each() take the lock of the kind's table.
 */
#ifndef GPC_HANDLE_H
#define GPC_HANDLE_H

#include "gpc_kinds.h"

#include <stddef.h>
#include <stdint.h>

/* First member of each object that has a handle. Filled in by the handle table. */
struct gpc_handle {
	enum gpc_kind kind;
	uint32_t id; /* ID of the object in messages to the daemon: index and generation; never 0 */
	void *token; /* the handle that the application received */
};

/* Creates an object of zeros, except for its kind, id and token. size: size of the object in bytes,
 * a multiple of 8 and the same for all objects of a kind. Returns NULL if out of memory or if 2^20
 * - 1 objects of the kind exist. gpc_handle_remove() frees the object. */
void *gpc_handle_new(enum gpc_kind kind, size_t size);
/* Creates a handle for an object in the caller's memory and fills *handle. Returns 0, or -ENOMEM,
 * with *handle unchanged, if out of memory or if 2^20 - 1 objects of the kind exist. */
int gpc_handle_add(enum gpc_kind kind, struct gpc_handle *handle);

/* Makes all earlier writes to the object visible to every later lookup. It must be called after an
 * object is filled in, if another thread can obtain the handle without acquiring a lock of the
 * library. */
void gpc_handle_publish(struct gpc_handle *handle);

/* Returns the object of the token, or NULL if the token is not a valid handle of this kind. Any bit
 * pattern is allowed. For the lifetime of the object, see Ownership above. */
void *gpc_handle_get(enum gpc_kind kind, const void *token);

/* Returns the kind that is encoded in the token. The result is arbitrary for a value that is not a
 * token. */
unsigned int gpc_handle_kind(const void *token);

/* Returns the object of this kind with this ID (struct gpc_handle), or NULL. */
void *gpc_handle_find(enum gpc_kind kind, uint32_t id);

/* Invalidates a valid handle: lookups return NULL for its token. Memory from gpc_handle_new() is
 * reused for the next object of the slot; memory that was passed to gpc_handle_add() belongs to the
 * caller again. */
void gpc_handle_remove(struct gpc_handle *handle);

/* Calls visit(object, arg) for each live object of the kind, without a lock. It works on a
 * snapshot, so visit may create and remove objects. Visits no object if out of memory. */
void gpc_handle_each(enum gpc_kind kind, void (*visit)(void *object, void *arg), void *arg);

#endif /* GPC_HANDLE_H */
