/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generic objects: application objects that exist only in the daemon's driver (GP_KIND with
 * OBJECT), and helpers by which generated stubs convert handles to wire IDs.
 *
 * Ownership: an object belongs to its context. Whether it is destroyed with the context depends on
 * its kind (gpc_kind_has_context_lifetime).
 * Threads: any thread may call.
 */
#ifndef GPC_OBJECT_H
#define GPC_OBJECT_H

#include "client/base/handle.h"
#include "client/context/context.h"
#include "protocol/scratch.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_object {
	struct gpc_handle handle;
	struct gpc_context *context;
	struct gp_scratch memory; /* scratch memory of hand-written calls, freed with the object */
	void *extra;
};

/* Generated table: whether objects of a kind are destroyed with their context. */
extern const bool gpc_kind_has_context_lifetime[];

/* Creates an object that does not exist in the daemon yet. Returns CUDA_ERROR_OUT_OF_MEMORY on
 * failure. */
CUresult gpc_object_create(enum gpc_kind kind, struct gpc_context *context,
			   struct gpc_object **object_p);
/* Frees an object that no longer exists in the daemon. */
void gpc_object_destroy(struct gpc_object *object);
/* Frees the object of a token, if the token is valid. */
void gpc_object_destroy_by_token(enum gpc_kind kind, const void *token);
/* Returns the wire ID of an object of the same session, and replaces *context_p by the object's
 * context. Returns CUDA_ERROR_INVALID_HANDLE if the token is invalid or belongs to another
 * session. */
CUresult gpc_object_to_wire(struct gpc_context **context_p, enum gpc_kind kind, const void *token,
			    uint32_t *id_p);
/* Returns the token of the object with this wire ID, or NULL. */
void *gpc_object_from_wire(enum gpc_kind kind, uint32_t id);
/* Destroys the objects of a context whose kind is destroyed with the context. */
void gpc_objects_drop_context(struct gpc_context *context);

/* Starts a call on a handle of this kind. object_p points to a pointer, which receives the object.
 * Returns CUDA_ERROR_INVALID_HANDLE if the handle is invalid. */
CUresult gpc_enter_kind(enum gpc_kind kind, const void *token, void *object_p);
/* Starts a call on a device, which needs no current context. *context_p receives the primary
 * context of the device. Returns CUDA_ERROR_INVALID_DEVICE if the ordinal is invalid. */
CUresult gpc_enter_device(CUdevice ordinal, struct gpc_context **context_p);
/* Returns the daemon's ordinal of a device of the context's session, or
 * CUDA_ERROR_INVALID_DEVICE. */
CUresult gpc_device_to_wire(const struct gpc_context *context, CUdevice ordinal, int32_t *remote_p);
/* Returns the application's ordinal of a device of the daemon, or -1 if it is not visible. */
CUdevice gpc_device_from_wire(const struct gpc_context *context, int32_t remote);
/* Returns the wire ID of a context, after activating it, and stores the context in *context_p. */
CUresult gpc_context_to_wire(struct gpc_context **context_p, CUcontext token, uint32_t *id_p);

/* Ends the session because a reply is malformed, which means that the two ends disagree on the
 * protocol. Returns GPC_ERROR_LOST. */
CUresult gpc_reply_fail_malformed(const struct gpc_context *context);

#endif /* GPC_OBJECT_H */
