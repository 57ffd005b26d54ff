/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts of the application (CUgreenCtx): contexts that use a part of a device's
 * multiprocessors.
 *
 * A green context consists of a struct gpc_context in the client, whose parent is the primary
 * context of the device, and of a context in the daemon. Its streams run on its multiprocessors;
 * all other objects belong to the primary context.
 *
 * Ownership: a green context owns its struct gpc_context, and retains its primary context.
 * cuGreenCtxDestroy() destroys it, with its struct gpc_context and the daemon's context. So does a
 * reset of the primary context.
 * Threads: any thread may call. As in CUDA, the program must not destroy a green context that
 * another thread uses.
 */
#ifndef GPC_GREEN_CONTEXT_H
#define GPC_GREEN_CONTEXT_H

#include "client/base/handle.h"
#include "client/context/context.h"

#include <cuda.h>

/* The object of a CUgreenCtx. gpc_handle_remove() of its handle frees it. */
struct gpc_green_context {
	struct gpc_handle handle;
	/* destroyed together with the green context; NULL only while it is being created */
	struct gpc_context *context;
};

/* Checks that CUDA is usable, and looks up the handle: the first step of each CUDA function on a
 * green context. Acquires nothing, so nothing has to be released. Returns CUDA_SUCCESS and sets
 * *green_p, which is valid until the green context is destroyed. Errors, after which *green_p must
 * not be used: CUDA_ERROR_INVALID_CONTEXT if the handle is invalid, and those of
 * gpc_enter_initialized() (client/context/context.h). */
CUresult gpc_green_context_enter(CUgreenCtx hCtx, struct gpc_green_context **green_p);

/* Destroys all green contexts of a primary context, each as gpc_context_reset() does, without
 * releasing the primary context. Called as leave() of struct gpc_context_part
 * (client/context/context.h), before the context is reset; may block on the daemon. Has no effect
 * if `context` is itself a green context. */
void gpc_green_context_destroy_all(struct gpc_context *context);

#endif /* GPC_GREEN_CONTEXT_H */
