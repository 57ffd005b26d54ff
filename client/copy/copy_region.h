/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Normalized form of a copy, independent of the CUDA function that requested it: a box of bytes
 * (rows in slices) and two sides, its destination and its source. A side is device memory, an
 * array, or host memory.
 *
 * Ownership: plain data of the caller; arrays and memory are borrowed.
 * Threads: any thread, but not in a function that the receiver runs (done() of struct gpc_request,
 * client/session/call.h, or the handler of a note).
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
	uint64_t base;         /* address of the box's first byte; unused for an array */
	uint64_t pitch, slice; /* distances from one row, and from one slice, to the next; unused
				  for an array */
	/* host memory that the device cannot access: its bytes are sent or received */
	bool host;
	bool pinned; /* host memory that was allocated or registered by CUDA; copy.c overwrites it
			for copies of batches */
	bool device_mapped;    /* host memory that the device can access; it is copied like device
				  memory, and base is its address for the device */
	bool replicated;       /* device_mapped, and at base is the worker's replica of the memory
				  (client/host/coherence.h) */
	bool is_host_by_name;  /* host memory of any kind, or memory, such as managed memory, that
				  the call declares to be host memory (CU_MEMORYTYPE_HOST) */
	uint64_t host_address; /* address in the program if it is host memory, device-mapped or not;
				  otherwise 0 */
	struct gpc_array *array; /* borrowed; NULL: not an array */
	/* for an array: position of the box, in bytes, rows and slices */
	uint64_t x, y, z;
};

/* A copy: a box and its two sides. Unless a side is an array, rows and slices that are contiguous
 * on both sides are merged into longer rows. */
struct gpc_copy {
	struct gpc_side dst, src;
	uint64_t width, height, depth; /* bytes, rows and slices; width 0: an empty copy, whose
					  sides are undefined */
};

/*
 * Initializes *copy for a copy of `size` bytes at two addresses. Looks up and checks both sides as
 * CUDA does before it copies anything: with unified addressing, the address decides what a side is,
 * and the type is only checked against it. Uses the current context to decide which host memory the
 * device can access. Calls gpc_host_block_note_copied() (client/host/host_block.h) for the first
 * use of pinned memory in a copy, which may wait for the daemon. Returns CUDA_SUCCESS, also for an
 * empty copy, of which nothing is checked. Errors, after which *copy is undefined:
 * CUDA_ERROR_INVALID_VALUE; CUDA_ERROR_INVALID_HANDLE if an array is invalid.
 */
CUresult gpc_copy_linear(struct gpc_copy *copy, CUmemorytype dst_type, uint64_t dst,
			 CUmemorytype src_type, uint64_t src, size_t size);
/* Start of a row of bytes for gpc_copy_row(): an address, or a position in the first row of an
 * array. */
struct gpc_place {
	CUmemorytype type; /* CU_MEMORYTYPE_ARRAY: `array` is used */
	CUarray array;
	uint64_t at; /* address, or offset in the array's first row in bytes */
};
/* Initializes *copy for a row of `size` bytes, with the checks and results of gpc_copy_linear(). */
CUresult gpc_copy_row(struct gpc_copy *copy, const struct gpc_place *dst,
		      const struct gpc_place *src, size_t size);
/* Describes the rectangle *given as the box *copy. Returns `copy`, or NULL if `given` is NULL. */
CUDA_MEMCPY3D *gpc_copy_2d_to_3d(CUDA_MEMCPY3D *copy, const CUDA_MEMCPY2D *given);
/* Initializes *copy for the box of *params, with the checks and results of gpc_copy_linear().
 * params must not be NULL, and is not used after the call. */
CUresult gpc_copy_3d(struct gpc_copy *copy, const CUDA_MEMCPY3D *params);

/* Returns the number of bytes from the first byte of a side to the end of its last byte. The copy
 * must not be empty, and the side not an array. */
uint64_t gpc_copy_span(const struct gpc_copy *copy, const struct gpc_side *side);

/* Returns the address of a row in a slice of a side that is not an array. */
static inline uint64_t
gpc_side_row(const struct gpc_side *side, uint64_t slice, uint64_t row)
{
	return side->base + slice * side->slice + row * side->pitch;
}

#endif /* GPC_COPY_REGION_H */
