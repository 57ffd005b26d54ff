/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a session, for the files of client/wire and their tests only.
 *
 * Locks: sender.lock may be held when receiver.lock is taken, never the other way round; neither
 * while a connection sends or receives.  Who has set sender.writing is the only one to send, who
 * has set receiver.reading the only one to receive.
 */
#ifndef GPC_SESSION_INSIDE_H
#define GPC_SESSION_INSIDE_H

#include "base/lock.h"
#include "client/wire/call.h"
#include "client/wire/session.h"
#include "client/wire/session_state.h"
#include "client/wire/silence.h"
#include "transport/transport.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GPC_REQUEST_BUCKETS 256

struct gpc_sender {
	pthread_mutex_t lock;
	pthread_cond_t changed;  /* the token or room became free, or the session ended */
	pthread_cond_t gathered; /* for the sender thread */
	/* One is filled while the other is being sent. */
	uint8_t *buffers[2];
	size_t used[2];
	int filling;
	bool writing;       /* the token */
	bool sealed;        /* the last record gathered has a bulk tail: nothing may follow it */
	bool urgent;        /* somebody waits for the answer to what was gathered */
	bool sleeping;      /* the sender thread */
	int waiting;        /* for changed */
	atomic_size_t hint; /* bytes gathered, for who looks without the lock */
	atomic_uint_fast64_t sent; /* messages begun; and ... */
	atomic_bool sending;       /* ... one is on its way */
};

struct gpc_waiter {
	const struct gpc_request *request;
	bool complete;
	CUresult result;
	pthread_cond_t woken;
	struct gpc_waiter *next;
};

struct gpc_receiver {
	pthread_mutex_t lock;
	pthread_cond_t wanted; /* for the receiver thread */
	bool reading;          /* the token */
	bool idle;             /* the receiver thread waits for `wanted` */
	bool polling;          /* it looks at the connection's descriptor, and at ... */
	int wake_fd; /* ... this eventfd: the bytes have been read by another; -1: there is none */
	struct gpc_request *requests[GPC_REQUEST_BUCKETS];
	struct gpc_waiter *waiters;
	uint32_t last_id;
	unsigned int unattended; /* outstanding requests with done(), and notes to come */
	unsigned int notes;      /* of these, notes */
	uint64_t attended;       /* counts those that `unattended` counts */
	unsigned int lazy;       /* outstanding requests that are: they do not count above */
	atomic_uint outstanding;
	atomic_bool served; /* something has come */
	/* When the receiver thread's wait of WATCH_MS began, 0: it does not wait; the last one that
	 * took much longer, and when it was over. */
	atomic_uint_fast64_t watch_ns, suspended_ns, suspension_end_ns;
};

/* Host functions that are not done; host_queue.h. */
/* The functions of the program may wait for one another's streams, so the library's own have a
 * thread of their own. */
enum gpc_host_runner_kind {
	GPC_HOST_PROGRAM,
	GPC_HOST_LIBRARY,
	GPC_HOST_RUNNERS
};

struct gpc_host_runner {
	pthread_cond_t wanted;
	struct gpc_host_function *due, *last; /* whose turn has come */
	bool started;                         /* the thread */
};

struct gpc_host_functions {
	pthread_mutex_t lock;
	struct gpc_host_function *all; /* in the order of posting */
	struct gpc_host_runner runners[GPC_HOST_RUNNERS];
	/* Under the sender's lock: what the daemon may have to keep until they are done. */
	atomic_uint unanswered; /* posted, and not yet answered; and streams' waits for words */
	atomic_uint waits;      /* these alone */
};

/* What the daemon may have to keep, in bytes as GP_DEFERRED_QUEUE_COST counts them; under the
 * sender's lock. */
struct gpc_room {
	uint64_t max; /* gpc_call_room() */
	uint64_t posted;
	uint64_t settled; /* the part of posted that the daemon no longer keeps */
	uint64_t queried; /* posted before the last gpBacklogRoom */
	bool querying;    /* it is not answered */
	struct gpc_request request;
};

/* Streams whose names differ by a multiple of it share a place. */
#define GPC_ISSUED_SLOTS 4096

/* Records that gave a stream work; written under the sender's lock. */
struct gpc_issued {
	atomic_bool work;           /* before the first answer: some that may take any time */
	atomic_uint_fast64_t last;  /* how many there are */
	atomic_uint_fast64_t seen;  /* the last one with an effect outside of the device */
	atomic_uint visible_blocks; /* session.h */
	atomic_uint_fast64_t to[GPC_ISSUED_SLOTS]; /* which was the last one for the stream */
};

struct gpc_session {
	struct gpc_session_facts facts;
	int number; /* of gpc_session_at() */
	unsigned int max_outstanding;
	struct gp_conn *lane;
	struct gp_conn *control;            /* NULL: none */
	atomic_uint state;                  /* session_state.h */
	atomic_int deferred;                /* CUresult of a posted call, not yet told */
	atomic_uint_fast64_t round_trip_ns; /* the shortest that a caller waited for; 0: none */
	atomic_uint_fast64_t revision;
	atomic_bool revision_watched;
	atomic_bool pinned; /* the program has pinned memory, or had */
	struct gpc_sender sender;
	struct gpc_receiver receiver;
	struct gpc_host_functions functions;
	struct gpc_room room;
	struct gpc_lanes *lanes; /* lane.h */
	const struct gpc_session_hooks *_Atomic hooks;
	atomic_uint_fast64_t work_posted, work_done;
	atomic_uint_fast64_t foreign_wait; /* work_posted after the last wait for another process */
	struct gpc_issued issued;
	struct gpc_silence silence;
	struct gpc_control_news news; /* under ... */
	pthread_mutex_t reason_lock;  /* who reads the control connection */
	pthread_mutex_t threads_lock;
	pthread_cond_t threads_ended;
	int threads;
};

/* Nothing is sent or received any more: the calls answer why. */
static inline bool
gpc_session_is_over(const struct gpc_session *session)
{
	return gpc_session_state_result(&session->state) != CUDA_SUCCESS;
}

/* sender.c; the lock is held where the name says so */
int gpc_sender_init(struct gpc_session *session);
void gpc_sender_fini(struct gpc_session *session);
void *gpc_sender_main(void *session);
void gpc_sender_wake_all(struct gpc_session *session);
/* Waits for size bytes of room. */
CUresult gpc_sender_reserve_locked(struct gpc_session *session, size_t size, void **memory_p)
	GP_LOCKED(session->sender.lock);
void gpc_sender_commit_locked(struct gpc_session *session, size_t size)
	GP_LOCKED(session->sender.lock);
/* Sees to it that what was gathered goes out; returns unlocked. */
void gpc_sender_post_unlock(struct gpc_session *session) GP_UNLOCKS(session->sender.lock);
void gpc_sender_flush_unlock(struct gpc_session *session) GP_UNLOCKS(session->sender.lock);
/* The same with the bulk of the last record committed, whose sending it waits for. */
CUresult gpc_sender_bulk_unlock(struct gpc_session *session, const struct iovec *bulk, int count)
	GP_UNLOCKS(session->sender.lock);
/* A change of what callers wait for under the sender's lock; the session's end is one. */
void gpc_sender_wait_locked(struct gpc_session *session) GP_LOCKED(session->sender.lock);
void gpc_sender_notify_locked(struct gpc_session *session) GP_LOCKED(session->sender.lock);
/* Whether all is sent before the deadline (gp_now_ns()). */
bool gpc_sender_drain(struct gpc_session *session, uint64_t deadline);

/* receiver.c */
int gpc_receiver_init(struct gpc_session *session);
void gpc_receiver_fini(struct gpc_session *session);
void *gpc_receiver_main(void *session);
/* Names the request and expects its answer.  Its number: if the session ends, the request may be
 * complete, and gone, from then on. */
uint32_t gpc_receiver_expect(struct gpc_session *session, struct gpc_request *request);
/* A note that nobody waits for will come; and it has. */
void gpc_receiver_expect_note(struct gpc_session *session);
void gpc_receiver_note_received(struct gpc_session *session);
/* Reads until fewer than the daemon's limit are outstanding. */
CUresult gpc_receiver_make_room(struct gpc_session *session);
/* The session is over: completes what is outstanding, now or by who is reading. */
void gpc_receiver_abort(struct gpc_session *session);

/* For how many seconds the process did not run, up to now or ten seconds ago at most; 0: it did. */
unsigned int gpc_receiver_suspended(const struct gpc_session *session);

/* A kernel faulted: learns whose and where, as far as the daemon says it, and ends the session. */
void gpc_session_fault(struct gpc_session *session, CUresult result);
/* The connection failed with r: learns why and ends the session. */
void gpc_session_lost(struct gpc_session *session, int r);
/* The same of another one than the lane, which the log names. */
void gpc_session_lost_on(struct gpc_session *session, struct gp_conn *conn, const char *name,
			 int r);

#endif /* GPC_SESSION_INSIDE_H */
