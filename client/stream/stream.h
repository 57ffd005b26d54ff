/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA streams of the application (CUstream), including the default streams.
 *
 * The legacy default stream (0, CU_STREAM_LEGACY) is created with its context. The per-thread
 * default stream (CU_STREAM_PER_THREAD) is created on the thread's first use and destroyed with the
 * thread.
 * Ownership: streams are not reference-counted. The memory of a destroyed stream is only ever
 * reused for another stream (client/base/handle.h), and contexts are never freed, so a stale
 * pointer is safe to read.
 * Threads: any thread except the thread that reads the daemon's replies. Members are atomic, or
 * constant after creation, unless noted otherwise.
 * Errors: functions that return CUresult return CUDA_SUCCESS, the errors named at them, or the
 * session's error. Out parameters are undefined after an error.
 * Units: work numbers are those of client/session/session.h.
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

/* Number of attributes that cuStreamSetAttribute() can set. */
#define GPC_STREAM_ATTRIBUTES 4
/* Maximum number of attributes of a launch, including those of its stream. */
#define GPC_STREAM_LAUNCH_MAX 20

/* A stream. */
struct gpc_stream {
	struct gpc_handle handle;
	struct gpc_context *context;
	struct gpc_context *green; /* green context of the stream, whose primary context is
				      `context`; NULL: not in a green context */
	unsigned int flags;        /* CU_STREAM_DEFAULT or CU_STREAM_NON_BLOCKING */
	int priority; /* as passed to cuStreamCreateWithPriority(), clamped to the device's range */
	bool legacy;  /* legacy default stream */
	bool per_thread;              /* per-thread default stream */
	uint64_t number;              /* result of cuStreamGetId(), unique in this process */
	atomic_uint_fast64_t done;    /* all work up to this work number is done */
	atomic_uint_fast64_t fetched; /* the changes of replicated host memory by all work up to
					 this work number have been fetched */
	/* All work up to this work number may be considered done by the program (sync.h). */
	atomic_uint_fast64_t implied;
	_Atomic(void *) timed;      /* token of the last event with timing that the stream recorded;
				       NULL: none */
	struct gpc_watch *watch;    /* slot of completion_watch.h; NULL: no watch */
	atomic_uint attributes_set; /* bit i: attributes[i] is set; written, like `attributes`,
				       under the lock of stream_attributes.c */
	CUlaunchAttributeValue attributes[GPC_STREAM_ATTRIBUTES];
};

/* A launch configuration merged with the attributes of its stream; in the caller's memory. config
 * points to `list`. */
struct gpc_stream_launch {
	CUlaunchConfig config;
	CUlaunchAttribute list[GPC_STREAM_LAUNCH_MAX];
};

/* Looks up the stream that hStream denotes in this thread when `context` is current, and stores it,
 * borrowed, in *stream_p. Does not wait. Returns CUDA_ERROR_INVALID_HANDLE; or
 * CUDA_ERROR_OUT_OF_MEMORY if the per-thread stream cannot be created. */
CUresult gpc_stream_lookup(struct gpc_context *context, CUstream hStream,
			   struct gpc_stream **stream_p);

/* Returns the result of cuStreamGetCtx(): the handle of the stream's context. */
CUcontext gpc_stream_get_context(const struct gpc_stream *stream);
/* Returns the result of cuStreamGetGreenCtx(): the handle of the stream's green context, or NULL if
 * the stream is not in one. */
CUgreenCtx gpc_stream_get_green(const struct gpc_stream *stream);
/* Creates a stream in the context, which may be a green context, and stores its handle in
 * *stream_p. Does not wait. Returns CUDA_ERROR_INVALID_VALUE if stream_p is NULL or a flag is
 * unknown; CUDA_ERROR_OUT_OF_MEMORY. */
CUresult gpc_stream_create_in(struct gpc_context *context, unsigned int flags, int priority,
			      CUstream *stream_p);

/* Starts a CUDA call about a stream: gpc_enter() followed by gpc_stream_lookup(), whose errors it
 * returns. */
CUresult gpc_stream_enter(CUstream hStream, struct gpc_stream **stream_p);

/* For a thread without a context: makes the stream's own context current; after CUDA_SUCCESS the
 * caller must call gpc_context_pop(). Returns CUDA_ERROR_INVALID_CONTEXT for an invalid or default
 * stream, or an error of gpc_enter_initialized() or gpc_context_push(). */
CUresult gpc_stream_push_context(CUstream hStream);

/* Looks up a stream as gpc_stream_lookup() does; stores its wire ID in *id_p and its own context in
 * *context_p, which initially is the current context. Both are unchanged after an error. */
CUresult gpc_stream_id(struct gpc_context **context_p, CUstream hStream, uint32_t *id_p);

/* Stores in *stream_p the default stream of the context, which calls without a stream use
 * (cuMemcpyHtoD, cuMemsetD8, ...): the legacy stream, or the per-thread stream in a _ptds function.
 * Returns CUDA_ERROR_INVALID_CONTEXT if the context is inactive, or an error of
 * gpc_stream_lookup(). */
CUresult gpc_stream_default(struct gpc_context *context, struct gpc_stream **stream_p);

/* Merges the attributes of the stream into a launch configuration; attributes set in *config take
 * precedence. Returns &launch->config, which is valid as long as *launch and *config; or config
 * itself if it is invalid, which the caller must reject. Needed only if stream->attributes_set is
 * not 0. */
const CUlaunchConfig *gpc_stream_launch(const struct gpc_stream *stream,
					const CUlaunchConfig *config,
					struct gpc_stream_launch *launch);
/* Returns whether the device accepts this access policy window (L2 persistence): hit ratio, size
 * and properties are in its limits. */
bool gpc_access_window_is_valid(const struct gpc_device *device,
				const CUaccessPolicyWindow *window);

/* Blocks, without limit, until the work posted to the stream so far is done and its changes of host
 * memory are stored; returns at once if there is none. Returns CUDA_SUCCESS, the error of an
 * earlier posted call, or the session's error. */
CUresult gpc_stream_fence(struct gpc_stream *stream);

/* Returns the last work number given to the stream or, for the legacy stream, to a stream that
 * synchronizes with it, that is not known to be done. Returns 0 if all work is done. */
uint64_t gpc_stream_pending(const struct gpc_stream *stream);
/* Marks all work of the stream up to this work number as done. */
void gpc_stream_set_done(struct gpc_stream *stream, uint64_t issued);
/* Marks the changes of all work of the stream as fetched, if this work number is still its last. */
void gpc_stream_set_fetched(struct gpc_stream *stream, uint64_t issued);
/* Returns whether the work of the context's stream with this wire ID up to this work number is
 * known to be done. Sets *fetched_p to whether its changes of replicated host memory are known to
 * have been fetched. */
bool gpc_stream_is_done(struct gpc_context *context, uint32_t id, uint64_t issued, bool *fetched_p);
/* Returns whether all work of all streams of the context is known to be done. Sets *fetched_p to
 * whether the changes of replicated host memory by this work are known to have been fetched. */
bool gpc_stream_are_all_done(struct gpc_context *context, bool *fetched_p);

/* Returns whether all work that new work of the stream would wait for is known to be done. Does not
 * query the daemon. */
bool gpc_stream_is_known_idle(const struct gpc_stream *stream);
/* Returns whether the work of all streams of the session is known to be done; for
 * gpc_fence_set_idle_check(). Does not query the daemon. */
bool gpc_stream_session_is_idle(const struct gpc_session *session);

/*
 * Blocks, without limit, until all work of the stream is done if the session has outstanding host
 * functions. Called before an operation that is executed at once here but in stream order by CUDA,
 * and that may have to come after a host function. Returns CUDA_SUCCESS at once if there are no
 * host functions, otherwise the result of gpc_stream_fence().
 */
CUresult gpc_stream_fence_functions(struct gpc_stream *stream);

/* Returns a number that changes each time the context is created in the daemon. Returns 0 if the
 * context is inactive or NULL. */
uint64_t gpc_stream_context_number(const struct gpc_context *context);

/* Hook for struct gpc_context_part (context.h): creates the legacy stream. Returns CUDA_SUCCESS, or
 * CUDA_ERROR_OUT_OF_MEMORY without a stream. */
CUresult gpc_stream_prepare_context(struct gpc_context *context,
				    struct gp_args_gpContextCreate *args);
/* Hook for struct gpc_context_part: destroys the legacy stream if the context was not created. */
void gpc_stream_context_made(struct gpc_context *context,
			     const struct gp_args_gpContextCreate *args, bool success);
/* Hook for struct gpc_context_part: destroys all streams of the context. */
void gpc_stream_drop_context(struct gpc_context *context);

#endif /* GPC_STREAM_H */
