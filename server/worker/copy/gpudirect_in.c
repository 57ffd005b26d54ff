/* SPDX-License-Identifier: Apache-2.0 */
#include "protocol/frame.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/gpudirect.h"
#include "server/worker/copy/lane_internal.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/device/gpudirect_memory.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/stream.h"
#include "transport/transport.h"

struct gpd_gpudirect_in
gpd_gpudirect_in_begin(struct gpd_session *session, struct gpd_stream *stream, uint64_t dst,
		       uint64_t size)
{
	struct gpd_gpudirect_in gpudirect = { .device = -1 };

	if (gpd_lanes_are_uniform(session))
		gpudirect.device = gpd_memory_get_gpudirect_device(session, dst, size);
	if (gpudirect.device < 0 || gpd_device_enter(stream->device) != CUDA_SUCCESS)
		return gpudirect;
	gpudirect.may = gpd_driver.cuStreamQuery(stream->driver) == CUDA_SUCCESS;
	gpudirect.waits =
		!gpudirect.may && gpd_stream_record(stream, &stream->before) == CUDA_SUCCESS;
	return gpudirect;
}

/* Chunks of this copy that are still in the stream do not matter to the others: they have other
 * destinations. */
void
gpd_gpudirect_in_poll(struct gpd_session *session, struct gpd_stream *stream, uint64_t dst,
		      struct gpd_gpudirect_in *gpudirect)
{
	struct gpd_lanes *lanes = session->copies->lanes;

	if (!gpudirect->waits || gpd_device_enter(stream->device) != CUDA_SUCCESS ||
	    gpd_driver.cuEventQuery(stream->before) != CUDA_SUCCESS)
		return;
	gpudirect->waits = false;
	gpudirect->may = true;
	pthread_mutex_lock(&lanes->lock);
	lanes->gpudirect = dst;
	pthread_mutex_unlock(&lanes->lock);
}

CUresult
gpd_gpudirect_in_finish(struct gpd_session *session, const struct gpd_gpudirect_in *gpudirect)
{
	if (!gpudirect->went)
		return CUDA_SUCCESS;
	atomic_fetch_add(&session->copies->gpudirect_in, gpudirect->went);
	return gpd_gpudirect_memory_flush(gpudirect->device);
}

void *
gpd_gpudirect_in_get_address(const struct gpd_lane *lane, const struct gp_chunk *chunk)
{
	uint64_t gpudirect = lane->session->copies->lanes->gpudirect;
	void *place = (void *)(uintptr_t)(gpudirect + chunk->offset);

	return gpudirect && gp_conn_has_registered(lane->conn, place, chunk->size) ? place : NULL;
}
