/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/copy/copy_part.h"

#include "server/common/base/integers.h"
#include "server/worker/copy/peer_stream.h"
#include "server/worker/copy/registration_split.h"
#include "server/worker/copy/staging.h"
#include "server/worker/device/device.h"
#include "server/worker/device/driver.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/session.h"
#include "server/worker/stream/stream.h"

/* Short copies are split too, so that their first part is sent early. */
#define PART_MIN ((size_t)256 << 10)
/* The largest pitch of the driver's 2D copies; with a larger one, rows are copied singly. */
#define PITCH_MAX ((uint64_t)INT32_MAX)
/* Largest element of an array; smaller sizes divide it. */
#define ELEMENT_MAX 16

CUresult
gpd_side_check(struct gpd_session *session, struct gpd_side *side, uint64_t slice, uint64_t width,
	       uint64_t height, uint64_t depth)
{
	uint64_t plane, span;

	if (!gpd_memory_get_span(side->pitch, width, height, &plane) ||
	    !gpd_memory_get_span(slice, plane, depth, &span) ||
	    !gpd_memory_accessible(session, side->address, span))
		return CUDA_ERROR_INVALID_VALUE;
	/* The driver measures the distance of slices in rows. */
	if (depth > 1 && (!side->pitch || slice % side->pitch))
		return CUDA_ERROR_INVALID_VALUE;
	side->rows = depth > 1 ? slice / side->pitch : height;
	return CUDA_SUCCESS;
}

static size_t
largest_part(uint64_t total)
{
	if (total >= 4 * GPD_STAGING_SLOT)
		return GPD_STAGING_SLOT;
	return total / 4 > PART_MIN ? total / 4 : PART_MIN;
}

void
gpd_cut_init(struct gpd_cut *cut, uint64_t address, uint64_t pitch, uint64_t width, uint64_t height)
{
	bool linear = height == 1 || pitch == width;

	*cut = (struct gpd_cut){
		.address = address,
		.pitch = pitch,
		.box = { .width = linear ? width * height : width,
			 .height = linear ? 1 : height,
			 .depth = 1 },
		.largest = largest_part(width * height),
	};
}

void
gpd_cut_init_box(struct gpd_cut *cut, CUarray array, const struct gp_array_box *box)
{
	*cut = (struct gpd_cut){
		.array = array,
		.box = *box,
		.largest = largest_part(box->width * box->height * box->depth),
	};
}

/* A part is several slices, several rows of one slice, or a section of one row in whole
 * elements. */
bool
gpd_cut_next(struct gpd_cut *cut, struct gpd_part *part)
{
	const struct gp_array_box *all = &cut->box;
	uint64_t plane = all->width * all->height, left = all->width - cut->column;
	bool row_by_row = !cut->array && all->height > 1 && cut->pitch > PITCH_MAX;

	if (cut->slice == all->depth)
		return false;
	*part = gpd_part_from_range(cut->address + cut->row * cut->pitch + cut->column, left);
	if (cut->array)
		part->side = (struct gpd_side){ .array = cut->array,
						.x = all->x + cut->column,
						.y = all->y + cut->row,
						.z = all->z + cut->slice };
	if (cut->row == 0 && plane <= cut->largest && !row_by_row) {
		part->height = all->height;
		part->depth = gpd_u64_min(all->depth - cut->slice, cut->largest / plane);
		cut->slice += part->depth;
	} else if (all->width <= cut->largest) {
		part->height =
			row_by_row ? 1
				   : gpd_u64_min(all->height - cut->row, cut->largest / all->width);
		cut->row += part->height;
	} else {
		part->width = gpd_u64_min(left, cut->largest - cut->largest % ELEMENT_MAX);
		cut->column = part->width < left ? cut->column + part->width : 0;
		cut->row += part->width == left;
	}
	if (cut->row == all->height) {
		cut->row = 0;
		cut->slice++;
	}
	if (!cut->array) {
		part->side.pitch = cut->pitch;
		part->side.rows = part->height;
	}
	part->size = part->width * part->height * part->depth;
	return true;
}

struct gpd_part
gpd_part_from_range(uint64_t address, size_t size)
{
	return (struct gpd_part){
		.side = { .address = address, .pitch = size, .rows = 1 },
		.width = size,
		.height = 1,
		.depth = 1,
		.size = size,
	};
}

static CUmemorytype
side_get_type(const struct gpd_side *side)
{
	if (side->array)
		return CU_MEMORYTYPE_ARRAY;
	return side->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

CUDA_MEMCPY3D
gpd_copy_params(const struct gpd_side *dst, const struct gpd_side *src, uint64_t width,
		uint64_t height, uint64_t depth)
{
	return (CUDA_MEMCPY3D){
		.srcMemoryType = side_get_type(src),
		.srcArray = src->array,
		.srcHost = src->host,
		.srcDevice = src->address,
		.srcXInBytes = src->x,
		.srcY = src->y,
		.srcZ = src->z,
		.srcPitch = src->pitch,
		.srcHeight = src->rows,
		.dstMemoryType = side_get_type(dst),
		.dstArray = dst->array,
		.dstHost = (void *)dst->host,
		.dstDevice = dst->address,
		.dstXInBytes = dst->x,
		.dstY = dst->y,
		.dstZ = dst->z,
		.dstPitch = dst->pitch,
		.dstHeight = dst->rows,
		.WidthInBytes = width,
		.Height = height,
		.Depth = depth,
	};
}

static CUresult
part_copy(void *stream, const CUDA_MEMCPY3D *copy)
{
	bool row = copy->Height == 1 && copy->Depth == 1;

	if (row && copy->dstMemoryType == CU_MEMORYTYPE_DEVICE)
		return gpd_driver.cuMemcpyHtoDAsync_v2(copy->dstDevice, copy->srcHost,
						       copy->WidthInBytes, stream);
	if (row && copy->srcMemoryType == CU_MEMORYTYPE_DEVICE)
		return gpd_driver.cuMemcpyDtoHAsync_v2(copy->dstHost, copy->srcDevice,
						       copy->WidthInBytes, stream);
	return gpd_driver.cuMemcpy3DAsync_v2(copy, stream);
}

static CUresult
part_enqueue(struct gpd_session *session, const struct gpd_part *part, void *host, bool in,
	     CUstream stream)
{
	const struct gpd_side memory = { .host = host, .pitch = part->width, .rows = part->height };
	const struct gpd_side *side = &part->side;
	CUDA_MEMCPY3D copy = gpd_copy_params(in ? side : &memory, in ? &memory : side, part->width,
					     part->height, part->depth);

	return gpd_registration_split_copy(session, &copy, part_copy, stream);
}

CUresult
gpd_part_copy(struct gpd_session *session, struct gpd_stream *stream, const struct gpd_part *part,
	      void *host, bool in)
{
	int remote_device =
		part->side.array
			? -1
			: gpd_memory_get_remote_device(session, part->side.address, stream->device);
	CUresult result = gpd_device_enter(stream->device), end;
	CUstream peer_stream;

	if (result != CUDA_SUCCESS)
		return result;
	/* The marker after a part reports that the stream has reached its work count. */
	stream->work = gpd_session_count_work(session);
	if (remote_device < 0)
		return part_enqueue(session, part, host, in, stream->driver);
	result = gpd_peer_stream_begin(stream, remote_device, &peer_stream);
	if (result != CUDA_SUCCESS)
		return result;
	result = part_enqueue(session, part, host, in, peer_stream);
	end = gpd_peer_stream_end(stream);
	return result == CUDA_SUCCESS ? end : result;
}
