/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects of the application that are the daemon's driver's and nothing else (GP_KIND with DESTROY),
 * and what else generated stubs make of their arguments.  An object belongs to its context, and
 * goes with it or stays behind it as the description says.  Any thread may call.
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
	struct gp_scratch memory; /* of hand-written calls: it goes with the object */
	void *extra;
};

/* Generated: whether objects of a kind are destroyed with their context. */
extern const bool gpc_kind_has_context_lifetime[];

/* The daemon does not know it yet. */
CUresult gpc_object_create(enum gpc_kind kind, struct gpc_context *context,
			   struct gpc_object **object_p);
/* The daemon does not know it any more. */
void gpc_object_destroy(struct gpc_object *object);
/* The same for a token of the application's. */
void gpc_object_destroy_by_token(enum gpc_kind kind, const void *token);
/* Its name on the wire; *context_p, of the same session, becomes the object's own. */
CUresult gpc_object_to_wire(struct gpc_context **context_p, enum gpc_kind kind, const void *token,
			    uint32_t *id_p);
/* What the application calls the object of this name; NULL: there is none. */
void *gpc_object_from_wire(enum gpc_kind kind, uint32_t id);
void gpc_objects_drop_context(struct gpc_context *context);

/* Begins a call about what is behind a handle: *object_p is a pointer to an object of the kind. */
CUresult gpc_enter_kind(enum gpc_kind kind, const void *token, void *object_p);
/* Begins a call about a device, which needs no current context: *context_p is its primary one. */
CUresult gpc_enter_device(CUdevice ordinal, struct gpc_context **context_p);
/* The daemon's ordinal of a device of the context's session; CUDA_ERROR_INVALID_DEVICE. */
CUresult gpc_device_to_wire(const struct gpc_context *context, CUdevice ordinal, int32_t *remote_p);
/* The application's ordinal of a device of the daemon's; -1: it has none. */
CUdevice gpc_device_from_wire(const struct gpc_context *context, int32_t remote);
/* A context's name on the wire, where it is made known; *context_p becomes it. */
CUresult gpc_context_to_wire(struct gpc_context **context_p, CUcontext token, uint32_t *id_p);

/* The two ends no longer agree on the stream: the session ends. */
CUresult gpc_reply_fail_malformed(const struct gpc_context *context);

#endif /* GPC_OBJECT_H */
