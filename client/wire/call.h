/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls: the only way from a CUDA function to the wire.
 *
 * Generated code (gpc_calls.h) offers for each wire call X of codegen/api:
 *   CUresult gpc_post_X(context, &args[, bulk, bulk_count])              POST calls
 *   CUresult gpc_wait_X(context, &args, &reply[, bulk, bulk_count])      WAIT calls
 *   CUresult gpc_start_X(context, &args, request[, bulk, bulk_count])    WAIT calls, without
 * waiting with struct gp_args_X and gp_reply_X of protocol's gp_calls.h (no reply argument where
 * nothing comes back).  Any thread may call them; the order of the calls is the order on the wire.
 * A CUresult other than CUDA_SUCCESS is either what the daemon answered or the session's sticky
 * error.
 */
#ifndef GPC_CALL_H
#define GPC_CALL_H

#include "client/wire/session.h"
#include "protocol/dec.h"
#include "protocol/enc.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct gp_conn;
struct gpc_request;

/* Where a call goes, and in whose name: what the wire knows of a context. */
struct gpc_scope {
	struct gpc_session *session;
	uint32_t context; /* its name there, read atomically; 0: the daemon does not know it now */
};

/*
 * A call that is under way and will be answered.  It lives in the caller's memory until it is
 * complete; the caller sets data, done and arg, and zeroes the rest.  When gpc_start_X fails, none
 * of the functions is called.
 *
 * data() receives the bulk tails of data notes (gpCopyOut) and must drain them with
 * gp_conn_recv_bulk(); a negative return kills the session.  done() is called once, by whichever
 * thread reads the reply (also when the session is lost), with no lock held; it may free the
 * request unless somebody waits for it, may post and start calls, and must not wait for one.
 * before() is called in front of that, and before anybody sees that the request is complete, with
 * its reply there unless the session is lost; later messages wait for it.
 * Requests with done() are answered though nobody waits; the others are read while somebody does.
 * Nobody is woken for the answer of a lazy one, which has done(): it is read with other answers, or
 * within a second.
 */
struct gpc_request {
	struct gpc_session *session;
	uint64_t started_ns;
	uint32_t id;
	uint16_t call;
	bool complete;
	bool lazy;
	CUresult result;
	void *reply; /* malloc'ed copy of the reply's fields; the caller of gpc_start_X frees it */
	size_t reply_size;
	int (*data)(struct gpc_request *request, struct gp_conn *conn, uint64_t offset,
		    uint64_t size);
	void (*before)(struct gpc_request *request);
	void (*done)(struct gpc_request *request);
	void *arg;
	uint64_t issued; /* gpc_session_issued() when it was started, this call included */
	struct gpc_request *next;
};

/*
 * Blocks until request is complete; the calling thread reads the connection if nobody else does.
 * What was the result of the call, or, if that was CUDA_SUCCESS, the session's deferred error.
 */
CUresult gpc_request_wait(struct gpc_request *request);

/*
 * The same for a call after which this end must know whether it was carried out: its own result.  A
 * deferred error that it would have told is left for another call.
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

/* Reads what has arrived without blocking; whether request is complete. */
bool gpc_request_poll(struct gpc_request *request);

/* The stream of a call that gives all of them work. */
#define GPC_ALL_STREAMS UINT32_MAX

/* What the generated functions are made of. */
struct gpc_call {
	struct gpc_session *session;
	const struct gpc_scope *scope;
	struct gp_enc enc;
	uint16_t number;
	uint32_t stream;     /* that it gives work to; 0: none; GPC_ALL_STREAMS */
	void *fields;        /* malloc'ed, while they are not yet in the ring; else NULL */
	uint64_t lane_bytes; /* that belong to the record and travel on the data lanes */
};

/* While the thread's calls go past host functions, as those do in a stream of the library's own,
 * and late copies: the daemon keeps none of them. */
extern __thread bool gpc_call_passes __attribute__((tls_model("initial-exec")));
/* While the thread reads the connection: its calls wait for no answer. */
extern __thread bool gpc_call_reads __attribute__((tls_model("initial-exec")));

/*
 * Takes the session's send lock and room for size bytes of fields, to be encoded with call->enc;
 * the lock is released by post or start, and not held after a failure.  Where the fields may lie in
 * memory that has to be fetched first (pages.h), it is these that take the lock.  scope NULL: a
 * call of the first session that acts in no context.  stream: the name of the one that gets work,
 * or 0, or GPC_ALL_STREAMS.
 */
CUresult gpc_call_begin(struct gpc_call *call, const struct gpc_scope *scope, uint16_t number,
			size_t size, uint32_t stream);
/* Takes the lock before the call is posted, and waits for room for it and for lane_bytes, which
 * travel on the data lanes; gpc_call_post() does not wait then.  The fields must be encoded.
 * After a failure the lock is not held. */
CUresult gpc_call_lock(struct gpc_call *call, uint64_t lane_bytes);
CUresult gpc_call_post(struct gpc_call *call, const struct iovec *bulk, int bulk_count);
CUresult gpc_call_start(struct gpc_call *call, struct gpc_request *request,
			const struct iovec *bulk, int bulk_count);

/* How much a session may have outstanding that the daemon may have to keep, in bytes as
 * GP_DEFERRED_QUEUE_COST counts them, if the daemon keeps at most max_deferred (0: it did not say).
 */
uint64_t gpc_call_room(uint64_t max_deferred);

/* The daemon did not take a host function: nothing is kept behind it. */
void gpc_call_function_refused(struct gpc_session *session);

/* By who reads the connection: so many gpStreamWait are over.  false: there were not so many. */
bool gpc_call_waits_done(struct gpc_session *session, uint32_t count);

#endif /* GPC_CALL_H */
