/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handle tables: map the opaque handles of the application (CUstream, CUevent, CUcontext, CUmodule,
 * CUlibrary, CUkernel, CUfunction, CUmemoryPool and others) to objects.
 *
 * A handle is a token, never an address. It encodes kind, generation and index, so a stale or
 * foreign handle is detected. The object begins with struct gpc_handle.
 *
 * Ownership: objects have no reference counts, because a launch would pay for them. Memory from
 * gpc_handle_new() is never returned to the heap: it is reused only for the next object of the same
 * slot, which is of the same kind. So if an application destroys an object that another of its
 * threads uses, that use may see the next object, but never freed memory. An object with memory of
 * its own (gpc_handle_add()) lives as long as the process, or its header states how its lifetime is
 * ensured.
 * Threads: any thread may call; lookups take no lock.
 */
#ifndef GPC_HANDLE_H
#define GPC_HANDLE_H

#include "gpc_kinds.h"

#include <stddef.h>
#include <stdint.h>

struct gpc_handle {
	enum gpc_kind kind;
	uint32_t id; /* the object's ID on the wire: index and generation; never 0 */
	void *token; /* the handle that the application has */
};

/* Creates an object of zeros, except for its kind, id and token. All objects of a kind have the
 * same size. Returns NULL if out of memory or if there are already 2^20 objects of the kind. */
void *gpc_handle_new(enum gpc_kind kind, size_t size);
/* Creates a handle for an object in the caller's memory. Returns 0 or -ENOMEM. */
int gpc_handle_add(enum gpc_kind kind, struct gpc_handle *handle);

/* Makes all earlier writes to the object visible to every later lookup. Needed if another thread
 * can get the handle without synchronizing through a lock of the library. */
void gpc_handle_publish(struct gpc_handle *handle);

/* Returns the object of the token, or NULL if the token is not a valid handle of this kind. Any bit
 * pattern is allowed. */
void *gpc_handle_get(enum gpc_kind kind, const void *token);

/* Returns the kind that is encoded in the token. The result is arbitrary for a value that is not a
 * token. */
unsigned int gpc_handle_kind(const void *token);

/* Returns the object with this wire ID, or NULL. */
void *gpc_handle_find(enum gpc_kind kind, uint32_t id);

/* Invalidates the handle. Its memory is reused for the next object, or belongs to the caller again
 * if gpc_handle_add() was used. */
void gpc_handle_remove(struct gpc_handle *handle);

/* Calls visit for each live object of the kind. Works on a snapshot, so visit may remove
 * objects. */
void gpc_handle_each(enum gpc_kind kind, void (*visit)(void *object, void *arg), void *arg);

#endif /* GPC_HANDLE_H */
