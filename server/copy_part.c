/* SPDX-License-Identifier: Apache-2.0 */
#include "server/copy_part.h"

#include "server/driver.h"
#include "server/memory.h"
#include "server/session.h"
#include "server/staging.h"
#include "server/stream.h"

/* Short copies are cut, too, so that their first part is on its way early. */
#define PART_MIN ((size_t)256 << 10)
/* The driver's 2D copies take no larger pitch; rows are then copied one by one. */
#define PITCH_MAX ((uint64_t)INT32_MAX)

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

bool
gpd_cut_next(struct gpd_cut *cut, struct gpd_part *part)
{
	if (cut->row == cut->height)
		return false;
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
	stream->work = ++session->work;
}

CUresult
gpd_part_in(struct gpd_session *session, struct gpd_stream *stream, const struct gpd_part *part,
	    const void *host)
{
	count(session, stream);
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
