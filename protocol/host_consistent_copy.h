/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consistent copy of the changes in replicated host memory: a set of runs (ranges of changed words,
 * host_changes.h). A flag is a short run that announces data in other runs. The order of the runs
 * ensures that an observer at the other end that sees a flag also sees the data that was written
 * before it (docs/host-memory.md). This makes programs that poll words written by kernels, and
 * kernels that poll words written by programs, work over a network.
 *
 * Ownership: ranges and shadows are the caller's; the buffers belong to the struct until
 * gp_consistent_copy_fini().
 * Threads: any; one thread at a time per struct. Other threads and a GPU may write the memory
 * meanwhile.
 */
#ifndef GP_HOST_CONSISTENT_COPY_H
#define GP_HOST_CONSISTENT_COPY_H

#include "protocol/host_changes.h"

#include <stdbool.h>

/* Number of scan buffers: one for each of the stages in which the other end stores runs
 * (gp_consistent_copy_build()). */
#define GP_CONSISTENT_COPY_SCANS 5

/* The changes that an end sends at once. The owner initializes it to zeros and sets the members
 * from `merges` on; the functions below set the others. */
struct gp_consistent_copy {
	struct gp_changes scans[GP_CONSISTENT_COPY_SCANS];
	/* the result: runs in the order in which the other end stores them */
	struct gp_changes ordered;
	bool merges; /* marks unchanged bytes, if the other end supports that (host_merge.h) */
	/* Filter, called before a copy is committed, with the new value of each 8 aligned bytes
	 * that would change at the other end and are entirely within a range. It is called for all
	 * of them, also after it has returned false. If it has returned false for any of them, the
	 * copy is discarded. NULL: no filter. */
	bool (*allow)(void *arg, uint64_t value);
	/* Called before the filter, or without one, when all memory of the copy has been read. May
	 * set state that `allow` depends on. NULL: not needed. */
	void (*on_read)(void *arg);
	/* passed to `allow` and `on_read` */
	void *arg;
};

/* The changes that gp_consistent_copy_build() copies. */
enum gp_consistent_copy_part {
	GP_CONSISTENT_COPY_ALL,  /* all changes, or none if they exceed GP_DIFF_SCAN_MAX */
	GP_CONSISTENT_COPY_LONG, /* only runs longer than GP_CHANGES_SHORT, up to that limit */
	GP_CONSISTENT_COPY_ANY,  /* runs of any length, up to that limit */
};

/*
 * Copies the changes of the ranges to consistent->ordered, and updates the shadows and run bitmaps
 * of these changes. Returns the number of bytes of the ranges, counted in sequence, that the copy
 * covers; `ordered` is empty if nothing has changed in them. Returns 0 if nothing was copied,
 * because the changes exceed GP_DIFF_SCAN_MAX (host_diff_scan.h), the filter rejected them, or
 * memory is exhausted; `ordered` is then empty and the shadows are unchanged.
 *
 * Runs are ordered for storing in five stages: the inner parts of long runs, their first and last 8
 * bytes, possible remainders of long runs (host_run_bitmap.h), other runs of more than 4 bytes, and
 * single words.
 *
 * GP_CONSISTENT_COPY_ALL scans the ranges until two scans are equal; the copy is then the state at
 * a single moment. If two scans differ only in few runs, these runs alone are read again between
 * two scans, until two readings are equal. If the memory changes all the time, each stage is
 * scanned separately, the last stage first: a part that is stored later may then be older than the
 * parts stored before it, but never newer. The other kinds scan once, and the copy may be a mixture
 * of several moments.
 */
uint64_t gp_consistent_copy_build(struct gp_consistent_copy *consistent,
				  const struct gp_changes_range *ranges, size_t count,
				  enum gp_consistent_copy_part part);
/* Frees the buffers that are larger than 256 KiB; the result is then undefined. Called after a copy
 * was sent. */
void gp_consistent_copy_trim(struct gp_consistent_copy *consistent);
/* Frees all buffers; the struct may be used again. */
void gp_consistent_copy_fini(struct gp_consistent_copy *consistent);

#endif /* GP_HOST_CONSISTENT_COPY_H */
