/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy as the client treats it, whichever CUDA function asked for it: a box of rows on two
 * sides, each of which is device memory, an array, or memory of this process.  Plain data; any
 * thread.
 */
#ifndef GPC_COPY_REGION_H
#define GPC_COPY_REGION_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_array;

struct gpc_side {
	uint64_t base; /* of the first byte */
	uint64_t pitch, slice;
	bool host;
	bool pinned;             /* host memory that CUDA knows */
	bool device_mapped;      /* host memory that the device reaches: base is its address */
	bool replicated;         /* the same, and base is that of the daemon's copy */
	bool is_host_by_name;    /* the call says so, also of managed memory */
	uint64_t host_address;   /* of host memory, reached or not: as the program names it */
	struct gpc_array *array; /* then only where it begins counts: bytes, rows, slices */
	uint64_t x, y, z;
};

struct gpc_copy {
	struct gpc_side dst, src;
	uint64_t width, height, depth; /* bytes, rows, slices; a copy of nothing has width 0 */
};

/*
 * These find out what each side is and check it, as CUDA does before anything is copied:
 * CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_HANDLE (arrays).  A side of type
 * CU_MEMORYTYPE_UNIFIED is what its address says.
 */
CUresult gpc_copy_linear(struct gpc_copy *copy, CUmemorytype dst_type, uint64_t dst,
			 CUmemorytype src_type, uint64_t src, size_t size);
/* Bytes in a row: at an address, or at so many bytes in the first row of an array. */
struct gpc_place {
	CUmemorytype type;
	CUarray array;
	uint64_t at;
};
CUresult gpc_copy_row(struct gpc_copy *copy, const struct gpc_place *dst,
		      const struct gpc_place *src, size_t size);
CUresult gpc_copy_2d(struct gpc_copy *copy, const CUDA_MEMCPY2D *params);
CUresult gpc_copy_3d(struct gpc_copy *copy, const CUDA_MEMCPY3D *params);

/* The bytes from a side's first to behind its last; the checks above exclude an overflow. */
uint64_t gpc_copy_span(const struct gpc_copy *copy, const struct gpc_side *side);

/* Where row `row` of slice `slice` begins. */
static inline uint64_t
gpc_side_row(const struct gpc_side *side, uint64_t slice, uint64_t row)
{
	return side->base + slice * side->slice + row * side->pitch;
}

#endif /* GPC_COPY_REGION_H */
