/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA streams of the application (CUstream), including the default streams.
 *
 * The legacy default stream (0, CU_STREAM_LEGACY) is created with its context. The per-thread
 * default stream (CU_STREAM_PER_THREAD) is created when the thread first uses it in a context, and
 * destroyed with the thread.
 *
 * Work numbers show whether work is done, without a query to the daemon. In each session, every
 * record that gives a stream work has a number, from 1 (client/session/session.h). The session
 * stores the last number of each stream in a table of limited size: streams that share an entry
 * share the highest number, so a stream may appear to have more work than it has.
 *
 * Ownership: streams are not reference-counted. The memory of a destroyed stream is only ever
 * reused for another stream (client/base/handle.h), and contexts are never freed, so a stale
 * pointer is safe to read.
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note). Members are constant after creation or atomic,
 * except `watch` and `attributes`, whose locks are named at them.
 * Errors: functions that return CUresult return CUDA_SUCCESS, the errors named at them, or the
 * session's error. Out parameters are undefined after an error, unless noted otherwise.
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
	struct gpc_context *context; /* never a green context */
	/* green context of the stream; `context` is its primary context; NULL: not in a green
	 * context */
	struct gpc_context *green;
	unsigned int flags; /* CU_STREAM_DEFAULT or CU_STREAM_NON_BLOCKING */
	/* as passed to cuStreamCreateWithPriority(), limited to the device's range */
	int priority;
	bool legacy;     /* legacy default stream */
	bool per_thread; /* per-thread default stream */
	uint64_t number; /* result of cuStreamGetId(), unique in this process */
	/* All work of the stream up to this work number is known to be done. Like the next two
	 * numbers, it starts with the result of gpc_session_issued_to() at the creation, as work up
	 * to that is of other streams (legacy stream: 0). */
	atomic_uint_fast64_t done;
	/* the changes of replicated host memory (client/host/coherence.h) by the stream's work up
	 * to this work number have been fetched */
	atomic_uint_fast64_t fetched;
	/* All work up to this work number is implied to be done (sync.h). */
	atomic_uint_fast64_t implied;
	/* handle (CUevent) of the event with timing that the stream recorded last
	 * (event_elapsed.h); NULL: none; the event may have been destroyed */
	_Atomic(void *) timed;
	/* Slot of completion_watch.h, guarded by its lock; used only through its functions. NULL:
	 * no watch; not NULL after a drop. */
	struct gpc_watch *watch;
	atomic_uint attributes_set; /* bit i: attributes[i] is set; written, like `attributes`,
				       under the lock of stream_attributes.c */
	CUlaunchAttributeValue attributes[GPC_STREAM_ATTRIBUTES];
};

/* A launch configuration merged with the attributes of its stream by gpc_stream_launch(); in the
 * caller's memory. config.attrs points to `list`, so the struct must not be copied. */
struct gpc_stream_launch {
	CUlaunchConfig config;
	CUlaunchAttribute list[GPC_STREAM_LAUNCH_MAX];
};

/* Looks up the stream that hStream denotes in this thread, and stores it, borrowed, in *stream_p.
 * context: the current context, as gpc_enter() returns it; the stream found may belong to another
 * one. hStream 0 denotes the default stream, as gpc_stream_default() finds it. Does not wait for
 * the daemon; may create the per-thread stream. Returns CUDA_ERROR_INVALID_HANDLE if hStream is
 * invalid, is CU_STREAM_LEGACY while the context is inactive, or denotes the per-thread stream
 * while a green context is current, which has none; CUDA_ERROR_INVALID_CONTEXT if hStream denotes
 * the legacy stream by 0 while the context is inactive; or CUDA_ERROR_OUT_OF_MEMORY if the
 * per-thread stream cannot be created. */
CUresult gpc_stream_lookup(struct gpc_context *context, CUstream hStream,
			   struct gpc_stream **stream_p);

/* Returns the result of cuStreamGetCtx(): the handle of the stream's context or, if it is in one,
 * of its green context. */
CUcontext gpc_stream_get_context(const struct gpc_stream *stream);
/* Returns the result of cuStreamGetGreenCtx(): the handle of the stream's green context, or NULL if
 * the stream is not in one. */
CUgreenCtx gpc_stream_get_green(const struct gpc_stream *stream);
/* Creates a stream in the context, which must be active and may be a green context, and stores its
 * handle in *phStream. cuStreamDestroy() destroys it. Does not wait for the daemon. Returns
 * CUDA_ERROR_INVALID_VALUE if phStream is NULL or a flag is unknown, or CUDA_ERROR_OUT_OF_MEMORY. A
 * priority outside of the device's range is limited to it. */
CUresult gpc_stream_create_in(struct gpc_context *context, unsigned int flags, int priority,
			      CUstream *phStream);

/* Starts a CUDA call about a stream: gpc_enter() followed by gpc_stream_lookup(), whose errors it
 * returns. */
CUresult gpc_stream_enter(CUstream hStream, struct gpc_stream **stream_p);

/* Makes the stream's own context current, for a call of a thread without a context. After
 * CUDA_SUCCESS the caller must call gpc_context_pop() (client/context/context.h). Returns
 * CUDA_ERROR_INVALID_CONTEXT for an invalid or default stream, or an error of
 * gpc_enter_initialized() or gpc_context_push(). */
CUresult gpc_stream_push_context(CUstream hStream);

/* Looks up a stream as gpc_stream_lookup() does with *context_p, the current context. Stores the
 * stream's wire ID in *id_p and its own context in *context_p. Both are unchanged after an
 * error. */
CUresult gpc_stream_id(struct gpc_context **context_p, CUstream hStream, uint32_t *id_p);

/* Stores in *stream_p the default stream, which calls without a stream use (cuMemcpyHtoD,
 * cuMemsetD8, ...): the legacy stream of the context or, in a _ptds function, the per-thread
 * stream. context: as for gpc_stream_lookup(). Returns CUDA_ERROR_INVALID_CONTEXT if the context is
 * inactive, or an error of gpc_stream_lookup() about the per-thread stream. */
CUresult gpc_stream_default(struct gpc_context *context, struct gpc_stream **stream_p);

/* Merges the attributes of the stream into a launch configuration. Attributes set in *config take
 * precedence; attributes of the stream that do not apply to launches are omitted. Returns
 * &launch->config, which is valid as long as *launch; or config itself if config->attrs is NULL
 * although config->numAttrs is not 0, or if it has more than GPC_STREAM_LAUNCH_MAX -
 * GPC_STREAM_ATTRIBUTES attributes, which the caller must reject. Needed only if
 * stream->attributes_set is not 0. */
const CUlaunchConfig *gpc_stream_launch(const struct gpc_stream *stream,
					const CUlaunchConfig *config,
					struct gpc_stream_launch *launch);
/* Returns whether the device accepts this access policy window (L2 persistence), that is, whether
 * size, hit ratio and properties are within its limits. */
bool gpc_access_window_is_valid(const struct gpc_device *device,
				const CUaccessPolicyWindow *window);

/* Blocks, without limit, until all work given to the stream so far is done and its changes of host
 * memory are stored. For the legacy stream this includes the streams that synchronize with it.
 * Returns at once if the client knows that all of this has happened. Returns CUDA_SUCCESS, the
 * error of an earlier posted call or of a pending copy (client/host/pending_copy.h), or the
 * session's error. */
CUresult gpc_stream_fence(struct gpc_stream *stream);

/* Returns the highest work number that is not known to be done: of the stream or, for the legacy
 * stream, of all streams that synchronize with it. Returns 0 if there is none. Does not query the
 * daemon. */
uint64_t gpc_stream_pending(const struct gpc_stream *stream);
/* Marks all work of the stream up to this work number as done; a lower number than before has no
 * effect. Called when a reply of the daemon has shown that it is done. */
void gpc_stream_set_done(struct gpc_stream *stream, uint64_t issued);
/* Marks the changes of host memory by the stream's work up to `issued` as fetched. Has no effect if
 * the stream (for the legacy stream: the session) has been given more work since. */
void gpc_stream_set_fetched(struct gpc_stream *stream, uint64_t issued);
/* Returns whether the work up to this work number of the context's stream with this wire ID is
 * known to be done. If the stream was destroyed, only the knowledge about the whole context counts.
 * Sets *fetched_p to whether the changes of replicated host memory by this work are known to have
 * been fetched. Does not query the daemon. */
bool gpc_stream_is_done(struct gpc_context *context, uint32_t id, uint64_t issued, bool *fetched_p);
/* Returns whether all work of all streams of the context, which must not be a green context, and of
 * its green contexts is known to be done. Returns false also if the context is inactive or memory
 * is exhausted. If true is returned, *fetched_p is whether the changes of replicated host memory by
 * this work are known to have been fetched. Does not query the daemon. */
bool gpc_stream_are_all_done(struct gpc_context *context, bool *fetched_p);

/* Returns whether everything that the stream's next work would wait for is known to be done. Does
 * not query the daemon. */
bool gpc_stream_is_known_idle(const struct gpc_stream *stream);
/* Returns whether the work of all streams of the session is known to be done. Passed to
 * gpc_fence_set_idle_check() (client/context/fence.h). Returns false also if memory is exhausted,
 * and always once a context of any session was destroyed while its work may have been in progress.
 * Does not query the daemon. */
bool gpc_stream_session_is_idle(const struct gpc_session *session);

/* Called before an operation that CUDA executes in stream order and gpupool executes at once, and
 * that may have to come after a host function. If the session has outstanding host functions,
 * returns the result of gpc_stream_fence(), which blocks without limit; otherwise returns
 * CUDA_SUCCESS at once. */
CUresult gpc_stream_fence_functions(struct gpc_stream *stream);

/* Returns a number that identifies the present instance of the context in the daemon: it differs
 * after a reset. Numbers are those of legacy streams (gpc_stream.number). Returns 0 if the context
 * is inactive or NULL. */
uint64_t gpc_stream_context_number(const struct gpc_context *context);

/* Callback prepare() of struct gpc_context_part (client/context/context.h), called before the
 * context is created in the daemon: creates the legacy stream, and stores its wire ID in *args.
 * client/api/green_context.c also calls it, for a green context. Returns CUDA_SUCCESS, or
 * CUDA_ERROR_OUT_OF_MEMORY without a stream. */
CUresult gpc_stream_prepare_context(struct gpc_context *context,
				    struct gp_args_gpContextCreate *args);
/* Callback created() of struct gpc_context_part, called after the daemon has replied: destroys the
 * legacy stream unless `success`. */
void gpc_stream_context_made(struct gpc_context *context,
			     const struct gp_args_gpContextCreate *args, bool success);
/* Callback drop_context() of struct gpc_context_part, called when the context is destroyed or
 * reset: destroys all streams of the context or, if it is a green context, all streams in it. Sends
 * nothing. */
void gpc_stream_drop_context(struct gpc_context *context);

#endif /* GPC_STREAM_H */
