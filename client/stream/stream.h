/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of the application.  The default streams (0, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD) are
 * objects like the others: the legacy one comes with its context, the per-thread one is made on the
 * thread's first use and destroyed with the thread.  None is counted: the memory stays that of a
 * stream (client/base/handle.h), and the context is never freed.
 */
#ifndef GPC_STREAM_H
#define GPC_STREAM_H

#include "client/base/handle.h"
#include "client/context/context.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpc_watch;

/* What cuStreamSetAttribute() sets, and how many a launch has with those. */
#define GPC_STREAM_ATTRIBUTES 4
#define GPC_STREAM_LAUNCH_MAX 20

struct gpc_stream {
	struct gpc_handle handle;
	struct gpc_context *context;
	struct gpc_context *green; /* that it was made in; context is its primary one; or NULL */
	unsigned int flags;        /* CU_STREAM_DEFAULT or CU_STREAM_NON_BLOCKING */
	int priority;
	bool legacy;
	bool per_thread;
	uint64_t number;              /* cuStreamGetId */
	atomic_uint_fast64_t done;    /* what it was given up to this record (session.h) is done */
	atomic_uint_fast64_t fetched; /* and what that changed of mirrored memory is here */
	/* All that it waits for, up to this record, the program takes as done (sync.h). */
	atomic_uint_fast64_t implied;
	_Atomic(void *) timed; /* token of the last event that it recorded and that keeps time */
	struct gpc_watch *watch;
	atomic_uint attributes_set; /* a bit for each, under the lock of stream_attributes.c */
	CUlaunchAttributeValue attributes[GPC_STREAM_ATTRIBUTES];
};

/* A launch with the attributes of its stream; in the caller's memory. */
struct gpc_stream_launch {
	CUlaunchConfig config;
	CUlaunchAttribute list[GPC_STREAM_LAUNCH_MAX];
};

/* The stream that hStream means in this thread with context current.  CUDA_ERROR_INVALID_HANDLE,
 * CUDA_ERROR_CONTEXT_IS_DESTROYED. */
CUresult gpc_stream_lookup(struct gpc_context *context, CUstream hStream,
			   struct gpc_stream **stream_p);

/* What cuStreamGetCtx() and cuStreamGetGreenCtx() answer. */
CUcontext gpc_stream_get_context(const struct gpc_stream *stream);
CUgreenCtx gpc_stream_get_green(const struct gpc_stream *stream);
/* A stream of a green context. */
CUresult gpc_stream_create_in(struct gpc_context *context, unsigned int flags, int priority,
			      CUstream *stream_p);

/* Begins a call about a stream: gpc_enter() and a look-up. */
CUresult gpc_stream_enter(CUstream hStream, struct gpc_stream **stream_p);

/* In a thread without a context: the stream's own is current from now on, until gpc_context_pop().
 * CUDA_ERROR_INVALID_CONTEXT: no stream, or a default one. */
CUresult gpc_stream_push_context(CUstream hStream);

/* Its name on the wire; *context_p becomes the stream's own context. */
CUresult gpc_stream_id(struct gpc_context **context_p, CUstream hStream, uint32_t *id_p);

/* The stream of the calls that name none (cuMemcpyHtoD, cuMemsetD8 …). */
CUresult gpc_stream_default(struct gpc_context *context, struct gpc_stream **stream_p);

/* A launch has what was set of its stream, unless it says otherwise itself: config, or one in
 * *launch.  Needed only where stream->attributes_set is not 0. */
const CUlaunchConfig *gpc_stream_launch(const struct gpc_stream *stream,
					const CUlaunchConfig *config,
					struct gpc_stream_launch *launch);
/* Whether a device takes such a window of memory that its cache is to keep. */
bool gpc_access_window_is_valid(const struct gpc_device *device,
				const CUaccessPolicyWindow *window);

/* Blocks until the work posted to the stream so far is done; there may be none. */
CUresult gpc_stream_fence(struct gpc_stream *stream);

/* The last record that gave work to the stream, or to one that it waits for, and is not known to be
 * done; 0: all is done. */
uint64_t gpc_stream_pending(const struct gpc_stream *stream);
/* All that the stream was given up to this record is done (gpc_request's given). */
void gpc_stream_set_done(struct gpc_stream *stream, uint64_t issued);
/* What all its work changed of mirrored memory is here, if this record is the last of it. */
void gpc_stream_set_fetched(struct gpc_stream *stream, uint64_t issued);
/* Whether what the stream of this name was given up to this record is known to be done, and
 * *fetched_p whether what that changed of mirrored memory is here. */
bool gpc_stream_is_done(struct gpc_context *context, uint32_t id, uint64_t issued, bool *fetched_p);
/* Whether all streams of the context are known to be done with all that they were given. */
bool gpc_stream_are_all_done(struct gpc_context *context, bool *fetched_p);

/* Whether all that new work of the stream comes after is known to be done. */
bool gpc_stream_is_known_idle(const struct gpc_stream *stream);
/* For gpc_fence_set_idle_check(): whether all streams of the session are known to be done. */
bool gpc_stream_session_is_idle(const struct gpc_session *session);

/*
 * Before something is done at once that CUDA does in the stream's order, where a host function may
 * be meant to come first: blocks until the stream's are done, if there may be any.
 */
CUresult gpc_stream_fence_functions(struct gpc_stream *stream);

/* Another one each time that the daemon learns of the context; 0: it does not know it. */
uint64_t gpc_stream_context_number(const struct gpc_context *context);

/* For struct gpc_context_part: its legacy stream comes, and all its streams go, with a context. */
CUresult gpc_stream_prepare_context(struct gpc_context *context,
				    struct gp_args_gpContextCreate *args);
void gpc_stream_context_made(struct gpc_context *context,
			     const struct gp_args_gpContextCreate *args, bool success);
void gpc_stream_drop_context(struct gpc_context *context);

#endif /* GPC_STREAM_H */
