/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA streams of the application (CUstream), including the default streams.
 *
 * The legacy default stream (0, CU_STREAM_LEGACY) is created with its context. The per-thread
 * default stream (CU_STREAM_PER_THREAD) is created on the thread's first use and destroyed with the
 * thread.
 * Ownership: streams are not reference-counted. The memory of a destroyed stream is only ever
 * reused for another stream (client/base/handle.h), and contexts are never freed.
 * Threads: any.
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

/* Number of attributes that cuStreamSetAttribute() can set, and maximum number of attributes of a
 * launch including those. */
#define GPC_STREAM_ATTRIBUTES 4
#define GPC_STREAM_LAUNCH_MAX 20

/* A stream. */
struct gpc_stream {
	struct gpc_handle handle;
	struct gpc_context *context;
	struct gpc_context *green; /* green context of the stream, whose primary context is
				    `context`; or NULL */
	unsigned int flags;        /* CU_STREAM_DEFAULT or CU_STREAM_NON_BLOCKING */
	int priority;
	bool legacy;
	bool per_thread;
	uint64_t number;           /* result of cuStreamGetId */
	atomic_uint_fast64_t done; /* all work up to this work number (session.h) is done */
	atomic_uint_fast64_t
		fetched; /* and its changes of replicated host memory have been fetched */
	/* All work up to this work number is done from the program's view (sync.h). */
	atomic_uint_fast64_t implied;
	_Atomic(void *) timed; /* token of the last event with timing that the stream recorded */
	struct gpc_watch *watch;
	atomic_uint attributes_set; /* bit mask; guarded by the lock of stream_attributes.c */
	CUlaunchAttributeValue attributes[GPC_STREAM_ATTRIBUTES];
};

/* A launch configuration merged with the attributes of its stream; in the caller's memory. */
struct gpc_stream_launch {
	CUlaunchConfig config;
	CUlaunchAttribute list[GPC_STREAM_LAUNCH_MAX];
};

/* Looks up the stream that hStream denotes in this thread when `context` is current. Returns
 * CUDA_ERROR_INVALID_HANDLE, or an error of creating the per-thread stream. */
CUresult gpc_stream_lookup(struct gpc_context *context, CUstream hStream,
			   struct gpc_stream **stream_p);

/* Results of cuStreamGetCtx() and cuStreamGetGreenCtx(). */
CUcontext gpc_stream_get_context(const struct gpc_stream *stream);
CUgreenCtx gpc_stream_get_green(const struct gpc_stream *stream);
/* Creates a stream in the context, which may be a green context. */
CUresult gpc_stream_create_in(struct gpc_context *context, unsigned int flags, int priority,
			      CUstream *stream_p);

/* Starts a call about a stream: gpc_enter() followed by gpc_stream_lookup(). */
CUresult gpc_stream_enter(CUstream hStream, struct gpc_stream **stream_p);

/* For a thread without a context: makes the stream's own context current until gpc_context_pop().
 * Returns CUDA_ERROR_INVALID_CONTEXT for an invalid or default stream. */
CUresult gpc_stream_push_context(CUstream hStream);

/* Looks up the stream's wire ID; *context_p becomes the stream's own context. */
CUresult gpc_stream_id(struct gpc_context **context_p, CUstream hStream, uint32_t *id_p);

/* Returns the default stream, which calls without a stream use (cuMemcpyHtoD, cuMemsetD8, ...). */
CUresult gpc_stream_default(struct gpc_context *context, struct gpc_stream **stream_p);

/* Merges the attributes of the stream into a launch configuration; attributes set in config take
 * precedence. Returns config or the merged configuration in *launch. Needed only if
 * stream->attributes_set is not 0. */
const CUlaunchConfig *gpc_stream_launch(const struct gpc_stream *stream,
					const CUlaunchConfig *config,
					struct gpc_stream_launch *launch);
/* Returns whether the device accepts this access policy window (L2 persistence). */
bool gpc_access_window_is_valid(const struct gpc_device *device,
				const CUaccessPolicyWindow *window);

/* Blocks until the work posted to the stream so far is done; returns at once if there is none. */
CUresult gpc_stream_fence(struct gpc_stream *stream);

/* Returns the last work number given to the stream, or to a stream that it waits for, that is not
 * known to be done; 0: all is done. */
uint64_t gpc_stream_pending(const struct gpc_stream *stream);
/* Marks all work of the stream up to this work number as done (see gpc_request's issued). */
void gpc_stream_set_done(struct gpc_stream *stream, uint64_t issued);
/* Marks the changes of all its work as fetched, if this work number is still its last. */
void gpc_stream_set_fetched(struct gpc_stream *stream, uint64_t issued);
/* Returns whether the work of the stream with this wire ID up to this work number is known to be
 * done; *fetched_p is set to whether its changes of replicated host memory have been fetched. */
bool gpc_stream_is_done(struct gpc_context *context, uint32_t id, uint64_t issued, bool *fetched_p);
/* Returns whether all work of all streams of the context is known to be done; sets *fetched_p
 * likewise. */
bool gpc_stream_are_all_done(struct gpc_context *context, bool *fetched_p);

/* Returns whether all work that new work of the stream would wait for is known to be done. */
bool gpc_stream_is_known_idle(const struct gpc_stream *stream);
/* Returns whether all streams of the session are known to be done; for
 * gpc_fence_set_idle_check(). */
bool gpc_stream_session_is_idle(const struct gpc_session *session);

/*
 * Blocks until the stream's host functions are done, if there may be any. Called before an
 * operation that is executed at once here but in stream order by CUDA, and that may have to come
 * after a host function.
 */
CUresult gpc_stream_fence_functions(struct gpc_stream *stream);

/* Returns a number that changes each time the context is created on the daemon; 0 if the daemon
 * does not know it. */
uint64_t gpc_stream_context_number(const struct gpc_context *context);

/* Hooks for struct gpc_context_part: create the legacy stream, and destroy all streams, of a
 * context. */
CUresult gpc_stream_prepare_context(struct gpc_context *context,
				    struct gp_args_gpContextCreate *args);
void gpc_stream_context_made(struct gpc_context *context,
			     const struct gp_args_gpContextCreate *args, bool success);
void gpc_stream_drop_context(struct gpc_context *context);

#endif /* GPC_STREAM_H */
