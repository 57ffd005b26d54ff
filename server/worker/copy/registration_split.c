/* SPDX-License-Identifier: Apache-2.0 */
#include "server/worker/copy/registration_split.h"

#include "gp_calls.h"
#include "server/worker/host/host_space.h"

#include <stddef.h>

/* One side of a copy: linear memory or an array. */
struct side {
	CUmemorytype type;
	uint64_t address;
	size_t pitch, slice;
};

static struct side
copy_get_dst_side(const CUDA_MEMCPY3D *copy)
{
	return (struct side){ copy->dstMemoryType, copy->dstDevice, copy->dstPitch,
			      copy->dstPitch * copy->dstHeight };
}

static struct side
copy_get_src_side(const CUDA_MEMCPY3D *copy)
{
	return (struct side){ copy->srcMemoryType, copy->srcDevice, copy->srcPitch,
			      copy->srcPitch * copy->srcHeight };
}

/* Bytes from the first byte of the box to the end of its last one. */
static uint64_t
side_get_extent(const struct side *side, const CUDA_MEMCPY3D *copy)
{
	return (copy->Depth - 1) * side->slice + (copy->Height - 1) * side->pitch +
	       copy->WidthInBytes;
}

/* Bytes of the side before its registration ends. */
static uint64_t
side_get_registration_rest(const struct gpd_session *session, const struct side *side)
{
	return side->type == CU_MEMORYTYPE_DEVICE
		       ? gpd_host_memory_get_registration_rest(session, side->address)
		       : UINT64_MAX;
}

/* Returns the copy without its first part. Linear memory has no offsets: the driver would check
 * them against heights that a copy of one slice need not have. */
static CUDA_MEMCPY3D
copy_skip(const CUDA_MEMCPY3D *copy, size_t x, size_t y, size_t z)
{
	struct side dst = copy_get_dst_side(copy), src = copy_get_src_side(copy);
	CUDA_MEMCPY3D rest = *copy;

	if (dst.type == CU_MEMORYTYPE_ARRAY) {
		rest.dstXInBytes += x;
		rest.dstY += y;
		rest.dstZ += z;
	}
	if (src.type == CU_MEMORYTYPE_ARRAY) {
		rest.srcXInBytes += x;
		rest.srcY += y;
		rest.srcZ += z;
	}
	rest.dstDevice += z * dst.slice + y * dst.pitch + x;
	rest.srcDevice += z * src.slice + y * src.pitch + x;
	rest.dstHost = (char *)copy->dstHost + (rest.dstDevice - copy->dstDevice);
	rest.srcHost = (const char *)copy->srcHost + (rest.srcDevice - copy->srcDevice);
	rest.WidthInBytes -= x;
	rest.Height -= y;
	rest.Depth -= z;
	return rest;
}

CUresult
gpd_registration_split_copy(struct gpd_session *session, const CUDA_MEMCPY3D *copy,
			    gpd_copy_part_fn *call, void *arg)
{
	CUDA_MEMCPY3D left = *copy;

	for (;;) {
		struct side dst = copy_get_dst_side(&left), src = copy_get_src_side(&left);
		uint64_t dst_rest = side_get_registration_rest(session, &dst);
		uint64_t src_rest = side_get_registration_rest(session, &src);
		CUDA_MEMCPY3D first = left;
		CUresult result;

		if (side_get_extent(&dst, &left) <= dst_rest &&
		    side_get_extent(&src, &left) <= src_rest)
			return call(arg, &left);
		if (left.Depth > 1) {
			first.Depth /= 2;
			left = copy_skip(&left, 0, 0, first.Depth);
		} else if (left.Height > 1) {
			first.Height /= 2;
			left = copy_skip(&left, 0, first.Height, 0);
		} else {
			first.WidthInBytes = dst_rest < src_rest ? dst_rest : src_rest;
			left = copy_skip(&left, first.WidthInBytes, 0, 0);
		}
		result = gpd_registration_split_copy(session, &first, call, arg);
		if (result != CUDA_SUCCESS)
			return result;
	}
}

CUresult
gpd_registration_split_fill(struct gpd_session *session, const struct gp_args_gpFill *fill,
			    gpd_fill_part_fn *call, void *arg)
{
	struct gp_args_gpFill left = *fill;

	/* An element could then cross the border of two registrations, and the loop would not end.
	 */
	if (left.height > 1 && left.pitch % left.element_size)
		return CUDA_ERROR_INVALID_VALUE;
	for (;;) {
		uint64_t rest = gpd_host_memory_get_registration_rest(session, left.dst), skipped;
		struct gp_args_gpFill first = left;
		CUresult result;

		if ((left.height - 1) * left.pitch + left.width * left.element_size <= rest)
			return call(arg, &left);
		if (left.height > 1) {
			first.height /= 2;
			left.height -= first.height;
			skipped = first.height * left.pitch;
		} else {
			first.width = rest / left.element_size;
			left.width -= first.width;
			skipped = first.width * left.element_size;
		}
		left.dst += skipped;
		result = gpd_registration_split_fill(session, &first, call, arg);
		if (result != CUDA_SUCCESS)
			return result;
	}
}
