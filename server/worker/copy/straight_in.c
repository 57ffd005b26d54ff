/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/frame.h"
#include "server/worker/copy/lane_state.h"
#include "server/worker/copy/straight.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/peer_memory.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/session.h"
#include "server/worker/session/stream.h"
#include "transport/transport.h"

struct gpd_straight_in
gpd_straight_in_begin(struct gpd_session *session, struct gpd_stream *stream, uint64_t dst,
		      uint64_t size)
{
	struct gpd_straight_in straight = { .device = -1 };

	if (gpd_lanes_uniform(session))
		straight.device = gpd_memory_reach(session, dst, size);
	if (straight.device < 0 || gpd_device_enter(stream->device) != CUDA_SUCCESS)
		return straight;
	straight.may = gpd_driver.cuStreamQuery(stream->driver) == CUDA_SUCCESS;
	straight.waits =
		!straight.may && gpd_stream_record(stream, &stream->before) == CUDA_SUCCESS;
	return straight;
}

/* Chunks of this copy that are on their way through the stream do not matter to the others. */
void
gpd_straight_in_look(struct gpd_session *session, struct gpd_stream *stream, uint64_t dst,
		     struct gpd_straight_in *straight)
{
	struct gpd_lanes *lanes = session->lanes;

	if (!straight->waits || gpd_device_enter(stream->device) != CUDA_SUCCESS ||
	    gpd_driver.cuEventQuery(stream->before) != CUDA_SUCCESS)
		return;
	straight->waits = false;
	straight->may = true;
	pthread_mutex_lock(&lanes->lock);
	lanes->straight = dst;
	pthread_mutex_unlock(&lanes->lock);
}

CUresult
gpd_straight_in_end(struct gpd_session *session, const struct gpd_straight_in *straight)
{
	if (!straight->went)
		return CUDA_SUCCESS;
	atomic_fetch_add(&session->straight_in, straight->went);
	return gpd_peer_memory_written(straight->device);
}

void *
gpd_straight_in_place(const struct gpd_lane *lane, const struct gp_chunk *chunk)
{
	uint64_t straight = lane->session->lanes->straight;
	void *place = (void *)(uintptr_t)(straight + chunk->offset);

	return straight && gp_conn_reaches(lane->conn, place, chunk->size) ? place : NULL;
}
