/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts of the application (CUgreenCtx): contexts that use a part of a device's
 * multiprocessors.
 *
 * A green context has a struct gpc_context of its own, in the client and in the daemon, whose
 * parent is the primary context of the device. Its streams run on its multiprocessors; everything
 * else belongs to the primary context.
 *
 * Ownership: a green context retains its primary context, and is destroyed with it at the latest.
 * Threads: any thread may call.
 */
#ifndef GPC_GREEN_CONTEXT_H
#define GPC_GREEN_CONTEXT_H

#include "client/base/handle.h"
#include "client/context/context.h"

#include <cuda.h>

/* The object of a CUgreenCtx. */
struct gpc_green_context {
	struct gpc_handle handle;
	struct gpc_context *context;
};

/* Starts a call on a green context: checks that CUDA is usable, and looks up the handle. Returns
 * CUDA_SUCCESS and sets *green_p, borrowed; CUDA_ERROR_INVALID_CONTEXT if the handle is invalid; or
 * the errors of gpc_enter_initialized(). */
CUresult gpc_green_context_enter(CUgreenCtx hCtx, struct gpc_green_context **green_p);

/* Destroys all green contexts of a primary context that is being destroyed or reset (hook of struct
 * gpc_context_part). */
void gpc_green_context_destroy_all(struct gpc_context *context);

#endif /* GPC_GREEN_CONTEXT_H */
