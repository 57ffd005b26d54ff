/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/copy/copy_part.h"

#include "server/worker/copy/staging.h"
#include "server/worker/device/driver.h"
#include "server/worker/memory/memory.h"
#include "server/worker/session/session.h"
#include "server/worker/session/stream.h"

/* Short copies are cut, too, so that their first part is on its way early. */
#define PART_MIN ((size_t)256 << 10)
/* The driver's 2D copies take no larger pitch; rows are then copied one by one. */
#define PITCH_MAX ((uint64_t)INT32_MAX)
/* Of arrays; smaller ones divide it. */
#define ELEMENT_MAX 16

bool
gpd_cut_span(uint64_t pitch, uint64_t width, uint64_t height, uint64_t *span_p)
{
	uint64_t rest;

	if (height == 1) {
		*span_p = width;
		return true;
	}
	return pitch >= width && !__builtin_mul_overflow(pitch, height - 1, &rest) &&
	       !__builtin_add_overflow(rest, width, span_p);
}

CUresult
gpd_cut_check(struct gpd_session *session, uint64_t address, uint64_t pitch, uint64_t width,
	      uint64_t height)
{
	uint64_t size;

	if (!gpd_cut_span(pitch, width, height, &size) ||
	    !gpd_memory_accessible(session, address, size))
		return CUDA_ERROR_INVALID_VALUE;
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
gpd_cut_start(struct gpd_cut *cut, uint64_t address, uint64_t pitch, uint64_t width,
	      uint64_t height)
{
	bool linear = height == 1 || pitch == width;

	*cut = (struct gpd_cut){
		.address = address,
		.pitch = pitch,
		.width = linear ? width * height : width,
		.height = linear ? 1 : height,
		.largest = largest_part(width * height),
	};
}

void
gpd_cut_start_box(struct gpd_cut *cut, CUarray array, const struct gp_array_box *box)
{
	*cut = (struct gpd_cut){
		.array = array,
		.box = *box,
		.largest = largest_part(box->width * box->height * box->depth),
	};
}

static uint64_t
least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Some slices, or some rows of one, or a piece of one row: whole elements. */
static bool
next_of_box(struct gpd_cut *cut, struct gpd_part *part)
{
	const struct gp_array_box *all = &cut->box;
	uint64_t plane = all->width * all->height;
	struct gp_array_box box = {
		.x = all->x + cut->column,
		.y = all->y + cut->row,
		.z = all->z + cut->slice,
		.width = all->width,
		.height = 1,
		.depth = 1,
	};

	if (cut->slice == all->depth)
		return false;
	if (cut->row == 0 && plane <= cut->largest) {
		box.height = all->height;
		box.depth = least(all->depth - cut->slice, cut->largest / plane);
		cut->slice += box.depth;
	} else if (all->width <= cut->largest) {
		box.height = least(all->height - cut->row, cut->largest / all->width);
		cut->row += box.height;
	} else {
		box.width =
			least(all->width - cut->column, cut->largest - cut->largest % ELEMENT_MAX);
		cut->column += box.width;
		if (cut->column == all->width) {
			cut->column = 0;
			cut->row++;
		}
	}
	if (cut->row == all->height) {
		cut->row = 0;
		cut->slice++;
	}
	*part = (struct gpd_part){
		.array = cut->array,
		.box = box,
		.size = box.width * box.height * box.depth,
	};
	return true;
}

bool
gpd_cut_next(struct gpd_cut *cut, struct gpd_part *part)
{
	if (cut->array)
		return next_of_box(cut, part);
	if (cut->row == cut->height)
		return false;
	part->array = NULL;
	part->address = cut->address + cut->row * cut->pitch + cut->column;
	part->pitch = cut->pitch;
	if (cut->height > 1 && cut->width <= cut->largest && cut->pitch <= PITCH_MAX) {
		part->width = cut->width;
		part->rows = cut->largest / cut->width;
		if (part->rows > cut->height - cut->row)
			part->rows = cut->height - cut->row;
		cut->row += part->rows;
	} else {
		part->rows = 1;
		part->width = cut->width - cut->column;
		if (part->width > cut->largest)
			part->width = cut->largest;
		cut->column += part->width;
		if (cut->column == cut->width) {
			cut->column = 0;
			cut->row++;
		}
	}
	part->size = part->width * part->rows;
	return true;
}

/* The marker behind a part says that the stream got as far as its work count: parts count. */
static void
count(struct gpd_session *session, struct gpd_stream *stream)
{
	stream->work = gpd_session_count_work(session);
}

static CUmemorytype
type_of(const struct gpd_side *side)
{
	if (side->array)
		return CU_MEMORYTYPE_ARRAY;
	return side->host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

CUresult
gpd_copy_box(const struct gpd_side *dst, const struct gpd_side *src, uint64_t width,
	     uint64_t height, uint64_t depth, CUstream stream)
{
	const CUDA_MEMCPY3D copy = {
		.srcMemoryType = type_of(src),
		.srcArray = src->array,
		.srcHost = src->host,
		.srcDevice = src->address,
		.srcXInBytes = src->x,
		.srcY = src->y,
		.srcZ = src->z,
		.srcPitch = src->pitch,
		.srcHeight = src->rows,
		.dstMemoryType = type_of(dst),
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

	return gpd_driver.cuMemcpy3DAsync_v2(&copy, stream);
}

/* The host side's rows are packed. */
static CUresult
copy_part(const struct gpd_part *part, const void *host, bool in, CUstream stream)
{
	const struct gp_array_box *box = &part->box;
	const struct gpd_side array = {
		.array = part->array, .x = box->x, .y = box->y, .z = box->z
	};
	const struct gpd_side memory = { .host = host, .pitch = box->width, .rows = box->height };

	return gpd_copy_box(in ? &array : &memory, in ? &memory : &array, box->width, box->height,
			    box->depth, stream);
}

CUresult
gpd_part_in(struct gpd_session *session, struct gpd_stream *stream, const struct gpd_part *part,
	    const void *host)
{
	count(session, stream);
	if (part->array)
		return copy_part(part, host, true, stream->driver);
	if (part->rows == 1)
		return gpd_driver.cuMemcpyHtoDAsync_v2(part->address, host, part->width,
						       stream->driver);
	return gpd_driver.cuMemcpy2DAsync_v2(
		&(CUDA_MEMCPY2D){
			.srcMemoryType = CU_MEMORYTYPE_HOST,
			.srcHost = host,
			.srcPitch = part->width,
			.dstMemoryType = CU_MEMORYTYPE_DEVICE,
			.dstDevice = part->address,
			.dstPitch = part->pitch,
			.WidthInBytes = part->width,
			.Height = part->rows,
		},
		stream->driver);
}

CUresult
gpd_part_out(struct gpd_session *session, struct gpd_stream *stream, const struct gpd_part *part,
	     void *host)
{
	count(session, stream);
	if (part->array)
		return copy_part(part, host, false, stream->driver);
	if (part->rows == 1)
		return gpd_driver.cuMemcpyDtoHAsync_v2(host, part->address, part->width,
						       stream->driver);
	return gpd_driver.cuMemcpy2DAsync_v2(
		&(CUDA_MEMCPY2D){
			.srcMemoryType = CU_MEMORYTYPE_DEVICE,
			.srcDevice = part->address,
			.srcPitch = part->pitch,
			.dstMemoryType = CU_MEMORYTYPE_HOST,
			.dstHost = host,
			.dstPitch = part->width,
			.WidthInBytes = part->width,
			.Height = part->rows,
		},
		stream->driver);
}
