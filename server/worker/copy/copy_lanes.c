/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large copies to the device, whose bytes arrive on the data lanes (lane.h). The executor gives the
 * chunks to the stream as they arrive and goes on to the next record when it has all of them, as
 * with a copy on lane 0.
 *
 * Later work is given to a stream only after the executor has all chunks. It is therefore ordered
 * after them even where chunks are written directly to the device by GPUDirect (gpudirect.h).
 */
#include "gpd_calls.h"
#include "protocol/frame.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/copy_part.h"
#include "server/worker/copy/gpudirect.h"
#include "server/worker/copy/lane.h"
#include "server/worker/device/device.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/responder.h"
#include "server/worker/stream/stream.h"

/* Larger than the address space. */
#define SIZE_LIMIT ((uint64_t)1 << 47)

static CUresult
chunk_enqueue(struct gpd_session *session, struct gpd_stream *stream,
	      const struct gp_args_gpCopyInLanes *args, struct gpd_arrival *arrival)
{
	const struct gpd_part part =
		gpd_part_from_range(args->dst + arrival->offset, arrival->size);
	/* While this copy waited, another one may have made its own device current. */
	CUresult result = gpd_device_enter(stream->device);

	if (result == CUDA_SUCCESS && (args->flags & GP_COPY_LISTED))
		result = gpd_staging_list(session, &arrival->piece,
					  args->flags >> GP_COPY_NUMBER_SHIFT, arrival->offset,
					  arrival->size);
	if (result == CUDA_SUCCESS)
		result = gpd_part_copy(session, stream, &part, arrival->piece.memory, true);
	if (result != CUDA_SUCCESS) {
		gpd_staging_release(session, &arrival->piece);
		return result;
	}
	/* If this fails, the slot is never reused: the device may still read it. */
	return gpd_wait_add(session, stream, gpd_staging_done, arrival->piece.slot);
}

bool
gpd_copy_lanes_is_sound(struct gpd_session *session, const struct gp_args_gpCopyInLanes *args)
{
	if (session->copies->lanes && args->size && args->size < SIZE_LIMIT &&
	    gp_copy_flags_are_valid(args->flags))
		return true;
	gpd_session_violation(session, "copy of %lu bytes with flags %#x on its data lanes",
			      args->size, (unsigned int)args->flags);
	return false;
}

static CUresult
arrival_consume(struct gpd_session *session, struct gpd_stream *stream,
		const struct gp_args_gpCopyInLanes *args, struct gpd_arrival *arrival,
		struct gpd_gpudirect_in *gpudirect)
{
	if (arrival->piece.memory) {
		CUresult result = chunk_enqueue(session, stream, args, arrival);

		gpd_gpudirect_in_poll(session, stream, args->dst, gpudirect);
		return result;
	}
	gpudirect->went += arrival->size;
	return CUDA_SUCCESS;
}

CUresult
gpd_gpCopyInLanes(struct gpd_session *session, const struct gp_args_gpCopyInLanes *args)
{
	struct gpd_stream *stream = NULL;
	struct gpd_gpudirect_in gpudirect = { .device = -1 };
	struct gpd_arrival arrival;
	CUresult result;
	int r;

	if (!gpd_copy_lanes_is_sound(session, args))
		return CUDA_ERROR_INVALID_VALUE;
	gpd_account_copy(&session->account, args->size, 0);
	result = gpd_memory_check_rows(session, args->dst, args->size, args->size, 1);
	if (result == CUDA_SUCCESS)
		result = gpd_stream_begin(session, args->stream, &stream);
	/* Bytes that may be replaced must stay in staging until the stream reaches them. */
	if (result == CUDA_SUCCESS && !(args->flags & GP_COPY_LISTED))
		gpudirect = gpd_gpudirect_in_begin(session, stream, args->dst, args->size);
	if (gpd_lanes_expect(session, args->copy, args->size, gpudirect.may ? args->dst : 0))
		return CUDA_ERROR_INVALID_VALUE;
	/* The client sends the chunks even if the destination turned out to be invalid. */
	while ((r = gpd_lanes_pop(session, &arrival)) > 0) {
		if (result == CUDA_SUCCESS)
			result = arrival_consume(session, stream, args, &arrival, &gpudirect);
		else
			gpd_staging_release(session, &arrival.piece);
	}
	if (r < 0 && result == CUDA_SUCCESS)
		result = CUDA_ERROR_OPERATING_SYSTEM;
	if (result == CUDA_SUCCESS)
		result = gpd_gpudirect_in_finish(session, &gpudirect);
	if (result == CUDA_SUCCESS && (args->flags & GP_COPY_BARRIER))
		result = gpd_stream_barrier(session, stream);
	return result;
}
