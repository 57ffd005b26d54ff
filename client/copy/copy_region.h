/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Normalized form of a copy, independent of the CUDA function that requested it: a box of rows on
 * two sides, each of which is device memory, an array, or host memory.
 *
 * Ownership: plain data of the caller; arrays are not owned.
 * Threads: any thread may call.
 * Units: bytes.
 */
#ifndef GPC_COPY_REGION_H
#define GPC_COPY_REGION_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_array;

struct gpc_side {
	uint64_t base; /* address of the first byte */
	uint64_t pitch, slice;
	bool host;
	bool pinned;        /* pinned host memory, which CUDA knows */
	bool device_mapped; /* host memory that the device can access: base is its device address */
	bool replicated;    /* device-mapped, and base is the address of the daemon's replica */
	bool is_host_by_name; /* the call names host memory, or passes managed memory as host memory
			       */
	uint64_t
		host_address; /* of host memory, device-mapped or not: its address in the program */
	struct gpc_array
		*array; /* if set, only the offsets x (bytes), y (rows) and z (slices) are used */
	uint64_t x, y, z;
};

struct gpc_copy {
	struct gpc_side dst, src;
	uint64_t width, height, depth; /* bytes, rows, slices; width 0: an empty copy */
};

/*
 * Initialize a copy: look up and check both sides as CUDA does before it copies anything. A side of
 * type CU_MEMORYTYPE_UNIFIED is classified by its address.
 * Errors: CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_HANDLE (arrays).
 */
CUresult gpc_copy_linear(struct gpc_copy *copy, CUmemorytype dst_type, uint64_t dst,
			 CUmemorytype src_type, uint64_t src, size_t size);
/* Start of a row of bytes: an address, or a byte offset in the first row of an array. */
struct gpc_place {
	CUmemorytype type;
	CUarray array;
	uint64_t at;
};
CUresult gpc_copy_row(struct gpc_copy *copy, const struct gpc_place *dst,
		      const struct gpc_place *src, size_t size);
CUresult gpc_copy_2d(struct gpc_copy *copy, const CUDA_MEMCPY2D *params);
CUresult gpc_copy_3d(struct gpc_copy *copy, const CUDA_MEMCPY3D *params);

/* Returns the number of bytes from the first to the last byte of a side. The checks above exclude
 * an overflow. */
uint64_t gpc_copy_span(const struct gpc_copy *copy, const struct gpc_side *side);

/* Returns the address of a row in a slice. */
static inline uint64_t
gpc_side_row(const struct gpc_side *side, uint64_t slice, uint64_t row)
{
	return side->base + slice * side->slice + row * side->pitch;
}

#endif /* GPC_COPY_REGION_H */
