/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Diff scan of replicated host memory: finds the words of ranges that differ from their shadows, as
 * runs (host_changes.h), while other threads and a GPU may write the memory. host_consistent_copy.c
 * combines several scans into a copy that the other end may store.
 *
 * Ownership: all memory is the caller's; gp_changes.bytes is malloc'ed.
 * Threads: any; one thread at a time per buffer.
 */
#ifndef GP_PROTOCOL_DIFF_SCAN_H
#define GP_PROTOCOL_DIFF_SCAN_H

#include "protocol/host_changes.h"

/* Maximum bytes of runs that a scan finds. */
#define GP_DIFF_SCAN_MAX ((size_t)4 << 20)

/* Makes room for `size` more bytes. Returns false if out of memory. */
bool gp_diff_scan_grow(struct gp_changes *changes, size_t size);

/* Scans the ranges in order and stores the runs until the room is used up. Returns the number of
 * bytes scanned, counted over the ranges in sequence. */
uint64_t gp_diff_scan(struct gp_changes *changes, const struct gp_changes_range *ranges,
		      size_t count);
/* The same in descending order: words at higher addresses are read before those at lower ones. The
 * content of `spare` is overwritten. Returns false if there was no room for all runs. */
bool gp_diff_scan_reverse(struct gp_changes *changes, struct gp_changes *spare,
			  const struct gp_changes_range *ranges, size_t count);

/* Cursor over the runs that a scan has found. */
struct gp_run_cursor {
	const struct gp_changes *changes;
	const struct gp_changes_range *ranges;
	size_t count;
	size_t range, at;
	struct gp_change run; /* size 0: end of the runs */
};

/* Returns a cursor at the first run. */
struct gp_run_cursor gp_run_cursor_first(const struct gp_changes *changes,
					 const struct gp_changes_range *ranges, size_t count);
void gp_run_cursor_next(struct gp_run_cursor *place);

#endif /* GP_PROTOCOL_DIFF_SCAN_H */
