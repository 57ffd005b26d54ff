/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/copy/lane.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/thread.h"
#include "protocol/control.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/lane_internal.h"
#include "server/worker/session/session.h"
#include "transport/transport.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

/* Enough for the driver, which the threads call to allocate staging; there may be many threads. */
#define STACK_SIZE ((size_t)1 << 20)

/* Called when the session is closing: wakes all threads that wait for a lane. */
static void
lanes_wake(struct gpd_session *session)
{
	struct gpd_lanes *lanes = session->copies->lanes;

	/* A thread that has just seen that the session is not closing holds the lock until it
	 * waits, so it does not miss this. */
	pthread_mutex_lock(&lanes->lock);
	pthread_cond_broadcast(&lanes->copy_started);
	pthread_cond_broadcast(&lanes->chunk_arrived);
	pthread_cond_broadcast(&lanes->out);
	pthread_mutex_unlock(&lanes->lock);
}

int
gpd_lanes_create(struct gpd_session *session)
{
	struct gpd_lanes *lanes = calloc(1, sizeof(*lanes));

	if (!lanes)
		return -ENOMEM;
	pthread_mutex_init(&lanes->lock, NULL);
	gp_cond_init(&lanes->chunk_arrived);
	gp_cond_init(&lanes->copy_started);
	gp_cond_init(&lanes->out);
	lanes->stall_ms = gpd_sessions_timeout_ms();
	session->copies->lanes = lanes;
	lanes->waker.wake = lanes_wake;
	gpd_session_add_waker(session, &lanes->waker);
	return 0;
}

void
gpd_lane_fail(struct gpd_lane *lane)
{
	struct gpd_session *session = lane->session;
	char reason[256];

	if (atomic_load(&session->closing))
		return;
	snprintf(reason, sizeof(reason), "data lane %u: %s", lane->number,
		 gp_conn_error(lane->conn));
	gpd_session_stop(session, reason);
}

/* Waits for the next chunk to send. NULL: the session is closing. */
static struct gpd_lane_outgoing *
next_outgoing(struct gpd_session *session)
{
	struct gpd_lanes *lanes = session->copies->lanes;
	struct gpd_lane_outgoing *outgoing = NULL;
	bool closing;

	pthread_mutex_lock(&lanes->lock);
	while (!(closing = atomic_load(&session->closing)) && !lanes->outgoing)
		pthread_cond_wait(&lanes->out, &lanes->lock);
	if (!closing) {
		outgoing = lanes->outgoing;
		DL_DELETE(lanes->outgoing, outgoing);
	}
	pthread_mutex_unlock(&lanes->lock);
	return outgoing;
}

static void
free_outgoing(struct gpd_session *session, struct gpd_lane_outgoing *outgoing, int r)
{
	if (outgoing->sent)
		outgoing->sent(session, outgoing->arg, r);
	gpd_staging_release(session, &outgoing->piece);
	free(outgoing);
}

/* Compresses into a free slot, if there is one. */
static void
pack_chunk(struct gpd_lane *lane, struct gp_chunk *chunk, struct iovec *bulk,
	   struct gpd_piece *room)
{
	if (!gp_pack_should_try(&lane->pack, bulk->iov_base, chunk->size) ||
	    gpd_staging_acquire_lane(lane->session, false, false, room) != CUDA_SUCCESS)
		return;
	chunk->packed =
		(uint32_t)gp_pack_try(&lane->pack, bulk->iov_base, chunk->size, room->memory);
	if (chunk->packed)
		*bulk = (struct iovec){ room->memory, chunk->packed };
}

static int
send_chunk(struct gpd_lane *lane, struct gpd_lane_outgoing *outgoing)
{
	struct gpd_session *session = lane->session;
	uint8_t header[GP_CHUNK_SIZE];
	struct iovec data = { header, sizeof(header) };
	struct iovec bulk = { outgoing->piece.memory, outgoing->chunk.size };
	struct gpd_piece room = { 0 };
	uint64_t begun;
	int r;

	pack_chunk(lane, &outgoing->chunk, &bulk, &room);
	gp_chunk_encode(&outgoing->chunk, header);
	gpd_account_throttle_all(&session->account, bulk.iov_len);
	begun = gp_now_ns();
	r = gp_conn_send(lane->conn, &data, 1, &bulk, 1);
	gp_pack_note_sent(&lane->pack, bulk.iov_len, gp_now_ns() - begun);
	gpd_staging_release(session, &room);
	return r;
}

static void *
lane_send_run(void *arg)
{
	struct gpd_lane *lane = arg;
	struct gpd_session *session = lane->session;
	struct gpd_lane_outgoing *outgoing;
	int r = 0;

	while (r == 0 && (outgoing = next_outgoing(session))) {
		r = send_chunk(lane, outgoing);
		if (r)
			gpd_lane_fail(lane);
		free_outgoing(session, outgoing, r);
		atomic_fetch_sub(&session->copies->lanes->unsent, 1);
	}
	return NULL;
}

/* Queues a copy of the template for any lane. On failure the caller still owns the template's
 * memory. */
static int
outgoing_enqueue(struct gpd_session *session, const struct gpd_lane_outgoing *template)
{
	struct gpd_lane_outgoing *outgoing = malloc(sizeof(*outgoing));
	struct gpd_lanes *lanes = session->copies->lanes;
	bool closing;

	if (!outgoing)
		return -ENOMEM;
	*outgoing = *template;
	pthread_mutex_lock(&lanes->lock);
	closing = atomic_load(&session->closing);
	if (!closing) {
		DL_APPEND(lanes->outgoing, outgoing);
		atomic_fetch_add(&lanes->unsent, 1);
	}
	pthread_mutex_unlock(&lanes->lock);
	if (closing) {
		free(outgoing);
		return -ESHUTDOWN;
	}
	pthread_cond_signal(&lanes->out);
	return 0;
}

int
gpd_lanes_send(struct gpd_session *session, uint32_t copy, uint64_t offset, size_t size,
	       struct gpd_piece *piece)
{
	const struct gpd_lane_outgoing template = {
		.chunk = { .copy = copy, .offset = offset, .size = size },
		.piece = *piece,
	};
	int r = outgoing_enqueue(session, &template);

	if (r)
		gpd_staging_release(session, piece);
	return r;
}

int
gpd_lanes_send_registered(struct gpd_session *session, const struct gp_chunk *chunk,
			  uint64_t address, gpd_lanes_sent *sent, void *arg)
{
	return outgoing_enqueue(session, &(struct gpd_lane_outgoing){
						 .chunk = *chunk,
						 .piece = { .memory = (void *)(uintptr_t)address },
						 .sent = sent,
						 .arg = arg,
					 });
}

bool
gpd_lanes_sent_all(struct gpd_session *session)
{
	return atomic_load(&session->copies->lanes->unsent) == 0;
}

bool
gpd_lanes_are_uniform(struct gpd_session *session)
{
	return gp_conn_get_device(session->conn) && !atomic_load(&session->copies->lanes->mixed);
}

static int
start_threads(struct gpd_lane *lane)
{
	int r = gp_thread_start_joinable(&lane->receiver, "lane-in", STACK_SIZE, gpd_lane_receive,
					 lane);

	if (r)
		return r;
	r = gp_thread_start_joinable(&lane->sender, "lane-out", STACK_SIZE, lane_send_run, lane);
	if (r) {
		gp_conn_shutdown(lane->conn);
		(void)pthread_join(lane->receiver, NULL);
	}
	return r;
}

const char *
gpd_lanes_add(struct gpd_session *session, unsigned int number, struct gp_conn *conn)
{
	struct gpd_lanes *lanes = session->copies->lanes;
	struct gpd_lane *lane;

	if (number == 0 || number >= GP_LANES_MAX)
		return "invalid lane number";
	for (unsigned int i = 0; i < lanes->count; i++) {
		if (lanes->lanes[i]->number == number)
			return "it has this lane already";
	}
	lane = malloc(sizeof(*lane));
	if (!lane)
		return "the daemon has no memory for it";
	*lane = (struct gpd_lane){ .session = session, .number = number, .conn = conn };
	lane->pack.mode = GP_PACK_OFF;
	if (session->features & GP_FEATURE_LZ4 && !gp_conn_get_device(conn))
		lane->pack.mode = session->compression;
	if (gp_conn_get_device(conn) != gp_conn_get_device(session->conn))
		atomic_store(&lanes->mixed, true);
	if (start_threads(lane)) {
		free(lane);
		return "the daemon has no thread for it";
	}
	lanes->lanes[lanes->count++] = lane;
	return NULL;
}

void
gpd_lanes_stop(struct gpd_session *session)
{
	struct gpd_lanes *lanes = session->copies->lanes;

	if (!lanes)
		return;
	lanes_wake(session);
	for (unsigned int i = 0; i < lanes->count; i++)
		gp_conn_shutdown(lanes->lanes[i]->conn);
	while (lanes->count > 0) {
		struct gpd_lane *lane = lanes->lanes[--lanes->count];

		(void)pthread_join(lane->receiver, NULL);
		(void)pthread_join(lane->sender, NULL);
		gp_conn_discard(lane->conn);
		gp_conn_destroy(lane->conn);
		free(lane);
	}
}

void
gpd_lanes_destroy(struct gpd_session *session)
{
	struct gpd_lanes *lanes = session->copies->lanes;
	struct gpd_lane_outgoing *outgoing, *next;

	if (!lanes)
		return;
	gpd_session_remove_waker(session, &lanes->waker);
	DL_FOREACH_SAFE(lanes->outgoing, outgoing, next)
	{
		free_outgoing(session, outgoing, -ESHUTDOWN);
	}
	gpd_lane_destroy_arrivals(session);
	free(lanes->seen);
	pthread_cond_destroy(&lanes->copy_started);
	pthread_cond_destroy(&lanes->chunk_arrived);
	pthread_cond_destroy(&lanes->out);
	pthread_mutex_destroy(&lanes->lock);
	free(lanes);
	session->copies->lanes = NULL;
}
