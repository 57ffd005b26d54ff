/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session in a worker: the state of one client process, from its opening by the supervisor until
 * it is closed.
 *
 * Each session has two threads. The executor receives the client's records (encoded calls) and
 * carries them out in order. The responder (responder.h) watches the session's work on the GPU and
 * sends the replies that depend on it. Additional threads send and receive the bytes of data lanes
 * (copy/lane.h), and may pass launches on several streams to the driver (issue.h).
 *
 * A hook is the function gpd_<call>() that implements one call. Hooks run on the executor, one at a
 * time per session, and return a CUresult. GPD_LATER means that the hook has sent the reply or
 * arranged for it to be sent.
 *
 * Ownership: gpd_session_close() or gpd_session_discard() (executor.h) frees the session after
 * removing it from the list of sessions (sessions.h) and after its other threads have ended.
 * Threads: executor only, unless noted. Functions marked "any thread" may be called by a thread of
 * the session, or by another thread that holds gpd_sessions.lock and has found the session in the
 * list; in both cases the session is not freed meanwhile.
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
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Result of a hook whose reply is sent separately; never a result of the driver. */
#define GPD_LATER ((CUresult)0x7fff0000)

struct gp_conn;
struct gpd_memory;             /* memory.h: device memory and its mappings */
struct gpd_host_memory;        /* host_space.h: client memory that kernels can access */
struct gpd_print;              /* print.h: output of device printf */
struct gpd_wait_queue;         /* responder.h: waits and the responder's thread */
struct gpd_deferred_entry;     /* deferred_queue.h */
struct gpd_stream_session;     /* stream.h */
struct gpd_array_session;      /* array.h */
struct gpd_copy_session;       /* copy.h */
struct gpd_module_session;     /* image.h */
struct gpd_graph_session;      /* graph_exec.h */
struct gpd_stream_ops_session; /* deferred_queue.h */
struct gpd_stream;
struct gpd_trace; /* gpu_trace.h: timeline of the session's GPU work */
struct gpd_waker;
struct gpd_asserting_code; /* assertion.h */

/* Progress of the session's GPU work, used to attribute a fault to a session. Any thread may read
 * it. */
struct gpd_progress {
	uint64_t work; /* number of operations passed to streams; written by the executor */
	/* Number of the latest operation known to be done; written by the responder. */
	_Atomic uint64_t done_work;
	/* Name of the last launched kernel; NULL: none. The name belongs to the kernel's image.
	 * Before the image is freed, this is set to NULL with gpd_sessions.lock held; threads other
	 * than the executor read the name with that lock held. */
	const char *kernel;
	/* The members below are protected by gpd_sessions.lock. */
	struct gpd_asserting_code *asserting; /* images that may fail an assertion (assertion.h) */
	/* Set when the GPU contexts are lost. suspect: its kernel may be the cause. asserted: its
	 * code contains the assertion whose text is being attributed. */
	bool suspect, asserted;
};

/* The record that the executor is carrying out. Executor only. */
struct gpd_call_state {
	/* Request ID for the reply; 0: the client expects no reply (a posted call). */
	uint32_t request;
	uint16_t call;      /* number of the call */
	uint32_t context;   /* wire ID of the context on which the call is issued */
	uint64_t bulk_left; /* bytes of the record's data that are left to read */
	/* Data of a deferred record that is left to read; NULL: received from the connection. */
	const uint8_t *bulk_read;
	/* Entry of the record in the deferred queue (deferred_queue.h), removed after the call;
	 * NULL: none. A hook that will remove the entry itself, later, sets this to NULL. */
	struct gpd_deferred_entry *entry;
};

/* State of a session. */
struct gpd_session {
	uint64_t id;                     /* from the supervisor; unique while the supervisor runs */
	struct gpd_session *next;        /* next session in the list; gpd_sessions.lock */
	struct gp_conn *conn;            /* lane 0, owned; NULL in GPD_SESSION_OPENED */
	struct gpd_handle_table handles; /* handle.h: objects of the client, by ID */
	struct gpd_account account;      /* schedule/account.h: resources charged to the session */
	struct gpd_host_memory *host_memory; /* host/host_space.h; NULL: none */
	struct gpd_print *print; /* stream/print.h; NULL: no kernel that prints was launched */
	struct gpd_trace *trace; /* trace/gpu_trace.h; NULL: the client has requested no trace */
	struct gpd_wait_queue *waits; /* responder.h */

	/* Components, one for each folder above session/. session_parts.h creates and destroys
	 * them; each folder defines the contents of its own. */
	struct gpd_stream_session *streams;
	struct gpd_memory *memory;
	struct gpd_array_session *arrays;
	struct gpd_copy_session *copies;
	struct gpd_module_session *modules;
	struct gpd_graph_session *graphs;
	struct gpd_stream_ops_session *stream_ops;

	/* the window: address range of its device memory; in bytes */
	uint64_t window_base, window_size;
	char peer[128]; /* "host pid program", for the log */
	/* How the client was authenticated, such as "token abcdefghij", for the log. */
	char authenticated_by[200];
	char notice[320];        /* line for the client, sent when the session starts; "": none */
	uint8_t ticket[32];      /* secret that authenticates lanes over RDMA */
	unsigned int lanes_max;  /* lane numbers are smaller */
	uint64_t features;       /* bits of enum gp_feature that both ends support */
	uint32_t compression;    /* enum gp_pack_mode of data that the worker sends on data lanes */
	uint32_t lanes_accepted; /* bit n: lane n was accepted over RDMA; gpd_sessions.lock */

	struct gpd_issue issue;   /* launch threads; account.issue points to it */
	struct gpd_shares shares; /* SMs of each device that the session's streams may use */

	struct gpd_call_state current; /* the record being carried out; executor only */
	struct gpd_progress progress;
	struct gpd_session_send send; /* session_send.h: state of the messages to the client */
	_Atomic int state; /* enum gpd_session_state; changed by gpd_session_set_state() */
	/* CUresult of every call after the GPU contexts were lost; 0: they are not lost. */
	_Atomic int sticky;
	_Atomic bool violated;       /* the client violated the protocol or a limit */
	_Atomic bool client_is_gone; /* set by the main thread when the supervisor reports it */
	_Atomic bool closing;        /* GPD_SESSION_ENDING was reached: waits must be abandoned */
	/* gp_now_ms() when the executor began to wait in gpd_session_quiesce_begin(); 0: not
	 * waiting. worker_retirement.h checks it for hangs. */
	_Atomic int64_t loading_since_ms;
	bool busy_reported; /* orphaned work was reported to the supervisor; worker_retirement.h */
	pthread_mutex_t wakers_lock; /* protects the list of wakers */
	struct gpd_waker *wakers;    /* wakers_lock */
	pthread_mutex_t reason_lock; /* protects `reason` */
	char reason[256]; /* why the session ends, for the log; "": no reason yet; reason_lock */
};

/* Returns whether the session is in this state now. Any thread. */
static inline bool
gpd_session_is(const struct gpd_session *session, enum gpd_session_state state)
{
	return atomic_load(&session->state) == (int)state;
}

/* Reads the next size bytes of the data that follows the current call's record (BULK_IN) into dst,
 * or discards them if dst is NULL. Blocks until they have arrived, and as the tenant's bandwidth
 * limit requires. May be called repeatedly for up to current.bulk_left bytes in total. Returns 0;
 * -EPROTO: size exceeds bulk_left, which ends the session, or the connection has failed with a
 * GP_E_* error, such as its end; another negative errno of the connection. After an error the
 * contents of dst are undefined. */
int gpd_session_recv_bulk(struct gpd_session *session, void *dst, size_t size);

/* Handles a sticky error of the driver, after which the GPU contexts are lost. The first call in
 * the process sets gpd_devices.lost, sets `sticky` of all usable sessions (sessions.h), moves those
 * that are starting or serving to GPD_SESSION_LOST, wakes their waits, notifies the supervisor and
 * starts a thread that ends the process after at most about 1.3 s; later calls do nothing. result:
 * the sticky error. session: the one whose call or wait has detected it, for the supervisor. Does
 * not wait for the sessions. Any thread that does not hold gpd_sessions.lock. */
void gpd_session_poison(struct gpd_session *session, CUresult result);

/* Ends the session after its current call because the client violated the protocol or a limit. The
 * formatted text becomes the reason in the log unless there is one already. Does not wait, does not
 * wake other waits and does not close the connection. Any thread. */
void gpd_session_violation(struct gpd_session *session, const char *format, ...) GP_PRINTF(2, 3);

/* Logs the first 899 bytes of the formatted text after "session ID (peer): ". The line is dropped
 * if the session's log budget (log_budget.h) is exhausted. Any thread. */
void gpd_session_log(const struct gpd_session *session, enum gpd_log_level level,
		     const char *format, ...) GP_PRINTF(3, 4);

/* Adds an object to the handle table under the ID chosen by the client. Returns CUDA_SUCCESS;
 * CUDA_ERROR_OUT_OF_MEMORY, also at the session's limit; or CUDA_ERROR_INVALID_HANDLE if the ID is
 * 0 or in use, which ends the session. On failure the object is not in the table. Undone by
 * gpd_handle_remove(). */
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

/* Allocates an object of size bytes, whose first member is its handle, sets it to zero and adds it
 * to the handle table as gpd_session_add_handle() does. Returns the object, which the caller owns
 * and frees with free() after gpd_handle_remove(); NULL if that failed. *result_p is the result in
 * both cases. */
static inline void *
gpd_session_create_object(struct gpd_session *session, enum gpd_kind kind, uint32_t id, size_t size,
			  CUresult *result_p)
{
	struct gpd_handle *handle = calloc(1, size);

	*result_p = handle ? gpd_session_add_handle(session, kind, id, handle)
			   : CUDA_ERROR_OUT_OF_MEMORY;
	if (*result_p == CUDA_SUCCESS)
		return handle;
	free(handle);
	return NULL;
}

/* Counts an operation that the executor is about to pass to a stream, and returns its number. The
 * number of the first operation is 1. */
static inline uint64_t
gpd_session_count_work(struct gpd_session *session)
{
	uint64_t work = session->progress.work + 1;

	__atomic_store_n(&session->progress.work, work, __ATOMIC_RELAXED);
	return work;
}

/* Sets the reason for the session's end, for the log, unless one is set already. The text is
 * copied; its first 255 bytes are used. Any thread. */
void gpd_session_set_reason(struct gpd_session *session, const char *reason);
/* Ends the session: sets the reason unless there is one, shuts the connection down and wakes all
 * waits. Does not wait for the end. The session must have a connection (not GPD_SESSION_OPENED).
 * Any thread that does not hold wakers_lock. */
void gpd_session_stop(struct gpd_session *session, const char *reason);
/* Ends a session whose connection is already closed, without setting a reason: the executor sets
 * the reason, from the error of the connection. Wakes all waits. Any thread that does not hold
 * wakers_lock. */
void gpd_session_stop_disconnected(struct gpd_session *session);
/* Returns whether the client may share memory pages with the worker and has not closed lane 0. Any
 * thread. */
bool gpd_session_client_has_shared_memory(const struct gpd_session *session);

/* A callback that wakes a wait of the session. gpd_session_wake() calls it when the session ends,
 * its GPU contexts are lost or the client must return cached memory. It runs on any thread with
 * wakers_lock held, so it must not add or remove wakers. */
struct gpd_waker {
	struct gpd_waker *next; /* next waker of the session; wakers_lock */
	void (*wake)(struct gpd_session *session);
};
/* Adds a waker, which the caller owns and which must stay valid until it is removed. Any thread. */
void gpd_session_add_waker(struct gpd_session *session, struct gpd_waker *waker);
/* Removes the waker. After the return its callback is neither running nor called again, so the
 * caller may free the waker. Any thread that does not hold wakers_lock. */
void gpd_session_remove_waker(struct gpd_session *session, struct gpd_waker *waker);
/* Calls all wakers. Any thread that does not hold wakers_lock. */
void gpd_session_wake(struct gpd_session *session);
/*
 * Begins a driver call that blocks until all work in the device's primary context, which must be
 * current, is done. Blocks, without a fixed limit, until the device is nearly idle
 * (device/quiesce.h). Returns true: the call may be made. Returns false if the session is closing
 * or the GPU is lost: the call must not be made. gpd_session_quiesce_end() must follow in both
 * cases.
 */
bool gpd_session_quiesce_begin(struct gpd_session *session, int device);
/* Ends what gpd_session_quiesce_begin() has begun, after the call: other sessions may launch
 * again. */
void gpd_session_quiesce_end(struct gpd_session *session, int device);

#endif /* GPD_SESSION_H */
