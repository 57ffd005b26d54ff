/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes of replicated host memory (docs/host-memory.md): encoding and application of the words
 * that differ between an end's replica and its shadow, which is the content on which both ends last
 * agreed. An end sends the words that differ as runs; the other end stores them in its replica and
 * its shadow, in the order of arrival.
 *
 * A run is an address (u64), a size in bytes (u32), 0 (u32) and its bytes, padded to 8. If single
 * bytes of its words are unchanged, the 0 is replaced by a mask or a packed size (host_merge.h).
 * Other threads and a GPU may write a replica while it is read or stored to: aligned words of 4
 * bytes are never torn.
 *
 * Ownership: all memory is the caller's.
 * Threads: any; one thread at a time per struct gp_changes.
 */
#ifndef GP_PROTOCOL_HOST_CHANGES_H
#define GP_PROTOCOL_HOST_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum bytes of runs in a record. */
#define GP_CHANGES_MAX ((size_t)96 << 10)
/* Maximum number of ranges of a gpHostTake. */
#define GP_HOST_RANGES_MAX 4096
/* Limits of a gpHostTakeBehind or gpHostTakeChanged: bytes and ranges. A thread of the session
 * scans the ranges while other replies wait: a scan of this size takes about 0.1 ms, and a reply
 * can contain all of it. */
#define GP_HOST_AFTER_MAX ((uint64_t)1 << 20)
#define GP_HOST_AFTER_RANGES 256
/* Limits of a session's pending gpHostTakeChanged: their number, and the milliseconds until each is
 * answered. */
#define GP_HOST_PENDING_MAX 64
#define GP_HOST_PENDING_MS 100
/* Runs of up to this size are stored after all others, because each may be a flag. */
#define GP_CHANGES_SHORT 8
/* Runs of up to this size have a mask of unchanged bytes in their head. */
#define GP_CHANGES_MASKED 32

/* The work that a gpHostTakeBehind waits for. */
enum gp_host_after {
	GP_HOST_AFTER_STREAM,
	GP_HOST_AFTER_EVENT,
	GP_HOST_AFTER_CONTEXT,
};

/* A range of replicated memory. Replica and shadow have the same alignment to 8 as the address. */
struct gp_changes_range {
	uint64_t address;
	void *copy, *shadow;
	size_t size;
	/* See host_run_bitmap.h; its first byte covers the 32 bytes that contain `address`. */
	uint8_t *run_bitmap;
};

/* A buffer of runs; `bytes` is aligned to 8. */
struct gp_changes {
	uint8_t *bytes;
	size_t size, room;
};

#define GP_CHANGES_HEAD 16

/* Returns the bytes that a run of this size occupies. */
static inline size_t
gp_changes_get_run_size(size_t size)
{
	return GP_CHANGES_HEAD + ((size + 7) & ~(size_t)7);
}

/* Appends a run, for which there must be room. The bytes must not change during the call. */
void gp_changes_write(struct gp_changes *changes, uint64_t address, const void *bytes, size_t size);

/* Appends the whole content of a range from an offset on, regardless of the shadow. Returns the
 * number of bytes for which there was room. */
size_t gp_changes_write_all(struct gp_changes *changes, const struct gp_changes_range *range,
			    size_t offset);
/* Appends runs of `all` from *at on while there is room; runs that do not fit are cut. *at and
 * *skip, initially zero, are advanced. Returns false if nothing was appended. */
bool gp_changes_move(struct gp_changes *changes, const struct gp_changes *all, size_t *at,
		     size_t *skip);

/* A decoded run. */
struct gp_change {
	uint64_t address;
	const void *bytes;
	uint32_t size;   /* never 0 */
	uint32_t same;   /* mask of the unchanged bytes, for a size of at most GP_CHANGES_MASKED */
	uint32_t packed; /* size of the packed bytes (host_merge.h); 0: not packed */
};

/* Decodes the run at *at and advances *at. Returns 1, 0 at the end, or -1 if the run is
 * malformed. */
int gp_changes_next(const void *bytes, size_t size, size_t *at, struct gp_change *change);

/* Whether the bytes consist of valid runs only. */
bool gp_changes_are_valid(const void *bytes, size_t size);

/* Calls store() for each run of valid changes, in order. Packed runs are unpacked, so only runs of
 * at most GP_CHANGES_MASKED bytes have unchanged bytes. */
void gp_changes_for_each(const void *bytes, size_t size,
			 void (*store)(void *arg, const struct gp_change *change), void *arg);

/* Returns the size of the unit at an address that is moved by a single access: 8, 4 or 1. */
size_t gp_changes_get_unit(const void *at, size_t left);
/* Copy to or from memory that other threads or a GPU access concurrently, in ascending order. */
void gp_changes_store(void *to, const void *from, size_t size);
void gp_changes_load(void *to, const void *from, size_t size);
/* Returns true if each word of `copy` was seen to equal the shadow. The shadow must not change
 * during the call. */
bool gp_changes_compare_equal(const void *copy, const void *shadow, size_t size);
/* Like gp_changes_load(), in descending order. */
void gp_changes_load_reverse(void *to, const void *from, size_t size);

#endif /* GP_PROTOCOL_HOST_CHANGES_H */
