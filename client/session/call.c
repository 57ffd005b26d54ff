/* SPDX-License-Identifier: Apache-2.0 */
#include "client/session/call.h"

#include "base/clock.h"
#include "base/lock.h"
#include "client/base/log.h"
#include "client/base/stats.h"
#include "client/pages/pages.h"
#include "client/session/session_internal.h"
#include "gp_calls.h"
#include "protocol/frame.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNED(size) (((size) + 7) & ~(size_t)7)
/* Reserve for the fences of waiting threads, and for calls that other threads post in the
 * meantime. */
#define DEFERRED_RESERVE ((uint64_t)1 << 20)

__thread bool gpc_call_passes __attribute__((tls_model("initial-exec")));
__thread bool gpc_call_reads __attribute__((tls_model("initial-exec")));

/* Encodes into a separate buffer: fetching the memory that the fields are read from needs the send
 * lock. */
static CUresult
call_begin_unlocked(struct gpc_call *call, size_t size)
{
	call->fields = malloc(ALIGNED(size) + 1);
	if (!call->fields)
		return CUDA_ERROR_OUT_OF_MEMORY;
	gp_enc_init(&call->enc, call->fields, ALIGNED(size));
	return CUDA_SUCCESS;
}

static CUresult
call_begin_in_ring(struct gpc_call *call, size_t size) GP_LOCKED(call->session->sender.lock)
{
	void *record;
	CUresult result = gpc_sender_reserve_locked(
		call->session, sizeof(struct gp_header) + ALIGNED(size), &record);

	if (result == CUDA_SUCCESS)
		gp_enc_init(&call->enc, (uint8_t *)record + sizeof(struct gp_header),
			    ALIGNED(size));
	return result;
}

CUresult
gpc_call_begin(struct gpc_call *call, const struct gpc_scope *scope, uint16_t number, size_t size,
	       uint32_t stream) GP_LOCK_UNCHECKED
{
	struct gpc_session *session = scope ? scope->session : gpc_session_get();
	size_t record_size = sizeof(struct gp_header) + ALIGNED(size);
	CUresult result;

	if (!session)
		return CUDA_ERROR_NOT_INITIALIZED;
	if (!gpc_facts_have_call(&session->facts, number))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (record_size > GP_CONN_MESSAGE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	/* There may be no room until a host function has returned, or until a store of the host has
	 * released the GPU. */
	result = gp_call_is_unordered(number) || gpc_call_reads ? gpc_session_status(session)
								: gpc_receiver_make_room(session);
	if (result != CUDA_SUCCESS)
		return result;

	*call = (struct gpc_call){
		.session = session, .scope = scope, .number = number, .stream = stream
	};
	if (gpc_pages_any())
		return call_begin_unlocked(call, size);
	(void)pthread_mutex_lock(&call->session->sender.lock);
	result = call_begin_in_ring(call, size);
	if (result != CUDA_SUCCESS)
		(void)pthread_mutex_unlock(&call->session->sender.lock);
	return result;
}

static uint32_t
scope_get_context_id(const struct gpc_scope *scope)
{
	return scope ? __atomic_load_n(&scope->context, __ATOMIC_RELAXED) : 0;
}

/* Completes the record's header, before the record is committed. */
static size_t
call_finish_record(struct gpc_call *call, uint32_t request, bool bulk)
{
	struct gp_header header = {
		.call = call->number,
		.flags = bulk ? GP_FRAME_BULK : 0,
		.request = request,
		.context = scope_get_context_id(call->scope),
	};

	gp_enc_pad(&call->enc);
	header.size = (uint32_t)(sizeof(header) + gp_enc_size(&call->enc));
	gp_header_encode(&header, call->enc.start - sizeof(header));
	gpc_stats_call(call->number, request == 0);
	return header.size;
}

static size_t
bulk_get_size(const struct iovec *bulk, int bulk_count)
{
	size_t size = 0;

	for (int i = 0; i < bulk_count; i++)
		size += bulk[i].iov_len;
	return size;
}

static void
call_log(const struct gpc_call *call, uint32_t request, const struct iovec *bulk, int bulk_count)
{
	gpc_log(GPC_LOG_CALLS, "%s request %u, context %#x, %zu bytes and %zu of bulk",
		gpc_call_name(call->number), request, scope_get_context_id(call->scope),
		gp_enc_size(&call->enc), bulk_get_size(bulk, bulk_count));
}

/* Returns the maximum cost of the record to the daemon until the earlier host functions are
 * done. */
static uint64_t
call_get_deferred_cost(struct gpc_call *call, const struct iovec *bulk, int bulk_count)
{
	return GP_DEFERRED_QUEUE_COST(sizeof(struct gp_header) + ALIGNED(gp_enc_size(&call->enc)),
				      bulk_get_size(bulk, bulk_count) + call->lane_bytes);
}

uint64_t
gpc_call_room(uint64_t max_deferred)
{
	uint64_t max = max_deferred;

	if (max == 0 || max > GP_DEFERRED_QUEUE_MAX)
		max = GP_DEFERRED_QUEUE_MAX;
	return (max < GP_DEFERRED_QUEUE_MIN ? GP_DEFERRED_QUEUE_MIN : max) - DEFERRED_RESERVE;
}

/* A store of the host may be the value that the daemon waits for, so it is never held back here
 * either. */
static bool
call_is_never_deferred(const struct gpc_call *call)
{
	return gpc_call_passes || gp_call_is_unordered(call->number);
}

/* Returns whether the daemon can report the cost of its deferred queue. Otherwise only a fence
 * shows it, and records count only while host functions are outstanding. */
static bool
session_has_room_query(const struct gpc_session *session)
{
	return gpc_facts_have_call(&session->facts, GP_CALL_gpBacklogRoom);
}

/* A waiting thread has at most one such call outstanding, and may own a lock that the next store of
 * the host needs. */
static bool
call_is_of_waiter(uint16_t number)
{
	return number == GP_CALL_gpFence || number == GP_CALL_gpHostTakeBehind;
}

/* Returns whether the caller must wait because the daemon may have to defer more than it can, after
 * host functions or for streams whose queues are full. A call larger than the whole limit is sent
 * when nothing else is outstanding. */
static bool
call_exceeds_room(struct gpc_call *call, const struct iovec *bulk, int bulk_count)
	GP_LOCKED(call->session->sender.lock)
{
	const struct gpc_session *session = call->session;
	uint64_t left = session->room.posted - session->room.settled;
	bool functions = session->functions.unanswered > 0;

	if (left + call_get_deferred_cost(call, bulk, bulk_count) <= session->room.max)
		return false;
	return (functions || (left > 0 && session_has_room_query(session))) &&
	       !call_is_never_deferred(call) && !gpc_call_reads && !call_is_of_waiter(call->number);
}

static CUresult
scope_fence(const struct gpc_scope *scope)
{
	const struct gp_args_gpFence args = { 0 };
	struct gpc_request request = { 0 };
	struct gpc_call call;
	CUresult result =
		gpc_call_begin(&call, scope, GP_CALL_gpFence, gp_args_gpFence_size(&args), 0);

	if (result != CUDA_SUCCESS)
		return result;
	gp_args_gpFence_encode(&call.enc, &args);
	result = gpc_call_start(&call, &request, NULL, 0);
	if (result == CUDA_SUCCESS)
		result = gpc_request_wait(&request);
	free(request.reply);
	return result;
}

/* Waits until all posted calls are done. An error of another call remains to be reported. */
static CUresult
call_settle_functions(struct gpc_call *call) GP_LOCKED(call->session->sender.lock)
{
	struct gpc_room *room = &call->session->room;
	uint64_t posted = room->posted;
	CUresult result;

	(void)pthread_mutex_unlock(&call->session->sender.lock);
	result = scope_fence(call->scope);
	if (result != CUDA_SUCCESS && gpc_session_status(call->session) == CUDA_SUCCESS) {
		gpc_session_defer(call->session, result);
		result = CUDA_SUCCESS;
	}
	(void)pthread_mutex_lock(&call->session->sender.lock);
	if (room->settled < posted)
		room->settled = posted;
	return result;
}

/* After an error the daemon's deferred queue is empty. */
static void
room_query_done(struct gpc_request *request)
{
	struct gpc_session *session = request->session;
	struct gp_reply_gpBacklogRoom reply = { 0 };
	struct gp_dec dec;

	if (request->result == CUDA_SUCCESS) {
		gp_dec_init(&dec, request->reply, request->reply_size);
		gp_reply_gpBacklogRoom_decode(&dec, &reply);
	}
	free(request->reply);
	(void)pthread_mutex_lock(&session->sender.lock);
	session->room.settled = session->room.queried - reply.kept;
	session->room.querying = false;
	gpc_sender_notify_locked(session);
	(void)pthread_mutex_unlock(&session->sender.lock);
}

/* Requests a report when the cost of the deferred queue has fallen to at most this value, unless a
 * request is outstanding. */
static CUresult
room_query_start(const struct gpc_scope *scope, struct gpc_session *session, uint64_t most)
{
	const struct gp_args_gpBacklogRoom args = { .most = most };
	struct gpc_request *request = &session->room.request;
	struct gpc_call call;
	bool querying;
	CUresult result;

	(void)pthread_mutex_lock(&session->sender.lock);
	querying = session->room.querying;
	session->room.querying = true;
	(void)pthread_mutex_unlock(&session->sender.lock);
	if (querying)
		return CUDA_SUCCESS;
	*request = (struct gpc_request){ .done = room_query_done };
	result = gpc_call_begin(&call, scope, GP_CALL_gpBacklogRoom,
				gp_args_gpBacklogRoom_size(&args), 0);
	if (result == CUDA_SUCCESS) {
		gp_args_gpBacklogRoom_encode(&call.enc, &args);
		result = gpc_call_start(&call, request, NULL, 0);
	}
	if (result == CUDA_SUCCESS)
		return result;
	(void)pthread_mutex_lock(&session->sender.lock);
	session->room.querying = false;
	gpc_sender_notify_locked(session);
	(void)pthread_mutex_unlock(&session->sender.lock);
	return result;
}

static CUresult
call_await_room(struct gpc_call *call, uint64_t cost) GP_LOCKED(call->session->sender.lock)
{
	uint64_t max = call->session->room.max, most = cost < max ? max - cost : 0;
	CUresult result;

	if (call->session->room.querying) {
		gpc_sender_wait_locked(call->session);
		return gpc_session_status(call->session);
	}
	(void)pthread_mutex_unlock(&call->session->sender.lock);
	result = room_query_start(call->scope, call->session, most < max / 2 ? most : max / 2);
	(void)pthread_mutex_lock(&call->session->sender.lock);
	return result;
}

/* Releases the lock while waiting. The daemon's deferred queue is limited, so a caller with more
 * data waits for room, as it would for room in a GPU's queue. */
static CUresult
call_wait_for_room(struct gpc_call *call, const struct iovec *bulk, int bulk_count)
	GP_LOCKED(call->session->sender.lock)
{
	struct gpc_session *session = call->session;
	uint64_t cost = call_get_deferred_cost(call, bulk, bulk_count);
	size_t size = gp_enc_size(&call->enc);
	void *fields = malloc(size + 1);
	CUresult result;

	if (!fields)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(fields, call->enc.start, size);
	result = session_has_room_query(session) ? call_await_room(call, cost)
						 : call_settle_functions(call);
	if (result == CUDA_SUCCESS)
		result = call_begin_in_ring(call, size);
	if (result == CUDA_SUCCESS) {
		memcpy(call->enc.start, fields, size);
		call->enc.cur = call->enc.start + size;
	}
	free(fields);
	return result;
}

static void
host_function_count_done(struct gpc_host_functions *functions)
{
	functions->host--;
	functions->unanswered--;
}

/* Called when the record is committed, because the daemon counts in this order too. */
static void
call_count_deferred(struct gpc_call *call, const struct iovec *bulk, int bulk_count)
	GP_LOCKED(call->session->sender.lock)
{
	struct gpc_host_functions *functions = &call->session->functions;
	struct gpc_room *room = &call->session->room;

	if (gp_call_awaits_host(call->number))
		functions->unanswered++;
	if (call->number == GP_CALL_gpStreamWait)
		gpc_receiver_expect_note(call->session);
	else if (gp_call_awaits_host(call->number))
		functions->host++;
	if (call->number == GP_CALL_gpHostFunctionDone)
		host_function_count_done(functions);
	else if ((functions->unanswered > 0 || session_has_room_query(call->session)) &&
		 !call_is_never_deferred(call))
		room->posted += call_get_deferred_cost(call, bulk, bulk_count);
	if (call->number == GP_CALL_gpBacklogRoom)
		room->queried = room->posted;
	if (functions->unanswered == 0 && !session_has_room_query(call->session))
		room->settled = room->posted;
}

/* Returns whether to query now, early enough for the reply to arrive before the limit is
 * reached. */
static bool
session_wants_room_query(const struct gpc_session *session) GP_LOCKED(session->sender.lock)
{
	const struct gpc_room *room = &session->room;

	return room->posted - room->settled > room->max / 2 && !room->querying &&
	       room->posted - room->queried > room->max / 4 && session_has_room_query(session);
}

void
gpc_call_function_refused(struct gpc_session *session)
{
	(void)pthread_mutex_lock(&session->sender.lock);
	host_function_count_done(&session->functions);
	(void)pthread_mutex_unlock(&session->sender.lock);
}

bool
gpc_call_waits_done(struct gpc_session *session, uint32_t count)
{
	struct gpc_host_functions *functions = &session->functions;
	bool known;

	(void)pthread_mutex_lock(&session->sender.lock);
	known = count <= functions->unanswered - functions->host;
	if (known)
		functions->unanswered -= count;
	(void)pthread_mutex_unlock(&session->sender.lock);
	for (uint32_t i = 0; known && i < count; i++)
		gpc_receiver_note_received(session);
	return known;
}

/* Called when the record is committed, so that a thread that sees the number knows that the record
 * is on its way. */
static void
call_count_issued(const struct gpc_call *call) GP_LOCKED(call->session->sender.lock)
{
	struct gpc_issued *issued = &call->session->issued;
	uint64_t number;

	if (!call->stream)
		return;
	number = atomic_load_explicit(&issued->last, memory_order_relaxed) + 1;
	atomic_store_explicit(&issued->last, number, memory_order_relaxed);
	for (size_t i = 0; call->stream == GPC_ALL_STREAMS && i < GPC_ISSUED_SLOTS; i++)
		atomic_store_explicit(&issued->to[i], number, memory_order_relaxed);
	atomic_store_explicit(&issued->to[call->stream % GPC_ISSUED_SLOTS], number,
			      memory_order_relaxed);
	if ((atomic_load_explicit(&issued->visible_blocks, memory_order_relaxed) != 0 &&
	     !gp_call_writes_device_only(call->number)) ||
	    gp_call_awaits_host(call->number))
		gpc_atomic_max(&issued->seen, number);
}

/* Commits the record and ensures that it is sent; releases the lock. */
static CUresult
call_submit(struct gpc_call *call, uint32_t request, const struct iovec *bulk, int bulk_count)
	GP_UNLOCKS(call->session->sender.lock)
{
	bool wants;
	CUresult result = CUDA_SUCCESS;

	call_count_deferred(call, bulk, bulk_count);
	wants = session_wants_room_query(call->session);
	call_count_issued(call);
	/* Needed only until the first reply (first_reply.h). */
	if (!atomic_load_explicit(&call->session->receiver.served, memory_order_relaxed) &&
	    gp_call_is_unbounded(call->number))
		atomic_store_explicit(&call->session->issued.work, true, memory_order_relaxed);
	gpc_sender_commit_locked(call->session, call_finish_record(call, request, bulk_count > 0));
	if (gpc_log_is_enabled(GPC_LOG_CALLS))
		call_log(call, request, bulk, bulk_count);
	if (bulk_count > 0)
		result = gpc_sender_bulk_unlock(call->session, bulk, bulk_count);
	else if (request || call->number == GP_CALL_gpHostFunctionDone)
		gpc_sender_flush_unlock(call->session);
	else
		gpc_sender_post_unlock(call->session);
	if (__builtin_expect(wants, 0) && result == CUDA_SUCCESS)
		(void)room_query_start(call->scope, call->session, call->session->room.max / 2);
	return result;
}

/* Copies the fields from the buffer of call_begin_unlocked() into the ring, under the lock. */
static CUresult
call_move_into_ring(struct gpc_call *call) GP_LOCKED(call->session->sender.lock)
{
	size_t size = gp_enc_size(&call->enc);
	CUresult result = call_begin_in_ring(call, size);

	if (result == CUDA_SUCCESS) {
		memcpy(call->enc.start, call->fields, size);
		call->enc.cur = call->enc.start + size;
	}
	return result;
}

static CUresult
call_lock_late(struct gpc_call *call) GP_LOCKS(call->session->sender.lock)
{
	CUresult result = CUDA_SUCCESS;

	(void)pthread_mutex_lock(&call->session->sender.lock);
	if (!call->enc.bad)
		result = call_move_into_ring(call);
	free(call->fields);
	call->fields = NULL;
	return result;
}

CUresult
gpc_call_lock(struct gpc_call *call, uint64_t lane_bytes) GP_LOCK_UNCHECKED
{
	CUresult result = call->fields ? call_lock_late(call) : CUDA_SUCCESS;

	call->lane_bytes = lane_bytes;
	while (result == CUDA_SUCCESS && call_exceeds_room(call, NULL, 0))
		result = call_wait_for_room(call, NULL, 0);
	if (result != CUDA_SUCCESS)
		(void)pthread_mutex_unlock(&call->session->sender.lock);
	return result;
}

/* A call that cannot be sent is not committed, so that only this call is lost. */
static CUresult
call_check(struct gpc_call *call, const struct iovec *bulk, int bulk_count) GP_LOCK_UNCHECKED
{
	struct gpc_session *session = call->session;
	bool bad = call->enc.bad;
	CUresult result = call->fields ? call_lock_late(call) : CUDA_SUCCESS;

	if (bad)
		result = CUDA_ERROR_UNKNOWN;
	else if (result == CUDA_SUCCESS &&
		 bulk_get_size(bulk, bulk_count) > session->facts.max_bulk)
		result = CUDA_ERROR_INVALID_VALUE;
	while (result == CUDA_SUCCESS && call_exceeds_room(call, bulk, bulk_count))
		result = call_wait_for_room(call, bulk, bulk_count);
	if (result != CUDA_SUCCESS)
		(void)pthread_mutex_unlock(&call->session->sender.lock);
	return result;
}

CUresult
gpc_call_post(struct gpc_call *call, const struct iovec *bulk, int bulk_count) GP_LOCK_UNCHECKED
{
	CUresult result = call_check(call, bulk, bulk_count);

	return result == CUDA_SUCCESS ? call_submit(call, 0, bulk, bulk_count) : result;
}

CUresult
gpc_call_start(struct gpc_call *call, struct gpc_request *request, const struct iovec *bulk,
	       int bulk_count) GP_LOCK_UNCHECKED
{
	struct gpc_session *session = call->session;
	CUresult result = call_check(call, bulk, bulk_count);
	uint32_t id;

	if (result != CUDA_SUCCESS)
		return result;
	request->session = session;
	request->started_ns = gp_now_ns();
	request->call = call->number;
	request->complete = false;
	request->result = CUDA_SUCCESS;
	request->reply = NULL;
	request->reply_size = 0;
	request->issued = gpc_session_issued(session) + (call->stream != 0);
	id = gpc_receiver_expect(session, request);
	(void)call_submit(call, id, bulk, bulk_count);
	/* If the session has ended in the meantime, the request is completed like any other. */
	if (gpc_session_status(session) != CUDA_SUCCESS)
		gpc_receiver_abort(session);
	return CUDA_SUCCESS;
}
