/* SPDX-License-Identifier: Apache-2.0 */
/* Copies to the device over data lanes: the queue of their chunks, and the threads that send
 * them. */
#include "base/clock.h"
#include "base/lock.h"
#include "client/base/error.h"
#include "client/base/stats.h"
#include "client/guard/guard.h"
#include "client/session/lane_internal.h"
#include "client/session/session_threads.h"
#include "gp_calls.h"
#include "protocol/control.h"
#include "protocol/frame.h"

#include <stdatomic.h>
#include <stdlib.h>

/* Maximum number of unsent copies: while the last chunks of one are being sent, the lanes can start
 * the next, and calls of other threads can be interleaved. */
#define UNSENT_MAX 2

void
gpc_outgoing_copy_drop_locked(struct gpc_lanes *lanes, struct gpc_outgoing_copy *outgoing_copy)
	GP_LOCKED(lanes->lock)
{
	struct gpc_outgoing_copy **place = &lanes->outgoing;

	while (*place != outgoing_copy)
		place = &(*place)->next;
	*place = outgoing_copy->next;
	atomic_fetch_sub(&lanes->unsent, 1);
	if (outgoing_copy->wait)
		--*outgoing_copy->wait;
	free(outgoing_copy);
	(void)pthread_cond_broadcast(&lanes->changed);
}

/* Waits for a chunk to send. Returns false if the session is over. */
static bool
chunk_pop(struct gpc_lanes *lanes, struct gpc_outgoing_copy **outgoing_p, struct gp_chunk *chunk)
{
	struct gpc_outgoing_copy *outgoing_copy = NULL;

	(void)pthread_mutex_lock(&lanes->lock);
	while (!lanes->over) {
		outgoing_copy = lanes->outgoing;
		while (outgoing_copy && outgoing_copy->at == outgoing_copy->size)
			outgoing_copy = outgoing_copy->next;
		if (outgoing_copy)
			break;
		(void)pthread_cond_wait(&lanes->work, &lanes->lock);
	}
	if (lanes->over)
		outgoing_copy = NULL;
	if (outgoing_copy) {
		*chunk = (struct gp_chunk){
			.copy = outgoing_copy->copy,
			.offset = outgoing_copy->at,
			.size = gp_chunk_get_expected_size(outgoing_copy->size, outgoing_copy->step,
							   outgoing_copy->at),
		};
		outgoing_copy->at += chunk->size;
		outgoing_copy->busy++;
	}
	(void)pthread_mutex_unlock(&lanes->lock);
	*outgoing_p = outgoing_copy;
	return outgoing_copy != NULL;
}

static void
chunk_finish(struct gpc_lanes *lanes, struct gpc_outgoing_copy *outgoing_copy)
{
	(void)pthread_mutex_lock(&lanes->lock);
	outgoing_copy->busy--;
	if (outgoing_copy->busy == 0 && (outgoing_copy->at == outgoing_copy->size || lanes->over))
		gpc_outgoing_copy_drop_locked(lanes, outgoing_copy);
	(void)pthread_mutex_unlock(&lanes->lock);
}

/* Compresses the chunk into the lane's buffer, if that is worthwhile and memory is available. */
static void
chunk_pack(struct gpc_lane *lane, struct gp_chunk *chunk, struct iovec *bulk)
{
	if (!gp_pack_should_try(&lane->pack, bulk->iov_base, chunk->size))
		return;
	if (!lane->packed_out)
		lane->packed_out = malloc(GP_CHUNK_MAX);
	if (!lane->packed_out)
		return;
	chunk->packed =
		(uint32_t)gp_pack_try(&lane->pack, bulk->iov_base, chunk->size, lane->packed_out);
	if (chunk->packed)
		*bulk = (struct iovec){ lane->packed_out, chunk->packed };
}

static int
chunk_send(struct gpc_lane *lane, const struct gpc_outgoing_copy *outgoing_copy,
	   struct gp_chunk *chunk)
{
	uint8_t header[GP_CHUNK_SIZE];
	struct iovec data = { header, sizeof(header) };
	struct iovec bulk = { (void *)(outgoing_copy->memory + chunk->offset), chunk->size };
	uint64_t begun;
	int r;

	chunk_pack(lane, chunk, &bulk);
	gp_chunk_encode(chunk, header);
	gpc_stats_sent(sizeof(header), &bulk, 1);
	begun = gp_now_ns();
	r = gp_conn_send(lane->conn, &data, 1, &bulk, 1);
	gpc_silence_note_progress(&lane->session->silence);
	gp_pack_note_sent(&lane->pack, bulk.iov_len, gp_now_ns() - begun);
	return r;
}

void *
gpc_lane_send_main(void *arg)
{
	struct gpc_lane *lane = arg;
	struct gpc_session *session = lane->session;
	struct gpc_lanes *lanes = session->lanes;
	struct gpc_outgoing_copy *outgoing_copy;
	struct gp_chunk chunk;
	int r = 0;

	while (r == 0 && chunk_pop(lanes, &outgoing_copy, &chunk)) {
		r = chunk_send(lane, outgoing_copy, &chunk);
		chunk_finish(lanes, outgoing_copy);
	}
	if (r != 0)
		gpc_lane_fail(lane, r);
	gpc_thread_ended(session);
	return NULL;
}

/* Called under the sender's lock, so that the copies are in the order of their records. Returns
 * false if the session is over. */
static bool
outgoing_push(struct gpc_lanes *lanes, struct gpc_outgoing_copy *outgoing_copy)
{
	struct gpc_outgoing_copy **end = &lanes->outgoing;
	bool over;

	(void)pthread_mutex_lock(&lanes->lock);
	over = lanes->over;
	if (!over) {
		outgoing_copy->copy = ++lanes->last_out;
		while (*end)
			end = &(*end)->next;
		*end = outgoing_copy;
		if (outgoing_copy->wait)
			++*outgoing_copy->wait;
		atomic_fetch_add(&lanes->unsent, 1);
		(void)pthread_cond_broadcast(&lanes->work);
	}
	(void)pthread_mutex_unlock(&lanes->lock);
	return !over;
}

static void
outgoing_wait_for_room(struct gpc_lanes *lanes)
{
	if (atomic_load(&lanes->unsent) < UNSENT_MAX)
		return;
	gpc_guard_block();
	(void)pthread_mutex_lock(&lanes->lock);
	while (atomic_load(&lanes->unsent) >= UNSENT_MAX && !lanes->over)
		(void)pthread_cond_wait(&lanes->changed, &lanes->lock);
	(void)pthread_mutex_unlock(&lanes->lock);
}

CUresult
gpc_lanes_send(const struct gpc_scope *scope, uint32_t stream, uint64_t dst, const void *memory,
	       uint64_t size, unsigned int flags, unsigned int *wait) GP_LOCK_UNCHECKED
{
	struct gpc_session *session = scope->session;
	struct gp_args_gpCopyInLanes args = {
		.stream = stream,
		.dst = dst,
		.size = size,
		.flags = flags,
	};
	struct gpc_outgoing_copy *outgoing_copy = calloc(1, sizeof(*outgoing_copy));
	struct gpc_call call;
	CUresult result;

	if (!outgoing_copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	outgoing_copy->memory = memory;
	outgoing_copy->size = size;
	outgoing_copy->step = gp_chunk_get_step(size, session->facts.features & GP_FEATURE_SPREAD);
	outgoing_copy->wait = wait;
	outgoing_wait_for_room(session->lanes);
	result = gpc_call_begin(&call, scope, GP_CALL_gpCopyInLanes,
				gp_args_gpCopyInLanes_size(&args), stream);
	if (result == CUDA_SUCCESS) {
		gp_args_gpCopyInLanes_encode(&call.enc, &args);
		result = gpc_call_lock(&call, size);
	}
	if (result != CUDA_SUCCESS) {
		free(outgoing_copy);
		return result;
	}
	/* The sender's lock is held from here. */
	if (session->functions.unanswered > 0 && !(flags & GP_COPY_LATE))
		result = CUDA_ERROR_NOT_READY;
	else if (!outgoing_push(session->lanes, outgoing_copy))
		result = GPC_ERROR_LOST;
	if (result != CUDA_SUCCESS) {
		(void)pthread_mutex_unlock(&session->sender.lock);
		free(outgoing_copy);
		return result;
	}
	args.copy = session->lanes->last_out;
	gp_enc_init(&call.enc, call.enc.start, (size_t)(call.enc.end - call.enc.start));
	gp_args_gpCopyInLanes_encode(&call.enc, &args);
	return gpc_call_post(&call, NULL, 0);
}

CUresult
gpc_lanes_wait_sent(struct gpc_session *session, const unsigned int *wait)
{
	struct gpc_lanes *lanes = session->lanes;

	gpc_guard_block();
	(void)pthread_mutex_lock(&lanes->lock);
	while (*wait > 0)
		(void)pthread_cond_wait(&lanes->changed, &lanes->lock);
	(void)pthread_mutex_unlock(&lanes->lock);
	return gpc_session_status(session);
}

static bool
outgoing_uses(const struct gpc_lanes *lanes, uintptr_t base, uint64_t size) GP_LOCKED(lanes->lock)
{
	for (const struct gpc_outgoing_copy *o = lanes->outgoing; o; o = o->next) {
		uintptr_t start = (uintptr_t)o->memory;

		if (start < base + size && base < start + o->size)
			return true;
	}
	return false;
}

void
gpc_lanes_settle(const void *base, uint64_t size)
{
	for (int i = 0; i < gpc_session_count(); i++) {
		struct gpc_lanes *lanes = gpc_session_at(i)->lanes;

		if (atomic_load(&lanes->unsent) == 0)
			continue;
		gpc_guard_block();
		(void)pthread_mutex_lock(&lanes->lock);
		while (outgoing_uses(lanes, (uintptr_t)base, size))
			(void)pthread_cond_wait(&lanes->changed, &lanes->lock);
		(void)pthread_mutex_unlock(&lanes->lock);
	}
}
