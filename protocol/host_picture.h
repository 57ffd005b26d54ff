/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has changed at one end, as the other end may store it: whoever sees a flag there sees its
 * data (docs/host-memory.md).  Programs that wait for words of kernels, and kernels that wait for
 * words of programs, work over a network because of it.
 *
 * Plain memory of the caller's; any thread, one at a time.
 */
#ifndef GP_PROTOCOL_CONSISTENT_COPY_H
#define GP_PROTOCOL_CONSISTENT_COPY_H

#include "protocol/host_changes.h"

#include <stdbool.h>

/* One for each stage in which the other end stores. */
#define GP_CONSISTENT_COPY_SCANS 5

/* What an end sends at once.  Zeros at first; gp_consistent_copy_fini() frees its memory. */
struct gp_consistent_copy {
	struct gp_changes scans[GP_CONSISTENT_COPY_SCANS];
	struct gp_changes ordered; /* what was taken */
	bool merges;               /* unchanged bytes are not sent (host_merge.h) */
	/* NULL, or called before a picture is taken: for each 8 aligned bytes of the ranges of
	 * which something would be in it, with what the other end will have there.  false: it is
	 * not taken. */
	bool (*allow)(void *arg, uint64_t value);
	/* NULL, or called before that, when all that would be in it has been read: may set `may`
	 * by what was true then. */
	void (*on_read)(void *arg);
	void *arg;
};

enum gp_consistent_copy_part {
	GP_CONSISTENT_COPY_ALL,  /* everything; nothing if that is too much */
	GP_CONSISTENT_COPY_LONG, /* runs that are not short, as far as there is room */
	GP_CONSISTENT_COPY_ANY,  /* all runs, as far as there is room */
};

/*
 * Takes what has changed in the ranges; it is in picture->ordered then, and in the shadows.  How
 * many bytes of the ranges, one after another, that holds for; 0: nothing was taken.
 *
 * ALL is what was there at one moment, if two looks are alike, or differ in few runs that two looks
 * at these alone, in between, found alike.  So whoever sees a flag in it finds in it what was
 * written before.  It is ordered to be stored: what is inside of long runs, then their first and
 * last 8 bytes, then what may be the rest of long ones (host_marks.h), then runs of more than 4
 * bytes, then single words.  Where nothing holds still, everything is seen in reverse of that: what
 * is stored behind something else may be older than it, never newer.
 */
uint64_t gp_consistent_copy_build(struct gp_consistent_copy *picture,
				  const struct gp_changes_range *ranges, size_t count,
				  enum gp_consistent_copy_part part);
/* Keeps no more memory than a small one needs. */
void gp_consistent_copy_trim(struct gp_consistent_copy *picture);
void gp_consistent_copy_fini(struct gp_consistent_copy *picture);

#endif /* GP_PROTOCOL_CONSISTENT_COPY_H */
