/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/driver/memory/copy.h"

#include "softgpu/driver/memory/array.h"
#include "softgpu/driver/memory/space.h"

#include <stdlib.h>
#include <string.h>

/* Bytes copied while the address space's lock is held once. */
#define WORDS_MAX 4096
#define CHUNK ((size_t)4 << 20)
/* Pageable sources up to this size are buffered, as in NVIDIA's driver. */
#define STAGED_MAX ((size_t)64 << 10)

struct copy_op {
	struct gs_op op;
	struct gs_copy copy;
	char staged[];
};

static void *
pointer(uint64_t address)
{
	return (void *)address; /* NOLINT(performance-no-int-to-ptr) */
}

/* Words that other streams may write or wait for concurrently are copied word by word. */
static void
move_bytes(uint64_t dst, uint64_t src, size_t size)
{
	if (size > WORDS_MAX || (dst | src | size) % sizeof(uint32_t)) {
		memmove(pointer(dst), pointer(src), size);
		return;
	}
	for (size_t i = 0; i < size; i += sizeof(uint32_t)) {
		size_t at = dst <= src ? i : size - sizeof(uint32_t) - i;
		const uint32_t *from = pointer(src + at);

		__atomic_store_n((uint32_t *)pointer(dst + at),
				 __atomic_load_n(from, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	}
}

static bool
move(const struct gs_copy *copy, uint64_t dst, uint64_t src, size_t size)
{
	bool usable;

	gs_space_read_lock();
	usable = (!copy->dst.device || gs_space_usable_locked(dst, size, true, copy->device)) &&
		 (!copy->src.device || gs_space_usable_locked(src, size, false, copy->device));
	if (usable)
		move_bytes(dst, src, size);
	gs_space_read_unlock();
	if (!usable)
		gs_fail(CUDA_ERROR_ILLEGAL_ADDRESS, "copy", "its memory was unmapped meanwhile");
	return usable;
}

static bool
move_row(const struct gs_copy *copy, uint64_t dst, uint64_t src, const struct gs_stream *stream)
{
	for (size_t at = 0; at < copy->width; at += CHUNK) {
		size_t left = copy->width - at;

		if (gs_stream_stopped(stream) ||
		    !move(copy, dst + at, src + at, left < CHUNK ? left : CHUNK))
			return false;
	}
	return true;
}

static void
copy_run(struct gs_op *op, struct gs_stream *stream)
{
	const struct gs_copy *copy = &((struct copy_op *)op)->copy;

	for (size_t z = 0; z < copy->depth; z++) {
		for (size_t y = 0; y < copy->height; y++) {
			uint64_t dst =
				copy->dst.address + z * copy->dst.slice + y * copy->dst.pitch;
			uint64_t src =
				copy->src.address + z * copy->src.slice + y * copy->src.pitch;

			if (!move_row(copy, dst, src, stream))
				return;
		}
	}
}

static void
copy_release(struct gs_op *op)
{
	const struct gs_copy *copy = &((struct copy_op *)op)->copy;

	if (copy->dst.array)
		gs_array_put(copy->dst.array);
	if (copy->src.array)
		gs_array_put(copy->src.array);
	free(op);
}

/* Returns the bytes from the first to the last; 0: the range exceeds the address space. */
static size_t
extent(const struct gs_side *side, const struct gs_copy *copy)
{
	unsigned __int128 n = (unsigned __int128)(copy->depth - 1) * side->slice +
			      (unsigned __int128)(copy->height - 1) * side->pitch + copy->width;

	return n > SIZE_MAX / 2 || side->address + (size_t)n < side->address ? 0 : (size_t)n;
}

/* If there are gaps between rows, each row is checked by itself: gaps need not be mapped. */
static bool
is_device(const struct gs_side *side, const struct gs_copy *copy, bool write)
{
	if (gs_space_is_device(side->address, extent(side, copy), write, copy->device))
		return true;
	for (size_t z = 0; z < copy->depth; z++) {
		for (size_t y = 0; y < copy->height; y++) {
			if (!gs_space_is_device(side->address + z * side->slice + y * side->pitch,
						copy->width, write, copy->device))
				return false;
		}
	}
	return true;
}

static bool
is_valid(const struct gs_side *side, const struct gs_copy *copy, bool write)
{
	enum gs_place place;

	if (side->array)
		return true;
	if (!extent(side, copy) || !gs_space_is_one(side->address, extent(side, copy)))
		return false;
	if (side->device)
		return is_device(side, copy, write);
	place = gs_space_place(side->address, copy->width, write);
	return side->address && place != GS_PLACE_FORBIDDEN;
}

static bool
is_pageable(const struct gs_side *side, const struct gs_copy *copy)
{
	return !side->device && !side->array &&
	       gs_space_place(side->address, extent(side, copy), false) == GS_PLACE_PAGEABLE;
}

static struct copy_op *
op_create(const struct gs_copy *copy, bool stage)
{
	struct copy_op *op = calloc(1, sizeof(*op) + (stage ? copy->width : 0));

	if (!op)
		return NULL;
	op->op.run = copy_run;
	op->op.release = copy_release;
	op->copy = *copy;
	if (copy->dst.array)
		gs_object_ref(&copy->dst.array->object);
	if (copy->src.array)
		gs_object_ref(&copy->src.array->object);
	if (stage) {
		memcpy(op->staged, pointer(copy->src.address), copy->width);
		op->copy.src.address = (uint64_t)(uintptr_t)op->staged;
	}
	return op;
}

static CUresult
submit(struct gs_stream *stream, const struct gs_copy *copy, bool wait)
{
	bool linear = copy->height == 1 && copy->depth == 1;
	bool pageable_src = is_pageable(&copy->src, copy);
	bool stage = !wait && pageable_src && linear && copy->width <= STAGED_MAX;
	struct copy_op *op = op_create(copy, stage);
	CUresult r;
	uint64_t seq;

	if (!op)
		return CUDA_ERROR_OUT_OF_MEMORY;
	wait = wait || (pageable_src && !stage) || is_pageable(&copy->dst, copy);
	r = gs_stream_submit(stream, &op->op, &seq);
	if (!r && wait)
		r = gs_stream_wait(stream, seq);
	return r;
}

CUresult
gs_copy_submit(CUstream handle, const struct gs_copy *asked, bool wait)
{
	struct gs_copy placed = *asked, *copy = &placed;
	struct gs_stream *stream;
	CUresult r = gs_enter();

	if (r)
		return r;
	stream = gs_stream_get(handle);
	if (!stream)
		return gs_stream_missing(handle);
	placed.device = copy->peers ? GS_ANY_DEVICE : gs_stream_device(stream);
	if (copy->width && copy->height && copy->depth) {
		if (is_valid(&copy->dst, copy, true) && is_valid(&copy->src, copy, false))
			r = submit(stream, copy, wait);
		else
			r = CUDA_ERROR_INVALID_VALUE;
	}
	gs_stream_put(stream);
	return r;
}

static CUresult
linear(CUstream stream, struct gs_side dst, struct gs_side src, size_t size, bool wait)
{
	const struct gs_copy copy = {
		.dst = dst, .src = src, .width = size, .height = 1, .depth = 1
	};
	CUresult r = gs_copy_submit(stream, &copy, wait);

	if (wait)
		gs_print_flush();
	return r;
}

static struct gs_side
on_device(CUdeviceptr address)
{
	return (struct gs_side){ .address = address, .device = true };
}

static struct gs_side
on_host(const void *address)
{
	return (struct gs_side){ .address = (uint64_t)(uintptr_t)address };
}

CUresult CUDAAPI
cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t size)
{
	return linear(NULL, on_device(dst), on_host(src), size, true);
}

CUresult CUDAAPI
cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t size)
{
	return linear(NULL, on_host(dst), on_device(src), size, true);
}

/* Ordered on the default stream; the host does not wait. */
CUresult CUDAAPI
cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
	return linear(NULL, on_device(dst), on_device(src), size, false);
}

CUresult CUDAAPI
cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t size, CUstream stream)
{
	return linear(stream, on_device(dst), on_host(src), size, false);
}

CUresult CUDAAPI
cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return linear(stream, on_host(dst), on_device(src), size, false);
}

CUresult CUDAAPI
cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
	return linear(stream, on_device(dst), on_device(src), size, false);
}

static CUresult
find_side(CUmemorytype type, CUdeviceptr device, const void *host, CUarray array,
	  struct gs_side *side)
{
	switch (type) {
	case CU_MEMORYTYPE_HOST:
		*side = on_host(host);
		return CUDA_SUCCESS;
	case CU_MEMORYTYPE_DEVICE:
		*side = on_device(device);
		return CUDA_SUCCESS;
	case CU_MEMORYTYPE_UNIFIED:
		*side = on_device(device);
		side->device = gs_space_place(device, 1, false) != GS_PLACE_PAGEABLE;
		return CUDA_SUCCESS;
	case CU_MEMORYTYPE_ARRAY:
		*side = (struct gs_side){ .array = gs_array_get(array) };
		return side->array ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* An empty copy is valid anywhere. */
static CUresult
place_in_array(struct gs_side *side, const struct gs_copy *copy, const size_t at[3])
{
	const struct gs_array *array = side->array;
	const struct gp_array_box box = { at[0],       at[1],        at[2],
					  copy->width, copy->height, copy->depth };

	if (copy->width && copy->height && copy->depth &&
	    !gp_array_contains(&array->shape, 0, &box))
		return CUDA_ERROR_INVALID_VALUE;
	side->pitch = array->pitch;
	side->slice = array->slice;
	side->address = (uint64_t)(uintptr_t)array->memory + at[0] + at[1] * array->pitch +
			at[2] * array->slice;
	return CUDA_SUCCESS;
}

/* A pitch of 0 means packed rows; pitch and height only matter for several rows or planes. */
static CUresult
place_side(struct gs_side *side, const struct gs_copy *copy, size_t pitch, size_t height,
	   const size_t at[3])
{
	if (side->array)
		return place_in_array(side, copy, at);
	side->pitch = pitch ? pitch : copy->width;
	if (!height)
		height = copy->height;
	if ((copy->height > 1 || copy->depth > 1) && side->pitch < at[0] + copy->width)
		return CUDA_ERROR_INVALID_VALUE;
	if (copy->depth > 1 && height < at[1] + copy->height)
		return CUDA_ERROR_INVALID_VALUE;
	if (__builtin_mul_overflow(side->pitch, height, &side->slice))
		return CUDA_ERROR_INVALID_VALUE;
	side->address += at[0] + at[1] * side->pitch + at[2] * side->slice;
	return CUDA_SUCCESS;
}

static CUresult
copy_3d(const CUDA_MEMCPY3D *p, CUstream stream, struct gs_copy *copy)
{
	CUresult r = find_side(p->srcMemoryType, p->srcDevice, p->srcHost, p->srcArray, &copy->src);

	if (!r)
		r = find_side(p->dstMemoryType, p->dstDevice, p->dstHost, p->dstArray, &copy->dst);
	if (!r)
		r = place_side(&copy->src, copy, p->srcPitch, p->srcHeight,
			       (const size_t[]){ p->srcXInBytes, p->srcY, p->srcZ });
	if (!r)
		r = place_side(&copy->dst, copy, p->dstPitch, p->dstHeight,
			       (const size_t[]){ p->dstXInBytes, p->dstY, p->dstZ });
	return r ? r : gs_copy_submit(stream, copy, false);
}

static CUresult
copy_3d_async(const CUDA_MEMCPY3D *p, bool peers, CUstream stream)
{
	struct gs_copy copy = {
		.width = p->WidthInBytes, .height = p->Height, .depth = p->Depth, .peers = peers
	};
	CUresult r = copy_3d(p, stream, &copy);

	if (copy.src.array)
		gs_array_put(copy.src.array);
	if (copy.dst.array)
		gs_array_put(copy.dst.array);
	return r;
}

CUresult CUDAAPI
cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *p, CUstream stream)
{
	CUresult r = gs_enter();

	if (r)
		return r;
	return p ? copy_3d_async(p, false, stream) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult
check_peers(CUcontext dst, CUcontext src)
{
	CUresult r = gs_enter();

	if (r)
		return r;
	return gs_context_device(dst) < 0 || gs_context_device(src) < 0 ? CUDA_ERROR_INVALID_CONTEXT
									: CUDA_SUCCESS;
}

CUresult CUDAAPI
cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
		  size_t size, CUstream stream)
{
	const struct gs_copy copy = { .dst = on_device(dst),
				      .src = on_device(src),
				      .width = size,
				      .height = 1,
				      .depth = 1,
				      .peers = true };
	CUresult r = check_peers(dst_context, src_context);

	return r ? r : gs_copy_submit(stream, &copy, false);
}

static CUcontext
get_context(CUmemorytype type, CUcontext named)
{
	return type == CU_MEMORYTYPE_DEVICE ? named : gs_context_current();
}

CUresult CUDAAPI
cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *p, CUstream stream)
{
	CUDA_MEMCPY3D p3;
	CUresult r = gs_enter();

	if (!r && !p)
		r = CUDA_ERROR_INVALID_VALUE;
	if (!r)
		r = check_peers(get_context(p->dstMemoryType, p->dstContext),
				get_context(p->srcMemoryType, p->srcContext));
	if (r)
		return r;
	p3 = (CUDA_MEMCPY3D){
		.srcXInBytes = p->srcXInBytes,
		.srcY = p->srcY,
		.srcZ = p->srcZ,
		.srcMemoryType = p->srcMemoryType,
		.srcHost = p->srcHost,
		.srcDevice = p->srcDevice,
		.srcArray = p->srcArray,
		.srcPitch = p->srcPitch,
		.srcHeight = p->srcHeight,
		.dstXInBytes = p->dstXInBytes,
		.dstY = p->dstY,
		.dstZ = p->dstZ,
		.dstMemoryType = p->dstMemoryType,
		.dstHost = p->dstHost,
		.dstDevice = p->dstDevice,
		.dstArray = p->dstArray,
		.dstPitch = p->dstPitch,
		.dstHeight = p->dstHeight,
		.WidthInBytes = p->WidthInBytes,
		.Height = p->Height,
		.Depth = p->Depth,
	};
	return copy_3d_async(&p3, true, stream);
}

CUresult CUDAAPI
cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *p, CUstream stream)
{
	CUDA_MEMCPY3D p3;

	if (!p)
		return gs_enter() ? gs_enter() : CUDA_ERROR_INVALID_VALUE;
	p3 = (CUDA_MEMCPY3D){
		.srcXInBytes = p->srcXInBytes,
		.srcY = p->srcY,
		.srcMemoryType = p->srcMemoryType,
		.srcHost = p->srcHost,
		.srcDevice = p->srcDevice,
		.srcArray = p->srcArray,
		.srcPitch = p->srcPitch,
		.dstXInBytes = p->dstXInBytes,
		.dstY = p->dstY,
		.dstMemoryType = p->dstMemoryType,
		.dstHost = p->dstHost,
		.dstDevice = p->dstDevice,
		.dstArray = p->dstArray,
		.dstPitch = p->dstPitch,
		.WidthInBytes = p->WidthInBytes,
		.Height = p->Height,
		.Depth = 1,
	};
	return cuMemcpy3DAsync_v2(&p3, stream);
}
