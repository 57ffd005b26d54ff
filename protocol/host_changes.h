/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two copies of memory at two ends, and what differs (docs/host-memory.md): an end compares its
 * copy with its shadow, which is what both ends last agreed on, and sends the words that differ as
 * runs; the other end stores them in its copy and in its shadow.
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

/* What one record or reply carries; a few KiB are the least in which something gets on. */
#define GP_CHANGES_MAX ((size_t)96 << 10)
/* Of one gpHostFetch. */
#define GP_HOST_RANGES_MAX 512
/* Runs up to this long are stored behind all others. */
#define GP_CHANGES_SHORT 8

/* Copy and shadow are equally aligned to 8 with the address. */
struct gp_changes_range {
	uint64_t address;
	void *copy, *shadow;
	size_t size;
};

struct gp_changes {
	uint8_t *bytes; /* room of them, aligned to 8; the caller's */
	size_t room, size;
};

/*
 * Looks at the ranges in order, until two looks are alike, and writes what has changed behind what
 * is there; the shadows become what was written.  How many bytes of the ranges, one after another,
 * are dealt with: fewer than all if there was no room.  A change that comes meanwhile may be left
 * for the next call.
 */
uint64_t gp_changes_find(struct gp_changes *changes, const struct gp_changes_range *ranges,
			 size_t count);

/* All of a range as it is, from an offset on, whatever the shadow is.  How many bytes there was
 * room for. */
size_t gp_changes_take_all(struct gp_changes *changes, const struct gp_changes_range *range,
			   size_t offset);

struct gp_change {
	uint64_t address;
	const void *bytes;
	uint32_t size; /* not 0 */
};

/* The run at *at, which moves behind it.  0 at the end: 1, there was one; -1: that is no run. */
int gp_changes_next(const void *bytes, size_t size, size_t *at, struct gp_change *change);

/* Whether all of it is runs. */
bool gp_changes_are_sound(const void *bytes, size_t size);

/* Calls store() for each of sound changes, in the order in which they are to be stored. */
void gp_changes_each(const void *bytes, size_t size,
		     void (*store)(void *arg, const struct gp_change *change), void *arg);

/* From and to memory that others use meanwhile. */
void gp_changes_store(void *to, const void *from, size_t size);
void gp_changes_load(void *to, const void *from, size_t size);

#endif /* GP_PROTOCOL_HOST_CHANGES_H */
