/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA streams of a session. Each is a private non-blocking stream of the shared context, in the
 * session's partition of the device if it has one. The semantics of the legacy default stream are
 * implemented within the session: its work waits for the session's blocking streams, and theirs for
 * it, by events that are recorded only when needed.
 *
 * Ownership: the session; the executor frees a dropped stream when no pending wait refers to it.
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

/* State of gpu_trace.h. Initialized to zeros. */
struct gpd_trace_mark {
	uint32_t track; /* track number plus 1; 0: none yet */
	uint32_t joined;
};

struct gpd_stream {
	struct gpd_handle handle;
	struct gpd_stream *next;
	struct gpd_context *context; /* NULL: destroyed, or the stream was replaced */
	int device;
	CUstream driver; /* replaced when the session's share of the device changes */
	struct gpd_partition *partition; /* partition of driver; NULL: the whole device */
	int priority;
	bool legacy;
	bool blocking;        /* created without CU_STREAM_NON_BLOCKING */
	bool dropped;         /* destroyed by the client, or replaced, with work not yet done */
	uint64_t work;        /* session->progress.work of its last operation */
	uint64_t seen_legacy; /* work of the legacy stream that it is already ordered after */
	uint64_t legacy_seen; /* its work that the legacy stream is already ordered after */
	uint64_t seen_barrier;
	CUevent order;        /* created on first use */
	uint64_t order_work;  /* work at which order was recorded */
	uint64_t moved_work;  /* work it had when it was moved, all of it on the former stream */
	CUevent before;       /* for copies by GPUDirect (gpudirect_in.c); created on first use */
	CUevent barrier;      /* after its last barrier; created on first use */
	CUstream peer_stream; /* copy/aside.h; created on first use */
	int peer_stream_device;
	CUevent peer_stream_begin, peer_stream_end;
	uint64_t batch; /* schedule.h: batch of its last launch */
	struct gpd_depth depth;
	uint8_t launcher; /* issue.h: number of its launcher */
	struct gpd_trace_mark trace;
	/* Work that the GPU has done, and work whose waiters have all been notified; the responder
	 * writes both. */
	_Atomic uint64_t reached, done;
	_Atomic unsigned int waits; /* pending waits that refer to this stream */
};

/*
 * The part of a session that its streams have: the streams themselves, and the order of their work.
 * Threads: the executor; the responder reads `work` of streams alone.
 */
struct gpd_stream_session {
	struct gpd_stream *list; /* of all */
	uint32_t count;
	uint64_t barrier;                  /* counts barriers */
	uint64_t barrier_recorded;         /* the barrier whose event is recorded */
	struct gpd_stream *barrier_stream; /* that gave the last one; NULL: it is done */
	/* Called before a stream is given work; NULL: nothing has to be before it. */
	void (*before_work)(struct gpd_session *session, const struct gpd_stream *stream);
	bool has_ipc_events; /* it has or had events of several sessions; event.c */
	struct gpd_depths depths;
	bool watches_shares;    /* the client is notified when its shares change; stream_move.c */
	uint64_t move_again_ns; /* no earlier than this, as moving streams has failed */
	uint32_t quiesce_pass;  /* launches that may go before the next look; stream_launch.c */
};

/* -ENOMEM. */
int gpd_stream_session_create(struct gpd_session *session);
/* The streams are gone, or their process is about to end. */
void gpd_stream_session_destroy(struct gpd_session *session);

/*
 * To be called before an operation: returns the stream of this name, ordered after all that the
 * operation must wait for. Makes its device current and counts the operation.
 * CUDA_ERROR_INVALID_HANDLE: no such stream.
 */
CUresult gpd_stream_begin(struct gpd_session *session, uint32_t id, struct gpd_stream **stream_p);
/* The same for a stream that is already known. */
CUresult gpd_stream_begin_on(struct gpd_session *session, struct gpd_stream *stream);
/* Makes the stream's next operation wait for the driver's event, without ordering it after other
 * streams. */
CUresult gpd_stream_wait_event(struct gpd_session *session, struct gpd_stream *stream,
			       CUevent event);

/* To be called before every launch (LAUNCHES): waits until it may be carried out. */
void gpd_stream_launch(struct gpd_session *session, uint32_t id);
/* The part of it that waits while other sessions need an idle context of the device (idle.h). */
void gpd_stream_wait_quiesce(struct gpd_session *session, int device);

/* Returns the stream without ordering or counting, for queries. NULL: no such stream. */
struct gpd_stream *gpd_stream_get(const struct gpd_session *session, uint32_t id);

/* Calls done() (responder.h) after all work that the stream has now, and returns GPD_LATER.
 * CUDA_SUCCESS: the work is done already. In that case and on error done() is not called. */
CUresult gpd_stream_await(struct gpd_session *session, uint32_t id, gpd_wait_done *done, void *arg);

/* Implements GP_COPY_BARRIER after a copy: all later operations of the session wait for this
 * one. */
CUresult gpd_stream_barrier(struct gpd_session *session, struct gpd_stream *stream);
/* Makes all later operations of the session wait for all work that the context's streams have
 * now. */
CUresult gpd_stream_barrier_context(struct gpd_session *session, const struct gpd_context *context);

/* Creates a stream of the context. flags: as for cuStreamCreate, ignored for the legacy stream. id
 * 0: the client does not know it. */
CUresult gpd_stream_create(struct gpd_session *session, struct gpd_context *context, uint32_t id,
			   unsigned int flags, int priority, bool legacy);

/* Removes the client's name at once; the driver's stream is destroyed when its work is done. */
void gpd_stream_drop(struct gpd_session *session, struct gpd_stream *stream);

/* Whether all its work is known to be done and all its waiters have been notified. */
static inline bool
gpd_stream_is_idle(const struct gpd_stream *stream)
{
	return atomic_load_explicit(&stream->done, memory_order_acquire) >= stream->work;
}

/* The same for all streams (of one context, if not NULL). */
bool gpd_stream_all_idle(const struct gpd_session *session, const struct gpd_context *context);

/* Whether the stream belongs to the context or one of its green contexts. */
bool gpd_context_has(const struct gpd_context *context, const struct gpd_stream *stream);

/*
 * Replaces the driver's stream of every stream of the device by one in the session's present
 * partition. New work goes there, ordered after the work of the old one, which stays where it is. A
 * change therefore takes effect when all work queued before it is done; with short queues that is
 * soon. gpd_stream_begin() calls it when the session's share has changed. After a failure it is
 * retried later, and the streams stay where they were.
 */
CUresult gpd_stream_move_all(struct gpd_session *session, int device);

/* At the session's end. cancel: drops its work, on the software device only. destroy: frees all
 * streams; to be called when all work is done and the responder has ended. */
void gpd_stream_cancel_all(struct gpd_session *session);
void gpd_stream_destroy_all(struct gpd_session *session);

/* Orders the next operation of `stream` after all work that `before` has now. */
CUresult gpd_stream_order_after(struct gpd_stream *stream, struct gpd_stream *before);

/* Destroys the peer stream (copy/aside.h) and its events. */
void gpd_stream_destroy_peer_stream(struct gpd_stream *stream);

/* Internal to the stream modules: gpd_stream_record() records *event, creating it first if NULL;
 * gpd_stream_destroy_driver() destroys a driver's stream or returns it to the pool, and drops the
 * partition. */
CUresult gpd_stream_record(struct gpd_stream *stream, CUevent *event);
/* Whether the stream's work is done; CUDA_ERROR_NOT_READY if not. */
CUresult gpd_stream_query_work(const struct gpd_stream *stream);
void gpd_stream_destroy_driver(CUstream driver, struct gpd_partition *partition);

/* Whether a pending wait refers to the stream. */
static inline bool
gpd_stream_has_waits(const struct gpd_stream *stream)
{
	return atomic_load_explicit(&stream->waits, memory_order_acquire) != 0;
}

/* Moves the streams of devices on which the session's share has changed. */
void gpd_stream_follow_shares(struct gpd_session *session);
/* Frees dropped streams whose work has finished. */
void gpd_stream_reap(struct gpd_session *session);

#endif /* GPD_STREAM_H */
