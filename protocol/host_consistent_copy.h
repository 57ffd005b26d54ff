/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Consistent copy of the changes in replicated host memory: a set of runs, ordered so that an
 * observer at the other end that sees a flag also sees the data written before it
 * (docs/host-memory.md). This makes programs that poll words written by kernels, and kernels that
 * poll words written by programs, work over a network.
 *
 * Ownership: all memory is the caller's; gp_consistent_copy_fini() frees the buffers.
 * Threads: any; one thread at a time per struct.
 */
#ifndef GP_PROTOCOL_CONSISTENT_COPY_H
#define GP_PROTOCOL_CONSISTENT_COPY_H

#include "protocol/host_changes.h"

#include <stdbool.h>

/* One scan for each stage in which the other end stores. */
#define GP_CONSISTENT_COPY_SCANS 5

/* The changes that an end sends at once. Initialized to zeros. */
struct gp_consistent_copy {
	struct gp_changes scans[GP_CONSISTENT_COPY_SCANS];
	struct gp_changes ordered; /* the result, in the order in which it is to be stored */
	bool merges;               /* omits unchanged bytes (host_merge.h) */
	/* Optional filter, called before a copy is committed: once for each 8 aligned bytes of the
	 * ranges that would change at the other end, with their new value. If it returns false for
	 * any of them, the copy is discarded. */
	bool (*allow)(void *arg, uint64_t value);
	/* Optional; called before the filter, when all memory of the copy has been read. May set
	 * state that `allow` depends on. */
	void (*on_read)(void *arg);
	void *arg;
};

enum gp_consistent_copy_part {
	GP_CONSISTENT_COPY_ALL,  /* all changes, or none if they exceed the limit */
	GP_CONSISTENT_COPY_LONG, /* runs longer than GP_CHANGES_SHORT, while there is room */
	GP_CONSISTENT_COPY_ANY,  /* runs of any length, while there is room */
};

/*
 * Copies the changes of the ranges to picture->ordered and updates the shadows. Returns the number
 * of bytes of the ranges, counted in sequence, that the copy covers; 0: nothing was copied.
 *
 * ALL is the state at a single moment if two scans are equal, or differ only in few runs of which
 * two scans of their own, in between, were equal. An observer that sees a flag then finds the data
 * written before it. Runs are ordered for storing: first the inner parts of long runs, then their
 * first and last 8 bytes, then possible remainders of long runs (host_run_bitmap.h), then runs of
 * more than 4 bytes, then single words. If the memory changes all the time, the scans run in
 * reverse of this order: a part that is stored later may be older than the data before it, but
 * never newer.
 */
uint64_t gp_consistent_copy_build(struct gp_consistent_copy *picture,
				  const struct gp_changes_range *ranges, size_t count,
				  enum gp_consistent_copy_part part);
/* Frees buffers that are larger than a small copy needs. */
void gp_consistent_copy_trim(struct gp_consistent_copy *picture);
/* Frees all buffers. */
void gp_consistent_copy_fini(struct gp_consistent_copy *picture);

#endif /* GP_PROTOCOL_CONSISTENT_COPY_H */
