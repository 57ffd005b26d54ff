/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Session: this process's connection to one daemon.
 *
 * cuInit opens one session for each daemon that REMOTE_GPU names; it exists until the process
 * exits. A session sends one ordered stream of calls on lane 0: callers append records to a ring
 * under the send lock, and a sender thread sends the records that have gathered. A caller that
 * waits for a reply sends at once and reads the replies itself (one reader at a time).
 * Ownership: sessions are owned by client/entry/init.c and are never destroyed while calls may be
 * under way. After a fork the child has no session.
 * Threads: any, unless noted otherwise.
 * Errors: functions that return CUresult report the session's sticky error.
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

/* Returns the session with the first daemon of REMOTE_GPU; NULL before the sessions are open. */
struct gpc_session *gpc_session_get(void);
/* Access to all sessions by their number, 0 to gpc_session_count() - 1. */
#define GPC_SESSIONS_MAX 16
int gpc_session_count(void);
struct gpc_session *gpc_session_at(int number);
int gpc_session_number(const struct gpc_session *session);
const struct gpc_session_facts *gpc_session_facts(const struct gpc_session *session);

/*
 * Creates a session over these two connections and starts its threads; control may be NULL. On
 * success the session owns the connections. On failure (-ENOMEM, -EAGAIN) the caller still owns
 * them.
 */
GP_MUST_CHECK int gpc_session_create(struct gp_conn *lane, struct gp_conn *control,
				     const struct gpc_session_facts *facts,
				     unsigned int max_outstanding, struct gpc_session **session_p);
/* Makes this session the only one in the list; NULL empties the list. */
void gpc_session_set(struct gpc_session *session);
/* Appends a session to the list, with the next number. Called by one thread at a time (cuInit). */
void gpc_session_add(struct gpc_session *session);
/* Sends the posted calls and says goodbye to the daemon, within timeout_ms; afterwards calls fail
 * with CUDA_ERROR_DEINITIALIZED or the session's earlier error. */
void gpc_session_close(struct gpc_session *session, int timeout_ms);
/* Frees a closed session after waiting for the session's own threads. No other thread may be using
 * it. Accepts NULL. */
void gpc_session_destroy(struct gpc_session *session);
/* In the child of a fork: closes the descriptors without sending anything. The memory is leaked. */
void gpc_session_abandon(struct gpc_session *session);
bool gpc_session_is_abandoned(const struct gpc_session *session);

/* Returns the daemon's address, for messages. */
const char *gpc_session_peer(const struct gpc_session *session);

/* Returns CUDA_SUCCESS or the reason why the session is over: a kernel's sticky error or the lost
 * connection. */
CUresult gpc_session_status(struct gpc_session *session);
/* Ends the session with this sticky error; has no effect if it is already over. */
void gpc_session_fail(struct gpc_session *session, CUresult result, const char *why);

/* Returns whether the daemon can share memory with this process: file descriptors can be passed
 * over the lane. */
bool gpc_session_shares_memory(const struct gpc_session *session);
/* Returns the file descriptor that was passed before the current reply; the caller owns it.
 * -ENOENT: none was passed. May be called only by a request's before() function. */
GP_MUST_CHECK int gpc_session_recv_fd(struct gpc_session *session);

/* Records that the program has pinned host memory; the message about an illegal address then
 * mentions cuMemHostGetDevicePointer(). */
void gpc_session_note_pinned(struct gpc_session *session);

/*
 * Callbacks for the coherence of replicated host memory; set once and never cleared.
 *
 *   over()              the session is over; called on any thread
 *   before_function(),
 *   after_function()    around a host function of the program, on the thread that runs it
 *   publish()           the daemon requests gpHostPublish with this number; called by the reader of
 *                       the connection
 *
 * None is called with a lock held. The struct must live as long as the session.
 */
struct gpc_session_hooks {
	void (*over)(void *arg);
	void (*before_function)(void *arg);
	void (*after_function)(void *arg);
	void (*publish)(void *arg, uint32_t number);
	void *arg;
};
void gpc_session_set_hooks(struct gpc_session *session, const struct gpc_session_hooks *hooks);

/* Revision of the daemon's replies about kernels. It increases when a cached reply may be outdated:
 * a posted kernel call failed, or the session's share of a GPU has changed. */
uint64_t gpc_session_revision(const struct gpc_session *session);
void gpc_session_revise(struct gpc_session *session);
/* Whether the daemon was requested to report such changes. */
bool gpc_session_watches_revision(const struct gpc_session *session);
void gpc_session_set_revision_watch(struct gpc_session *session);

/* Stores the error of a posted call; the next call that waits returns and clears it. The first
 * error is retained until then. */
void gpc_session_defer(struct gpc_session *session, CUresult result);

/* Returns whether there are outstanding host functions or stream waits for values that the daemon
 * may be waiting for. */
bool gpc_session_awaits_host(const struct gpc_session *session);
/* Records that a stream waits for an event that another process may record. */
void gpc_session_note_foreign_wait(struct gpc_session *session);
/* Returns whether the host may decide when new work starts: host functions, waits for values, or a
 * wait for another process come before it. Until the work starts the program may change the memory
 * that it reads. */
bool gpc_session_is_host_gated(const struct gpc_session *session);
/* Returns whether host functions are outstanding, not counting waits for values. */
bool gpc_session_has_host_functions(const struct gpc_session *session);

/*
 * Approximate work counters, for memory that may be reused only when the GPU is done with it.
 *
 * gpc_session_work_mark() is called after work is posted to a stream. A fence that is sent after
 * that mark comes after the work; when the fence has completed, gpc_session_work_set_done() is
 * called with the mark.
 */
uint64_t
gpc_session_work_mark(struct gpc_session *session); /* counts work; returns the new count */
uint64_t gpc_session_work_posted(
	struct gpc_session *session); /* returns the count of the last work posted */
uint64_t gpc_session_work_done(
	struct gpc_session *session); /* returns the count up to which all work is done */
void gpc_session_work_set_done(struct gpc_session *session, uint64_t count);

/*
 * Exact work numbers, by which waits without pending work are avoided. Each record that gives a
 * stream work has a number; the functions return the last one of the session and of a stream (or of
 * another stream that shares its slot). The number is visible before the call that posts the record
 * returns.
 */
uint64_t gpc_session_issued(const struct gpc_session *session);
uint64_t gpc_session_issued_to(const struct gpc_session *session, uint32_t stream);

/*
 * Returns the number of the last record whose effect the program or another process can see without
 * querying the daemon: a copy to host memory, a host function, printed text, or any work while
 * memory exists that is accessible both to kernels and to the program or another process. Work
 * without such an effect may complete later than the program was notified.
 */
uint64_t gpc_session_issued_visible(const struct gpc_session *session);
/* Marks the last record posted by this thread as having such an effect. */
void gpc_session_note_visible(struct gpc_session *session);
/* Counts blocks of such memory; count is -1 when a block is freed. */
void gpc_session_count_visible_blocks(struct gpc_session *session, int count);

/* Raises an atomic number to at least `to`. Such numbers never decrease. */
static inline void
gpc_atomic_max(atomic_uint_fast64_t *number, uint64_t to)
{
	uint_fast64_t before = atomic_load(number);

	while (before < to && !atomic_compare_exchange_weak(number, &before, to))
		continue;
}

/* Returns the result of a wait that needs no round trip: the reason why the session is over, or the
 * deferred error, which is cleared, or CUDA_SUCCESS. */
CUresult gpc_session_result(struct gpc_session *session);
/* Returns and clears the deferred error; CUDA_SUCCESS if there is none. */
CUresult gpc_session_pop_deferred(struct gpc_session *session);

#endif /* GPC_SESSION_H */
