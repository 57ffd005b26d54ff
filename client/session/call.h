/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remote calls: encodes, posts and starts calls to the daemon. Every request of a CUDA function to
 * the daemon uses this interface.
 *
 * Generated code (gpc_calls.h) offers for each wire call X of codegen/api:
 *
 *   CUresult gpc_post_X(context, &args[, bulk, bulk_count])              POST calls
 *   CUresult gpc_wait_X(context, &args, &reply[, bulk, bulk_count])      WAIT calls
 *   CUresult gpc_start_X(context, &args, request[, bulk, bulk_count])    WAIT calls, asynchronous
 *
 * with struct gp_args_X and gp_reply_X of protocol's gp_calls.h (without the reply argument if the
 * call returns no fields). The order of the calls is the order on the wire.
 * Threads: any.
 * Errors: a CUresult other than CUDA_SUCCESS is either the daemon's result or the session's sticky
 * error.
 */
#ifndef GPC_CALL_H
#define GPC_CALL_H

#include "client/session/session.h"
#include "protocol/enc.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct gpc_request;

/* The session and the wire context ID that a call is issued on. */
struct gpc_scope {
	struct gpc_session *session;
	uint32_t context; /* wire context ID, atomic; 0: not known to the daemon now */
};

/*
 * A call in flight that expects a reply.
 *
 * The caller sets data, before, done, arg and lazy as needed and zeroes the rest. If gpc_start_X
 * fails, none of the functions is called.
 *
 * data() receives the bulk tails of data notes (gpCopyOut) and must drain them with
 * gp_conn_recv_bulk(); a negative return value ends the session. done() is called once, by the
 * thread that reads the reply, also when the session is lost, with no lock held; it may free the
 * request unless a thread waits for it, may post and start calls, and must not wait for one.
 * before() is called before done() and before any thread can see that the request is complete; the
 * reply is already available unless the session is lost, and later messages are not processed until
 * it returns.
 *
 * Replies of requests with done() are read even if no thread waits; replies of other requests are
 * read only while a thread waits. A lazy request, which must have done(), wakes no thread: its
 * reply is read along with others, or within a second.
 * Ownership: the request is in the caller's memory and must stay there until it is complete.
 */
struct gpc_request {
	struct gpc_session *session;
	uint64_t started_ns;
	uint32_t id;
	uint16_t call;
	bool complete;
	bool lazy;
	CUresult result;
	void *reply; /* malloc'ed copy of the reply's fields; freed by the caller of gpc_start_X */
	size_t reply_size;
	int (*data)(struct gpc_request *request, struct gp_conn *conn, uint64_t offset,
		    uint64_t size);
	void (*before)(struct gpc_request *request);
	void (*done)(struct gpc_request *request);
	void *arg;
	uint64_t issued; /* gpc_session_issued() at the start, including this call */
	struct gpc_request *next;
};

/*
 * Blocks until the request is complete; the calling thread reads the connection if no other thread
 * does. Returns the result of the call or, if that is CUDA_SUCCESS, the session's deferred error,
 * which is cleared.
 */
CUresult gpc_request_wait(struct gpc_request *request);

/*
 * Like gpc_request_wait(), but returns the call's own result, for callers that must know whether
 * the call itself was executed. A deferred error is left for a later call.
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

/* Reads, without blocking, the messages that have arrived. Returns whether the request is
 * complete. */
bool gpc_request_poll(struct gpc_request *request);

/* Stream ID of a call that gives work to all streams. */
#define GPC_ALL_STREAMS UINT32_MAX

/* A call being encoded; used by the generated functions. */
struct gpc_call {
	struct gpc_session *session;
	const struct gpc_scope *scope;
	struct gp_enc enc;
	uint16_t number;
	uint32_t stream; /* wire ID of the stream that the call gives work to; 0: none; or
			    GPC_ALL_STREAMS */
	void *fields; /* malloc'ed encoding buffer, until the fields are copied into the ring; else
			 NULL */
	uint64_t lane_bytes; /* bytes of the call that travel on the data lanes */
};

/* Set while the thread's calls are not ordered after host functions and late copies, such as calls
 * on a stream of the library's own: the daemon never defers them. */
extern __thread bool gpc_call_passes __attribute__((tls_model("initial-exec")));
/* Set while the thread reads the connection: its calls must not wait for replies. */
extern __thread bool gpc_call_reads __attribute__((tls_model("initial-exec")));

/*
 * Starts a call: reserves room for `size` bytes of fields, to be encoded with call->enc. scope
 * NULL: the call is on the first session and in no context. stream: wire ID of the stream that gets
 * work, 0 or GPC_ALL_STREAMS.
 *
 * Acquires the session's send lock, which gpc_call_post() or gpc_call_start() releases; it is not
 * held after a failure. While managed memory exists (pages.h), encoding may fault on fields that
 * must be fetched first; the fields are then encoded into a buffer, and gpc_call_lock(),
 * gpc_call_post() or gpc_call_start() acquires the lock.
 */
CUresult gpc_call_begin(struct gpc_call *call, const struct gpc_scope *scope, uint16_t number,
			size_t size, uint32_t stream);
/* Acquires the send lock and waits until there is room for the call and for `lane_bytes` bytes on
 * the data lanes, so that gpc_call_post() does not wait. The fields must be encoded. The lock is
 * not held after a failure. */
CUresult gpc_call_lock(struct gpc_call *call, uint64_t lane_bytes);
/* Commits the encoded call without a reply (post) or with one (start, see struct gpc_request), and
 * releases the send lock, also on failure. Waits for room if the daemon may have to defer too much.
 * bulk is sent after the record; its memory may be reused when the function returns. */
CUresult gpc_call_post(struct gpc_call *call, const struct iovec *bulk, int bulk_count);
CUresult gpc_call_start(struct gpc_call *call, struct gpc_request *request,
			const struct iovec *bulk, int bulk_count);

/* Returns the maximum cost, in the bytes of GP_DEFERRED_QUEUE_COST, of the outstanding calls that
 * the daemon may have to defer. max_deferred is the daemon's own limit; 0: not reported. */
uint64_t gpc_call_room(uint64_t max_deferred);

/* Called when the daemon has refused a host function: no calls are deferred because of it. */
void gpc_call_function_refused(struct gpc_session *session);

/* Called by the reader of the connection: `count` gpStreamWait calls are complete. Returns false if
 * fewer were outstanding. */
bool gpc_call_waits_done(struct gpc_session *session, uint32_t count);

#endif /* GPC_CALL_H */
