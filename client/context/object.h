/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generic objects: objects of the application, such as a CUlinkState, for which the client stores
 * only handle and context; everything else about them is in the daemon's driver (GP_KIND with
 * OBJECT in codegen/api). Also helpers by which
 * generated stubs convert handles to wire IDs.
 *
 * A token is the application's handle of an object, such as a CUgraphicsResource; the wire ID is
 * its number in messages.
 * Ownership: the handle table (client/base/handle.h) owns an object until gpc_object_destroy().
 * Whether an object is destroyed with its context depends on its kind
 * (gpc_kind_has_context_lifetime). Pointers to objects are borrowed, and valid until the program
 * destroys the object.
 * Threads: any thread may call.
 * Errors: functions that return CUresult return CUDA_SUCCESS or the errors stated with the
 * function; out parameters are unchanged after an error, unless noted otherwise.
 */
#ifndef GPC_OBJECT_H
#define GPC_OBJECT_H

#include "client/base/handle.h"
#include "client/context/context.h"
#include "protocol/enc.h"
#include "protocol/scratch.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* A generic object. */
struct gpc_object {
	struct gpc_handle handle;
	struct gpc_context *context; /* context that the object belongs to; never NULL */
	struct gp_scratch memory;    /* memory that hand-written functions attach to the object;
					initially empty; freed with it */
	/* pointer for hand-written functions; initially NULL. The call that destroys the object
	 * must free it first (linker.c): neither gpc_object_destroy() nor
	 * gpc_objects_drop_context() does. */
	void *extra;
};

/* Generated table, indexed by enum gpc_kind: whether objects of the kind are destroyed with their
 * context. */
extern const bool gpc_kind_has_context_lifetime[];

/* Creates an object with a token and a wire ID, before the caller creates it in the daemon, and
 * stores it in *object_p. Undone by gpc_object_destroy(). Returns CUDA_SUCCESS or
 * CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gpc_object_create(enum gpc_kind kind, struct gpc_context *context,
			   struct gpc_object **object_p);
/* Frees an object that no longer exists in the daemon, or was not created there; its wire ID may be
 * reused. */
void gpc_object_destroy(struct gpc_object *object);
/* Frees the object of a token, as gpc_object_destroy() does. Has no effect if the token is
 * invalid, or if another thread destroys the object. */
void gpc_object_destroy_by_token(enum gpc_kind kind, const void *token);
/* Converts a token to a wire ID: stores the ID in *id_p and replaces *context_p, the context of the
 * call, by the object's context. Returns CUDA_ERROR_INVALID_HANDLE if the token is invalid, or its
 * object belongs to another session than *context_p. */
CUresult gpc_object_to_wire(struct gpc_context **context_p, enum gpc_kind kind, const void *token,
			    uint32_t *id_p);
/* Returns the token of the object with this wire ID. Returns NULL for 0 and for an unknown ID. */
void *gpc_object_from_wire(enum gpc_kind kind, uint32_t id);
/* Frees all objects of the context whose kind is destroyed with the context. Called as
 * drop_context() of struct gpc_context_part (context.h). */
void gpc_objects_drop_context(struct gpc_context *context);

/* First step of a CUDA function on a handle of this kind, generic or not: calls
 * gpc_enter_initialized() (context.h) and looks up the handle. object_p: address of a pointer,
 * which is always set: to the object, or to NULL if the handle is invalid. Returns
 * CUDA_ERROR_INVALID_HANDLE if the handle is invalid, or an error of gpc_enter_initialized(). */
CUresult gpc_enter_kind(enum gpc_kind kind, const void *token, void *object_p);
/* First step of a CUDA function that calls the daemon about a device and needs no current context.
 * Stores the primary context of the device in *context_p; it is not activated. Returns
 * CUDA_ERROR_INVALID_DEVICE if the ordinal is invalid, or an error of gpc_enter_initialized(). */
CUresult gpc_enter_device(CUdevice ordinal, struct gpc_context **context_p);
/* Stores in *remote_p the daemon's ordinal of a device of the application. Returns
 * CUDA_ERROR_INVALID_DEVICE if the ordinal is invalid or the device belongs to another session than
 * the context. */
CUresult gpc_device_to_wire(const struct gpc_context *context, CUdevice ordinal, int32_t *remote_p);
/* Returns the application's ordinal of a device of the context's daemon, or -1 if the device is not
 * visible. */
CUdevice gpc_device_from_wire(const struct gpc_context *context, int32_t remote);
/* Activates a context, and stores its wire ID in *id_p and the context in *context_p. A NULL token
 * means the current context. Returns CUDA_SUCCESS, or an error of gpc_context_lookup() or
 * gpc_context_activate() (context.h). */
CUresult gpc_context_to_wire(struct gpc_context **context_p, CUcontext token, uint32_t *id_p);

/* Ends the context's session because a reply is malformed, which means that the two ends disagree
 * on the protocol. Returns GPC_ERROR_LOST, for the caller to return. */
CUresult gpc_reply_fail_malformed(const struct gpc_context *context);

#endif /* GPC_OBJECT_H */
