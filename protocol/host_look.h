/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks at memory that others change meanwhile: what differs from its shadow, as runs
 * (host_changes.h).  host_picture.c makes of several looks what the other end may store.
 *
 * Plain memory of the caller's; any thread, one at a time.
 */
#ifndef GP_PROTOCOL_DIFF_SCAN_H
#define GP_PROTOCOL_DIFF_SCAN_H

#include "protocol/host_changes.h"

/* What one look holds: as many bytes of runs. */
#define GP_DIFF_SCAN_MAX ((size_t)4 << 20)

/* false: there is no memory for so much more. */
bool gp_diff_scan_grow(struct gp_changes *changes, size_t size);

/* What has changed, as far as there is room, in the order of the ranges.  How many bytes of them,
 * one after the other, were looked at. */
uint64_t gp_diff_scan(struct gp_changes *changes, const struct gp_changes_range *ranges,
		      size_t count);
/* The same from the last word to the first one: what lies behind was seen before what lies in front
 * of it.  spare is written over.  false: there was no room for all. */
bool gp_diff_scan_reverse(struct gp_changes *changes, struct gp_changes *spare,
			  const struct gp_changes_range *ranges, size_t count);

/* A run among those that a look has found. */
struct gp_run_cursor {
	const struct gp_changes *changes;
	const struct gp_changes_range *ranges;
	size_t count;
	size_t range, at;
	struct gp_change run; /* size 0: there is no more */
};

struct gp_run_cursor gp_run_cursor_first(const struct gp_changes *changes,
					 const struct gp_changes_range *ranges, size_t count);
void gp_run_cursor_next(struct gp_run_cursor *place);

#endif /* GP_PROTOCOL_DIFF_SCAN_H */
