/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of a session.  Every one is a private non-blocking stream of the shared context, in the
 * session's partition of the device if it has one; what the legacy default stream means is kept
 * inside the session: work on it waits for the session's blocking streams, and they wait for it (by
 * events, recorded only when they are needed).  For the executor, which frees a stream that is
 * dropped when no pending wait names it: the responder looks at no other.
 */
#ifndef GPD_STREAM_H
#define GPD_STREAM_H

#include "server/worker/session/depth.h"
#include "server/worker/session/handle.h"
#include "server/worker/session/wait.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gpd_context;
struct gpd_partition;
struct gpd_session;

/* trace.h: all zeros at first. */
struct gpd_trace_mark {
	uint32_t track; /* and 1; 0: none yet */
	uint32_t joined;
};

struct gpd_stream {
	struct gpd_handle handle;
	struct gpd_stream *next;
	struct gpd_context *context; /* NULL once it is destroyed, or the stream was left */
	int device;
	CUstream driver; /* another one after the session's share of the device has changed */
	struct gpd_partition *partition; /* that it is of; NULL: the whole device */
	int priority;
	bool legacy;
	bool blocking;        /* created without CU_STREAM_NON_BLOCKING */
	bool dropped;         /* destroyed by the client, or left, but its work is not done */
	uint64_t work;        /* session->progress.work of its last operation */
	uint64_t seen_legacy; /* work of the legacy stream it is already ordered behind */
	uint64_t legacy_seen; /* its work that the legacy stream is already ordered behind */
	uint64_t seen_barrier;
	CUevent order;        /* made on first need */
	uint64_t order_work;  /* what order stands for */
	uint64_t moved_work;  /* work that it had when it was moved, all done elsewhere */
	CUevent before;       /* copy_lanes.c; made on first need */
	CUevent barrier;      /* behind its last barrier; made on first need */
	CUstream peer_stream; /* copy/aside.h, on peer_stream_device; made on first need, as are */
	int peer_stream_device;
	CUevent peer_stream_begin, peer_stream_end;
	uint64_t batch; /* schedule.h: of its last launch */
	struct gpd_depth depth;
	uint8_t launcher; /* issue.h */
	struct gpd_trace_mark trace;
	/* Work that the GPU has done, and of which all have been told; the responder writes both.
	 */
	_Atomic uint64_t reached, done;
	_Atomic unsigned int waits; /* pending ones that name this stream */
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
 * Before an operation: the stream named id, ordered behind what it must wait for, its device
 * current, counted as work.  CUDA_ERROR_INVALID_HANDLE.
 */
CUresult gpd_stream_begin(struct gpd_session *session, uint32_t id, struct gpd_stream **stream_p);
/* The same for one that is known. */
CUresult gpd_stream_begin_on(struct gpd_session *session, struct gpd_stream *stream);
/* Its next operation waits for the driver's event, and it for no other stream. */
CUresult gpd_stream_wait_event(struct gpd_session *session, struct gpd_stream *stream,
			       CUevent event);

/* Before every launch (LAUNCHES): returns when it may be carried out. */
void gpd_stream_launch(struct gpd_session *session, uint32_t id);
/* Of this the part that others' quiet moments of the device (quiet.h) are the reason for. */
void gpd_stream_wait_quiesce(struct gpd_session *session, int device);

/* The stream without ordering or counting (queries). NULL: no such stream. */
struct gpd_stream *gpd_stream_get(const struct gpd_session *session, uint32_t id);

/* Calls done() (wait.h) behind all that the stream was given: GPD_LATER.  CUDA_SUCCESS: that is
 * done already, and done() is not called, as after an error. */
CUresult gpd_stream_await(struct gpd_session *session, uint32_t id, gpd_wait_done *done, void *arg);

/* After a copy with GP_COPY_BARRIER: all later operations of the session wait for this one. */
CUresult gpd_stream_barrier(struct gpd_session *session, struct gpd_stream *stream);
/* All later operations of the session wait for all that the context's streams were given. */
CUresult gpd_stream_barrier_context(struct gpd_session *session, const struct gpd_context *context);

/* A stream of the context; flags as for cuStreamCreate, ignored for the legacy stream.  id 0: the
 * client does not know it. */
CUresult gpd_stream_create(struct gpd_session *session, struct gpd_context *context, uint32_t id,
			   unsigned int flags, int priority, bool legacy);

/* The client's name for it is gone at once, the driver's stream when its work is done. */
void gpd_stream_drop(struct gpd_session *session, struct gpd_stream *stream);

/* Whether all its work is known to be done and all that waited for it has been called. */
static inline bool
gpd_stream_is_idle(const struct gpd_stream *stream)
{
	return atomic_load_explicit(&stream->done, memory_order_acquire) >= stream->work;
}

/* Whether that holds for all streams (of one context, if not NULL). */
bool gpd_stream_all_idle(const struct gpd_session *session, const struct gpd_context *context);

/* Whether the stream is the context's, or one of its green contexts'. */
bool gpd_context_has(const struct gpd_context *context, const struct gpd_stream *stream);

/*
 * Gives every stream of the device a stream of the driver in the session's present partition.  New
 * work goes there, behind the work that the old one has; that work stays where it is, so a change
 * is in effect when all that was queued before it is done: who wants that to be soon keeps the
 * queues short.  gpd_stream_begin() does it by itself once the session's share has changed; what
 * fails is tried again after a while, and until then the streams are where they were.
 */
CUresult gpd_stream_move_all(struct gpd_session *session, int device);

/* At the session's end: drops its work, on the software device.  Then, when all work is done and
 * without responder: frees. */
void gpd_stream_cancel_all(struct gpd_session *session);
void gpd_stream_destroy_all(struct gpd_session *session);

/* Puts the next operation of `stream` behind all that `before` was given. */
CUresult gpd_stream_order_after(struct gpd_stream *stream, struct gpd_stream *before);

/* Gives back what was made for copy/aside.h. */
void gpd_stream_destroy_peer_stream(struct gpd_stream *stream);

/* What stream.c, stream_launch.c and stream_move.c need of each other. */
CUresult gpd_stream_record(struct gpd_stream *stream, CUevent *event);
/* Whether what the stream was given is done: CUDA_ERROR_NOT_READY. */
CUresult gpd_stream_query_work(const struct gpd_stream *stream);
void gpd_stream_destroy_driver(CUstream driver, struct gpd_partition *partition);

static inline bool
gpd_stream_has_waits(const struct gpd_stream *stream)
{
	return atomic_load_explicit(&stream->waits, memory_order_acquire) != 0;
}

/* Notifies the client whenever the session's share of a device has changed. */
void gpd_stream_watch_shares(struct gpd_session *session);
/* Moves the streams of those devices of which the session's share has changed. */
void gpd_stream_follow_shares(struct gpd_session *session);
/* Frees those that the client has destroyed, or that were left, and that have finished since. */
void gpd_stream_reap(struct gpd_session *session);

#endif /* GPD_STREAM_H */
