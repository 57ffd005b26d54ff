/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Green contexts of the application.  Behind each is a context of the client and of the daemon that
 * is a part of the device's primary one: its streams run on its multiprocessors, and all else is
 * the primary one's.  Any thread may call.
 */
#ifndef GPC_GREEN_H
#define GPC_GREEN_H

#include "client/base/handle.h"
#include "client/context/context.h"

#include <cuda.h>

struct gpc_green_context {
	struct gpc_handle handle;
	struct gpc_context *context;
};

/* Begins a call about a green context; CUDA_ERROR_INVALID_CONTEXT. */
CUresult gpc_green_context_enter(CUgreenCtx hCtx, struct gpc_green_context **green_p);

/* For struct gpc_context_part: they go with their primary context. */
void gpc_green_context_destroy_all(struct gpc_context *context);

#endif /* GPC_GREEN_H */
