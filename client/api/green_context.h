/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts of the application (CUgreenCtx): contexts that use a part of a device's
 * multiprocessors.
 *
 * A green context consists of a struct gpc_context in the client, whose parent is the primary
 * context of the device, and of a context in the daemon. Its streams run on its multiprocessors;
 * all other objects belong to the primary context.
 *
 * Ownership: a green context retains its primary context. It is destroyed by cuGreenCtxDestroy(),
 * or when its primary context is reset or destroyed.
 * Threads: any thread may call. As in CUDA, the program must not destroy a green context that
 * another thread uses.
 */
#ifndef GPC_GREEN_CONTEXT_H
#define GPC_GREEN_CONTEXT_H

#include "client/base/handle.h"
#include "client/context/context.h"

#include <cuda.h>

/* The object of a CUgreenCtx. It is freed with its handle. */
struct gpc_green_context {
	struct gpc_handle handle;
	struct gpc_context *context;
};

/* Starts a call on a green context: checks that CUDA is usable, and looks up the handle. Returns
 * CUDA_SUCCESS and sets *green_p, which is borrowed until the green context is destroyed;
 * CUDA_ERROR_INVALID_CONTEXT if the handle is invalid; or an error of gpc_enter_initialized().
 * *green_p must not be used after an error. */
CUresult gpc_green_context_enter(CUgreenCtx hCtx, struct gpc_green_context **green_p);

/* Destroys all green contexts of a primary context that is being destroyed or reset. Has no effect
 * if `context` is itself a green context. Called as a hook of struct gpc_context_part. */
void gpc_green_context_destroy_all(struct gpc_context *context);

#endif /* GPC_GREEN_CONTEXT_H */
