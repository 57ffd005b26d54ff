/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and fills of up to three dimensions, queued on a stream. Rows are processed in chunks;
 * each chunk's addresses are checked when it is processed, and a cancelled stream stops between two
 * chunks.
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
	bool device;            /* must be device or pinned memory when it is accessed */
	struct gs_array *array; /* the array that contains `address`; the copy holds a reference */
};

struct gs_copy {
	struct gs_side dst;
	struct gs_side src;
	size_t width; /* bytes */
	size_t height;
	size_t depth;
	bool peers; /* memory that the stream's device need not be able to access */
	int device; /* device that must be able to access it; set by gs_copy_submit() */
};

/*
 * Queues the copy. Pageable host memory has been read or written when this returns; with wait, all
 * memory has. Small pageable sources are buffered instead of waited for.
 */
CUresult gs_copy_submit(CUstream stream, const struct gs_copy *copy, bool wait);

#endif /* GS_COPY_H */
