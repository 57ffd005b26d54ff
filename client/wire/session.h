/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session: this process on one daemon.  Made by cuInit, one for each daemon that REMOTE_GPU
 * names, kept until exit.
 *
 * One ordered stream of calls goes out through the lane: callers append records to a ring under the
 * send lock; a sender thread writes whatever has gathered; a caller that waits writes at once and
 * reads the replies itself (one reader at a time).  After a fork the child has no session.
 */
#ifndef GPC_SESSION_H
#define GPC_SESSION_H

#include "base/status.h"
#include "client/connect/facts.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct gp_conn;
struct gpc_session;

/* The session with the first daemon of REMOTE_GPU; NULL before cuInit has succeeded. */
struct gpc_session *gpc_session_get(void);
/* All of them, by number. */
#define GPC_SESSIONS_MAX 16
int gpc_session_count(void);
struct gpc_session *gpc_session_at(int number);
int gpc_session_number(const struct gpc_session *session);
const struct gpc_session_facts *gpc_session_facts(const struct gpc_session *session);

/*
 * A session over these two connections, which it owns from now on (control may be NULL), and its
 * threads.  -ENOMEM, -EAGAIN: nothing was taken.
 */
GP_MUST_CHECK int gpc_session_create(struct gp_conn *lane, struct gp_conn *control,
				     const struct gpc_session_facts *facts,
				     unsigned int max_outstanding, struct gpc_session **session_p);
/* Makes it the only one; NULL: there is none. */
void gpc_session_set(struct gpc_session *session);
/* And another one, which gets the next number.  By the thread of cuInit. */
void gpc_session_add(struct gpc_session *session);
/* Sends what was posted and says goodbye to the daemon, within timeout_ms; calls fail from now on.
 */
void gpc_session_close(struct gpc_session *session, int timeout_ms);
/* After the close, when no other thread of the program is inside the session; waits for its own.
 * Accepts NULL. */
void gpc_session_destroy(struct gpc_session *session);
/* In the child of a fork: closes descriptors, sends nothing.  The memory is lost. */
void gpc_session_abandon(struct gpc_session *session);
bool gpc_session_is_abandoned(const struct gpc_session *session);

/* The daemon's address, for messages. */
const char *gpc_session_peer(const struct gpc_session *session);

/* CUDA_SUCCESS, or why the session is over: a kernel's sticky error or the lost connection. */
CUresult gpc_session_status(struct gpc_session *session);
/* Ends the session with this sticky error; the first one stays. */
void gpc_session_fail(struct gpc_session *session, CUresult result, const char *why);

/* Whether the daemon can give this process memory that it has, too: descriptors come over the lane.
 */
bool gpc_session_shares_memory(const struct gpc_session *session);
/* From a request's before() alone: the descriptor that was passed in front of its answer, now the
 * caller's; -ENOENT: none was. */
GP_MUST_CHECK int gpc_session_recv_fd(struct gpc_session *session);

/* The program has pinned host memory: after an illegal address it is told what that takes. */
void gpc_session_note_pinned(struct gpc_session *session);

/*
 * Notifications for the coherence of replicated host memory; set once.  over(): the session is
 * over; any thread.  before_function(), after_function(): around a host function of the program, on
 * the thread that runs it.  publish(): the daemon wants gpHostPublish of this number; the reader of
 * the connection.  None is called with a lock held.
 */
struct gpc_session_hooks {
	void (*over)(void *arg);
	void (*before_function)(void *arg);
	void (*after_function)(void *arg);
	void (*publish)(void *arg, uint32_t number);
	void *arg;
};
void gpc_session_set_hooks(struct gpc_session *session, const struct gpc_session_hooks *hooks);

/* Grows when an answer of the daemon about kernels may not be true any more: one of them was
 * refused after it had been posted, or the session's share of a GPU is another. */
uint64_t gpc_session_revision(const struct gpc_session *session);
void gpc_session_revise(struct gpc_session *session);
/* Whether the daemon was asked to tell of that. */
bool gpc_session_watches_revision(const struct gpc_session *session);
void gpc_session_set_revision_watch(struct gpc_session *session);

/* A posted call failed; returned by, and forgotten after, the next call that waits. */
void gpc_session_defer(struct gpc_session *session, CUresult result);

/* Whether there are host functions, or words, that the daemon may be waiting for. */
bool gpc_session_awaits_host(const struct gpc_session *session);
/* A stream waits for an event that another process may record. */
void gpc_session_note_foreign_wait(struct gpc_session *session);
/* Whether the host may decide when new work starts: host functions, words, or such a wait are
 * before it.  The program may write the memory that the work reads until then. */
bool gpc_session_is_host_gated(const struct gpc_session *session);
/* Whether host functions are not done, apart from words. */
bool gpc_session_has_host_functions(const struct gpc_session *session);

/*
 * Work bookkeeping, for memory that may only be used again when the GPU is done with it: mark
 * behind the posting of work to a stream, so that a fence whose sender saw the mark is behind the
 * work; done(n) once a fence posted after mark n has been answered.
 */
uint64_t
gpc_session_work_mark(struct gpc_session *session); /* counts work; returns the new count */
uint64_t gpc_session_work_posted(struct gpc_session *session); /* count of the last work posted */
uint64_t gpc_session_work_done(struct gpc_session *session); /* all work up to this count is done */
void gpc_session_work_set_done(struct gpc_session *session, uint64_t count);

/*
 * The same, exact, for waits that have nothing to wait for: numbers of the records that gave a
 * stream work, the last one of all and that of a stream (or of another one that shares its place).
 * A record's number is seen before the call that posts it returns.
 */
uint64_t gpc_session_issued(const struct gpc_session *session);
uint64_t gpc_session_issued_to(const struct gpc_session *session, uint32_t stream);

/*
 * The last of these records whose work may have an effect that the program or another process can
 * see without asking the daemon: a copy to host memory, a host function, printed text, or any work
 * while memory exists that kernels and the program or another process reach (a witness).
 * Work without such an effect may be done later than the program has been told.
 */
uint64_t gpc_session_issued_visible(const struct gpc_session *session);
/* What was posted last by this thread has such an effect. */
void gpc_session_note_visible(struct gpc_session *session);
/* Such memory comes, and goes (count is -1). */
void gpc_session_count_visible_blocks(struct gpc_session *session, int count);

/* Such numbers only grow, as work is done: it is at least this from now on. */
static inline void
gpc_atomic_max(atomic_uint_fast64_t *number, uint64_t to)
{
	uint_fast64_t before = atomic_load(number);

	while (before < to && !atomic_compare_exchange_weak(number, &before, to))
		continue;
}

/* What a wait for nothing returns: why the session is over, the deferred error, which is forgotten,
 * or CUDA_SUCCESS. */
CUresult gpc_session_result(struct gpc_session *session);
/* CUDA_SUCCESS, or the deferred error, which is forgotten. */
CUresult gpc_session_pop_deferred(struct gpc_session *session);

#endif /* GPC_SESSION_H */
