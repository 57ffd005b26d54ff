/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internal state of a session, for the files of client/session and their tests only.
 *
 * Threads: sender.lock may be held when receiver.lock or the lock of lane_internal.h is acquired,
 * never the other way round; none may be held while a connection sends or receives. Two flags are
 * tokens: only the thread that has set sender.writing sends on lane 0, and only the thread that has
 * set receiver.reading receives on it.
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

/* Number of lists in the hash table of outstanding requests. */
#define GPC_REQUEST_BUCKETS 256

/* Outgoing calls: gathers records (encoded calls) and sends them as messages. `lock` guards the
 * members that are not atomic. */
struct gpc_sender {
	pthread_mutex_t lock;
	pthread_cond_t changed;  /* broadcast when the sending token or space in the buffer becomes
				    available, state that the sender's lock guards has changed, or
				    the session ends */
	pthread_cond_t gathered; /* signaled for the sender thread when records have gathered */
	/* The ring: two buffers of GP_CONN_MESSAGE_MAX bytes, owned. buffers[filling] is filled
	 * while the other is sent. used[i] is the number of bytes in buffers[i]. */
	uint8_t *buffers[2];
	size_t used[2];
	int filling;
	bool writing;       /* sending token */
	bool sealed;        /* the last record has a bulk tail, so that no record may follow it */
	bool urgent;        /* a thread waits for the reply to a gathered record */
	bool sleeping;      /* the sender thread sleeps */
	int waiting;        /* number of threads that wait for `changed` */
	atomic_size_t hint; /* bytes gathered, for polling without the lock */
	atomic_uint_fast64_t
		sent;        /* number of messages that threads have started to send on lane 0 */
	atomic_bool sending; /* a message is being sent */
};

/* A thread that waits for `request` or, if request is NULL, until fewer requests are outstanding.
 * Lives on the stack of that thread; guarded by receiver.lock. */
struct gpc_waiter {
	const struct gpc_request *request;
	bool complete;        /* the request is complete or, without a request, any request is */
	CUresult result;      /* of the request; valid when `complete` is set */
	pthread_cond_t woken; /* signaled when `complete` is set, and when the thread is to read */
	struct gpc_waiter *next;
};

/* Incoming messages and outstanding requests. `lock` guards the members that are not atomic. A note
 * is a message of the daemon that is not a reply. */
struct gpc_receiver {
	pthread_mutex_t lock;
	pthread_cond_t wanted; /* signaled for the receiver thread when it may have to read */
	bool reading;          /* receiving token */
	bool idle;             /* the receiver thread waits for `wanted` */
	bool polling; /* the receiver thread polls the connection's descriptor and wake_fd */
	int wake_fd;  /* eventfd that ends the receiver thread's poll when data was read ahead; -1:
			 none */
	struct gpc_request
		*requests[GPC_REQUEST_BUCKETS]; /* outstanding, by ID modulo the length */
	struct gpc_waiter *waiters;             /* in the order of their arrival */
	uint32_t last_id;                       /* ID of the last request */
	unsigned int unattended; /* number of messages to be read even if no thread waits: replies
				    to outstanding requests that have done() and are not lazy, and
				    expected notes */
	unsigned int notes; /* number of expected notes, which are also counted in `unattended` */
	uint64_t attended;  /* total number of requests and notes ever counted in `unattended` */
	unsigned int lazy;  /* number of outstanding lazy requests, which are not counted in
			       `unattended` */
	atomic_uint outstanding; /* number of requests without a reply */
	atomic_bool served;      /* a message has been received */
	/* Detection of a suspended process. watch_ns: start of the receiver thread's current wait
	 * of WATCH_MS milliseconds (receiver.c); 0: it does not wait. suspended_ns: duration of the
	 * last wait that took 5 s or longer; 0: none. suspension_end_ns: end of that wait. */
	atomic_uint_fast64_t watch_ns, suspended_ns, suspension_end_ns;
};

/* Threads that run host functions. Functions of the program may wait for one another's streams, so
 * the library's own functions have a separate thread. */
enum gpc_host_runner_kind {
	GPC_HOST_PROGRAM,
	GPC_HOST_LIBRARY,
	GPC_HOST_RUNNERS
};

/* A thread that runs host functions, and its queue. Guarded by the lock of struct
 * gpc_host_functions. */
struct gpc_host_runner {
	pthread_cond_t wanted; /* signaled when `due` gets a function, and at the session's end */
	struct gpc_host_function *due,
		*last; /* queue of the functions that are due to run; NULL: empty */
	bool started;  /* the thread is running */
};

/* Outstanding host functions of a session (host_queue.h). `lock` guards `all` and `runners`; it may
 * be held when the lock of a handle table is acquired. */
struct gpc_host_functions {
	pthread_mutex_t lock;
	struct gpc_host_function *all; /* in the order of posting */
	struct gpc_host_runner runners[GPC_HOST_RUNNERS];
	/* Counts of outstanding host functions and stream waits, because of which the daemon may
	 * have to defer calls. Written under sender.lock, read without it. */
	atomic_uint unanswered; /* host functions, and streams' waits for values, that were posted
				   but are not complete (gpStreamWait) */
	atomic_uint host;       /* the host functions alone; also counted in `unanswered` */
};

/* Limits the cost of the calls that the daemon may have to defer (store until a host function or a
 * value lets their stream continue). Units: bytes as computed by GP_DEFERRED_QUEUE_COST. Guarded by
 * sender.lock. */
struct gpc_room {
	uint64_t max;     /* limit of posted - settled, from gpc_call_room() */
	uint64_t posted;  /* total cost of the posted calls */
	uint64_t settled; /* the part of `posted` that the daemon is known not to defer any more */
	uint64_t queried; /* value of `posted` when the last gpBacklogRoom (query for the cost of
			     the deferred calls) was posted */
	bool querying;    /* gpBacklogRoom is outstanding */
	struct gpc_request request; /* the outstanding gpBacklogRoom */
};

/* Streams whose IDs differ by a multiple of this number share a slot. */
#define GPC_ISSUED_SLOTS 4096

/* Work numbers (session.h) of the records that gave a stream work. Written under sender.lock, read
 * without it. */
struct gpc_issued {
	atomic_bool work; /* before the first reply (first_reply.h) a call was sent whose duration
			     depends on the GPU */
	atomic_uint_fast64_t last; /* number of the last record; 0: none */
	atomic_uint_fast64_t seen; /* number of the last record with an effect that the program can
				      see (gpc_session_issued_visible()); 0: none */
	atomic_uint
		visible_blocks; /* number of blocks counted by gpc_session_count_visible_blocks() */
	atomic_uint_fast64_t
		to[GPC_ISSUED_SLOTS]; /* number of the last record for each slot of streams */
};

/* A session. The lock of each group of members is stated at its struct. */
struct gpc_session {
	struct gpc_session_facts facts;
	int number;                   /* position in the list of session.h; 0 before it is added */
	unsigned int max_outstanding; /* the most requests without a reply at one time */
	struct gp_conn *lane;         /* lane 0; owned */
	struct gp_conn *control;      /* connection to the supervisor, owned; NULL: none */
	atomic_uint state;            /* see session_state.h */
	atomic_int deferred; /* deferred error: CUresult of a posted call that no call has returned
				yet; CUDA_SUCCESS: none */
	atomic_uint_fast64_t
		round_trip_ns;         /* shortest time that a caller waited for a reply; 0: none */
	atomic_uint_fast64_t revision; /* see gpc_session_revision() */
	atomic_bool revision_watched;  /* see gpc_session_set_revision_watch() */
	atomic_bool pinned;            /* the program has, or had, pinned memory */
	struct gpc_sender sender;
	struct gpc_receiver receiver;
	struct gpc_host_functions functions;
	struct gpc_room room;
	struct gpc_lanes *lanes;                               /* owned; see lane.h */
	const struct gpc_session_callbacks *_Atomic callbacks; /* NULL: not set */
	atomic_uint_fast64_t work_posted,
		work_done; /* counters of gpc_session_work_mark() and gpc_session_work_set_done() */
	atomic_uint_fast64_t foreign_wait; /* count of gpc_session_work_mark() for the last
					      gpc_session_note_foreign_wait(); 0: none */
	struct gpc_issued issued;
	struct gpc_silence silence;
	struct gpc_control_news news; /* guarded by reason_lock */
	pthread_mutex_t reason_lock;  /* guards `news`; held by the thread that reads the control
					 connection */
	pthread_mutex_t threads_lock; /* guards `threads` */
	pthread_cond_t threads_ended; /* signaled when a thread ends */
	int threads;                  /* number of the session's threads that have not ended */
};

/* Returns whether the session is over: nothing is sent or received, and calls return the reason
 * (gpc_session_status()). */
static inline bool
gpc_session_is_over(const struct gpc_session *session)
{
	return gpc_session_state_result(&session->state) != CUDA_SUCCESS;
}

/* The gpc_sender_*() functions are implemented in sender.c. Initializes session->sender. Returns 0
 * or -ENOMEM; gpc_sender_fini() must be called in either case. */
int gpc_sender_init(struct gpc_session *session);
/* Frees the members of session->sender; accepts zeroed ones. Called when no thread of the session
 * is left. */
void gpc_sender_fini(struct gpc_session *session);
/* Main function of the sender thread; returns NULL at the end of the session. */
void *gpc_sender_main(void *session);
/* Wakes all threads that wait for the sender, so that they see the end of the session. */
void gpc_sender_wake_all(struct gpc_session *session);
/* Reserves `size` bytes, at most GP_CONN_MESSAGE_MAX, in the ring, and stores their address in
 * *memory_p. If there is no space, blocks until another thread has sent the records or sends them
 * itself; releases the lock meanwhile. Returns CUDA_SUCCESS, or the session's error. The memory is
 * valid until the lock is released; the caller fills it, and then calls gpc_sender_commit_locked()
 * or abandons it. */
CUresult gpc_sender_reserve_locked(struct gpc_session *session, size_t size, void **memory_p)
	GP_LOCKED(session->sender.lock);
/* Appends the record of `size` bytes, at most those reserved, that was encoded at the start of the
 * reserved memory. The lock was not released since the reservation. One of the next three functions
 * must follow. */
void gpc_sender_commit_locked(struct gpc_session *session, size_t size)
	GP_LOCKED(session->sender.lock);
/* Leaves the gathered records to the sender thread, and releases the lock. Does not wait. */
void gpc_sender_post_unlock(struct gpc_session *session) GP_UNLOCKS(session->sender.lock);
/* Sends the gathered records, and releases the lock. Blocks until the transport has accepted the
 * data, unless another thread is sending, which then sends these records too. An error ends the
 * session. */
void gpc_sender_flush_unlock(struct gpc_session *session) GP_UNLOCKS(session->sender.lock);
/* Sends the gathered records and, after the last record, the bulk data; waits until they are sent,
 * and releases the lock. Returns CUDA_SUCCESS or the session's error. The memory of bulk may be
 * reused afterwards. */
CUresult gpc_sender_bulk_unlock(struct gpc_session *session, const struct iovec *bulk, int count)
	GP_UNLOCKS(session->sender.lock);
/* Blocks until gpc_sender_notify_locked() is called, the sender's state changes, or the session
 * ends. Releases the lock while it waits. May return earlier, so the caller checks its condition
 * again. */
void gpc_sender_wait_locked(struct gpc_session *session) GP_LOCKED(session->sender.lock);
/* Wakes the threads in gpc_sender_wait_locked() after a change of state that the sender's lock
 * guards. */
void gpc_sender_notify_locked(struct gpc_session *session) GP_LOCKED(session->sender.lock);
/* Blocks until all records are sent or the session is over. Returns true, or false if the deadline
 * (gp_now_ns()) passes first. */
bool gpc_sender_drain(struct gpc_session *session, uint64_t deadline);

/* The gpc_receiver_*() functions are implemented in receiver.c. Initializes session->receiver.
 * Returns 0. */
int gpc_receiver_init(struct gpc_session *session);
/* Frees the members of session->receiver. Called when no thread of the session is left. */
void gpc_receiver_fini(struct gpc_session *session);
/* Main function of the receiver thread, which reads when no caller does; returns NULL at the end of
 * the session. */
void *gpc_receiver_main(void *session);
/* Registers a request before its call is sent: assigns it an ID that is not 0, and returns the ID.
 * The request may be completed, and freed by its done(), from this moment, if the session ends. */
uint32_t gpc_receiver_expect(struct gpc_session *session, struct gpc_request *request);
/* Counts an expected note, so that the receiver thread reads until it arrives. Called before its
 * cause is posted. Undone by gpc_receiver_note_received(). */
void gpc_receiver_expect_note(struct gpc_session *session);
/* Counts the arrival of an expected note, or that it will not be sent. */
void gpc_receiver_note_received(struct gpc_session *session);
/* Blocks until fewer than max_outstanding requests are without a reply; the calling thread reads
 * the connection if no other thread does. Returns CUDA_SUCCESS or the session's error. */
CUresult gpc_receiver_make_room(struct gpc_session *session);
/* Called when the session is over: completes all outstanding requests with its error, in the
 * calling thread. If another thread is reading, that thread completes them, after this function has
 * returned. */
void gpc_receiver_abort(struct gpc_session *session);

/* Returns the number of seconds for which the process was suspended (SIGSTOP, or a machine that
 * slept), if that was at least 5 s and the suspension ended less than ten seconds ago or its end
 * was not yet noticed. Returns 0 otherwise. */
unsigned int gpc_receiver_suspended(const struct gpc_session *session);

/* Ends the session with `result`, the sticky error that the daemon has reported on lane 0, usually
 * a kernel fault. Called, like the next two functions, without the session's locks. Waits at most
 * 300 ms for the daemon to report the details on the control connection. */
void gpc_session_fault(struct gpc_session *session, CUresult result);
/* Ends the session after lane 0 failed with r, an error of gp_conn_recv() or gp_conn_send(). Unless
 * r is -EPROTO, waits at most 300 ms for the daemon to report a reason on the control
 * connection. */
void gpc_session_lost(struct gpc_session *session, int r);
/* Ends the session after the connection `conn` failed with r, as gpc_session_lost() does for lane
 * 0. name: prefix of the reason in the message to the user; "" for lane 0. */
void gpc_session_lost_on(struct gpc_session *session, struct gp_conn *conn, const char *name,
			 int r);

#endif /* GPC_SESSION_INTERNAL_H */
