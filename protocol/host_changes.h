/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two copies of memory at two ends, and what differs (docs/host-memory.md): an end compares its
 * copy with its shadow, which is what both ends last agreed on, and sends the words that differ as
 * runs; the other end stores them in its copy and in its shadow, in the order in which they come.
 *
 * A run is the address (u64), its size in bytes (u32), 0 (u32) and its bytes, padded to 8.  Copies
 * may change while they are looked at or stored to, by other threads and by a GPU: aligned words of
 * 4 bytes are never torn.  Plain memory of the caller's; any thread.
 */
#ifndef GP_PROTOCOL_HOST_CHANGES_H
#define GP_PROTOCOL_HOST_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What one record carries. */
#define GP_CHANGES_MAX ((size_t)96 << 10)
/* What one picture holds: as many bytes of runs. */
#define GP_PICTURE_MAX ((size_t)4 << 20)
/* Of one gpHostTake. */
#define GP_HOST_RANGES_MAX 4096
/* Runs up to this long are stored behind all others: one of them may be a flag. */
#define GP_CHANGES_SHORT 8

/* Copy and shadow are equally aligned to 8 with the address. */
struct gp_changes_range {
	uint64_t address;
	void *copy, *shadow;
	size_t size;
};

/* Runs; the bytes are aligned to 8. */
struct gp_changes {
	uint8_t *bytes;
	size_t size, room;
};

/* What an end sends at once.  Zeros at first; gp_picture_fini() frees its memory. */
struct gp_picture {
	struct gp_changes looks[3];
	struct gp_changes ordered; /* what was taken */
};

enum gp_picture_part {
	GP_PICTURE_ALL,  /* everything; nothing if that is too much */
	GP_PICTURE_LONG, /* runs that are not short, as far as there is room */
	GP_PICTURE_ANY,  /* all runs, as far as there is room */
};

/*
 * Takes what has changed in the ranges; it is in picture->ordered then, and in the shadows.  How
 * many bytes of the ranges, one after another, that holds for; 0: nothing was taken.
 *
 * ALL is what was there at one moment, if two looks are alike; so whoever sees a flag in it finds
 * in it what was written before.  It is ordered to be stored: what is inside of long runs, then
 * their first and last 8 bytes, then runs of more than 4 bytes, then single words.  Where no two
 * looks are alike, short runs are as they were two looks ago, and what came since waits: it may be
 * older than the rest then, never newer.
 */
uint64_t gp_picture_take(struct gp_picture *picture, const struct gp_changes_range *ranges,
			 size_t count, enum gp_picture_part part);
/* Keeps no more memory than a small one needs. */
void gp_picture_trim(struct gp_picture *picture);
void gp_picture_fini(struct gp_picture *picture);

/* All of a range as it is, from an offset on, whatever the shadow is; behind what is there.  How
 * many bytes there was room for. */
size_t gp_changes_take_all(struct gp_changes *changes, const struct gp_changes_range *range,
			   size_t offset);
/* The runs of `all` from *at on, as many as there is room for, cut where they are longer than that;
 * *at and *skip, zeros at first, move on.  false: there were none. */
bool gp_changes_move(struct gp_changes *changes, const struct gp_changes *all, size_t *at,
		     size_t *skip);

struct gp_change {
	uint64_t address;
	const void *bytes;
	uint32_t size; /* not 0 */
};

/* The run at *at, which moves behind it.  0 at the end: 1, there was one; -1: that is no run. */
int gp_changes_next(const void *bytes, size_t size, size_t *at, struct gp_change *change);

/* Whether all of it is runs. */
bool gp_changes_are_sound(const void *bytes, size_t size);

/* Calls store() for each of sound changes, in their order. */
void gp_changes_each(const void *bytes, size_t size,
		     void (*store)(void *arg, const struct gp_change *change), void *arg);

/* From and to memory that others use meanwhile. */
void gp_changes_store(void *to, const void *from, size_t size);
void gp_changes_load(void *to, const void *from, size_t size);

#endif /* GP_PROTOCOL_HOST_CHANGES_H */
