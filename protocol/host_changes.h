/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two copies of memory at two ends, and what differs (docs/host-memory.md): an end compares its
 * copy with its shadow, which is what both ends last agreed on, and sends the words that differ as
 * runs; the other end stores them in its copy and in its shadow, in the order in which they come.
 *
 * A run is the address (u64), its size in bytes (u32), 0 (u32) and its bytes, padded to 8.  Where
 * single bytes of its words are unchanged the 0 is another number (host_merge.h).  Copies may
 * change while they are looked at or stored to, by other threads and by a GPU: aligned words of 4
 * bytes are never torn.  Plain memory of the caller's; any thread.
 */
#ifndef GP_PROTOCOL_HOST_CHANGES_H
#define GP_PROTOCOL_HOST_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What one record carries. */
#define GP_CHANGES_MAX ((size_t)96 << 10)
/* Of one gpHostTake. */
#define GP_HOST_RANGES_MAX 4096
/* Of one gpHostTakeBehind or gpHostTakeChanged.  A thread of the session looks at them, and other
 * answers wait meanwhile: a look at so much takes some 0.1 ms, and an answer holds all of it. */
#define GP_HOST_AFTER_MAX ((uint64_t)1 << 20)
#define GP_HOST_AFTER_RANGES 256
/* Of one session's gpHostTakeChanged: so many are held, and so long. */
#define GP_HOST_PENDING_MAX 64
#define GP_HOST_PENDING_MS 100
/* Runs up to this long are stored behind all others: one of them may be a flag. */
#define GP_CHANGES_SHORT 8
/* Runs up to this long name their unchanged bytes in their head. */
#define GP_CHANGES_MASKED 32

/* What the work belongs to that a gpHostTakeBehind waits for. */
enum gp_host_after {
	GP_HOST_AFTER_STREAM,
	GP_HOST_AFTER_EVENT,
	GP_HOST_AFTER_CONTEXT,
};

/* Copy and shadow are equally aligned to 8 with the address. */
struct gp_changes_range {
	uint64_t address;
	void *copy, *shadow;
	size_t size;
	uint8_t *
		run_bitmap; /* host_marks.h; the first byte is of the 32 bytes that address is in */
};

/* Runs; the bytes are aligned to 8. */
struct gp_changes {
	uint8_t *bytes;
	size_t size, room;
};

#define GP_CHANGES_HEAD 16

/* What a run of so many bytes takes. */
static inline size_t
gp_changes_get_run_size(size_t size)
{
	return GP_CHANGES_HEAD + ((size + 7) & ~(size_t)7);
}

/* One more run, for which there is room; of bytes that nobody else uses. */
void gp_changes_write(struct gp_changes *changes, uint64_t address, const void *bytes, size_t size);

/* All of a range as it is, from an offset on, whatever the shadow is; behind what is there.  How
 * many bytes there was room for. */
size_t gp_changes_write_all(struct gp_changes *changes, const struct gp_changes_range *range,
			    size_t offset);
/* The runs of `all` from *at on, as many as there is room for, cut where they are longer than that;
 * *at and *skip, zeros at first, move on.  false: there were none. */
bool gp_changes_move(struct gp_changes *changes, const struct gp_changes *all, size_t *at,
		     size_t *skip);

struct gp_change {
	uint64_t address;
	const void *bytes;
	uint32_t size;   /* not 0 */
	uint32_t same;   /* a bit for each unchanged byte, of at most GP_CHANGES_MASKED */
	uint32_t packed; /* size of the packed bytes (host_merge.h); 0: they are plain */
};

/* The run at *at, which moves behind it.  0 at the end: 1, there was one; -1: that is no run. */
int gp_changes_next(const void *bytes, size_t size, size_t *at, struct gp_change *change);

/* Whether all of it is runs. */
bool gp_changes_are_valid(const void *bytes, size_t size);

/* Calls store() for each of sound changes, in their order.  Packed runs are unpacked, so that only
 * runs of at most GP_CHANGES_MASKED bytes have unchanged bytes. */
void gp_changes_for_each(const void *bytes, size_t size,
			 void (*store)(void *arg, const struct gp_change *change), void *arg);

/* The size of the unit of memory at an address that is moved at once: 8, 4 or 1. */
size_t gp_changes_get_unit(const void *at, size_t left);
/* From and to memory that others use meanwhile. */
void gp_changes_store(void *to, const void *from, size_t size);
void gp_changes_load(void *to, const void *from, size_t size);
/* true: each word of it was seen to be as in the shadow, which nobody else uses. */
bool gp_changes_compare_equal(const void *copy, const void *shadow, size_t size);
void gp_changes_load_reverse(void *to, const void *from, size_t size);

#endif /* GP_PROTOCOL_HOST_CHANGES_H */
