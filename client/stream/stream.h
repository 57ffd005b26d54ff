/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of the application.  The default streams (0, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD) are
 * objects like the others: the legacy one comes with its context, the per-thread one is made on the
 * thread's first use and destroyed with the thread.
 */
#ifndef GPC_STREAM_H
#define GPC_STREAM_H

#include "client/base/handle.h"
#include "client/context/context.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_stream {
	struct gpc_handle handle;
	struct gpc_context *context;
	unsigned int flags; /* CU_STREAM_DEFAULT or CU_STREAM_NON_BLOCKING */
	int priority;
	bool legacy;
	bool per_thread;
	uint64_t number; /* cuStreamGetId */
};

/* The stream that hStream means in this thread with context current.  CUDA_ERROR_INVALID_HANDLE,
 * CUDA_ERROR_CONTEXT_IS_DESTROYED. */
CUresult gpc_stream_lookup(struct gpc_context *context, CUstream hStream,
			   struct gpc_stream **stream_p);

/* Its name on the wire; *context_p becomes the stream's own context. */
CUresult gpc_stream_id(struct gpc_context **context_p, CUstream hStream, uint32_t *id_p);

/* The stream of the calls that name none (cuMemcpyHtoD, cuMemsetD8 …). */
CUresult gpc_stream_default(struct gpc_context *context, struct gpc_stream **stream_p);

/* Names and announces the legacy stream of a new context; the caller posts gpContextCreate. */
int gpc_stream_create_legacy(struct gpc_context *context, struct gpc_stream **stream_p);

/* Forgets all streams of a context that is being destroyed. */
void gpc_stream_forget_context(struct gpc_context *context);

#endif /* GPC_STREAM_H */
