/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consistent copy of the changes in replicated host memory: a set of runs (ranges of changed words,
 * host_changes.h), ordered so that an observer at the other end that sees a flag also sees the data
 * written before it (docs/host-memory.md). This makes programs that poll words written by kernels,
 * and kernels that poll words written by programs, work over a network.
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

/* Number of scan buffers: one for each stage in which the other end stores runs. */
#define GP_CONSISTENT_COPY_SCANS 5

/* The changes that an end sends at once. Initialized to zeros. */
struct gp_consistent_copy {
	struct gp_changes scans[GP_CONSISTENT_COPY_SCANS];
	/* the result, runs in the order in which they are to be stored */
	struct gp_changes ordered;
	bool merges; /* omits unchanged bytes (host_merge.h) */
	/* Filter, called before a copy is committed: once for each 8 aligned bytes of the ranges
	 * that would change at the other end, with their new value. If it returns false for any of
	 * them, the copy is discarded. NULL: no filter. */
	bool (*allow)(void *arg, uint64_t value);
	/* Called before the filter, when all memory of the copy has been read. May set state that
	 * `allow` depends on. NULL: not needed. */
	void (*on_read)(void *arg);
	/* passed to `allow` and `on_read` */
	void *arg;
};

/* The changes that gp_consistent_copy_build() copies. */
enum gp_consistent_copy_part {
	GP_CONSISTENT_COPY_ALL,  /* all changes, or none if they exceed GP_DIFF_SCAN_MAX */
	GP_CONSISTENT_COPY_LONG, /* only runs longer than GP_CHANGES_SHORT, up to the limit */
	GP_CONSISTENT_COPY_ANY,  /* runs of any length, up to the limit */
};

/*
 * Copies the changes of the ranges to consistent->ordered and updates the shadows. Returns the
 * number of bytes of the ranges, counted in sequence, that the copy covers. 0: nothing was copied,
 * because the changes exceed the limit, the filter rejected them, or memory is exhausted; `ordered`
 * is then empty and the shadows are unchanged.
 *
 * With GP_CONSISTENT_COPY_ALL, the copy is the state at a single moment if two scans are equal, or
 * differ only in few runs of which two scans of their own, in between, were equal. An observer that
 * sees a flag then finds the data written before it. Runs are ordered for storing: first the inner
 * parts of long runs, then their first and last 8 bytes, then possible remainders of long runs
 * (host_run_bitmap.h), then runs of more than 4 bytes, then single words. If the memory changes all
 * the time, the scans run in reverse of this order: a part that is stored later may be older than
 * the data before it, but never newer.
 */
uint64_t gp_consistent_copy_build(struct gp_consistent_copy *consistent,
				  const struct gp_changes_range *ranges, size_t count,
				  enum gp_consistent_copy_part part);
/* Frees buffers that are larger than a small copy needs; the result is then undefined. */
void gp_consistent_copy_trim(struct gp_consistent_copy *consistent);
/* Frees all buffers; the struct may be used again. */
void gp_consistent_copy_fini(struct gp_consistent_copy *consistent);

#endif /* GP_HOST_CONSISTENT_COPY_H */
