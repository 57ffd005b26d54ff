/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session: this process's connection to one daemon (gpupoold) and the worker process that serves it
 * there.
 *
 * cuInit opens one session for each daemon that REMOTE_GPU names; it exists until the process
 * exits. A session sends one ordered stream of calls on its first connection, lane 0: callers
 * append records (encoded calls) to a ring buffer under the send lock, and a sender thread sends
 * the records that have gathered. A caller that waits for a reply sends at once and reads the
 * replies itself (one reader at a time). A posted call has no reply; its error becomes the
 * session's deferred error.
 * Ownership: the process owns its sessions. A session that was added to the list is closed at exit
 * but never freed, so a pointer to it stays valid without a reference. After a fork the child has
 * no session; the memory of the parent's sessions stays allocated there.
 * Threads: any, unless noted otherwise. Functions do not block unless noted otherwise.
 * Errors: functions that return CUresult return CUDA_SUCCESS or, once the session is over, its
 * sticky error, which every later call returns.
 */
#ifndef GPC_SESSION_H
#define GPC_SESSION_H

#include "base/status.h"
#include "client/connect/welcome.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gp_conn;
struct gpc_session;

/* Returns the session with the first daemon of REMOTE_GPU. Returns NULL before cuInit() has opened
 * the sessions, and in the child of a fork. The session is borrowed. */
struct gpc_session *gpc_session_get(void);
/* Maximum number of sessions in the list. */
#define GPC_SESSIONS_MAX 16
/* Returns the length of the list of sessions, 0 before cuInit(). */
int gpc_session_count(void);
/* Returns a session of the list, borrowed. number: 0 to gpc_session_count() - 1. */
struct gpc_session *gpc_session_at(int number);
/* Returns the number of the session, for gpc_session_at(). */
int gpc_session_number(const struct gpc_session *session);
/* Returns the properties that the daemon reported when the session was opened. They never change
 * and live as long as the session. */
const struct gpc_session_facts *gpc_session_facts(const struct gpc_session *session);

/*
 * Creates a session over these two connections and starts its threads. lane: lane 0. control: the
 * connection to the supervisor; NULL: none. *facts is copied. max_outstanding: the number of
 * requests that may be without a reply at one time; not 0. On success returns 0, and the session in
 * *session_p owns the connections; gpc_session_destroy() frees it. On failure returns -ENOMEM or
 * another negative errno of the start of a thread (-EAGAIN); *session_p is unchanged, no thread of
 * the session is left, and the caller still owns the connections, but may only destroy them.
 */
GP_MUST_CHECK int gpc_session_create(struct gp_conn *lane, struct gp_conn *control,
				     const struct gpc_session_facts *facts,
				     unsigned int max_outstanding, struct gpc_session **session_p);
/* Makes this session the only session of the list, with number 0. NULL empties the list. Frees
 * nothing. Called while no other thread uses the list. */
void gpc_session_set(struct gpc_session *session);
/* Appends a session to the list, with the next number. Called by one thread at a time (cuInit). The
 * list must have fewer than GPC_SESSIONS_MAX sessions. */
void gpc_session_add(struct gpc_session *session);
/* Closes the session: sends the posted calls, notifies the daemon of the end and waits for the
 * session's threads. Waits for at most timeout_ms milliseconds in total, and not for the threads if
 * called in a host function; threads may then still be running. Afterwards calls fail with
 * CUDA_ERROR_DEINITIALIZED or the session's earlier error. The session is not freed. */
void gpc_session_close(struct gpc_session *session, int timeout_ms);
/* Frees a closed session that is not in the list, and its connections. Waits, without limit, until
 * the session's own threads have ended. No other thread may be using it. Accepts NULL. */
void gpc_session_destroy(struct gpc_session *session);
/* Abandons the session in the child of a fork: closes the descriptors without sending anything.
 * Calls then return CUDA_ERROR_NOT_INITIALIZED. The memory is not freed. */
void gpc_session_abandon(struct gpc_session *session);
/* Returns whether gpc_session_abandon() was called. */
bool gpc_session_is_abandoned(const struct gpc_session *session);

/* Returns the daemon's address, for messages. The text lives as long as the session. */
const char *gpc_session_peer(const struct gpc_session *session);

/* Returns CUDA_SUCCESS, or the reason why the session is over: the sticky error of a kernel, the
 * error of the lost connection, CUDA_ERROR_DEINITIALIZED after gpc_session_close(), or
 * CUDA_ERROR_NOT_INITIALIZED in the child of a fork. */
CUresult gpc_session_status(struct gpc_session *session);
/* Ends the session with this sticky error, prints `why` for the user, and wakes all waiting
 * threads; outstanding requests complete with the error. GPC_ERROR_NO_SESSION becomes
 * GPC_ERROR_LOST (client/base/error.h). Has no effect if the session is already over. May run
 * functions of requests (call.h) and callbacks in the calling thread. Called without the session's
 * locks. Files of client/session that know why a connection failed call gpc_session_lost() or
 * gpc_session_fault() (session_internal.h) instead. */
void gpc_session_fail(struct gpc_session *session, CUresult result, const char *why);

/* Returns whether the worker can share memory with this process, that is, whether file descriptors
 * can be passed over lane 0 (GP_CONN_CAP_PASS_FD of transport.h). */
bool gpc_session_shares_memory(const struct gpc_session *session);
/* Returns the oldest file descriptor that the worker passed before the current reply and that was
 * not returned yet; the caller closes it. Returns -ENOENT if none was passed. May be called only by
 * a request's before() function (call.h). */
GP_MUST_CHECK int gpc_session_recv_fd(struct gpc_session *session);

/* Records that the program has pinned host memory. If the session ends with
 * CUDA_ERROR_ILLEGAL_ADDRESS, the message then mentions cuMemHostGetDevicePointer(). */
void gpc_session_note_pinned(struct gpc_session *session);

/*
 * Callbacks for the coherence of replicated host memory (pinned memory with a copy in the worker;
 * client/host/coherence.h). All are set; each gets `arg`.
 *
 *   over()              the session is over; called on any thread, also more than once
 *   before_function()   before a host function of the program, on the thread that runs it
 *   after_function()    after such a function, on the same thread; not called for functions that
 *                       the daemon refused and for those of gpc_host_queue_run()
 *   publish()           the daemon requests a gpHostPublish call with this number, which is not 0;
 *                       called by the thread that reads the connection
 *
 * None is called with a lock of the session held.
 */
struct gpc_session_callbacks {
	void (*over)(void *arg);
	void (*before_function)(void *arg);
	void (*after_function)(void *arg);
	void (*publish)(void *arg, uint32_t number);
	void *arg;
};
/* Sets the callbacks. Called at most once. *callbacks is not copied and must stay valid as long as
 * the session. If the session is already over, over() is called before the function returns. */
void gpc_session_set_callbacks(struct gpc_session *session,
			       const struct gpc_session_callbacks *callbacks);

/* Returns the revision number of the daemon's replies about kernels; a reply that was cached under
 * an older number may be outdated. */
uint64_t gpc_session_revision(const struct gpc_session *session);
/* Increments the revision number. Called by receive.c when a posted call about a kernel has failed
 * or the session's share of a GPU (the multiprocessors that it may use) has changed. */
void gpc_session_revise(struct gpc_session *session);
/* Returns whether gpc_session_set_revision_watch() was called. */
bool gpc_session_watches_revision(const struct gpc_session *session);
/* Records that the daemon was requested to report changes of the session's share of a GPU. Called
 * by gpc_share_watch() (client/module/launch_shape.h). */
void gpc_session_set_revision_watch(struct gpc_session *session);

/* Stores result, the error of a posted call, as the session's deferred error, which the next call
 * that waits returns and clears. If an error is stored already, that error is retained and result
 * is dropped. */
void gpc_session_defer(struct gpc_session *session, CUresult result);

/* Returns whether host functions or waits of streams for values (cuStreamWaitValue32) are
 * outstanding, so that the worker may defer calls until the program acts. */
bool gpc_session_awaits_host(const struct gpc_session *session);
/* Records that a stream waits for an event that another process may record. Called after the wait
 * is posted; also marks work (gpc_session_work_mark()). */
void gpc_session_note_foreign_wait(struct gpc_session *session);
/* Returns whether the program or another process may decide when new work starts, because host
 * functions, waits for values, or a wait for another process come before it. Until the work starts
 * the program may change the memory that it reads. */
bool gpc_session_is_host_gated(const struct gpc_session *session);
/* Returns whether host functions are outstanding. Waits for values do not count. */
bool gpc_session_has_host_functions(const struct gpc_session *session);

/*
 * Approximate work counters, for memory that may be reused only when the GPU is done with it.
 *
 * gpc_session_work_mark() is called after work is posted to a stream; it increments the count of
 * posted work and returns it. A fence (a request to which the daemon replies when all earlier work
 * is done) that is sent after that call comes after the work. When the fence has completed,
 * gpc_session_work_set_done() is called with the count from before the fence; a lower count than
 * before has no effect.
 */
/* Increments and returns the count. */
uint64_t gpc_session_work_mark(struct gpc_session *session);
/* Returns the count of the last work posted; 0: none. */
uint64_t gpc_session_work_posted(struct gpc_session *session);
/* Returns the count up to which all work is known to be done; 0: none. */
uint64_t gpc_session_work_done(struct gpc_session *session);
/* Sets the count up to which all work is done. */
void gpc_session_work_set_done(struct gpc_session *session, uint64_t count);

/*
 * Exact work numbers, with which waits for streams without pending work are avoided. They are
 * independent of the counters above. Each record of the session that gives a stream work has a
 * number, from 1, in the order of the records; it is visible before the call that posts the record
 * returns.
 */
/* Returns the last work number of the session; 0: no work yet. */
uint64_t gpc_session_issued(const struct gpc_session *session);
/* Returns the last work number of the stream with this wire ID or, if that is higher, of a stream
 * that shares its entry in a table of limited size; 0: no work yet. */
uint64_t gpc_session_issued_to(const struct gpc_session *session, uint32_t stream);

/*
 * Returns the number of the last record whose effect the program or another process can see without
 * querying the daemon, or 0. Such effects are: a copy to host memory, a host function, printed
 * text, and, while memory exists that is accessible both to kernels and to the program or another
 * process, any work that may write to it. Work without such an effect may still run after the
 * program was notified of its completion.
 */
uint64_t gpc_session_issued_visible(const struct gpc_session *session);
/* Marks the last record of the session as having an effect that the program can see. Called after a
 * record with such an effect is posted, unless call.c marks it itself: host functions, waits for
 * values and, while visible memory blocks exist, all work except calls that only write device
 * memory. */
void gpc_session_note_visible(struct gpc_session *session);
/* Adds `count` to the number of visible memory blocks, that is, those that are accessible both to
 * kernels and to the program or another process. count is 1 when a block is created, -1 when it is
 * freed. */
void gpc_session_count_visible_blocks(struct gpc_session *session, int count);

/* Raises *number to at least `to`; never lowers it. Lock-free. */
static inline void
gpc_atomic_max(atomic_uint_fast64_t *number, uint64_t to)
{
	uint_fast64_t before = atomic_load(number);

	while (before < to && !atomic_compare_exchange_weak(number, &before, to))
		continue;
}

/* Returns the result of a wait that needs no round trip: the reason why the session is over, else
 * the deferred error, which is cleared, else CUDA_SUCCESS. */
CUresult gpc_session_result(struct gpc_session *session);
/* Returns and clears the deferred error. Returns CUDA_SUCCESS if there is none. */
CUresult gpc_session_pop_deferred(struct gpc_session *session);

#endif /* GPC_SESSION_H */
