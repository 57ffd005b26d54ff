/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Normalized form of a copy, independent of the CUDA function that requested it: a box of rows on
 * two sides, each of which is device memory, an array, or host memory.
 *
 * Ownership: plain data of the caller; arrays and memory are borrowed.
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

/* One side of a copy: destination or source. */
struct gpc_side {
	uint64_t base;         /* address of the first byte; unused for an array */
	uint64_t pitch, slice; /* distances between the starts of two rows and of two slices */
	bool host;             /* host memory */
	bool pinned;           /* host memory that was allocated or registered by CUDA */
	bool device_mapped;   /* host memory that the device can access; base is its address for the
				 device */
	bool replicated;      /* device_mapped, and base is the address of the worker's replica
				 (client/host/coherence.h) */
	bool is_host_by_name; /* the call declares host memory (CU_MEMORYTYPE_HOST), or passes
				 managed memory as host memory */
	uint64_t host_address;   /* host memory, device-mapped or not: its address in the program */
	struct gpc_array *array; /* NULL: not an array; otherwise borrowed, and the position is x, y
				    and z instead of base */
	/* for an array: offsets of the box in bytes, rows and slices */
	uint64_t x, y, z;
};

/* A copy: a box of rows, with its two sides. */
struct gpc_copy {
	struct gpc_side dst, src;
	uint64_t width, height, depth; /* bytes, rows and slices; width 0: an empty copy, whose
					  sides are undefined */
};

/*
 * Initializes *copy for a copy of `size` bytes: looks up and checks both sides as CUDA does before
 * it copies anything. A side of type CU_MEMORYTYPE_UNIFIED is classified by its address. Does not
 * wait.
 * Errors: returns CUDA_SUCCESS, also for an empty copy; CUDA_ERROR_INVALID_VALUE; or
 * CUDA_ERROR_INVALID_HANDLE if an array is invalid. *copy is undefined after an error.
 */
CUresult gpc_copy_linear(struct gpc_copy *copy, CUmemorytype dst_type, uint64_t dst,
			 CUmemorytype src_type, uint64_t src, size_t size);
/* Start of a row of bytes for gpc_copy_row(): an address, or a byte offset in the first row of an
 * array. */
struct gpc_place {
	CUmemorytype type; /* CU_MEMORYTYPE_ARRAY: `array` is used */
	CUarray array;
	uint64_t at; /* address, or byte offset in the array */
};
/* Initializes *copy for one row of `size` bytes, as gpc_copy_linear() does. */
CUresult gpc_copy_row(struct gpc_copy *copy, const struct gpc_place *dst,
		      const struct gpc_place *src, size_t size);
/* Describes a rectangle as a box. Returns `copy`, or NULL if `given` is NULL. */
CUDA_MEMCPY3D *gpc_copy_2d_to_3d(CUDA_MEMCPY3D *copy, const CUDA_MEMCPY2D *given);
/* Initializes *copy for the box that *params, which is then no longer used, describes, as
 * gpc_copy_linear() does. */
CUresult gpc_copy_3d(struct gpc_copy *copy, const CUDA_MEMCPY3D *params);

/* Returns the number of bytes from the first byte of a side to the end of its last byte. The
 * functions above exclude an overflow. */
uint64_t gpc_copy_span(const struct gpc_copy *copy, const struct gpc_side *side);

/* Returns the address of a row in a slice of a side that is not an array. */
static inline uint64_t
gpc_side_row(const struct gpc_side *side, uint64_t slice, uint64_t row)
{
	return side->base + slice * side->slice + row * side->pitch;
}

#endif /* GPC_COPY_REGION_H */
