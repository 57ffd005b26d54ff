/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/copy/pieces.h"

#include "gp_calls.h"
#include "server/worker/memory/host_memory.h"

#include <stdbool.h>
#include <stddef.h>

/* One side of a copy in memory. */
struct side {
	uint64_t address;
	size_t pitch, slice;
};

static uint64_t
first_byte(CUdeviceptr address, size_t x, size_t y, size_t z, size_t pitch, size_t rows)
{
	return address + (z * rows + y) * pitch + x;
}

static struct side
destination(const CUDA_MEMCPY3D *copy)
{
	return (struct side){ first_byte(copy->dstDevice, copy->dstXInBytes, copy->dstY, copy->dstZ,
					 copy->dstPitch, copy->dstHeight),
			      copy->dstPitch, copy->dstPitch * copy->dstHeight };
}

static struct side
source(const CUDA_MEMCPY3D *copy)
{
	return (struct side){ first_byte(copy->srcDevice, copy->srcXInBytes, copy->srcY, copy->srcZ,
					 copy->srcPitch, copy->srcHeight),
			      copy->srcPitch, copy->srcPitch * copy->srcHeight };
}

/* From the first byte of a box to behind its last one. */
static uint64_t
extent(const struct side *side, const CUDA_MEMCPY3D *copy)
{
	return (copy->Depth - 1) * side->slice + (copy->Height - 1) * side->pitch +
	       copy->WidthInBytes;
}

/* How much of it there is before the driver's next piece. */
static uint64_t
room(const struct gpd_session *session, CUmemorytype type, const struct side *side)
{
	return type == CU_MEMORYTYPE_DEVICE ? gpd_host_memory_room(session, side->address)
					    : UINT64_MAX;
}

/* The copy without what comes first of it. */
static CUDA_MEMCPY3D
behind(const CUDA_MEMCPY3D *copy, size_t x, size_t y, size_t z)
{
	CUDA_MEMCPY3D rest = *copy;

	rest.srcXInBytes += x;
	rest.dstXInBytes += x;
	rest.srcY += y;
	rest.dstY += y;
	rest.srcZ += z;
	rest.dstZ += z;
	rest.WidthInBytes -= x;
	rest.Height -= y;
	rest.Depth -= z;
	return rest;
}

/* A row of memory: the calls for one know no offsets. */
static CUresult
give(const CUDA_MEMCPY3D *copy, gpd_copy_piece *call, void *arg)
{
	CUDA_MEMCPY3D row = *copy;

	if (copy->Height == 1 && copy->Depth == 1 && copy->dstMemoryType == CU_MEMORYTYPE_DEVICE) {
		row.dstDevice = destination(copy).address;
		row.dstXInBytes = row.dstY = row.dstZ = 0;
	}
	if (copy->Height == 1 && copy->Depth == 1 && copy->srcMemoryType == CU_MEMORYTYPE_DEVICE) {
		row.srcDevice = source(copy).address;
		row.srcXInBytes = row.srcY = row.srcZ = 0;
	}
	return call(arg, &row);
}

CUresult
gpd_pieces_of_copy(struct gpd_session *session, const CUDA_MEMCPY3D *copy, gpd_copy_piece *call,
		   void *arg)
{
	CUDA_MEMCPY3D left = *copy;

	for (;;) {
		struct side dst = destination(&left), src = source(&left);
		uint64_t dst_room = room(session, left.dstMemoryType, &dst);
		uint64_t src_room = room(session, left.srcMemoryType, &src);
		CUDA_MEMCPY3D first = left;
		CUresult result;

		if (extent(&dst, &left) <= dst_room && extent(&src, &left) <= src_room)
			return give(&left, call, arg);
		if (left.Depth > 1) {
			first.Depth /= 2;
			left = behind(&left, 0, 0, first.Depth);
		} else if (left.Height > 1) {
			first.Height /= 2;
			left = behind(&left, 0, first.Height, 0);
		} else {
			first.WidthInBytes = dst_room < src_room ? dst_room : src_room;
			left = behind(&left, first.WidthInBytes, 0, 0);
		}
		result = gpd_pieces_of_copy(session, &first, call, arg);
		if (result != CUDA_SUCCESS)
			return result;
	}
}

CUresult
gpd_pieces_of_fill(struct gpd_session *session, const struct gp_args_gpFill *fill,
		   gpd_fill_piece *call, void *arg)
{
	struct gp_args_gpFill left = *fill;

	for (;;) {
		uint64_t space = gpd_host_memory_room(session, left.dst), skipped;
		struct gp_args_gpFill first = left;
		CUresult result;

		if ((left.height - 1) * left.pitch + left.width * left.element_size <= space)
			return call(arg, &left);
		if (left.height > 1) {
			first.height /= 2;
			left.height -= first.height;
			skipped = first.height * left.pitch;
		} else {
			first.width = space / left.element_size;
			left.width -= first.width;
			skipped = first.width * left.element_size;
		}
		left.dst += skipped;
		result = gpd_pieces_of_fill(session, &first, call, arg);
		if (result != CUDA_SUCCESS)
			return result;
	}
}
