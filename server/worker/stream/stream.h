/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA streams of a session. Each is a private non-blocking stream of the worker's primary context,
 * or of a green context if the session has only a partition of the device (partition.h). The
 * semantics of the legacy default stream are implemented within the session: its work waits for the
 * session's blocking streams, and theirs for it, by events that are recorded only when needed.
 *
 * "Work" below is a number from gpd_session_count_work(): operations are numbered in the order in
 * which the session enqueues them. A barrier is an operation that all later operations of the
 * session wait for.
 *
 * Ownership: the session's list of streams. A stream that the client destroys is dropped: it stays
 * in the list until its work is done and no pending wait (responder.h) refers to it, and
 * gpd_stream_reap() then frees it.
 * Threads: executor only, except the atomic members, which the responder uses while a wait refers
 * to the stream.
 * Errors: CUresult, unless noted.
 */
#ifndef GPD_STREAM_H
#define GPD_STREAM_H

#include "server/worker/session/handle.h"
#include "server/worker/stream/responder.h"
#include "server/worker/stream/stream_depth.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_context;
struct gpd_partition;
struct gpd_session;

/* Timeline state of a stream (gpu_trace.h). Initialized to zeros. */
struct gpd_trace_mark {
	uint32_t track; /* track number plus 1; 0: none yet */
	/* number of operations without an event since the last operation with an event */
	uint32_t joined;
};

struct gpd_stream {
	/* its ID in the handle table; id 0: the client does not know the stream */
	struct gpd_handle handle;
	struct gpd_stream *next; /* in session->streams->list */
	/* Its context, borrowed; NULL: the context was destroyed, or this is only a former driver's
	 * stream of which gpd_stream_move_all() has made a dropped stream. */
	struct gpd_context *context;
	int device; /* the worker's number of its device */
	/* Owned, or borrowed from the stream pool; replaced when the session's share of the device
	 * changes, so it must be read after gpd_stream_begin(). */
	CUstream driver;
	/* Partition of `driver`, a reference; NULL: the whole device. */
	struct gpd_partition *partition;
	int priority;  /* the driver's priority */
	bool legacy;   /* it is the legacy default stream of its context */
	bool blocking; /* created without CU_STREAM_NON_BLOCKING; false for the legacy stream */
	bool dropped;  /* the client has destroyed it, or it is a former driver's stream */
	uint64_t work; /* number of its last operation */
	uint64_t seen_legacy;  /* operation of the legacy stream that it is already ordered after */
	uint64_t legacy_seen;  /* its operation that the legacy stream is already ordered after */
	uint64_t seen_barrier; /* number of the last barrier that it is ordered after */
	CUevent order; /* event for ordering other streams after it; NULL before the first use */
	uint64_t order_work; /* its last operation when `order` was recorded */
	/* Its last operation when it was moved to a new driver's stream; all operations up to it
	 * are on the former one. 0: never moved with work. */
	uint64_t moved_work;
	/* Event for copies by GPUDirect (gpudirect_in.c); NULL before the first use. */
	CUevent before;
	CUevent barrier; /* event after its last barrier; NULL before the first use */
	/* Second stream for copies between devices (copy/peer_stream.h); NULL before the first
	 * use. */
	CUstream peer_stream;
	int peer_stream_device;                     /* device of peer_stream */
	CUevent peer_stream_begin, peer_stream_end; /* events between driver and peer_stream */
	/* Number of the batch (group of launches, schedule.h) of its last launch, from
	 * gpd_schedule_launch(); 0: none yet. */
	uint64_t batch;
	struct gpd_depth depth; /* stream_depth.h */
	uint8_t launcher; /* number of the launch thread that it uses (issue.h); 0: none yet */
	struct gpd_trace_mark trace;
	/* Numbers of the last operation that the GPU has done, and of the last one whose waits have
	 * all been completed. Written by the responder. */
	_Atomic uint64_t reached, done;
	_Atomic unsigned int waits; /* number of pending waits that refer to this stream */
};

/*
 * The streams of a session and the order of their work: session->streams. Initialized to zeros.
 * Threads: executor only; the responder uses only the atomic members of streams.
 */
struct gpd_stream_session {
	struct gpd_stream *list;   /* all streams, including dropped ones; the latest is first */
	uint32_t count;            /* length of the list */
	uint64_t barrier;          /* number of barriers so far */
	uint64_t barrier_recorded; /* number of the barrier for which the event was recorded */
	/* Stream of the last barrier; NULL: none, or it is done. */
	struct gpd_stream *barrier_stream;
	/* Called before work is enqueued on a stream, for work that must precede it:
	 * gpd_copy_await() (copy/copy.h) after the first copy to the client. NULL: none. */
	void (*before_work)(struct gpd_session *session, const struct gpd_stream *stream);
	bool has_ipc_events; /* the session uses or has used interprocess events; event.c */
	struct gpd_depths depths;
	/* The client is to be notified when its number of SMs changes; stream_move.c. */
	bool watches_shares;
	/* Earliest time (gp_now_ns()) of the next attempt after moving streams has failed; 0: no
	 * failure. */
	uint64_t move_again_ns;
	/* While launches are stopped (quiesce.h): number of launches before the next wait;
	 * stream_launch.c. */
	uint32_t quiesce_pass;
};

/*
 * Prepares one operation on a stream: finds the stream with this ID, orders it after all work that
 * the operation must wait for, makes its device current and counts the operation. The caller then
 * enqueues the operation. Moves the session's streams first if its share has changed
 * (gpd_stream_follow_shares()). Blocks until copies to the client that must precede the operation
 * are enqueued (gpd_copy_await(), copy/copy.h), and briefly if the stream's queue is full
 * (stream_depth.h). On success *stream_p is borrowed from the session. Returns
 * CUDA_ERROR_INVALID_HANDLE if there is no such stream (*stream_p is then NULL), or an error of the
 * driver; after an error the operation is not counted and must not be enqueued.
 */
CUresult gpd_stream_begin(struct gpd_session *session, uint32_t id, struct gpd_stream **stream_p);
/* Prepares an operation, as gpd_stream_begin() does, on a stream that is already known. */
CUresult gpd_stream_begin_on(struct gpd_session *session, struct gpd_stream *stream);
/* Makes later operations of the stream wait for the driver's event, without ordering it after other
 * streams. Makes its device current and counts the wait as an operation, also if the driver then
 * fails. May block as gpd_depth_mark() (stream_depth.h) does. */
CUresult gpd_stream_wait_event(struct gpd_session *session, struct gpd_stream *stream,
			       CUevent event);

/* Blocks until a launch on the stream may be carried out: while other sessions need a nearly idle
 * device (quiesce.h), and until it is the session's turn (schedule.h). To be called before every
 * launch (calls described as LAUNCHES), and before gpd_stream_begin() for it. Sets stream->batch.
 * May change the current device. Does nothing if there is no such stream; returns early if the
 * session is closing. */
void gpd_stream_launch(struct gpd_session *session, uint32_t id);
/* Blocks a launch while launches on the device are stopped, because another session needs an idle
 * context (quiesce.h). A session with short work waits only until that work is done. Returns early
 * if the session is closing or the GPU is lost. Included in gpd_stream_launch(). */
void gpd_stream_wait_quiesce(struct gpd_session *session, int device);

/* Returns the stream with this ID, borrowed, without ordering or counting, for queries. NULL: there
 * is none. */
struct gpd_stream *gpd_stream_get(const struct gpd_session *session, uint32_t id);

/* Adds a wait for all work that the stream with this ID has now; on the legacy stream also for that
 * of its context's blocking streams, for which it counts an operation. Does not block on the GPU.
 * Returns CUDA_SUCCESS if it is done already; GPD_LATER if the wait was added: done() (responder.h)
 * is called later. Returns CUDA_ERROR_INVALID_HANDLE if there is no such stream, or an error of the
 * driver. Unless the result is GPD_LATER, done() is not called, and the caller still owns arg. */
CUresult gpd_stream_await(struct gpd_session *session, uint32_t id, gpd_wait_done *done, void *arg);

/* Makes all later operations of the session wait for all present work of this stream. May change
 * the current device. Returns the driver's error if the event could not be recorded; the next
 * operation of another stream then tries again. */
CUresult gpd_stream_barrier(struct gpd_session *session, struct gpd_stream *stream);
/* Makes all later operations of the session wait for all present work of the streams of the context
 * and its green contexts. May change the current device. After an error some streams may have been
 * ordered. */
CUresult gpd_stream_barrier_context(struct gpd_session *session, const struct gpd_context *context);

/*
 * Creates a stream of the context, at the head of session->streams->list. id: chosen by the client;
 * 0: the client does not know the stream. flags: as for cuStreamCreate(), ignored for the legacy
 * stream. priority: as for cuStreamCreateWithPriority(), changed by the session's priority
 * (gpd_schedule_priority()). legacy: it becomes context->legacy. May block until a green context is
 * created. Makes the device current. On failure nothing is left.
 *
 * CUDA_ERROR_INVALID_VALUE: unknown flags, also for the legacy stream.
 * CUDA_ERROR_INVALID_HANDLE: the ID is in use, which ends the session.
 * CUDA_ERROR_OUT_OF_MEMORY: also at the limit of 4096 streams.
 * CUDA_ERROR_DEINITIALIZED: the session is closing, or the GPU is lost.
 * Other errors are those of the driver.
 */
CUresult gpd_stream_create(struct gpd_session *session, struct gpd_context *context, uint32_t id,
			   unsigned int flags, int priority, bool legacy);

/* Drops the stream, on behalf of the client: ends the session's batches of launches (schedule.h),
 * removes its ID at once, and frees it when its work is done (gpd_stream_reap()). May change the
 * current device. The caller must not use it afterwards. */
void gpd_stream_drop(struct gpd_session *session, struct gpd_stream *stream);

/* Returns whether all its work is known to be done and the waits for it have been completed. False
 * is possible although the work is done: only markers (responder.h) show it. */
static inline bool
gpd_stream_is_idle(const struct gpd_stream *stream)
{
	return atomic_load_explicit(&stream->done, memory_order_acquire) >= stream->work;
}

/* Returns whether all streams are idle, as gpd_stream_is_idle() defines it. context: only streams
 * of this context; NULL: of all contexts. */
bool gpd_stream_all_idle(const struct gpd_session *session, const struct gpd_context *context);

/* Returns whether the stream belongs to the context or to one of its green contexts. False for a
 * stream whose context was destroyed. */
bool gpd_context_has(const struct gpd_context *context, const struct gpd_stream *stream);

/*
 * Moves every stream of the device to the session's present partition: replaces its driver's stream
 * by a new one, which is ordered after the work of the former one. Work that was enqueued before is
 * not moved, so the change takes effect when that work is done.
 * CUDA_ERROR_NOT_READY: a green context is still being created. After an error some streams may
 * have been moved, and the others keep their driver's streams; the caller must retry later. Makes
 * the device current.
 */
CUresult gpd_stream_move_all(struct gpd_session *session, int device);

/* Drops the work of all streams at the session's end, with markers that follow it, on the software
 * device only; otherwise does nothing. On return nothing of it runs. The streams cannot be used
 * afterwards. */
void gpd_stream_cancel_all(struct gpd_session *session);
/* Frees all streams at the session's end. All work must be done and the responder ended
 * (gpd_wait_stop()). Changes the current device. */
void gpd_stream_destroy_all(struct gpd_session *session);

/* Makes the next operation of `stream` wait for all work that `before` has now. Queued launches
 * must have been passed to the driver (gpd_issue_settle(), issue.h). The device of `before` must be
 * current. Does not count an operation. */
CUresult gpd_stream_order_after(struct gpd_stream *stream, struct gpd_stream *before);

/* Destroys the stream's peer stream (copy/peer_stream.h) and its events, if there are any. May
 * change the current device. */
void gpd_stream_destroy_peer_stream(struct gpd_stream *stream);

/* Internal to the stream modules: records *event after the stream's present work, creating it first
 * if it is NULL. The stream's device must be current, and queued launches must have been passed to
 * the driver. event: a member of the stream, which owns the event, also after an error. */
CUresult gpd_stream_record(struct gpd_stream *stream, CUevent *event);
/* Internal to the stream modules: returns CUDA_SUCCESS if the stream's own work is done,
 * CUDA_ERROR_NOT_READY if not, or another error of the driver. */
CUresult gpd_stream_query_work(const struct gpd_stream *stream);
/* Internal to the stream modules: destroys a driver's stream without work, or returns it to the
 * pool (stream_pool.h), and drops the reference to its partition (NULL: the whole device). */
void gpd_stream_destroy_driver(CUstream driver, struct gpd_partition *partition);

/* Returns whether a pending wait refers to the stream, which must then not be freed. */
static inline bool
gpd_stream_has_waits(const struct gpd_stream *stream)
{
	return atomic_load_explicit(&stream->waits, memory_order_acquire) != 0;
}

/* Moves the streams of all devices on which the session's share has changed, and notifies the
 * client if it has requested that. Failures are logged and retried by later calls. Does not wait
 * for the streams' work. */
void gpd_stream_follow_shares(struct gpd_session *session);
/* Frees dropped streams whose work is known to be done (gpd_stream_is_idle()) and that no wait
 * refers to. May change the current device. */
void gpd_stream_reap(struct gpd_session *session);

#endif /* GPD_STREAM_H */
