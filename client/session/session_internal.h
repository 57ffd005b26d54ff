/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal state of a session, for the files of client/wire and their tests only.
 *
 * Threads: sender.lock may be held when receiver.lock is acquired, never the other way round;
 * neither may be held while a connection sends or receives. Only the thread that has set
 * sender.writing sends, and only the thread that has set receiver.reading receives (these flags are
 * called tokens).
 */
#ifndef GPC_SESSION_INTERNAL_H
#define GPC_SESSION_INTERNAL_H

#include "base/lock.h"
#include "client/session/call.h"
#include "client/session/session.h"
#include "client/session/session_state.h"
#include "client/session/silence.h"
#include "transport/transport.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GPC_REQUEST_BUCKETS 256

/* Outgoing calls: gathers records and sends them as messages. */
struct gpc_sender {
	pthread_mutex_t lock;
	pthread_cond_t changed;  /* the token or room became available, or the session ended */
	pthread_cond_t gathered; /* signaled for the sender thread */
	/* Double buffer: one is filled while the other is sent. */
	uint8_t *buffers[2];
	size_t used[2];
	int filling;
	bool writing;       /* sending token */
	bool sealed;        /* the last record has a bulk tail, so that no record may follow it */
	bool urgent;        /* a thread waits for the reply to a gathered record */
	bool sleeping;      /* the sender thread sleeps */
	int waiting;        /* number of threads that wait for `changed` */
	atomic_size_t hint; /* bytes gathered, for polling without the lock */
	atomic_uint_fast64_t sent; /* number of messages started */
	atomic_bool sending;       /* a message is being sent */
};

/* A thread that waits for a request, or for room if request is NULL. */
struct gpc_waiter {
	const struct gpc_request *request;
	bool complete;
	CUresult result;
	pthread_cond_t woken;
	struct gpc_waiter *next;
};

/* Incoming messages and outstanding requests. */
struct gpc_receiver {
	pthread_mutex_t lock;
	pthread_cond_t wanted; /* signaled for the receiver thread */
	bool reading;          /* receiving token */
	bool idle;             /* the receiver thread waits for `wanted` */
	bool polling; /* the receiver thread polls the connection's descriptor and wake_fd */
	int wake_fd;  /* eventfd that ends that poll when data was read ahead; -1: none */
	struct gpc_request *requests[GPC_REQUEST_BUCKETS];
	struct gpc_waiter *waiters;
	uint32_t last_id;
	unsigned int unattended; /* outstanding requests with done(), and expected notes */
	unsigned int notes;      /* expected notes, also counted in `unattended` */
	uint64_t attended; /* total number of requests and notes ever counted in `unattended` */
	unsigned int lazy; /* outstanding lazy requests, not counted in `unattended` */
	atomic_uint outstanding;
	atomic_bool served; /* a message has been received */
	/* Detection of a suspended process: start of the receiver thread's current wait of WATCH_MS
	 * (0: it does not wait), and duration and end of the last wait that took much longer. */
	atomic_uint_fast64_t watch_ns, suspended_ns, suspension_end_ns;
};

/* Threads that run host functions. Functions of the program may wait for one another's streams, so
 * the library's own functions have a separate thread. */
enum gpc_host_runner_kind {
	GPC_HOST_PROGRAM,
	GPC_HOST_LIBRARY,
	GPC_HOST_RUNNERS
};

/* A thread that runs host functions, and its queue. */
struct gpc_host_runner {
	pthread_cond_t wanted;
	struct gpc_host_function *due, *last; /* functions that are due */
	bool started;                         /* the thread is running */
};

/* Outstanding host functions; see host_queue.h. */
struct gpc_host_functions {
	pthread_mutex_t lock;
	struct gpc_host_function *all; /* in the order of posting */
	struct gpc_host_runner runners[GPC_HOST_RUNNERS];
	/* Guarded by the sender's lock: host functions and stream waits after which the daemon may
	 * have to defer calls. */
	atomic_uint unanswered; /* posted but not completed, including streams' waits for values */
	atomic_uint host;       /* the host functions alone */
};

/* Accounting of the calls that the daemon may have to defer, in the bytes of
 * GP_DEFERRED_QUEUE_COST. Guarded by the sender's lock. */
struct gpc_room {
	uint64_t max; /* limit, from gpc_call_room() */
	uint64_t posted;
	uint64_t settled; /* the part of `posted` that the daemon no longer defers */
	uint64_t queried; /* value of `posted` at the last gpBacklogRoom */
	bool querying;    /* gpBacklogRoom is outstanding */
	struct gpc_request request;
};

/* Streams whose IDs differ by a multiple of this number share a slot. */
#define GPC_ISSUED_SLOTS 4096

/* Numbers of the records that gave a stream work; written under the sender's lock. */
struct gpc_issued {
	atomic_bool work; /* before the first reply: a call of unbounded duration was posted */
	atomic_uint_fast64_t last;  /* number of the last record */
	atomic_uint_fast64_t seen;  /* last record with an effect outside of the device */
	atomic_uint visible_blocks; /* see session.h */
	atomic_uint_fast64_t to[GPC_ISSUED_SLOTS]; /* last record of each stream */
};

/* A session. */
struct gpc_session {
	struct gpc_session_facts facts;
	int number; /* argument of gpc_session_at() */
	unsigned int max_outstanding;
	struct gp_conn *lane;
	struct gp_conn *control; /* NULL: none */
	atomic_uint state;       /* see session_state.h */
	atomic_int deferred;     /* CUresult of a posted call, not yet reported */
	atomic_uint_fast64_t
		round_trip_ns; /* shortest time that a caller waited for a reply; 0: none */
	atomic_uint_fast64_t revision;
	atomic_bool revision_watched;
	atomic_bool pinned; /* the program has, or had, pinned memory */
	struct gpc_sender sender;
	struct gpc_receiver receiver;
	struct gpc_host_functions functions;
	struct gpc_room room;
	struct gpc_lanes *lanes; /* see lane.h */
	const struct gpc_session_hooks *_Atomic hooks;
	atomic_uint_fast64_t work_posted, work_done;
	atomic_uint_fast64_t foreign_wait; /* work_posted after the last wait for another process */
	struct gpc_issued issued;
	struct gpc_silence silence;
	struct gpc_control_news news; /* guarded by reason_lock */
	pthread_mutex_t reason_lock;  /* held by the thread that reads the control connection */
	pthread_mutex_t threads_lock;
	pthread_cond_t threads_ended;
	int threads;
};

/* Returns whether the session is over: nothing is sent or received, and calls return the reason. */
static inline bool
gpc_session_is_over(const struct gpc_session *session)
{
	return gpc_session_state_result(&session->state) != CUDA_SUCCESS;
}

/* sender.c; the lock is held where the function name says so. */
int gpc_sender_init(struct gpc_session *session);
void gpc_sender_fini(struct gpc_session *session);
void *gpc_sender_main(void *session);
void gpc_sender_wake_all(struct gpc_session *session);
/* Waits for `size` bytes of room in the ring and returns their address; the record is then
 * completed with gpc_sender_commit_locked(). */
CUresult gpc_sender_reserve_locked(struct gpc_session *session, size_t size, void **memory_p)
	GP_LOCKED(session->sender.lock);
void gpc_sender_commit_locked(struct gpc_session *session, size_t size)
	GP_LOCKED(session->sender.lock);
/* Ensures that the gathered records are sent, by the sender thread (post) or at once (flush); both
 * release the lock. */
void gpc_sender_post_unlock(struct gpc_session *session) GP_UNLOCKS(session->sender.lock);
void gpc_sender_flush_unlock(struct gpc_session *session) GP_UNLOCKS(session->sender.lock);
/* Sends the gathered records and the bulk of the last one; waits until they are sent, and releases
 * the lock. */
CUresult gpc_sender_bulk_unlock(struct gpc_session *session, const struct iovec *bulk, int count)
	GP_UNLOCKS(session->sender.lock);
/* Waits for, and signals, a change of any state that is guarded by the sender's lock, including the
 * end of the session. */
void gpc_sender_wait_locked(struct gpc_session *session) GP_LOCKED(session->sender.lock);
void gpc_sender_notify_locked(struct gpc_session *session) GP_LOCKED(session->sender.lock);
/* Waits until everything is sent. Returns false if the deadline (gp_now_ns()) passes first. */
bool gpc_sender_drain(struct gpc_session *session, uint64_t deadline);

/* receiver.c */
int gpc_receiver_init(struct gpc_session *session);
void gpc_receiver_fini(struct gpc_session *session);
void *gpc_receiver_main(void *session);
/* Assigns the request an ID, registers it and returns the ID. If the session ends, the request may
 * be completed, and freed, from this moment. */
uint32_t gpc_receiver_expect(struct gpc_session *session, struct gpc_request *request);
/* Counts an expected note that no thread waits for; and its arrival. */
void gpc_receiver_expect_note(struct gpc_session *session);
void gpc_receiver_note_received(struct gpc_session *session);
/* Reads until fewer requests than the daemon's limit are outstanding. */
CUresult gpc_receiver_make_room(struct gpc_session *session);
/* Called when the session is over: completes all outstanding requests, now or on the thread that is
 * reading. */
void gpc_receiver_abort(struct gpc_session *session);

/* Returns the number of seconds for which the process was suspended, if that lasts until now or
 * ended less than ten seconds ago; otherwise 0. */
unsigned int gpc_receiver_suspended(const struct gpc_session *session);

/* Ends the session after a kernel fault, with the details that the daemon reports. */
void gpc_session_fault(struct gpc_session *session, CUresult result);
/* Ends the session after the connection failed with r, with the reason that the daemon reports. */
void gpc_session_lost(struct gpc_session *session, int r);
/* The same for another connection than lane 0; `name` identifies it in the log. */
void gpc_session_lost_on(struct gpc_session *session, struct gp_conn *conn, const char *name,
			 int r);

#endif /* GPC_SESSION_INTERNAL_H */
