/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of up to three dimensions, queued on a stream.
 *
 * Rows are processed in chunks. Each chunk's addresses are checked when it is processed, and a
 * cancelled stream stops between two chunks.
 * Threads: any thread may submit; the stream's thread copies.
 */
#ifndef GS_COPY_H
#define GS_COPY_H

#include "softgpu/driver/stream/stream.h"

struct gs_array;

/* Source or destination; pitch and slice are the distances in bytes between rows and between
 * planes. */
struct gs_side {
	uint64_t address;
	size_t pitch;
	size_t slice;
	bool device; /* whether the memory must be device or pinned memory when it is accessed;
			otherwise it may be pageable */
	struct gs_array *array; /* The array that contains `address`, or NULL. The queued copy has
				   its own reference to it. */
};

struct gs_copy {
	struct gs_side dst;
	struct gs_side src;
	size_t width; /* bytes */
	size_t height;
	size_t depth;
	bool peers; /* whether a peer copy: the stream's device need not have access to the memory
		     */
	int device; /* Set by gs_copy_submit(), not by callers: the device that must have access to
		       the memory. */
};

/*
 * Queues the copy, whose description is copied. Before it returns, pageable host memory has been
 * read or written, except that small pageable sources are copied to a buffer instead; with wait,
 * the whole copy is complete. Waits without a limit in these cases only. Returns CUDA_SUCCESS,
 * CUDA_ERROR_INVALID_VALUE for memory that the copy must not access, CUDA_ERROR_OUT_OF_MEMORY, an
 * error of gs_enter(), or one of gs_stream_missing(). Nothing is queued on failure. An empty copy
 * succeeds.
 */
CUresult gs_copy_submit(CUstream stream, const struct gs_copy *copy, bool wait);

#endif /* GS_COPY_H */
