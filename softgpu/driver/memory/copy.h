/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy or a fill of up to three dimensions, queued on a stream. Rows are moved in chunks; each
 * chunk's addresses are checked when it is moved, and a cancelled stream stops between two.
 */
#ifndef GS_COPY_H
#define GS_COPY_H

#include "softgpu/driver/stream/stream.h"

struct gs_array;

/* One side; pitch and slice are distances in bytes between rows and between planes. */
struct gs_side {
	uint64_t address;
	size_t pitch;
	size_t slice;
	bool device;            /* must be device memory or pinned when it is used */
	struct gs_array *array; /* address is in its memory; the copy takes a reference */
};

struct gs_copy {
	struct gs_side dst;
	struct gs_side src;
	size_t width; /* bytes */
	size_t height;
	size_t depth;
	bool peers; /* of memory that the stream's device needs not reach */
	int device; /* that has to reach it; gs_copy_submit() fills it in */
};

/*
 * Queues the copy. A host side that is not pinned has been read, or written, when this returns;
 * wait: so has everything. Small pageable sources are taken along instead of being waited for.
 */
CUresult gs_copy_submit(CUstream stream, const struct gs_copy *copy, bool wait);

#endif /* GS_COPY_H */
