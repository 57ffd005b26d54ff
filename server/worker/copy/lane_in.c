/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks on their way to the device: from a lane's connection to the executor. */
#include "base/clock.h"
#include "base/lock.h"
#include "protocol/control.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/gpudirect.h"
#include "server/worker/copy/lane_internal.h"
#include "server/worker/session/session.h"
#include "transport/transport.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

/* How often the executor checks whether the session is lost while no chunk arrives. */
#define POLL_MS 100
/* Once a lane has ended, or lane 0, missing chunks are not expected on other lanes after this
 * time. */
#define ENDED_MS 200

/* Number of copies between the executor's current one and this one; -1: the copy is over. */
static int64_t
copy_distance(const struct gpd_lanes *lanes, uint32_t copy) GP_LOCKED(lanes->lock)
{
	int32_t ahead = (int32_t)(copy - lanes->copy);

	return ahead < 0 || (ahead == 0 && !lanes->expecting) ? -1 : ahead;
}

/* Marks a chunk of the executor's copy as received. Returns NULL or the reason why it is
 * invalid. */
static const char *
chunk_enter(struct gpd_lanes *lanes, const struct gp_chunk *chunk) GP_LOCKED(lanes->lock)
{
	uint64_t index = chunk->offset / lanes->step;
	uint64_t expected = gp_chunk_get_expected_size(lanes->size, lanes->step, chunk->offset);

	if (!expected)
		return "out of place";
	if (chunk->size != expected)
		return "of the wrong size";
	if (lanes->seen[index / 8] >> index % 8 & 1)
		return "that was received before";
	lanes->seen[index / 8] |= (uint8_t)(1 << index % 8);
	lanes->heard_ms = gp_now_ms();
	return NULL;
}

static void
chunk_log_violation(struct gpd_session *session, unsigned int lane, const struct gp_chunk *chunk,
		    const char *what)
{
	gpd_session_violation(session, "data lane %u: a chunk %s (copy %u, offset %llu, size %llu)",
			      lane, what, (unsigned int)chunk->copy,
			      (unsigned long long)chunk->offset, (unsigned long long)chunk->size);
}

static int
chunk_violation(struct gpd_lane *lane, const struct gp_chunk *chunk, const char *what)
{
	chunk_log_violation(lane->session, lane->number, chunk, what);
	gpd_session_stop(lane->session, "");
	return -EPROTO;
}

static unsigned int
ahead_max(const struct gpd_lanes *lanes) GP_LOCKED(lanes->lock)
{
	return lanes->gpudirect ? 0 : GPD_LANES_AHEAD;
}

static int
chunk_admit(struct gpd_lane *lane, const struct gp_chunk *chunk, bool *ahead_p, void **place_p)
{
	struct gpd_lanes *lanes = lane->session->copies->lanes;
	const char *wrong = NULL;
	int64_t apart = 0;
	bool over;

	pthread_mutex_lock(&lanes->lock);
	while (!(over = atomic_load(&lane->session->closing)) &&
	       (apart = copy_distance(lanes, chunk->copy)) > 0 && lanes->ahead >= ahead_max(lanes))
		pthread_cond_wait(&lanes->copy_started, &lanes->lock);
	*ahead_p = apart > 0;
	*place_p = apart == 0 ? gpd_gpudirect_in_get_address(lane, chunk) : NULL;
	if (!over && apart > 0)
		lanes->ahead++;
	else if (!over)
		wrong = apart < 0 ? "of a copy that is over" : chunk_enter(lanes, chunk);
	lanes->coming[lane->number] = (struct gpd_lane_coming){ !over && apart == 0, chunk->copy };
	pthread_mutex_unlock(&lanes->lock);
	if (wrong)
		return chunk_violation(lane, chunk, wrong);
	return over ? -ESHUTDOWN : 0;
}

static bool
is_ahead(struct gpd_lanes *lanes, uint32_t copy)
{
	bool ahead;

	pthread_mutex_lock(&lanes->lock);
	ahead = copy_distance(lanes, copy) > 0;
	pthread_mutex_unlock(&lanes->lock);
	return ahead;
}

static int
staging_acquire(struct gpd_lane *lane, const struct gp_chunk *chunk, bool ahead,
		struct gpd_piece *piece)
{
	struct gpd_session *session = lane->session;
	CUresult result;

	while ((result = gpd_staging_acquire_lane(
			session, ahead, ahead && is_ahead(session->copies->lanes, chunk->copy),
			piece)) == CUDA_ERROR_NOT_READY &&
	       !atomic_load(&session->closing))
		gpd_staging_nap();
	if (result == CUDA_SUCCESS) {
		pthread_mutex_lock(&session->copies->lanes->lock);
		session->copies->lanes->coming[lane->number].any = true;
		pthread_mutex_unlock(&session->copies->lanes->lock);
		return 0;
	}
	if (result != CUDA_ERROR_NOT_READY)
		gpd_session_stop(session, "the daemon is out of pinned memory for its data lanes");
	return -ESHUTDOWN;
}

static int
chunk_deliver(struct gpd_lane *lane, bool ahead, const struct gp_chunk *chunk,
	      struct gpd_piece *piece)
{
	struct gpd_lane_arrived *arrived = malloc(sizeof(*arrived));
	struct gpd_lanes *lanes = lane->session->copies->lanes;

	if (!arrived) {
		gpd_session_stop(lane->session,
				 "the daemon's machine is out of memory for its data lanes");
		return -ENOMEM;
	}
	*arrived = (struct gpd_lane_arrived){
		.lane = lane->number, .ahead = ahead, .chunk = *chunk, .piece = *piece
	};
	piece->slot = NULL;
	pthread_mutex_lock(&lanes->lock);
	lanes->coming[lane->number].any = false;
	lanes->heard_ms = gp_now_ms();
	DL_APPEND(lanes->arrived, arrived);
	pthread_mutex_unlock(&lanes->lock);
	pthread_cond_signal(&lanes->chunk_arrived);
	return 0;
}

static int
receive_bytes(struct gpd_lane *lane, uint8_t *memory, size_t size, bool gpudirect)
{
	struct gpd_session *session = lane->session;
	int r = 0;

	if (gpudirect)
		gpd_account_throttle_all(&session->account, size);
	while (r == 0 && size > 0) {
		size_t part = gpudirect ? size : gpd_account_throttle(&session->account, size);

		r = gp_conn_recv_bulk(lane->conn, memory, part);
		memory += part;
		size -= part;
	}
	return r;
}

static int
receive_packed(struct gpd_lane *lane, const struct gp_chunk *chunk, void *memory)
{
	int r = receive_bytes(lane, gp_unpack_get_source(memory, chunk->packed, chunk->size),
			      chunk->packed, false);

	if (r == 0 && gp_unpack_in_place(memory, chunk->packed, chunk->size) != 0)
		return chunk_violation(lane, chunk, "that is compressed wrongly");
	if (r)
		gpd_lane_fail(lane);
	return r;
}

static bool
may_be_packed(const struct gpd_lane *lane)
{
	return lane->session->features & GP_FEATURE_LZ4 && !gp_conn_get_device(lane->conn);
}

static int
receive_chunk(struct gpd_lane *lane)
{
	struct gpd_session *session = lane->session;
	struct gpd_piece piece = { 0 };
	struct gp_message message;
	struct gp_chunk chunk = { 0 };
	void *memory;
	bool ahead;
	int r = gp_conn_recv(lane->conn, &message);

	if (r < 0)
		gpd_lane_fail(lane);
	if (r)
		return r;
	if (gp_chunk_decode(&chunk, message.data, message.size, message.bulk_size) ||
	    (chunk.packed && !may_be_packed(lane)))
		return chunk_violation(lane, &chunk, "that is malformed");
	r = chunk_admit(lane, &chunk, &ahead, &memory);
	if (r == 0 && !memory) {
		r = staging_acquire(lane, &chunk, ahead, &piece);
		memory = piece.memory;
	}
	if (r)
		return r;
	if (chunk.packed) {
		r = receive_packed(lane, &chunk, memory);
	} else {
		r = receive_bytes(lane, memory, chunk.size, piece.memory == NULL);
		if (r)
			gpd_lane_fail(lane);
	}
	if (r == 0)
		r = chunk_deliver(lane, ahead, &chunk, &piece);
	gpd_staging_release(session, &piece);
	return r;
}

void *
gpd_lane_receive(void *arg)
{
	struct gpd_lane *lane = arg;
	struct gpd_lanes *lanes = lane->session->copies->lanes;
	int r;

	do
		r = receive_chunk(lane);
	while (r == 0);
	pthread_mutex_lock(&lanes->lock);
	if (!lanes->ended)
		lanes->ended = lane->number;
	lanes->coming[lane->number].any = false;
	pthread_mutex_unlock(&lanes->lock);
	pthread_cond_signal(&lanes->chunk_arrived);
	return NULL;
}

static struct gpd_lane_arrived *
find_arrived(const struct gpd_lanes *lanes) GP_LOCKED(lanes->lock)
{
	struct gpd_lane_arrived *arrived;

	DL_FOREACH(lanes->arrived, arrived)
	{
		if (copy_distance(lanes, arrived->chunk.copy) <= 0)
			break;
	}
	return arrived;
}

int
gpd_lanes_expect(struct gpd_session *session, uint32_t copy, uint64_t size, uint64_t gpudirect)
{
	struct gpd_lanes *lanes = session->copies->lanes;
	uint64_t step = gp_chunk_get_step(size, session->features & GP_FEATURE_SPREAD);
	uint64_t chunks = size / step + 1;
	uint8_t *seen = calloc(chunks / 8 + 1, 1);

	if (!seen) {
		gpd_session_violation(
			session, "the daemon's machine is out of memory for a copy of %llu bytes",
			(unsigned long long)size);
		return -EPROTO;
	}
	pthread_mutex_lock(&session->copies->lanes->lock);
	if (copy != (uint32_t)(lanes->copy + 1)) {
		pthread_mutex_unlock(&session->copies->lanes->lock);
		free(seen);
		gpd_session_violation(session, "a copy over data lanes is number %u, not %u",
				      (unsigned int)copy, (unsigned int)(lanes->copy + 1));
		return -EPROTO;
	}
	free(lanes->seen);
	lanes->seen = seen;
	lanes->copy = copy;
	lanes->size = lanes->left = size;
	lanes->step = step;
	lanes->gpudirect = gpudirect;
	lanes->expecting = true;
	lanes->heard_ms = gp_now_ms();
	pthread_mutex_unlock(&session->copies->lanes->lock);
	pthread_cond_broadcast(&lanes->copy_started);
	return 0;
}

static bool
is_coming(const struct gpd_lanes *lanes) GP_LOCKED(lanes->lock)
{
	for (int i = 0; i < GP_LANES_MAX; i++) {
		if (lanes->coming[i].any && lanes->coming[i].copy == lanes->copy)
			return true;
	}
	return false;
}

static bool
is_missing(const struct gpd_session *session) GP_LOCKED(session->copies->lanes->lock)
{
	const struct gpd_lanes *lanes = session->copies->lanes;
	int64_t silent_ms = gp_now_ms() - lanes->heard_ms;

	if (silent_ms < ENDED_MS || is_coming(session->copies->lanes))
		return false;
	return lanes->ended || (lanes->stall_ms && silent_ms >= lanes->stall_ms) ||
	       gp_conn_peer_closed(session->conn);
}

static void
copy_abandon(struct gpd_session *session, unsigned int ended)
{
	const struct gpd_lanes *lanes = session->copies->lanes;
	char reason[100];

	if (ended)
		snprintf(reason, sizeof(reason), "data lane %u ended in the middle of a copy",
			 ended);
	else if (gp_conn_peer_closed(session->conn))
		snprintf(reason, sizeof(reason), "the client closed it in the middle of a copy");
	else
		snprintf(reason, sizeof(reason),
			 "%llu bytes of copy %u did not come on its data lanes",
			 (unsigned long long)lanes->left, (unsigned int)lanes->copy);
	gpd_session_stop(session, reason);
}

static void
wait_for_chunk(struct gpd_session *session) GP_LOCKED(session->copies->lanes->lock)
{
	struct gpd_lanes *lanes = session->copies->lanes;
	uint64_t ms = session->copies->out ? GPD_COPY_CONTINUE_MS : POLL_MS;

	(void)gp_cond_wait_until(&lanes->chunk_arrived, &session->copies->lanes->lock,
				 gp_now_ns() + ms * 1000000);
	if (session->copies->out && !find_arrived(session->copies->lanes)) {
		pthread_mutex_unlock(&session->copies->lanes->lock);
		(void)gpd_copy_continue(session);
		pthread_mutex_lock(&session->copies->lanes->lock);
	}
}

static const char *
arrived_remove(struct gpd_session *session, struct gpd_lane_arrived *arrived)
	GP_LOCKED(session->copies->lanes->lock)
{
	struct gpd_lanes *lanes = session->copies->lanes;
	const char *wrong = NULL;

	DL_DELETE(lanes->arrived, arrived);
	if (arrived->ahead) {
		lanes->ahead--;
		gpd_staging_end_ahead(session);
		pthread_cond_signal(&lanes->copy_started);
		wrong = copy_distance(session->copies->lanes, arrived->chunk.copy) < 0
				? "of a copy that is over"
				: chunk_enter(session->copies->lanes, &arrived->chunk);
	}
	if (!wrong)
		lanes->left -= arrived->chunk.size;
	if (lanes->left == 0)
		lanes->expecting = false;
	return wrong;
}

static int
arrived_to_arrival(struct gpd_session *session, struct gpd_lane_arrived *arrived, const char *wrong,
		   struct gpd_arrival *arrival)
{
	*arrival = (struct gpd_arrival){
		.offset = arrived->chunk.offset,
		.size = arrived->chunk.size,
		.piece = arrived->piece,
	};
	if (wrong) {
		chunk_log_violation(session, arrived->lane, &arrived->chunk, wrong);
		gpd_staging_release(session, &arrival->piece);
	}
	free(arrived);
	return wrong ? -EPROTO : 1;
}

int
gpd_lanes_pop(struct gpd_session *session, struct gpd_arrival *arrival)
{
	struct gpd_lanes *lanes = session->copies->lanes;
	struct gpd_lane_arrived *arrived = NULL;
	const char *wrong = NULL;
	unsigned int ended;
	bool missing = false;
	int r = 0;

	pthread_mutex_lock(&session->copies->lanes->lock);
	while (r == 0 && lanes->left > 0 && !(arrived = find_arrived(session->copies->lanes))) {
		missing = is_missing(session);
		if (missing || atomic_load(&session->closing) || atomic_load(&session->sticky))
			r = -ESHUTDOWN;
		else
			wait_for_chunk(session);
	}
	if (arrived)
		wrong = arrived_remove(session, arrived);
	ended = lanes->ended;
	pthread_mutex_unlock(&session->copies->lanes->lock);
	if (missing)
		copy_abandon(session, ended);
	return arrived ? arrived_to_arrival(session, arrived, wrong, arrival) : r;
}

void
gpd_lane_destroy_arrivals(struct gpd_session *session)
{
	struct gpd_lanes *lanes = session->copies->lanes;
	struct gpd_lane_arrived *arrived, *next;

	DL_FOREACH_SAFE(lanes->arrived, arrived, next)
	{
		gpd_staging_release(session, &arrived->piece);
		free(arrived);
	}
}
