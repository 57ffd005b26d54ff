/* SPDX-License-Identifier: Apache-2.0 */
/* Copies to, from and between arrays. Offsets and sizes from the client are checked here, so that
 * the driver never gets a request beyond an array. */
#include "gpd_calls.h"
#include "server/worker/array/array.h"
#include "server/worker/copy/copy.h"
#include "server/worker/copy/copy_part.h"
#include "server/worker/device/driver.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/stream.h"

static CUresult
copy_in(struct gpd_session *session, const struct gp_args_gpArrayCopyIn *args)
{
	const struct gp_array_box box = { args->x,     args->y,      args->z,
					  args->width, args->height, args->depth };
	struct gpd_cut cut;
	CUarray array;
	CUresult result = gpd_array_find(session, args->array, args->level, &box, &array);

	if (result != CUDA_SUCCESS)
		return result;
	gpd_cut_init_box(&cut, array, &box);
	return gpd_copy_in(session, args->stream, &cut, args->flags);
}

CUresult
gpd_gpArrayCopyIn(struct gpd_session *session, const struct gp_args_gpArrayCopyIn *args)
{
	if (!gpd_copy_in_is_sound(session, args->width, args->height, args->depth, args->flags))
		return CUDA_ERROR_INVALID_VALUE;
	return gpd_copy_in_finish(session, session->current.bulk_left ? copy_in(session, args)
								      : CUDA_SUCCESS);
}

CUresult
gpd_gpArrayCopyOut(struct gpd_session *session, const struct gp_args_gpArrayCopyOut *args)
{
	const struct gp_array_box box = { args->x,     args->y,      args->z,
					  args->width, args->height, args->depth };
	struct gpd_cut cut;
	CUarray array;
	CUresult result;

	if (!gpd_stream_get(session, args->stream))
		return CUDA_ERROR_INVALID_HANDLE;
	result = gpd_array_find(session, args->array, args->level, &box, &array);
	if (result != CUDA_SUCCESS)
		return result;
	gpd_cut_init_box(&cut, array, &box);
	return gpd_copy_out(session, args->stream, &cut, box.width * box.height * box.depth);
}

/* The client's description of one side of a device copy. */
struct side_args {
	uint32_t array, level; /* array 0: linear memory */
	uint64_t slice;
	struct gpd_side side;
};

static CUresult
check_side(struct gpd_session *session, struct side_args *side_args,
	   const struct gp_args_gpArrayCopy *args)
{
	struct gpd_side *side = &side_args->side;
	const struct gp_array_box box = { side->x,     side->y,      side->z,
					  args->width, args->height, args->depth };

	if (!side_args->array && (side->x || side->y || side->z))
		return CUDA_ERROR_INVALID_VALUE;
	if (!side_args->array)
		return gpd_side_check(session, side, side_args->slice, args->width, args->height,
				      args->depth);
	if (side->address || side->pitch || side_args->slice)
		return CUDA_ERROR_INVALID_VALUE;
	return gpd_array_find(session, side_args->array, side_args->level, &box, &side->array);
}

CUresult
gpd_gpArrayCopy(struct gpd_session *session, const struct gp_args_gpArrayCopy *args)
{
	struct side_args dst = { .array = args->dst_array,
				 .level = args->dst_level,
				 .slice = args->dst_slice,
				 .side = { .address = args->dst,
					   .x = args->dst_x,
					   .y = args->dst_y,
					   .z = args->dst_z,
					   .pitch = args->dst_pitch } };
	struct side_args src = { .array = args->src_array,
				 .level = args->src_level,
				 .slice = args->src_slice,
				 .side = { .address = args->src,
					   .x = args->src_x,
					   .y = args->src_y,
					   .z = args->src_z,
					   .pitch = args->src_pitch } };
	struct gpd_stream *stream;
	CUDA_MEMCPY3D copy;
	CUresult result;

	if (!args->width || !args->height || !args->depth)
		return CUDA_SUCCESS;
	result = check_side(session, &dst, args);
	if (result == CUDA_SUCCESS)
		result = check_side(session, &src, args);
	if (result != CUDA_SUCCESS)
		return result;
	result = gpd_stream_begin(session, args->stream, &stream);
	if (result != CUDA_SUCCESS)
		return result;
	copy = gpd_copy_params(&dst.side, &src.side, args->width, args->height, args->depth);
	return gpd_copy_enqueue(session, stream, &copy);
}
