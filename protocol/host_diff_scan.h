/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Diff scan of replicated host memory: finds the words of ranges that differ from their shadows, as
 * runs (host_changes.h). Other threads and a GPU may write the memory meanwhile;
 * host_consistent_copy.c combines several scans into a copy that the other end may store. A scan
 * changes neither the memory nor the shadows.
 *
 * Ownership: gp_changes.bytes is malloc'ed and grown by the functions; the caller initializes
 * struct gp_changes to zeros and frees `bytes`. All other memory is the caller's.
 * Threads: any; one thread at a time per buffer.
 * Units: bytes.
 */
#ifndef GP_HOST_DIFF_SCAN_H
#define GP_HOST_DIFF_SCAN_H

#include "protocol/host_changes.h"

/* Maximum size of the runs that a scan finds. */
#define GP_DIFF_SCAN_MAX ((size_t)4 << 20)

/* Ensures a capacity for `size` more bytes; the content is retained. Returns true, or false if out
 * of memory; the buffer is then unchanged. */
bool gp_diff_scan_grow(struct gp_changes *changes, size_t size);

/* Replaces the content of `changes` by the runs of the ranges, scanned in order until the runs
 * would exceed GP_DIFF_SCAN_MAX or memory is exhausted. Returns the number of bytes scanned
 * completely, counted over the ranges in sequence; less than their sum if the scan was ended early.
 * `changes` may then contain runs of the next 1024 bytes, too. */
uint64_t gp_diff_scan(struct gp_changes *changes, const struct gp_changes_range *ranges,
		      size_t count);
/* Scans like gp_diff_scan(), but in descending order: words at higher addresses are read before
 * those at lower ones. The runs in `changes` are in ascending order. The content of `spare` is
 * overwritten. Returns true, or false if the runs exceed the limit or memory is exhausted;
 * `changes` is then undefined. */
bool gp_diff_scan_reverse(struct gp_changes *changes, struct gp_changes *spare,
			  const struct gp_changes_range *ranges, size_t count);

/* Cursor over the runs that a scan has found. Scan and ranges are borrowed and must not change; the
 * ranges must not overlap. */
struct gp_run_cursor {
	const struct gp_changes *changes;
	const struct gp_changes_range *ranges;
	size_t count;
	/* index of the range that contains `run`, and offset in `changes` of the run after `run` */
	size_t range, at;
	struct gp_change run; /* size 0: end of the runs */
};

/* Returns a cursor at the first run; its run has size 0 if there are none. */
struct gp_run_cursor gp_run_cursor_first(const struct gp_changes *changes,
					 const struct gp_changes_range *ranges, size_t count);
/* Advances the cursor to the next run and its range. */
void gp_run_cursor_next(struct gp_run_cursor *place);

#endif /* GP_HOST_DIFF_SCAN_H */
