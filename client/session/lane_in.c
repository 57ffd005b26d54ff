/* SPDX-License-Identifier: Apache-2.0 */
/* Copies from the device over data lanes. */
#include "base/lock.h"
#include "client/base/stats.h"
#include "client/guard/guard.h"
#include "client/session/lane_internal.h"
#include "protocol/control.h"

#include <errno.h>
#include <stdlib.h>

static struct gpc_incoming_copy *
incoming_find(struct gpc_lanes *lanes, uint32_t copy) GP_LOCKED(lanes->lock)
{
	struct gpc_incoming_copy *in = lanes->incoming;

	while (in && in->copy != copy)
		in = in->next;
	return in;
}

static bool
lane_may_compress(const struct gpc_lane *lane)
{
	return lane->session->facts.features & GP_FEATURE_LZ4 && !gp_conn_get_device(lane->conn);
}

static int
chunk_recv_bytes(struct gpc_lane *lane, const struct gp_chunk *chunk, void *memory)
{
	int r;

	if (!chunk->packed)
		return gp_conn_recv_bulk(lane->conn, memory, chunk->size);
	if (!lane->packed_in)
		lane->packed_in = malloc(GP_CHUNK_MAX);
	if (!lane->packed_in)
		return gp_conn_fail(lane->conn, -ENOMEM, "no memory for a compressed chunk");
	r = gp_conn_recv_bulk(lane->conn, lane->packed_in, chunk->packed);
	if (r == 0 && gp_unpack(lane->packed_in, chunk->packed, memory, chunk->size) != 0)
		r = gp_conn_fail(lane->conn, -EPROTO, "malformed compressed chunk");
	return r;
}

/* Returns whether an earlier copy to the chunk's memory lacks bytes (lane.h). */
static bool
chunk_is_early(const struct gpc_lanes *lanes, const struct gpc_incoming_copy *in,
	       const struct gp_chunk *chunk) GP_LOCKED(lanes->lock)
{
	uintptr_t start = (uintptr_t)in->memory + chunk->offset, end = start + chunk->size;

	for (const struct gpc_incoming_copy *other = lanes->incoming; other; other = other->next) {
		uintptr_t other_start = (uintptr_t)other->memory;

		if (other->posted > 0 && other->posted <= in->after &&
		    other->stream == in->stream && other->received < other->size &&
		    other_start < end && start < other_start + other->size)
			return true;
	}
	return false;
}

int
gpc_lane_receive_chunk(struct gpc_lane *lane)
{
	struct gpc_lanes *lanes = lane->session->lanes;
	struct gpc_incoming_copy *in = NULL;
	struct gp_message message;
	struct gp_chunk chunk;
	int r = gp_conn_recv(lane->conn, &message);

	if (r != 0)
		return r;
	gpc_silence_note_progress(&lane->session->silence);
	gpc_stats_received(message.size + message.bulk_size);
	if (gp_chunk_decode(&chunk, message.data, message.size, message.bulk_size) != 0 ||
	    (chunk.packed && !lane_may_compress(lane)))
		return gp_conn_fail(lane->conn, -EPROTO, "malformed chunk");
	(void)pthread_mutex_lock(&lanes->lock);
	if (!lanes->over)
		in = incoming_find(lanes, chunk.copy);
	if (in && (chunk.offset > in->size || chunk.size > in->size - chunk.offset))
		in = NULL;
	if (in)
		in->busy++;
	while (in && in->after > 0 && !lanes->over && chunk_is_early(lanes, in, &chunk))
		(void)pthread_cond_wait(&lanes->changed, &lanes->lock);
	(void)pthread_mutex_unlock(&lanes->lock);
	if (!in)
		return gp_conn_fail(lane->conn, -EPROTO, "a chunk that was not requested");
	r = chunk_recv_bytes(lane, &chunk, in->memory + chunk.offset);
	(void)pthread_mutex_lock(&lanes->lock);
	in->busy--;
	if (r == 0)
		in->received += chunk.size;
	(void)pthread_cond_broadcast(&lanes->changed);
	(void)pthread_mutex_unlock(&lanes->lock);
	return r;
}

void
gpc_lanes_expect(struct gpc_session *session, struct gpc_incoming_copy *in)
{
	struct gpc_lanes *lanes = session->lanes;

	(void)pthread_mutex_lock(&lanes->lock);
	do
		in->copy = ++lanes->last_in;
	while (incoming_find(lanes, in->copy));
	/* Copies that are known to be posted now come before this one. */
	in->after = in->ordered ? lanes->last_posted : 0;
	in->next = lanes->incoming;
	lanes->incoming = in;
	(void)pthread_mutex_unlock(&lanes->lock);
}

void
gpc_lanes_posted(struct gpc_session *session, struct gpc_incoming_copy *in)
{
	struct gpc_lanes *lanes = session->lanes;

	(void)pthread_mutex_lock(&lanes->lock);
	in->posted = ++lanes->last_posted;
	(void)pthread_mutex_unlock(&lanes->lock);
}

void
gpc_lanes_finish(struct gpc_session *session, struct gpc_incoming_copy *in, uint64_t sent)
{
	struct gpc_lanes *lanes = session->lanes;
	struct gpc_incoming_copy **place = &lanes->incoming;

	gpc_guard_block();
	(void)pthread_mutex_lock(&lanes->lock);
	while ((in->received < sent && !lanes->over) || in->busy > 0)
		(void)pthread_cond_wait(&lanes->changed, &lanes->lock);
	while (*place != in)
		place = &(*place)->next;
	*place = in->next;
	/* After a failed copy, chunks may be waiting for bytes that will not arrive. */
	if (in->received < in->size)
		(void)pthread_cond_broadcast(&lanes->changed);
	(void)pthread_mutex_unlock(&lanes->lock);
}
