/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The application's handles: CUstream, CUevent, CUcontext, CUmodule, CUlibrary, CUkernel,
 * CUfunction, CUmemoryPool.
 *
 * A handle is a token, never an address: it says kind, generation and index, so a stale or foreign
 * one is recognised.  The object behind it begins with struct gpc_handle.  Any thread may call;
 * lookups take no lock.
 *
 * Objects are not counted: a launch would pay for it.  What gpc_handle_new() makes stays memory of
 * an object of its kind for ever, and the next one of its place gets it.  So an application that
 * destroys an object which another of its threads uses may have the use meet the next object, but
 * nothing reads memory that has been freed.  What has memory of its own (gpc_handle_add()) lives as
 * long as the process, or says in its header who sees to it.
 */
#ifndef GPC_HANDLE_H
#define GPC_HANDLE_H

#include "gpc_kinds.h"

#include <stddef.h>
#include <stdint.h>

struct gpc_handle {
	enum gpc_kind kind;
	uint32_t id; /* the object's name on the wire: index and generation; never 0 */
	void *token; /* what the application has */
};

/* An object of zeros but for its kind, id and token.  All of a kind have the same size.  NULL:
 * there is no memory, or there are 2^20 of the kind. */
void *gpc_handle_new(enum gpc_kind kind, size_t size);
/* Names an object in the caller's memory.  0 or -ENOMEM. */
int gpc_handle_add(enum gpc_kind kind, struct gpc_handle *handle);

/* What was written to the object up to now is seen by each lookup from now on: for an object that
 * another thread may have without a lock of ours in between. */
void gpc_handle_publish(struct gpc_handle *handle);

/* The object behind token, or NULL when it is none of this kind (any bit pattern is allowed). */
void *gpc_handle_get(enum gpc_kind kind, const void *token);

/* What kind the token says that it is of; any number, of what is no token. */
unsigned int gpc_handle_kind(const void *token);

/* The object of this name on the wire, or NULL. */
void *gpc_handle_find(enum gpc_kind kind, uint32_t id);

/* Forgets the handle: the token is invalid from now on, and the memory is the next object's, or the
 * caller's who has added it. */
void gpc_handle_remove(struct gpc_handle *handle);

/* Calls visit for each live object of the kind (a snapshot; visit may remove objects). */
void gpc_handle_each(enum gpc_kind kind, void (*visit)(void *object, void *arg), void *arg);

#endif /* GPC_HANDLE_H */
