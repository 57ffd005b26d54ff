/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generic objects: objects of the application that exist only in the daemon's driver (GP_KIND with
 * OBJECT in codegen/api), and helpers by which generated stubs convert handles to wire IDs.
 *
 * A token is the application's handle of an object, such as a CUgraphicsResource; the wire ID is
 * its number in messages.
 * Ownership: the handle table owns an object until gpc_object_destroy(). Whether an object is
 * destroyed with its context depends on its kind (gpc_kind_has_context_lifetime). Pointers to
 * objects are borrowed, and valid until the program destroys the object.
 * Threads: any thread may call.
 * Errors: functions that return CUresult return CUDA_SUCCESS on success; out parameters are
 * unchanged after an error, unless noted otherwise.
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
	struct gpc_context *context; /* context that it belongs to; never NULL */
	struct gp_scratch
		memory; /* memory that hand-written calls attach to the object; freed with it */
	void *extra;    /* for hand-written calls; not freed with the object */
};

/* Generated table, indexed by enum gpc_kind: whether objects of the kind are destroyed with their
 * context. */
extern const bool gpc_kind_has_context_lifetime[];

/* Creates an object with a token and a wire ID, which does not exist in the daemon yet, and stores
 * it in *object_p. Returns CUDA_SUCCESS or CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gpc_object_create(enum gpc_kind kind, struct gpc_context *context,
			   struct gpc_object **object_p);
/* Frees an object that no longer exists in the daemon, or was not created there; its wire ID may be
 * reused. */
void gpc_object_destroy(struct gpc_object *object);
/* Frees the object of a token, as gpc_object_destroy() does. Has no effect if the token is
 * invalid. */
void gpc_object_destroy_by_token(enum gpc_kind kind, const void *token);
/* Converts a token to a wire ID: stores the ID in *id_p and replaces *context_p by the object's
 * context. Returns CUDA_ERROR_INVALID_HANDLE if the token is invalid, or its object belongs to
 * another session than *context_p. */
CUresult gpc_object_to_wire(struct gpc_context **context_p, enum gpc_kind kind, const void *token,
			    uint32_t *id_p);
/* Returns the token of the object with this wire ID. Returns NULL for 0 and for an unknown ID. */
void *gpc_object_from_wire(enum gpc_kind kind, uint32_t id);
/* Frees all objects of the context whose kind is destroyed with the context. */
void gpc_objects_drop_context(struct gpc_context *context);

/* Starts a CUDA call on a handle of this kind. object_p is the address of a pointer, which receives
 * the object, or NULL if the handle is invalid. Returns CUDA_ERROR_INVALID_HANDLE if the handle is
 * invalid, or an error of gpc_enter_initialized(). */
CUresult gpc_enter_kind(enum gpc_kind kind, const void *token, void *object_p);
/* Starts a CUDA call on a device, which needs no current context. Stores the primary context of the
 * device in *context_p; it is not activated. Returns CUDA_ERROR_INVALID_DEVICE if the ordinal is
 * invalid, or an error of gpc_enter_initialized(). */
CUresult gpc_enter_device(CUdevice ordinal, struct gpc_context **context_p);
/* Stores in *remote_p the daemon's ordinal of a device of the application. Returns
 * CUDA_ERROR_INVALID_DEVICE if the ordinal is invalid or the device belongs to another session than
 * the context. */
CUresult gpc_device_to_wire(const struct gpc_context *context, CUdevice ordinal, int32_t *remote_p);
/* Returns the application's ordinal of a device of the context's daemon, or -1 if the device is not
 * visible. */
CUdevice gpc_device_from_wire(const struct gpc_context *context, int32_t remote);
/* Stores the wire ID of a context, after activating it, in *id_p and the context in *context_p. A
 * NULL token means the current context. Returns an error of gpc_context_lookup() or
 * gpc_context_activate(). */
CUresult gpc_context_to_wire(struct gpc_context **context_p, CUcontext token, uint32_t *id_p);

/* Ends the context's session because a reply is malformed, which means that the two ends disagree
 * on the protocol. Returns GPC_ERROR_LOST, for the caller to return. */
CUresult gpc_reply_fail_malformed(const struct gpc_context *context);
/* Copies the bytes of a reply, and frees the memory of the reply, which may be NULL. Returns
 * `result`, that of the call, or CUDA_ERROR_UNKNOWN if there are not `size` bytes. */
CUresult gpc_reply_copy_bytes(CUresult result, const struct gp_bytes *bytes, void *to, size_t size,
			      void *reply);

#endif /* GPC_OBJECT_H */
