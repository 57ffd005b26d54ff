/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remote calls: encodes, posts and starts calls to the daemon. Every request of a CUDA function to
 * the daemon uses this interface.
 *
 * Generated code (gpc_calls.h) offers for each wire call X of codegen/api:
 *
 *   CUresult gpc_post_X(context, &args[, bulk, bulk_count])                 POST calls: no reply
 *   CUresult gpc_wait_X(context, &args, &reply[, bulk, bulk_count][, &raw]) WAIT calls: a reply
 *   CUresult gpc_start_X(context, &args, request[, bulk, bulk_count])       WAIT calls: no wait
 *
 * with struct gp_args_X and gp_reply_X of protocol's gp_calls.h (without the reply argument if the
 * call returns no fields). context: struct gpc_context *; NULL: first session, no context. bulk:
 * data that follows the record (the encoded call). args and bulk may be reused when the function
 * returns. raw: void *; only if the reply has byte fields, which then point into the memory at raw.
 * The caller frees raw with free(), also after an error (NULL: nothing to free). The order of the
 * calls is the order on the wire.
 *
 * gpc_post_X() and gpc_start_X() block only while the ring buffer or the daemon's deferred queue is
 * full, max_outstanding requests of the session have no reply, or bulk is being sent; gpc_wait_X()
 * also blocks until the reply has arrived. The fields of *reply are defined only after
 * CUDA_SUCCESS.
 * Threads: any thread may call; the thread that reads the connection must not wait for a reply.
 * Errors: a CUresult other than CUDA_SUCCESS is the daemon's result (gpc_wait_X), the session's
 * sticky error, an earlier posted call's error (gpc_wait_X, but not if X creates an object, is a
 * CUDA call that destroys one, or has OWN_RESULT, codegen/api/vocabulary.h),
 * CUDA_ERROR_NOT_INITIALIZED without a session, CUDA_ERROR_NOT_SUPPORTED if the daemon does not
 * know the call, CUDA_ERROR_INVALID_VALUE if the call or its bulk is too large, CUDA_ERROR_UNKNOWN
 * if the fields could not be encoded, or CUDA_ERROR_OUT_OF_MEMORY. A call that could not be posted
 * or started has no effect, unless the session ended while its bulk was being sent.
 */
#ifndef GPC_CALL_H
#define GPC_CALL_H

#include "client/session/session.h"
#include "protocol/enc.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

struct gpc_request;

/* The session and the wire context ID that a call is issued on; a member of struct gpc_context. The
 * session is borrowed. */
struct gpc_scope {
	struct gpc_session *session;
	uint32_t context; /* wire context ID; accessed with __atomic functions; 0: the context does
			     not exist in the daemon */
};

/*
 * A call in flight that expects a reply.
 *
 * The caller sets data, before, done, arg and lazy as needed and zeroes the rest. If gpc_start_X
 * fails, none of the functions is called and the caller may free the request.
 *
 * data() receives `size` bytes of the copy's data, for `offset` of the copy, and must read them
 * with gp_conn_recv_bulk() from conn. They are the bulk of a data note (a message that carries a
 * part of gpCopyOut's data) or of the reply. offset and size are unchecked numbers from the
 * network. It returns 0; another value ends the session.
 *
 * before() is called before done() and before any thread can see that the request is complete; the
 * reply is already available unless the session is lost, and later messages are not processed until
 * it returns.
 *
 * done() is called once, after the request is complete, also when the session is lost, with no lock
 * held. It may free the request unless a thread waits for it, may post and start calls, and must
 * not wait for a reply.
 *
 * All three run on the thread that reads the connection. Replies of requests with done() are read
 * even if no thread waits; replies of other requests may stay unread until a thread waits. A lazy
 * request, which must have done(), wakes no thread: its reply is read along with others, or within
 * about a second.
 * Ownership: the request is in the caller's memory and must stay there until it is complete; with
 * done(), until done() is called.
 */
struct gpc_request {
	struct gpc_session *session;
	uint64_t started_ns; /* gp_now_ns() at the start */
	uint32_t id;         /* ID of the request on the wire */
	uint16_t call;       /* number of the call */
	bool complete;       /* the reply was processed; written under the receiver's lock */
	bool lazy;           /* its reply is not urgent (see above); set by the caller */
	CUresult result;     /* result of the call; valid once complete */
	void *reply; /* malloc'ed encoded fields of the reply, or NULL. Valid once complete; freed
			by done() or by the caller of gpc_start_X. */
	size_t reply_size;
	int (*data)(struct gpc_request *request, struct gp_conn *conn, uint64_t offset,
		    uint64_t size);
	void (*before)(struct gpc_request *request);
	void (*done)(struct gpc_request *request);
	void *arg; /* for the caller's functions */
	/* work number of the call (session.h) or, if it gives no work, the last one before it */
	uint64_t issued;
	struct gpc_request *next; /* next in a list of receiver.c */
};

/*
 * Blocks, without limit, until the request, which was started successfully, is complete; the
 * calling thread reads the connection if no other thread does. Returns the result of the call or,
 * if that is CUDA_SUCCESS, the session's deferred error (the error of an earlier posted call),
 * which is cleared. request->reply then belongs to the caller, unless the request has done(). Must
 * not be called by the thread that reads the connection, so not by data(), before() and done().
 */
CUresult gpc_request_wait(struct gpc_request *request);

/*
 * Waits like gpc_request_wait(), but returns the call's own result, for callers that must know
 * whether the call itself was executed. A deferred error is left for a later call.
 */
static inline CUresult
gpc_request_wait_own(struct gpc_request *request)
{
	CUresult result = gpc_request_wait(request);

	if (result == CUDA_SUCCESS || request->result != CUDA_SUCCESS)
		return result;
	gpc_session_defer(request->session, result);
	return CUDA_SUCCESS;
}

/* Reads, without blocking, the messages that have arrived, unless another thread is reading.
 * Returns whether the request is complete. */
bool gpc_request_poll(struct gpc_request *request);

/* Stream ID for a call that gives work to all streams. */
#define GPC_ALL_STREAMS UINT32_MAX

/* A call being encoded, on the stack of the generated functions. Initialized by
 * gpc_call_begin(). */
struct gpc_call {
	struct gpc_session *session;
	const struct gpc_scope *scope; /* borrowed; NULL: first session, no context */
	struct gp_enc enc;
	uint16_t number; /* GP_CALL_* */
	uint32_t stream; /* wire ID of the stream that gets work, or GPC_ALL_STREAMS; 0: the call
			    gives no work */
	void *fields;    /* malloc'ed buffer with the fields, until they are copied into the ring;
			    NULL: they are encoded in the ring, and the send lock is held */
	uint64_t lane_bytes; /* bytes of the call that are sent over data lanes */
};

/* The calling thread's calls need no order after host functions and late copies (host/late_copy.h),
 * such as calls on a stream of the library's own. The daemon never defers such calls, and they
 * never wait for room in its deferred queue. Set and cleared around the calls by the code that
 * makes them: late_copy.c and managed_copy.c. */
extern __thread bool gpc_call_passes __attribute__((tls_model("initial-exec")));
/* The calling thread reads the connection, so its calls must not wait for replies. Set and cleared
 * by receiver.c only. */
extern __thread bool gpc_call_reads __attribute__((tls_model("initial-exec")));

/*
 * Starts a call: reserves space for `size` bytes of fields, which the caller then encodes with
 * call->enc. scope must stay valid until the call is posted; NULL: the call is on the first session
 * and in no context. stream: wire ID of the stream that gets work, GPC_ALL_STREAMS, or 0 if the
 * call gives no work.
 *
 * Blocks while the ring is full or max_outstanding requests of the session have no reply. On
 * success acquires the session's send lock; one gpc_call_post() or gpc_call_start() must follow,
 * which releases it, also after an error (lane_out.c alone may release the lock instead, which
 * abandons the call). While managed memory exists (client/pages/pages.h), encoding may fault on
 * fields that must be fetched first; the fields are then encoded into a buffer, and
 * gpc_call_lock(), gpc_call_post() or gpc_call_start() acquires the lock.
 *
 * Returns CUDA_SUCCESS or an error listed at the head of this file. After an error the lock is not
 * held and nothing needs to be freed.
 */
CUresult gpc_call_begin(struct gpc_call *call, const struct gpc_scope *scope, uint16_t number,
			size_t size, uint32_t stream);
/* Acquires the send lock, if it is not held yet, and blocks until the daemon has room to defer the
 * call and its `lane_bytes` bytes on the data lanes, so that gpc_call_post() does not wait. The
 * fields must be encoded. Returns CUDA_SUCCESS. After an error (that of the session, or
 * CUDA_ERROR_OUT_OF_MEMORY) the lock is not held and the call is abandoned: no other function may
 * follow. */
CUresult gpc_call_lock(struct gpc_call *call, uint64_t lane_bytes);
/* Commits the encoded call, to which no reply is sent, and releases the send lock, also on failure.
 * Blocks while the daemon would have to defer more than its limit. bulk is sent after the record;
 * its memory may be reused when the function returns. Returns CUDA_SUCCESS or an error listed at
 * the head of this file. */
CUresult gpc_call_post(struct gpc_call *call, const struct iovec *bulk, int bulk_count);
/* Commits the encoded call as gpc_call_post() does, and registers the request, prepared as
 * described at struct gpc_request, for its reply. Sends the call at once. After an error the
 * request is not registered. After CUDA_SUCCESS the request may be complete, and freed by its
 * done(), before the function returns. */
CUresult gpc_call_start(struct gpc_call *call, struct gpc_request *request,
			const struct iovec *bulk, int bulk_count);

/* Returns how many bytes, as computed by GP_DEFERRED_QUEUE_COST (protocol/frame.h), of deferrable
 * calls may be outstanding: the daemon's limit less a reserve of 1 MiB. max_deferred: the daemon's
 * limit in bytes, from the Welcome; 0: not reported. A limit outside GP_DEFERRED_QUEUE_MIN and
 * GP_DEFERRED_QUEUE_MAX is replaced by the nearer of the two. */
uint64_t gpc_call_room(uint64_t max_deferred);

/* Called by host_queue.c after the daemon has refused a host function: removes it from the count of
 * outstanding functions, so that it delays no calls. */
void gpc_call_function_refused(struct gpc_session *session);

/* Called by the thread that reads the connection when the daemon reports that `count` gpStreamWait
 * calls are complete. Returns true, or false without any effect if fewer are outstanding, which is
 * a protocol error. */
bool gpc_call_waits_done(struct gpc_session *session, uint32_t count);

/* Copies the bytes of a reply, and frees the memory of the reply, which may be NULL. Returns
 * `result`, that of the call, or CUDA_ERROR_UNKNOWN if that is CUDA_SUCCESS and there are not
 * `size` bytes; *to is unchanged after an error. *bytes is read only if `result` is
 * CUDA_SUCCESS. */
static inline CUresult
gpc_reply_copy_bytes(CUresult result, const struct gp_bytes *bytes, void *to, size_t size,
		     void *reply)
{
	if (result == CUDA_SUCCESS && bytes->size != size)
		result = CUDA_ERROR_UNKNOWN;
	if (result == CUDA_SUCCESS)
		memcpy(to, bytes->data, size);
	free(reply);
	return result;
}

#endif /* GPC_CALL_H */
