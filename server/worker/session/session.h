/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session in a worker: one client process and all that belongs to it.
 *
 * Two threads: the *executor* receives records and carries them out in order (every gpd_<call>()
 * hook runs there, one at a time per session); the *responder* (responder.h) watches the GPU for
 * what the session waits for and sends what comes later.  Launches on several streams may go to the
 * driver from further threads (issue.h).  Everything below is for the executor unless it says
 * otherwise.  Hooks return the driver's CUresult; GPD_LATER means that the hook arranged
 * for the reply itself.
 *
 * Its executor frees it, or the main thread before it has one, when it is out of the list of
 * sessions.  Its other threads have ended by then; whoever else looks at it holds the list's lock
 * (sessions.h).
 */
#ifndef GPD_SESSION_H
#define GPD_SESSION_H

#include "base/status.h"
#include "protocol/enc.h"
#include "server/common/base/log.h"
#include "server/worker/device/partition.h"
#include "server/worker/issue/issue.h"
#include "server/worker/schedule/account.h"
#include "server/worker/session/handle.h"
#include "server/worker/session/session_send.h"
#include "server/worker/session/session_state.h"

#include <cuda.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GPD_LATER ((CUresult)0x7fff0000)

struct gp_conn;
struct gpd_memory;      /* memory.h: the window and what is mapped in it */
struct gpd_host_memory; /* host_space.h: the machine's memory that its kernels reach */
struct gpd_print;       /* print.h: what its kernels have printed */
struct gpd_wait_queue;
struct gpd_deferred_entry;
struct gpd_stream_session;     /* stream.h */
struct gpd_array_session;      /* array.h */
struct gpd_copy_session;       /* copy.h */
struct gpd_module_session;     /* image.h */
struct gpd_graph_session;      /* graph_exec.h */
struct gpd_stream_ops_session; /* deferred_queue.h */
struct gpd_stream;
struct gpd_trace; /* gpu_trace.h: when its work ran */
struct gpd_waker;

/* How far the work of a session is, for the log of a fault. */
struct gpd_progress {
	uint64_t work; /* operations given to streams; written by the executor, read by any */
	_Atomic uint64_t done_work; /* the highest of them that is known to be done */
	const char *kernel; /* of the last launch; image.c clears it under the worker's lock */
};

/* The record that the executor is carrying out. */
struct gpd_call_state {
	uint32_t request; /* 0: posted */
	uint16_t call;
	uint32_t context;
	uint64_t bulk_left;
	const uint8_t *bulk_read; /* bytes of a deferred record; NULL: they are to be received */
	struct gpd_deferred_entry *entry; /* that record; a hook that keeps it sets this to NULL */
};

struct gpd_session {
	uint64_t id;
	struct gpd_session *next; /* in sessions.h, under its lock */
	struct gp_conn *conn;     /* NULL while OPENED */
	struct gpd_handle_table handles;
	struct gpd_account account;
	struct gpd_host_memory *host_memory; /* NULL: the client has asked for none */
	struct gpd_print *print;
	struct gpd_trace *trace; /* NULL: its client does not ask */
	struct gpd_wait_queue *waits;

	/* Parts, which their folders own (session_parts.h). */
	struct gpd_stream_session *streams;
	struct gpd_memory *memory;
	struct gpd_array_session *arrays;
	struct gpd_copy_session *copies;
	struct gpd_module_session *modules;
	struct gpd_graph_session *graphs;
	struct gpd_stream_ops_session *stream_ops;

	uint64_t window_base, window_size;
	char peer[128];          /* "host pid program", for the log */
	char let_in_by[200];     /* "token abcdefghij", for the log */
	uint8_t ticket[32];      /* of lanes that come over RDMA */
	unsigned int lanes_max;  /* numbers below it */
	uint64_t features;       /* enum gp_feature: that both ends have */
	uint32_t compression;    /* enum gp_pack_mode: of what is sent on data lanes */
	uint32_t lanes_accepted; /* bit for each that was let in; under the worker's lock */

	struct gpd_issue issue;   /* launches by threads of their own; account.issue, too */
	struct gpd_shares shares; /* where its streams run */

	struct gpd_call_state current;
	struct gpd_progress progress;
	struct gpd_session_send send;
	_Atomic int state;                /* enum gpd_session_state */
	_Atomic int sticky;               /* CUresult that ended the session */
	_Atomic bool violated;            /* the client is at fault */
	_Atomic bool client_is_gone;      /* the supervisor knows that it is */
	_Atomic bool closing;             /* ENDING or later, for who waits */
	_Atomic int64_t loading_since_ms; /* worker_retirement.h; 0: not in a call that may wait for
					     others */
	bool busy_reported;               /* worker_retirement.h */
	pthread_mutex_t wakers_lock;
	struct gpd_waker *wakers;
	pthread_mutex_t reason_lock;
	char reason[256]; /* why the session ends; the first one stays */
};

/* Any thread that keeps the session from being freed. */
static inline bool
gpd_session_is(const struct gpd_session *session, enum gpd_session_state state)
{
	return atomic_load(&session->state) == (int)state;
}

/* Bulk tail of the current call (BULK_IN), bulk_left bytes: reading it in pieces (dst NULL:
 * discard). */
int gpd_session_recv_bulk(struct gpd_session *session, void *dst, size_t size);

/* The driver answered with a sticky error: tells all sessions and ends the process.  Any thread. */
void gpd_session_poison(struct gpd_session *session, CUresult result);

/* The client broke the protocol or a limit: the session ends after this call, with this reason
 * logged. */
void gpd_session_violation(struct gpd_session *session, const char *format, ...) GP_PRINTF(2, 3);

/* A line of the log about the session, "session ID (peer): " and what is said; as many as the log
 * has room for (log_budget.h). */
void gpd_session_log(const struct gpd_session *session, enum gpd_log_level level,
		     const char *format, ...) GP_PRINTF(3, 4);

/* Enters an object under the client's name for it; a name in use, or 0, ends the session. */
static inline CUresult
gpd_session_add_handle(struct gpd_session *session, enum gpd_kind kind, uint32_t id,
		       struct gpd_handle *handle)
{
	int r = gpd_handle_add(&session->handles, kind, id, handle);

	if (r == 0)
		return CUDA_SUCCESS;
	if (r == -ENOMEM)
		return CUDA_ERROR_OUT_OF_MEMORY;
	gpd_session_violation(session, "call 0x%04x gives the name %#x, which is %s",
			      session->current.call, (unsigned int)id,
			      r == -EEXIST ? "in use" : "none");
	return CUDA_ERROR_INVALID_HANDLE;
}

/* The executor gives one more operation to a stream: its number, which the log may look at. */
static inline uint64_t
gpd_session_count_work(struct gpd_session *session)
{
	uint64_t work = session->progress.work + 1;

	__atomic_store_n(&session->progress.work, work, __ATOMIC_RELAXED);
	return work;
}

/* Why the session ends, for the log: the first one counts.  Any thread. */
void gpd_session_set_reason(struct gpd_session *session, const char *reason);
/* Makes the session end, with this reason in the log; any thread that keeps it from being freed. */
void gpd_session_stop(struct gpd_session *session, const char *reason);
/* The same for one whose connection is over: the reason is what its receiver hears. */
void gpd_session_stop_disconnected(struct gpd_session *session);
/* Whether its client has memory of the worker's and has not ended lane 0; any thread, as above. */
bool gpd_session_client_has_shared_memory(const struct gpd_session *session);

/* Who may sleep for a session: called when it is to end, or its context is lost, by any thread,
 * under wakers_lock. */
struct gpd_waker {
	struct gpd_waker *next; /* the session's list */
	void (*wake)(struct gpd_session *session);
};
void gpd_session_add_waker(struct gpd_session *session, struct gpd_waker *waker);
/* After this it is not called any more. */
void gpd_session_remove_waker(struct gpd_session *session, struct gpd_waker *waker);
void gpd_session_wake(struct gpd_session *session);
/*
 * Around calls of the driver that wait for everything in the context, at a quiet moment (idle.h)
 * of the device, which is current; meanwhile the session is seen to wait (worker_retirement.h).
 * false: the session is closing, and the call must not be made.  Either way
 * gpd_session_quiesce_end() follows.
 */
bool gpd_session_quiesce_begin(struct gpd_session *session, int device);
void gpd_session_quiesce_end(struct gpd_session *session, int device);

#endif /* GPD_SESSION_H */
