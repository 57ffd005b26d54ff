/* SPDX-License-Identifier: Apache-2.0 */
#include "softgpu/driver/memory/space.h"
#include "softgpu/driver/stream/stream.h"

#include <stdlib.h>
#include <string.h>

#define CHUNK ((size_t)4 << 20)

struct fill {
	uint64_t address;
	size_t pitch; /* bytes */
	size_t width; /* elements */
	size_t height;
	unsigned int element; /* bytes: 1, 2, 4 */
	uint32_t value;
};

struct fill_op {
	struct gs_op op;
	struct fill fill;
};

/* If all bytes are equal, as for zero, memset() is used, which is much faster than a loop with
 * sanitizers. */
static bool
is_of_one_byte(unsigned int element, uint32_t value)
{
	uint32_t all = (value & 0xff) * 0x01010101u;

	return element == 1 || value << (32 - 8 * element) == all << (32 - 8 * element);
}

static void
put_elements(uint64_t address, size_t count, unsigned int element, uint32_t value)
{
	void *p = (void *)address; /* NOLINT(performance-no-int-to-ptr) */

	if (is_of_one_byte(element, value)) {
		memset(p, (int)(value & 0xff), count * element);
	} else if (element == 2) {
		for (size_t i = 0; i < count; i++)
			((uint16_t *)p)[i] = (uint16_t)value;
	} else {
		for (size_t i = 0; i < count; i++)
			((uint32_t *)p)[i] = value;
	}
}

static bool
fill_row(const struct fill *fill, uint64_t address, const struct gs_stream *stream)
{
	size_t bytes = fill->width * fill->element;

	for (size_t at = 0; at < bytes; at += CHUNK) {
		size_t n = bytes - at < CHUNK ? bytes - at : CHUNK;
		bool usable;

		if (gs_stream_stopped(stream))
			return false;
		gs_space_read_lock();
		usable = gs_space_usable_locked(address + at, n, true, gs_stream_device(stream));
		if (usable)
			put_elements(address + at, n / fill->element, fill->element, fill->value);
		gs_space_read_unlock();
		if (!usable) {
			gs_fail(CUDA_ERROR_ILLEGAL_ADDRESS, "memset",
				"its memory was unmapped meanwhile");
			return false;
		}
	}
	return true;
}

static void
fill_run(struct gs_op *op, struct gs_stream *stream)
{
	const struct fill *fill = &((struct fill_op *)op)->fill;

	for (size_t y = 0; y < fill->height; y++) {
		if (!fill_row(fill, fill->address + y * fill->pitch, stream))
			return;
	}
}

static void
fill_release(struct gs_op *op)
{
	free(op);
}

static bool
is_valid(const struct fill *fill, int device)
{
	size_t bytes;

	if (fill->address % fill->element || (fill->height > 1 && fill->pitch % fill->element) ||
	    __builtin_mul_overflow(fill->width, fill->element, &bytes) ||
	    (fill->height > 1 && fill->pitch < bytes))
		return false;
	for (size_t y = 0; y < fill->height; y++) {
		if (!gs_space_is_device(fill->address + y * fill->pitch, bytes, true, device))
			return false;
	}
	return true;
}

static CUresult
submit(const struct fill *fill, CUstream handle)
{
	struct gs_stream *stream;
	struct fill_op *op;
	CUresult r = gs_enter();

	if (r)
		return r;
	stream = gs_stream_get(handle);
	if (!stream)
		return gs_stream_missing(handle);
	if (!fill->width || !fill->height) {
		r = CUDA_SUCCESS;
	} else if (!is_valid(fill, gs_stream_device(stream))) {
		r = CUDA_ERROR_INVALID_VALUE;
	} else if (!(op = calloc(1, sizeof(*op)))) {
		r = CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		op->op.run = fill_run;
		op->op.release = fill_release;
		op->fill = *fill;
		r = gs_stream_submit(stream, &op->op, NULL);
	}
	gs_stream_put(stream);
	return r;
}

static CUresult
fill_1d(CUdeviceptr dst, unsigned int element, uint32_t value, size_t n, CUstream stream)
{
	const struct fill fill = {
		.address = dst, .width = n, .height = 1, .element = element, .value = value
	};

	return submit(&fill, stream);
}

static CUresult
fill_2d(CUdeviceptr dst, size_t pitch, unsigned int element, uint32_t value, size_t width,
	size_t height, CUstream stream)
{
	const struct fill fill = { .address = dst,
				   .pitch = pitch,
				   .width = width,
				   .height = height,
				   .element = element,
				   .value = value };

	return submit(&fill, stream);
}

CUresult CUDAAPI
cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t n)
{
	return fill_1d(dst, 1, value, n, NULL);
}

CUresult CUDAAPI
cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t n)
{
	return fill_1d(dst, 2, value, n, NULL);
}

CUresult CUDAAPI
cuMemsetD32_v2(CUdeviceptr dst, unsigned int value, size_t n)
{
	return fill_1d(dst, 4, value, n, NULL);
}

CUresult CUDAAPI
cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t n, CUstream stream)
{
	return fill_1d(dst, 1, value, n, stream);
}

CUresult CUDAAPI
cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t n, CUstream stream)
{
	return fill_1d(dst, 2, value, n, stream);
}

CUresult CUDAAPI
cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t n, CUstream stream)
{
	return fill_1d(dst, 4, value, n, stream);
}

CUresult CUDAAPI
cuMemsetD2D8Async(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height,
		  CUstream stream)
{
	return fill_2d(dst, pitch, 1, value, width, height, stream);
}

CUresult CUDAAPI
cuMemsetD2D16Async(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width, size_t height,
		   CUstream stream)
{
	return fill_2d(dst, pitch, 2, value, width, height, stream);
}

CUresult CUDAAPI
cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width, size_t height,
		   CUstream stream)
{
	return fill_2d(dst, pitch, 4, value, width, height, stream);
}
