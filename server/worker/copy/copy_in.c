/* SPDX-License-Identifier: Apache-2.0 */
/* Copies from the client to the device: the hooks of gpCopyIn and gpCopyInShort.  The bytes pass
 * through staging memory in parts, so that the network and the copy engines work at the same time.
 */
#include "gpd_calls.h"
#include "protocol/frame.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/copy_part.h"
#include "server/worker/copy/staging.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/responder.h"
#include "server/worker/stream/stream.h"

/* A failed receive needs no report here: the next record fails in the same way. */
static CUresult
receive_part(struct gpd_session *session, const struct gpd_part *part, struct gpd_stream *stream,
	     uint32_t flags, uint64_t offset)
{
	struct gpd_piece piece;
	CUresult result = gpd_staging_acquire_in(session, part->size, &piece);

	if (result != CUDA_SUCCESS)
		return result;
	if (gpd_session_recv_bulk(session, piece.memory, part->size))
		result = CUDA_ERROR_OPERATING_SYSTEM;
	if (result == CUDA_SUCCESS && (flags & GP_COPY_LISTED))
		result = gpd_staging_list(session, &piece, flags >> GP_COPY_NUMBER_SHIFT, offset,
					  part->size);
	if (result == CUDA_SUCCESS)
		result = gpd_part_copy(session, stream, part, piece.memory, true);
	if (result != CUDA_SUCCESS)
		gpd_staging_release(session, &piece);
	else if (piece.slot)
		result = gpd_wait_add(session, stream, gpd_staging_done, piece.slot);
	return result;
}

CUresult
gpd_copy_in(struct gpd_session *session, uint32_t id, struct gpd_cut *cut, uint32_t flags)
{
	struct gpd_stream *stream;
	struct gpd_part part;
	uint64_t offset = 0;
	CUresult result = gpd_stream_begin(session, id, &stream);

	while (result == CUDA_SUCCESS && gpd_cut_next(cut, &part)) {
		result = receive_part(session, &part, stream, flags, offset);
		offset += part.size;
	}
	if (result == CUDA_SUCCESS && (flags & GP_COPY_BARRIER))
		result = gpd_stream_barrier(session, stream);
	return result;
}

bool
gpd_copy_in_is_sound(struct gpd_session *session, uint64_t width, uint64_t height, uint64_t depth,
		     uint32_t flags)
{
	uint64_t bulk = session->current.bulk_left, total;

	if (__builtin_mul_overflow(width, height, &total) ||
	    __builtin_mul_overflow(total, depth, &total) || total != bulk ||
	    !gp_copy_flags_are_valid(flags)) {
		gpd_session_violation(
			session, "copy of %lu slices of %lu rows of %lu bytes with a tail of %lu",
			depth, height, width, bulk);
		return false;
	}
	gpd_account_copy(&session->account, total, 0);
	return true;
}

CUresult
gpd_copy_in_finish(struct gpd_session *session, CUresult result)
{
	if (result != CUDA_SUCCESS)
		(void)gpd_session_recv_bulk(session, NULL, session->current.bulk_left);
	return result;
}

static CUresult
copy_in(struct gpd_session *session, const struct gp_args_gpCopyIn *args)
{
	struct gpd_cut cut;
	CUresult result =
		gpd_memory_check_rows(session, args->dst, args->pitch, args->width, args->height);

	if (result != CUDA_SUCCESS)
		return result;
	gpd_cut_init(&cut, args->dst, args->pitch, args->width, args->height);
	return gpd_copy_in(session, args->stream, &cut, args->flags);
}

CUresult
gpd_gpCopyIn(struct gpd_session *session, const struct gp_args_gpCopyIn *args)
{
	if (!gpd_copy_in_is_sound(session, args->width, args->height, 1, args->flags))
		return CUDA_ERROR_INVALID_VALUE;
	return gpd_copy_in_finish(session, session->current.bulk_left ? copy_in(session, args)
								      : CUDA_SUCCESS);
}

/* The record's own bytes are treated as bulk that has already arrived. */
CUresult
gpd_gpCopyInShort(struct gpd_session *session, const struct gp_args_gpCopyInShort *args)
{
	const struct gp_args_gpCopyIn copy = { .stream = args->stream,
					       .dst = args->dst,
					       .pitch = args->pitch,
					       .width = args->width,
					       .height = args->height,
					       .flags = args->flags };
	CUresult result;

	session->current.bulk_read = args->data.data;
	session->current.bulk_left = args->data.size;
	result = gpd_gpCopyIn(session, &copy);
	session->current.bulk_read = NULL;
	session->current.bulk_left = 0;
	return result;
}
